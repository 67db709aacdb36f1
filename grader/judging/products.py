"""Of which blocks a wrong product of two matrices is made: what was multiplied with what, and for whose rows.

Where what is due is one product, what was found may be a sum of products of other blocks: how often each of them is in
it is a small problem of least squares, and told only where whole numbers solve it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from grader.arrays.laid import Array
from grader.arrays.numbers import close
from grader.arrays.words import enumeration
from grader.judging.behaviour import Execution, block_values
from grader.judging.results import Expected
from grader.judging.shares import whole_times

SPARE_ENTRIES = 2  # entries than unknown counts that a block must have
MOST_OF_ONE = 4  # that a product may count
MOST_UNKNOWN = 150

_Piece = tuple[int, int]  # where it starts and stops


def wrong_products(run: Execution, due: Expected) -> str:
    """What the first wrong block of a product is made of; "" where what is due is no product, or it cannot be told."""
    if len(run.results) != 1 or len(due) != 1:
        return ""
    (result,), (whole,) = run.results, due.values()
    if result.blocks.shape != whole.shape or not (factors := _factors(run, whole)):
        return ""
    (left, a), (right, b) = factors
    for device, (block, index) in enumerate(zip(block_values(result), result.blocks.indices, strict=True)):
        if close(block, whole[index], run.case.roundings) or not np.isfinite(block).all():
            continue
        rows, columns = (slice(*one.indices(n)[:2]) for one, n in zip(index, whole.shape, strict=True))
        for pieces in _cuts(run, len(b)):
            width = pieces[0][1]
            every = [(start, start + width) for start in range(len(b) - width + 1)]
            for columns_met in (pieces, every):  # a block may begin anywhere by mistake
                if words := _of_pairs(device, block, a[rows], b[:, columns], (columns_met, pieces), (left, right)):
                    return words
            if words := _of_rows(device, block, a, b[:, columns], pieces, rows, left):
                return words
        return ""
    return ""


def _factors(run: Execution, whole: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The two arguments whose product is due, by name, in this order; none where there are no such two."""
    matrices = [
        (name, array.value)
        for name, array in run.case.arguments.items()
        if isinstance(array, Array) and array.value.ndim == 2 and array.value.dtype.kind == "f"
    ]
    for one, other in itertools.permutations(matrices, 2):
        if one[1].shape[1] == len(other[1]) and close(one[1] @ other[1], whole, run.case.roundings):
            return [one, other]
    return []


def _cuts(run: Execution, length: int) -> Iterator[list[_Piece]]:
    """What is summed over, cut into as many parts as there are devices along an axis, and into halves of these."""
    for size, halves in itertools.product(sorted({n for n in run.case.mesh.values() if n > 1}), (1, 2)):
        step, rest = divmod(length, size * halves)
        if step and not rest:
            yield [(step * k, step * (k + 1)) for k in range(size * halves)]


def _counts(block: np.ndarray, products: Sequence[np.ndarray]) -> np.ndarray | None:
    """How often each product is in a block, where that is told by the numbers, and is a whole number of times."""
    if len(products) > MOST_UNKNOWN or block.size < len(products) + SPARE_ENTRIES or not block.any():
        return None
    terms = np.stack([np.ravel(one) for one in products], axis=1).astype(np.float64)
    if (counted := whole_times(block, terms, MOST_OF_ONE)) is None:
        return None
    return counted if close((terms @ counted).astype(np.float32), np.ravel(block)) else None


def _of_pairs(
    device: int,
    block: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    pieces: tuple[Sequence[_Piece], Sequence[_Piece]],
    names: Sequence[str],
) -> str:
    """Which columns of the one are multiplied with which rows of the other."""
    pairs = list(itertools.product(*pieces))
    counted = _counts(block, [rows[:, slice(*p)] @ columns[slice(*q)] for p, q in pairs])
    if counted is None:
        return ""
    left, right = names
    met_at_all = [pair for pair, n in zip(pairs, counted, strict=True) if n]
    strange = [(p, q) for p, q in met_at_all if p != q]
    if strange:
        first = min(q for _, q in strange)
        met = enumeration([_range(p) for p, q in met_at_all if q == first])
        more = len({q for _, q in strange}) - 1
        others = f", and {more} more such piece{'s' * (more > 1)} with others than theirs" if more else ""
        return (
            f"In the result on device {device}, rows {_range(first)} of `{right}` are multiplied with columns {met} "
            f"of `{left}`{others}. Which columns belong to which rows?"
        )
    odd = [(pair[1], n) for pair, n in zip(pairs, counted, strict=True) if pair[0] == pair[1] and n != 1]
    return f"In the result on device {device}, {_odd(odd, right)}." if odd else ""


def _odd(odd: Sequence[tuple[_Piece, int]], name: str) -> str:
    """What counts not once."""
    each = (f"{_range(q)} of `{name}` {'do not come in' if not n else f'count {n} times'}" for q, n in odd)
    return "rows " + ", ".join(each)


def _of_rows(
    device: int,
    block: np.ndarray,
    a: np.ndarray,
    columns: np.ndarray,
    pieces: Sequence[_Piece],
    own: slice,
    left: str,
) -> str:
    """For which rows of the result is worked what comes in."""
    height = own.stop - own.start
    if len(a) == height:
        return ""
    blocks = [(k, k + height) for k in range(0, len(a), height)]
    pairs = list(itertools.product(blocks, pieces))
    counted = _counts(block, [a[slice(*r), slice(*p)] @ columns[slice(*p)] for r, p in pairs])
    mine = (own.start, own.stop)
    if counted is None or (counted < 0).any():
        return ""
    worked: dict[_Piece, list[_Piece]] = {part: [] for part in pieces}
    for (rows, part), n in zip(pairs, counted, strict=True):
        worked[part] += [rows] * n
    odd = {part: rows for part, rows in worked.items() if rows != [mine]}
    piece = next((part for part, rows in odd.items() if any(one != mine for one in rows)), None)
    if piece is None:
        return ""
    more = f" {len(odd)} of {len(pieces)} such pieces are not as they should be." if len(odd) > 1 else ""
    return (
        f"In the result on device {device}, which is rows {_range(mine)}, what comes of columns {_range(piece)} of "
        f"`{left}` is for rows {enumeration(list(map(_range, odd[piece])))}.{more} "
        "For whose rows does each device work, and when?"
    )


def _range(piece: _Piece) -> str:
    return f"[{piece[0]}:{piece[1]}]"
