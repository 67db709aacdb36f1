"""Whose numbers have come into a wrong result, and how often, where that can be told from the result itself.

Where what is due is a sum of what single devices contribute, so may be what was found: the number of times that each of
them counts is then a small problem of least squares.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from grader.arrays.blocks import blocks
from grader.arrays.laid import Array
from grader.arrays.numbers import close
from grader.arrays.words import consecutive, enumeration, numbered, region
from grader.judging.behaviour import Execution, block_values

WHOLE = 1e-3  # how near to a whole number a share has to be
MORE_ENTRIES = 2  # entries than parts that a piece of a block must have
MOST_TIMES = 8  # times that something may count
MOST_RUNS = 8  # of entries behind one another, that are told
MOST_TRIED_ALONE = 64  # of an argument along a dimension, each of which is tried alone
SECONDS_FOR_ENTRIES = 0.3  # of computing, after which no further dimension is tried


def shares(run: Execution, reference: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Whose part of an argument is missing on a device, or counts more than once; "" where it cannot be told.

    `arguments` are those that hold an `Array`, and `reference` is a function of their values.
    """
    for name, argument in arguments.items():
        if isinstance(argument, Array) and argument.value.dtype.kind == "f":
            owners, parts = _contributions(run, reference, arguments, name)
            if len(parts) > 1 and (words := _told(run, f"`{name}`", owners, parts)):
                return words
    return ""


def entries_that_count(run: Execution, reference: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Which entries of an argument along a dimension are missing from a wrong block, or count more than once; "" where
    it cannot be told."""
    end = time.process_time() + SECONDS_FOR_ENTRIES
    for name, argument in arguments.items():
        if not isinstance(argument, Array) or argument.value.dtype.kind != "f":
            continue
        for dimension, size in enumerate(argument.value.shape):
            if 1 < size <= MOST_TRIED_ALONE:
                kept = [(*(slice(None),) * dimension, k) for k in range(size)]
                parts = _made_of(run, reference, arguments, name, kept, end)
                if parts and (words := _told_of_entries(run, f"`{name}`", dimension, parts)):
                    return words
    return ""


def _told_of_entries(run: Execution, name: str, dimension: int, parts: Sequence[np.ndarray]) -> str:
    (result,) = run.results
    whole = np.sum(parts, axis=0)
    for device, (block, index) in enumerate(zip(block_values(result), result.blocks.indices, strict=True)):
        if close(block, whole[index], run.case.roundings):
            continue
        counted = _counted(block, [part[index] for part in parts], run.case.roundings)
        odd = sorted({n for n in counted or () if n != 1})
        each = [f"{_runs_of([k for k, n in enumerate(counted or ()) if n == times])} {_often(times)}" for times in odd]
        along = f"Into the result on device {device} come, along dimension {dimension} of {name},"
        seen = [bool(part[index].any()) for part in parts]  # of others nobody can say how often they come
        others = ", and the others once" if all(seen) and 1 in (counted or ()) else ""
        return f"{along} {enumeration(each)} (counted from 0){others}." if each and any(counted or ()) else ""
    return ""


def _often(times: int) -> str:
    return f"{times} times" if times else "not at all"


def _runs_of(numbers: Sequence[int]) -> str:
    """Entries by their numbers, those behind one another together."""
    runs = list(consecutive(numbers))
    told = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:MOST_RUNS]]
    more = f" and {len(runs) - MOST_RUNS} more" if len(runs) > MOST_RUNS else ""
    return f"{'entries' if len(numbers) > 1 else 'entry'} {', '.join(told)}{more}"


def _contributions(
    run: Execution, reference: Callable[..., Any], arguments: Mapping[str, Any], name: str
) -> tuple[list[list[int]], list[np.ndarray]]:
    """The devices that hold the same part of an argument, and what comes out of that part alone: for every part."""
    argument = arguments[name]
    indices = blocks(argument.value.shape, argument.spec, dict(run.case.mesh)).indices
    owners: dict[str, list[int]] = {}
    for device, index in enumerate(indices):
        owners.setdefault(str(index), []).append(device)
    parts = _made_of(run, reference, arguments, name, [indices[devices[0]] for devices in owners.values()])
    return (list(owners.values()), parts) if parts else ([], [])


def _made_of(
    run: Execution,
    reference: Callable[..., Any],
    arguments: Mapping[str, Any],
    name: str,
    kept: Sequence[Any],
    end: float = math.inf,
) -> list[np.ndarray]:
    """What comes out of each of these parts of an argument alone; nothing where what is due is not their sum, or where
    they take longer than to this end."""
    argument, parts = arguments[name], []

    def result_of(value: np.ndarray) -> list[Any]:
        values = {other: jax.tree.map(lambda a: a.value, arguments[other]) for other in arguments} | {name: value}
        return jax.tree.leaves(reference(*values.values()))

    if any(np.any(leaf) for leaf in result_of(np.zeros_like(argument.value))):
        return []
    for part in kept:
        if time.process_time() > end:
            return []
        alone = np.zeros_like(argument.value)
        alone[part] = argument.value[part]
        leaves = result_of(alone)
        if len(leaves) != 1:
            return []
        parts.append(np.asarray(leaves[0], np.float64))
    (due,) = result_of(argument.value)
    alike = close(np.asarray(np.sum(parts, axis=0), np.float32), np.asarray(due), run.case.roundings)
    return parts if alike else []


def _told(run: Execution, name: str, owners: Sequence[Sequence[int]], parts: Sequence[np.ndarray]) -> str:
    """The first device on which somebody's part does not count once: in its block, or in a piece of that."""
    (result,) = run.results
    whole = np.sum(parts, axis=0)
    for device, (block, index) in enumerate(zip(block_values(result), result.blocks.indices, strict=True)):
        if close(block, whole[index], run.case.roundings):
            continue
        own = [part[index] for part in parts]
        if (counted := _counted(block, own, run.case.roundings)) is not None:
            return " ".join(_words(f"the result on device {device}", name, owners, counted)) if any(counted) else ""
        if words := _one_for_another(run, device, own, name, owners, parts):
            return words
        ways = (_told_of_pieces(device, block, own, pieces, run.case.roundings) for pieces in _cuts(run, block))
        return next((words for words in (" ".join(_words_of_piece(way, name, owners)) for way in ways if way)), "")
    return ""


def _one_for_another(
    run: Execution,
    device: int,
    own: Sequence[np.ndarray],
    name: str,
    owners: Sequence[Sequence[int]],
    parts: Sequence[np.ndarray],
) -> str:
    """That one device's part of a sum is the one that belongs into another device's block."""
    (result,) = run.results
    block, index, shape = block_values(result)[device], result.blocks.indices[device], result.blocks.shape
    if block.size < len(parts) + MORE_ENTRIES:
        return ""
    others = {_place(other, shape): other for other in result.blocks.indices if other != index}
    for (place, other), (k, part) in itertools.product(others.items(), enumerate(parts)):
        if not own[k].any() or np.count_nonzero(part[other] - own[k]) <= MORE_ENTRIES:
            continue
        if close(block, np.sum(own, axis=0) - own[k] + part[other], run.case.roundings):
            return (
                f"Into the result on device {device} comes what {name} on {_one_of([owners[k]])} gives for entries "
                f"{place}, in the place of what it gives for {_place(index, shape)}; all else in it is as it should "
                "be. Which part does each device add, and when?"
            )
    return ""


@dataclass(frozen=True)
class _Made:
    """A wrong piece of a block: where it is, the place for which it is made, and how often each part counts in it."""

    device: int
    place: str
    made_for: str
    counted: Sequence[int]


_Piece = tuple[slice, ...]


def _cuts(run: Execution, block: np.ndarray) -> Iterator[list[_Piece]]:
    """The ways to cut a block along one dimension into as many pieces as there are devices along an axis."""
    for dimension, size in itertools.product(range(block.ndim), sorted({n for n in run.case.mesh.values() if n > 1})):
        step, rest = divmod(block.shape[dimension], size)
        if step and not rest:
            before = (slice(None),) * dimension
            yield [(*before, slice(step * k, step * (k + 1))) for k in range(size)]


def _told_of_pieces(
    device: int, block: np.ndarray, parts: Sequence[np.ndarray], pieces: Sequence[_Piece], roundings: int
) -> _Made | None:
    """Of what the first wrong piece is made: of the sum that is due there, or of that which is due in another piece;
    None where it is of neither."""
    whole = np.sum(parts, axis=0)
    piece = next(piece for piece in pieces if not close(block[piece], whole[piece], roundings))
    if block[piece].size < len(parts) + MORE_ENTRIES:
        return None
    for other in sorted(pieces, key=lambda other: other != piece):
        counted = _counted(block[piece], [part[other] for part in parts], roundings)
        if counted is not None and any(counted):
            return _Made(device, _place(piece, block.shape), _place(other, block.shape), counted)
    place = _place(piece, block.shape)
    return None if block[piece].any() or not block.any() else _Made(device, place, place, [0] * len(parts))


def _place(piece: _Piece, shape: Sequence[int]) -> str:
    whole = (*piece, *(slice(None),) * (len(shape) - len(piece)))
    return region((one.start or 0, one.stop or n) for one, n in zip(whole, shape, strict=True))


def _words_of_piece(made: _Made, name: str, owners: Sequence[Sequence[int]]) -> Iterator[str]:
    where = f"entries {made.place} of the block on device {made.device}"
    if made.made_for != made.place:
        yield f"E{where[1:]} are numbers that belong to entries {made.made_for}, or parts of their sums."
    yield from _words(where, name, owners, made.counted)


def whole_times(block: np.ndarray, columns: np.ndarray, most: int) -> np.ndarray | None:
    """How often each column is in a block, by least squares: None where that is told by no numbers, is no whole number
    of times, or more than so many."""
    if np.linalg.matrix_rank(columns) < columns.shape[1]:
        return None
    times, *_ = np.linalg.lstsq(columns, np.ravel(block).astype(np.float64), rcond=None)
    whole = np.round(times)
    if (np.abs(times - whole) > WHOLE).any() or (np.abs(whole) > most).any():
        return None
    return whole.astype(int)


def _counted(block: np.ndarray, parts: Sequence[np.ndarray], roundings: int) -> list[int] | None:
    """How often each part is in a block, where it is made of them in one way only; 1 for a part without numbers."""
    some = [k for k, part in enumerate(parts) if part.any()]
    columns = np.stack([np.ravel(parts[k]) for k in some], axis=1) if some else np.zeros((block.size, 0))
    if not some or len(columns) <= len(some):
        return None
    if (whole := whole_times(block, columns, MOST_TIMES)) is None:
        return None
    counted = [1] * len(parts)
    for k, n in zip(some, whole.tolist(), strict=True):
        counted[k] = n
    made = sum(n * part for n, part in zip(counted, parts, strict=True))
    return counted if close(block, np.asarray(made, np.float32), roundings) else None


def _words(where: str, name: str, owners: Sequence[Sequence[int]], counted: Sequence[int]) -> Iterator[str]:
    missing = [owners[k] for k, n in enumerate(counted) if n == 0]
    if len(missing) == len(counted):
        yield f"Into {where} comes nothing of {name}."
    elif missing:
        yield f"Into {where} comes nothing of {name} from {_one_of(missing)}."
    for n in sorted({n for n in counted if n not in (0, 1)}):
        several = [owners[k] for k, times in enumerate(counted) if times == n]
        yield f"In {where}, {name} of {_one_of(several)} counts {n} times."


def _one_of(owners: Sequence[Sequence[int]]) -> str:
    """Devices; of those that hold the same the first."""
    return numbered("device", [devices[0] for devices in owners])
