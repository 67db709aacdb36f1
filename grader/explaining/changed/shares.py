"""Whose numbers a wrong result sums, and how often, if that can be told from the result itself.

If the expected result is a sum of what the devices' shards of an argument contribute, the one that was found may be,
too: how many times each of them counts is then a small problem of least squares.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import jax
import numpy as np

from grader.arrays.blocks import blocks
from grader.arrays.laid import Array, holds_arrays
from grader.arrays.numbers import close
from grader.explaining.changed.traced import CannotTrace, TracedReference, traced_reference
from grader.explaining.wrong_program import WrongProgram
from grader.findings.finding import Finding
from grader.findings.programs import ShardBounds, SharesCounted
from grader.judging.behaviour import Execution, block_values
from grader.judging.references import of_arrays

WHOLE = 1e-3  # how near to a whole number a count has to be
MORE_ELEMENTS = 2  # elements than parts that a piece of a block must have
MOST_TIMES = 8  # times that something may count
_MOST_TRIED = 32  # parts of arguments, each of which is tried alone

_Piece = tuple[slice, ...]


def shares(wrong: WrongProgram) -> Iterator[Finding]:
    """Which devices' shards of an argument are missing from the result, or count several times."""
    run, arguments = wrong.run, {name: a for name, a in wrong.case.arguments.items() if holds_arrays(a)}
    if len(run.results) != 1:
        return
    leaves = jax.tree.leaves(list(arguments.values()))
    sharded = [(n, k) for n, a in arguments.items() for k, leaf in enumerate(leaves) if leaf is a and _is_float(a)]
    try:
        reference = traced_reference(of_arrays(wrong.exercise, wrong.case), [_values(a) for a in arguments.values()])
        tried = 0
        for name, k in sharded:
            owners = _owners(run, leaves[k])
            tried += len(owners)
            if len(owners) > 1 and tried <= _MOST_TRIED:
                parts = _contributions(run, reference, [leaf.value for leaf in leaves], k, owners)
                yield from _first_wrong(run, name, [devices[0] for _, devices in owners], parts) if parts else ()
    except (CannotTrace, TypeError, ValueError, IndexError):  # it may not take zeros
        return


def _is_float(argument: object) -> bool:
    return isinstance(argument, Array) and argument.value.dtype.kind == "f"


def _values(argument: object) -> object:
    return jax.tree.map(lambda a: a.value, argument)


def _owners(run: Execution, argument: Array) -> list[tuple[_Piece, list[int]]]:
    """Each part of an argument, and the devices that hold it."""
    owners: dict[str, tuple[_Piece, list[int]]] = {}
    for device, index in enumerate(blocks(argument.value.shape, argument.spec, dict(run.case.mesh)).indices):
        owners.setdefault(str(index), (index, []))[1].append(device)
    return list(owners.values())


def _contributions(
    run: Execution,
    reference: TracedReference,
    arrays: Sequence[np.ndarray],
    k: int,
    owners: Sequence[tuple[_Piece, list[int]]],
) -> list[np.ndarray]:
    """What each part of an argument contributes alone; nothing if the expected result is not their sum."""

    def result_of(part: _Piece | None) -> np.ndarray:
        alone = np.zeros_like(arrays[k])
        if part is not None:
            alone[part] = arrays[k][part]
        (result,) = reference([*arrays[:k], alone, *arrays[k + 1 :]])
        return np.asarray(result, np.float64)

    if len(reference.outputs) != 1 or np.any(result_of(None)):
        return []
    parts = [result_of(part) for part, _ in owners]
    (expected,) = reference(arrays)
    return parts if close(np.asarray(np.sum(parts, axis=0), np.float32), expected, run.case.roundings) else []


def _first_wrong(run: Execution, name: str, owners: Sequence[int], parts: Sequence[np.ndarray]) -> Iterator[Finding]:
    """How often each part counts on the first device that is wrong: in its block, else in a piece of it."""
    (result,) = run.results
    whole = np.sum(parts, axis=0)
    each = enumerate(zip(block_values(result), result.blocks.indices, strict=True))
    device, (block, index) = next(
        (d, (block, index)) for d, (block, index) in each if not close(block, whole[index], run.case.roundings)
    )
    own = [part[index] for part in parts]
    if (counts := _counts(block, own, run.case.roundings)) is not None:
        if len(set(counts)) > 1:  # else all of it is off by one factor
            yield _finding(name, device, owners, counts)
        return
    for pieces in _ways_to_cut(run, block):
        if found := _in_a_piece(run, block, own, pieces):
            piece, expected_in, counts = found
            region = _bounds(piece, block.shape)
            there = None if expected_in == piece else _bounds(expected_in, block.shape)
            if there or len(set(counts)) > 1 or not any(counts):
                yield _finding(name, device, owners, counts, region, there)


def _in_a_piece(
    run: Execution, block: np.ndarray, parts: Sequence[np.ndarray], pieces: Sequence[_Piece]
) -> tuple[_Piece, _Piece, list[int]] | None:
    """The first wrong piece, and what it is made of: the sum that is expected there, or that of another piece."""
    whole = np.sum(parts, axis=0)
    piece = next(piece for piece in pieces if not close(block[piece], whole[piece], run.case.roundings))
    if block[piece].size < len(parts) + MORE_ELEMENTS:
        return None
    for other in sorted(pieces, key=lambda other: other != piece):
        counts = _counts(block[piece], [part[other] for part in parts], run.case.roundings)
        if counts is not None and any(counts):
            return piece, other, counts
    return None if block[piece].any() or not block.any() else (piece, piece, [0] * len(parts))


def _ways_to_cut(run: Execution, block: np.ndarray) -> Iterator[list[_Piece]]:
    """A block along one dimension, into as many pieces as there are devices along an axis."""
    for dimension, size in itertools.product(range(block.ndim), sorted({n for n in run.case.mesh.values() if n > 1})):
        step, rest = divmod(block.shape[dimension], size)
        if step and not rest:
            before = (slice(None),) * dimension
            yield [(*before, slice(step * k, step * (k + 1))) for k in range(size)]


def _bounds(piece: _Piece, shape: Sequence[int]) -> ShardBounds:
    full = (*piece, *(slice(None),) * (len(shape) - len(piece)))
    return tuple((one.start or 0, n if one.stop is None else one.stop) for one, n in zip(full, shape, strict=True))


def _counts(block: np.ndarray, parts: Sequence[np.ndarray], roundings: int) -> list[int] | None:
    """How often each part is in a block, if it is made of them in one way only; 1 for a part without numbers."""
    some = [k for k, part in enumerate(parts) if part.any()]
    if not some or block.size <= len(some):
        return None
    columns = np.stack([np.ravel(parts[k]) for k in some], axis=1)
    if not np.isfinite(block).all() or np.linalg.matrix_rank(columns) < len(some):
        return None
    times, *_ = np.linalg.lstsq(columns, np.ravel(block).astype(np.float64), rcond=None)
    if (np.abs(times - np.round(times)) > WHOLE).any() or (np.abs(times) > MOST_TIMES).any():
        return None
    counts = [1] * len(parts)
    for k, n in zip(some, np.round(times).astype(int).tolist(), strict=True):
        counts[k] = n
    made = sum(n * part for n, part in zip(counts, parts, strict=True))
    return counts if close(block, np.asarray(made, np.float32), roundings) else None


def _finding(
    name: str,
    device: int,
    owners: Sequence[int],
    counts: Sequence[int],
    region: ShardBounds | None = None,
    expected_in: ShardBounds | None = None,
) -> SharesCounted:
    missing = tuple(owner for owner, n in zip(owners, counts, strict=True) if n == 0)
    repeated = tuple((owner, n) for owner, n in zip(owners, counts, strict=True) if n not in (0, 1))
    return SharesCounted(name, device, missing, repeated, region, expected_in)
