"""What can be computed beside a transfer: each product counted for one transfer, shared out fairly.

That a product is independent of a transfer is not enough: one product cannot hide three transfers. So every
product's FLOPs are dealt out among the transfers that may run beside it, such that the transfer with the least
gets as much as possible, then the next, and so on (max-min fairness).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

MANY = 20_000  # pairs of a transfer and a product: beyond, the fairest way would take seconds to find


def all_before(needs: Iterable[Iterable[int]]) -> list[int]:
    """For each operation all that it waits for, directly or not: a number with a bit for each of them.

    Sets would read better, and take three times as long where a program has a thousand transfers.

    Args:
      needs: for each operation the numbers of those, earlier in the order, whose results it uses.
    """
    before: list[int] = []
    for own in needs:
        bits = 0
        for k in own:
            bits |= before[k] | (1 << k)
        before.append(bits)
    return before


def shares_beside(
    products: Mapping[int, int], transfers: Mapping[int, int], before: Sequence[int], many: int = MANY
) -> dict[int, Fraction]:
    """FLOPs for one turn of each transfer. A product may run beside it if neither waits for the other."""
    beside = {t: [p for p in products if p != t and not (before[t] >> p | before[p] >> t) & 1] for t in transfers}
    return fair_shares(products, transfers, beside, many)


def fair_shares(
    products: Mapping[int, int],
    transfers: Mapping[int, int],
    beside: Mapping[int, Sequence[int]],
    many: int = MANY,
) -> dict[int, Fraction]:
    """FLOPs for one turn of each transfer.

    Args:
      products: each product's FLOPs.
      transfers: how many turns each transfer takes.
      beside: for each transfer the products that may run beside it.
      many: beyond so many pairs of both each product is dealt out evenly.

    Each round finds the largest share that all transfers left can have at once, and those that keep it from being
    larger: these are settled, together with every product that could be theirs. In very large programs each product
    is dealt out evenly instead, which may leave the worst-off transfer with less than it could have.
    """
    if sum(map(len, beside.values())) > many:
        return _even_shares(products, transfers, beside)
    shares: dict[int, Fraction] = {}
    left, unused = dict(transfers), dict(products)
    while left:
        tight, share = _tightest(left, unused, beside)
        shares |= dict.fromkeys(tight, share)
        for taken in {p for t in tight for p in beside[t]}:
            unused.pop(taken, None)
        left = {t: turns for t, turns in left.items() if t not in tight}
    return shares


def _even_shares(
    products: Mapping[int, int], transfers: Mapping[int, int], beside: Mapping[int, Sequence[int]]
) -> dict[int, Fraction]:
    turns: Counter[int] = Counter()  # beside each product
    for t, those in beside.items():
        turns.update(dict.fromkeys(those, transfers[t]))
    return {t: sum((Fraction(products[p], turns[p]) for p in those), Fraction(0)) for t, those in beside.items()}


def _tightest(
    transfers: Mapping[int, int], products: Mapping[int, int], beside: Mapping[int, Sequence[int]]
) -> tuple[set[int], Fraction]:
    """The transfers that have the least to share among them, and the share of each turn."""
    tight = set(transfers)
    while True:
        theirs = {p for t in tight for p in beside[t] if p in products}
        share = Fraction(sum(products[p] for p in theirs), sum(transfers[t] for t in tight))
        short = _short(transfers, products, beside, share)
        if not short:
            return tight, share
        tight = short


def _short(
    transfers: Mapping[int, int], products: Mapping[int, int], beside: Mapping[int, Sequence[int]], share: Fraction
) -> set[int]:
    """A set of transfers that cannot have this share each; empty when all of them can. (A maximal flow.)"""
    room = {p: flops * share.denominator for p, flops in products.items()}
    shares: dict[int, dict[int, int]] = {t: {} for t in transfers}
    for wanting, turns in transfers.items():
        missing = share.numerator * turns
        while missing:
            steps, reached = _path(wanting, room, shares, beside)
            if not steps:
                return reached
            missing -= _pour(steps, room, shares, missing)
    return set()


Handover = tuple[int, int, "int | None"]  # a product, the transfer that gets of it, the one that gives it up


def _path(
    start: int, room: Mapping[int, int], shares: Mapping[int, Mapping[int, int]], beside: Mapping[int, Sequence[int]]
) -> tuple[list[Handover], set[int]]:
    """The path from a transfer to a product with room, over others that would give some up; and all that were asked."""
    paths: dict[int, list[Handover]] = {start: []}
    queue, seen = [start], set()
    for taker in queue:
        for product in beside[taker]:
            if product in seen or product not in room:
                continue
            seen.add(product)
            if room[product]:
                return [(product, taker, None), *paths[taker]], set(paths)
            for giver in shares:
                if giver not in paths and shares[giver].get(product):
                    paths[giver] = [(product, taker, giver), *paths[taker]]
                    queue.append(giver)
    return [], set(paths)


def _pour(steps: Sequence[Handover], room: dict[int, int], shares: dict[int, dict[int, int]], missing: int) -> int:
    """Move what can be moved along a path; returns how much."""
    amount = min([missing, room[steps[0][0]], *(shares[giver][p] for p, _, giver in steps if giver is not None)])
    room[steps[0][0]] -= amount
    for product, taker, giver in steps:
        shares[taker][product] = shares[taker].get(product, 0) + amount
        if giver is not None:
            shares[giver][product] -= amount
    return amount
