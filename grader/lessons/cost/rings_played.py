"""Collectives played through, block by block, so that bytes and seconds are counted and not calculated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Played:
    """What one device sent, in bytes, and the seconds until the last device had what it should have."""

    sent: float
    seconds: float


def play(kind: str, n: int, volume: float, alpha: float = 0.0, bandwidth: float = 1.0) -> Played:
    """One collective on a one-way ring of n devices; `volume` is the whole array's bytes.

    A message takes `alpha` seconds and then its bytes at `bandwidth`.
    """
    block = volume / n
    hop = alpha + block / bandwidth
    match kind:
        case "all_gather":
            turns = _turns_to_gather(n)
        case "reduce_scatter":
            turns = _turns_to_reduce(n)
        case "all_reduce":
            turns = _turns_to_reduce(n) + _turns_to_gather(n)
        case "collective_permute":
            turns = 1
        case "all_to_all":  # straight to everyone, one after the other
            block, turns = block / n, sum(1 for other in range(n) if other != 0)
            hop = alpha + block / bandwidth
    return Played(turns * block, turns * hop)


def _turns_to_gather(n: int) -> int:
    """Everybody passes on what came last, until everybody has every block."""
    held = [{device} for device in range(n)]
    last = list(range(n))
    turns = 0
    while any(len(blocks) < n for blocks in held):
        last = [last[device - 1] for device in range(n)]
        for device, block in enumerate(last):
            held[device].add(block)
        turns += 1
    return turns


def _turns_to_reduce(n: int) -> int:
    """Everybody passes on the sum it added to last, until everybody has one sum with a term of each device."""
    terms = [[{device} for _ in range(n)] for device in range(n)]  # terms[device][chunk]
    chunk = list(range(n))  # which sum each device sends next
    turns = 0
    while not all(any(len(found) == n for found in mine) for mine in terms):
        sent = [(chunk[device - 1], set(terms[device - 1][chunk[device - 1]])) for device in range(n)]
        for device, (which, found) in enumerate(sent):
            terms[device][which] |= found
        chunk = [which for which, _ in sent]
        turns += 1
    return turns


def tree_seconds(n: int, volume: float, alpha: float, bandwidth: float) -> float:
    """An all-reduce up and down a binary tree: pairs add up, then pairs of pairs; then the way back."""
    waiting, seconds = n, 0.0
    while waiting > 1:
        waiting, seconds = (waiting + 1) // 2, seconds + alpha + volume / bandwidth
    return 2 * seconds


def busiest_link(volume: float, n: int, bidirectional: bool) -> float:
    """Bytes through the busiest link when all_to_all's blocks hop round a ring, the shorter way if there are two."""
    crossed: Counter[tuple[int, int]] = Counter()  # by link and direction
    block = volume / n / n
    for sender in range(n):
        for away in range(1, n):
            forward = 1.0 if not bidirectional or 2 * away < n else 0.5 if 2 * away == n else 0.0
            for hop in range(away):
                crossed[(sender + hop) % n, 1] += forward * block
            for hop in range(n - away):
                crossed[(sender - hop) % n, -1] += (1 - forward) * block
    return max(crossed.values())
