"""How a wrong array relates to the expected one: one list of searches, for arrays on devices and for plain ones.

A relation is a finding only if it can't be chance: enough different elements have to agree with it, and to be so large
that another relation would not agree as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from grader.arrays.numbers import close, same_numbers
from grader.explaining.compared.compared import ENOUGH, Compared, flat
from grader.explaining.compared.fitted import factor_relations
from grader.findings import arrays as kinds
from grader.findings.finding import Finding

_Search = Callable[[Compared], Iterator[Finding]]
_FEW = 16  # indices along a dimension, that are told one by one
MOST_TOLD = 4  # of these, right or wrong
_TOGETHER: Mapping[kinds.Together, Callable[..., np.ndarray]] = {"sum": np.sum, "mean": np.mean, "maximum": np.max}
COARSE = 64  # multiples of 1 / COARSE come out by chance, other floats do not


def relations(seen: Compared, *elsewhere: Compared) -> Iterator[Finding]:
    """How an array that is wrong relates to the expected one, the most telling first.

    `elsewhere` is the same array of the same program in other cases, where it is wrong as well; one is on another mesh.
    """
    if not seen.are_numbers or not seen.wrong:
        return
    if not seen.same_shapes:
        yield from _in_another_shape(seen)
        return
    yield from factor_relations([seen, *elsewhere])
    for search in SEARCHES:
        yield from search(seen)


def _in_another_shape(seen: Compared) -> Iterator[Finding]:
    (found, expected), *others = seen.pairs
    if not others and found.size == expected.size and same_numbers(found.ravel(), expected.ravel(), seen.roundings):
        yield kinds.SameSizeOtherShape(same_elements=True)


def _replicas_disagree(seen: Compared) -> Iterator[Finding]:
    groups = [[d for d, place in enumerate(seen.places) if place == one] for one in dict.fromkeys(seen.places)]
    pairs = (pair for group in groups for pair in itertools.combinations(group, 2))
    for one, other in pairs:
        if not same_numbers(seen.found[one], seen.found[other], seen.roundings):
            ways = (way for way in _TOGETHER if all(_is_expected(seen, group, way) for group in groups))
            yield kinds.ReplicasDisagree(one, other, next(ways, None))
            return


def _is_expected(seen: Compared, replicas: Sequence[int], way: kinds.Together) -> bool:
    with np.errstate(all="ignore"):
        made = _TOGETHER[way]([seen.found[d] for d in replicas], axis=0)
    return close(made, seen.expected[replicas[0]], seen.roundings)


def _all_zero(seen: Compared) -> Iterator[Finding]:
    if seen.found[0].dtype.kind != "b" and seen.found[0].ndim and not flat(seen.found).any():
        yield kinds.AllZero()


def _not_finite(seen: Compared) -> Iterator[Finding]:
    found, expected = flat(seen.found), flat(seen.expected)
    if np.isfinite(expected).all():
        odd = {"nan": np.isnan(found), "inf": found == np.inf, "-inf": found == -np.inf}
        yield from (kinds.NotFinite(value) for value in kinds.ODD if odd[value].any())


def _elements_misplaced(seen: Compared) -> Iterator[Finding]:
    if all(_same_elements(*pair) for pair in seen.pairs):
        wrong = [seen.expected[d] for d in seen.wrong]
        if wrong and len(np.unique(flat(wrong))) >= ENOUGH:
            yield kinds.ElementsMisplaced("block" if len(seen.found) > 1 else "array")
        return
    if len(seen.places) < 2:
        return
    one_of_each = [seen.places.index(place) for place in dict.fromkeys(seen.places)]  # of replicas, one
    found, expected = (flat([side[d] for d in one_of_each]) for side in (seen.found, seen.expected))
    if len(np.unique(expected)) >= ENOUGH and _same_elements(found, expected):
        yield kinds.ElementsMisplaced("devices")


def _same_elements(found: np.ndarray, expected: np.ndarray) -> bool:
    return close(np.sort(found, axis=None), np.sort(expected, axis=None))


def _wrong_zeros(seen: Compared) -> Iterator[Finding]:
    """Where neither the found nor the expected element is zero, they agree."""
    found, expected = flat(seen.found), flat(seen.expected)
    if not seen.are_floats or not np.isfinite([found, expected]).all():
        return
    both, right = (found != 0) & (expected != 0), seen.well
    lost, left = (np.count_nonzero((one == 0) & ~right) > 1 for one in (found, expected))  # a single one is chance
    if right[both].all() and len(np.unique(expected[both])) >= ENOUGH and (lost or left):
        yield kinds.WrongZeros(bool(lost), bool(left))


def _same_on_all_devices(seen: Compared) -> Iterator[Finding]:
    if not seen.mesh:
        return
    numbers = np.arange(len(seen.found)).reshape(tuple(seen.mesh.values()))
    along = [(axis, np.moveaxis(numbers, k, -1)) for k, axis in enumerate(seen.mesh) if seen.mesh[axis] > 1]
    ways: dict[str | None, list[list[int]]] = {
        axis: lines.reshape(-1, lines.shape[-1]).tolist() for axis, lines in ((None, numbers.reshape(1, -1)), *along)
    }
    same = {axis: groups for axis, groups in ways.items() if all(_alike(seen.found, group) for group in groups)}

    def expected_alike(groups: list[list[int]]) -> int:
        return sum(_alike(seen.expected, pair) for group in groups for pair in itertools.combinations(group, 2))

    for axis, groups in sorted(same.items(), key=lambda item: expected_alike(item[1])):
        if len(groups[0]) > 1 and not any(_alike(seen.expected, group) for group in groups):
            yield kinds.SameOnAllDevices(axis)


def _alike(blocks: Sequence[np.ndarray], devices: Sequence[int]) -> bool:
    return all(close(blocks[d], blocks[devices[0]]) for d in devices[1:])


def _right_along(seen: Compared) -> Iterator[Finding]:
    """Along a dimension of few indices: at which of them every block is right."""
    well = seen.well_blocks
    for k, length in enumerate(seen.expected[0].shape):
        right = [i for i in range(length) if all(one.take(i, k).all() for one in well)] if length <= _FEW else []
        if not 0 < len(right) < length or min(len(right), length - len(right)) > MOST_TOLD:
            continue
        # Of a block that is right all over, no index tells anything. Of many indices some are right by chance.
        each = [[seen.expected[d].take(i, k) for d in seen.wrong] for i in right]
        most = 2 * (length - len(right)) <= len(right)
        if all(map(_telling, each)) or (most and _telling(list(itertools.chain(*each)))):
            yield kinds.RightAlong(k, tuple(right), length)


def _only_devices_right(seen: Compared) -> Iterator[Finding]:
    """The devices that are right: by their indices along an axis if that says it, else by their numbers."""
    if not seen.mesh or not seen.right or not _telling([seen.expected[d] for d in seen.right]):
        return
    coordinates = np.unravel_index(np.arange(len(seen.found)), tuple(seen.mesh.values()))
    for axis, own in zip(seen.mesh, coordinates, strict=True):
        which = sorted({int(own[d]) for d in seen.right})
        if seen.right == [d for d in range(len(seen.found)) if own[d] in which]:
            yield kinds.OnlyDevicesRight(axis, tuple(which))
            return
    yield kinds.OnlyDevicesRight(None, tuple(seen.right))


def _telling(blocks: Sequence[np.ndarray]) -> bool:
    """Whether elements that agree do so not by chance: several different ones, or one that is no round number."""
    values = np.unique(flat(blocks)) if blocks else np.zeros(0)
    return len(values) >= ENOUGH or bool((values[np.isfinite(values)] * COARSE % 1 != 0).any())


SEARCHES: Sequence[_Search] = (
    _replicas_disagree,
    _all_zero,
    _not_finite,
    _elements_misplaced,
    _wrong_zeros,
    _same_on_all_devices,
    _right_along,
    _only_devices_right,
)
