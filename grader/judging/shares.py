"""Whose numbers have come into a wrong result, and how often, where that can be told from the result itself.

Where what is due is a sum of what single devices contribute, so may be what was found: the number of times that each of
them counts is then a small problem of least squares.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from grader.arrays.blocks import blocks
from grader.arrays.laid import Array
from grader.arrays.numbers import close
from grader.arrays.words import numbered, region
from grader.judging.behaviour import Execution, block_values

WHOLE = 1e-3  # how near to a whole number a share has to be
MORE_ENTRIES = 2  # entries than parts that a piece of a block must have
MOST_TIMES = 8  # times that something may count


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


def _contributions(
    run: Execution, reference: Callable[..., Any], arguments: Mapping[str, Any], name: str
) -> tuple[list[list[int]], list[np.ndarray]]:
    """The devices that hold the same part of an argument, and what comes out of that part alone: for every part."""
    argument, parts = arguments[name], []

    def result_of(value: np.ndarray) -> list[Any]:
        values = {other: jax.tree.map(lambda a: a.value, arguments[other]) for other in arguments} | {name: value}
        return jax.tree.leaves(reference(*values.values()))

    indices = blocks(argument.value.shape, argument.spec, dict(run.case.mesh)).indices
    owners: dict[str, list[int]] = {}
    for device, index in enumerate(indices):
        owners.setdefault(str(index), []).append(device)
    for devices in owners.values():
        alone = np.zeros_like(argument.value)
        alone[indices[devices[0]]] = argument.value[indices[devices[0]]]
        leaves = result_of(alone)
        if len(leaves) != 1:
            return [], []
        parts.append(np.asarray(leaves[0], np.float64))
    (due,) = result_of(argument.value)
    if not close(np.asarray(np.sum(parts, axis=0), np.float32), np.asarray(due), run.case.roundings):
        return [], []  # what is due is more than the sum of what comes of the parts
    return list(owners.values()), parts


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
        ways = (_told_of_pieces(device, block, own, pieces, run.case.roundings) for pieces in _cuts(run, block))
        return next((words for words in (" ".join(_words_of_piece(way, name, owners)) for way in ways if way)), "")
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


def _counted(block: np.ndarray, parts: Sequence[np.ndarray], roundings: int) -> list[int] | None:
    """How often each part is in a block, where it is made of them in one way only; 1 for a part without numbers."""
    some = [k for k, part in enumerate(parts) if part.any()]
    columns = np.stack([np.ravel(parts[k]) for k in some], axis=1) if some else np.zeros((block.size, 0))
    if not some or len(columns) <= len(some) or np.linalg.matrix_rank(columns) < len(some):
        return None
    times, *_ = np.linalg.lstsq(columns, np.ravel(block).astype(np.float64), rcond=None)
    whole = np.round(times)
    if (np.abs(times - whole) > WHOLE).any() or (np.abs(whole) > MOST_TIMES).any():
        return None
    counted = [1] * len(parts)
    for k, n in zip(some, whole, strict=True):
        counted[k] = int(n)
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
