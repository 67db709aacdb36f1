"""How a wrong result is arranged: the numbers are right but for their places, or right in a part of every block.

Said where nothing else explains an answer; it is what was seen in one case, and asks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from grader.arrays.numbers import ROUNDINGS, close, close_entries
from grader.arrays.words import numbered, region
from grader.judging.compared import ENOUGH, Compared
from grader.judging.results import FEW_ROUNDINGS
from grader.judging.wording import by_number, right_along

FEW_RUNS = 3  # of right entries, that are told apart by their devices
NO_MORE = ("and no others did.", "and no others.", "came out right.", "came out right (counted from 0).")  # ends
WHAT_BELONGS_THERE = "What belongs there, and when?"
NOTHING_BUT_ZEROS = "nothing but zeros"
FEW_ALONG = 16  # along a dimension, that are told one by one


def tells_little(words: str) -> bool:
    """Whether this is no more than which entries or devices came out right."""
    return words.endswith((*NO_MORE, WHAT_BELONGS_THERE))


def arrangement(seen: Compared) -> str:
    """What is right in a wrong result: the numbers, but for their places; or all but the ends of the blocks."""
    pairs = list(zip(seen.blocks, seen.expected, strict=True))
    if any(block.shape != expected.shape for block, expected in pairs):
        return ""
    return (
        _in_other_places(seen)
        or _one_number(pairs)
        or _but_for_an_end(pairs, seen.roundings)
        or _the_same_on_all(seen)
        or _right_part(seen)
        or _wrong_region(pairs, seen.roundings)
        or _by_entry(pairs)
        or _block_by_block(seen)
        or _zeros_elsewhere(seen, pairs)
        or _zeros_by_entry(pairs)
        or _runs(seen, pairs)
        or _only_some(seen)
    )


def _in_other_places(seen: Compared) -> str:
    own = all(_same_but_for_order(*pair) for pair in zip(seen.blocks, seen.expected, strict=True))
    if own and len(np.unique(np.concatenate([np.ravel(seen.expected[d]) for d in seen.wrong]))) >= ENOUGH:
        where = f"on {numbered('device', seen.wrong)}" if seen.right else "but"
        return (
            f"Each device holds the numbers that belong on it, {where} in other places of its block. In which order do "
            "the pieces arrive, and how are they joined?"
        )
    first = [seen.places.index(place) for place in dict.fromkeys(seen.places)]  # of copies one
    found, due = (np.concatenate([np.ravel(side[d]) for d in first]) for side in (seen.blocks, seen.expected))
    if not own and len(np.unique(due)) >= ENOUGH and _same_but_for_order(found, due):
        return (
            "Every number that is due is there, as often as it is due, but not each in its place: numbers are on "
            "devices where they do not belong. What has to be sent to whom, and where in the block does it go?"
        )
    return ""


def _same_but_for_order(block: np.ndarray, expected: np.ndarray) -> bool:
    return close(np.sort(block, axis=None), np.sort(expected, axis=None))


def _block_by_block(seen: Compared) -> str:
    """What each block that is wrong is, where every one of them is nothing but zeros, an argument's in its place, or
    what is due on another device; and not all are nothing but zeros."""
    each = {device: _block_is(seen, device) for device in seen.wrong}
    kinds = dict.fromkeys(each.values())
    if "" in kinds or len(kinds) > FEW_RUNS or [*kinds] == [NOTHING_BUT_ZEROS]:
        return ""
    told = [f"{numbered('device', [d for d in each if each[d] == kind])}: {kind}" for kind in kinds]
    right = f" Right on {numbered('device', seen.right)}." if seen.right else ""
    return f"What the blocks hold that are wrong: {'; '.join(told)}.{right} Who was to send to whom?"


def _block_is(seen: Compared, device: int) -> str:
    block = seen.blocks[device]
    if not block.any():
        return NOTHING_BUT_ZEROS
    if len(np.unique(block)) < ENOUGH:
        return ""
    for name, blocks in seen.given.items():
        if close(block, blocks[device], FEW_ROUNDINGS):
            return f"`{name}` in its own place, as it was given"
    owner = next((d for d, due in enumerate(seen.expected) if close(block, due, seen.roundings)), None)
    return "" if owner is None else f"what belongs on device {owner}"


def _but_for_an_end(pairs: Sequence[tuple[np.ndarray, np.ndarray]], roundings: int) -> str:
    wrong = [~close_entries(*pair, roundings) for pair in pairs]
    for dimension, (k, which) in itertools.product(range(pairs[0][1].ndim), ((0, "first"), (-1, "last"))):
        ends = [one.take([k], dimension).any() for one in wrong]
        rests = [np.delete(one, k, dimension).any() for one in wrong]
        if pairs[0][1].shape[dimension] > 1 and all(ends) and not any(rests):
            return (
                f"In every block only the {which} entry along dimension {dimension} is wrong. What does that one need, "
                "and on which device is it?"
            )
    return ""


def _the_same_on_all(seen: Compared) -> str:
    """All devices, or all along an axis, hold the same numbers where each should hold others, or at least not all the
    same."""
    numbers = np.arange(len(seen.blocks)).reshape(tuple(seen.mesh.values()))
    along = [(f"along {name}", np.moveaxis(numbers, k, -1)) for k, name in enumerate(seen.mesh) if seen.mesh[name] > 1]
    same = [
        (which, lines)
        for which, groups in (("", numbers.reshape(1, -1)), *along)
        for lines in [groups.reshape(-1, groups.shape[-1]).tolist()]
        if all(_alike(seen.blocks, line) for line in lines)
    ]
    for alike, words in ((_any_alike, "and should hold different ones"), (_alike, "and should not all hold the same")):
        for which, lines in same:
            if not any(alike(seen.expected, line) for line in lines):
                return (
                    f"All devices{which and f' {which}'} hold the same numbers, {words}. What should depend on the "
                    "place of a device, and does not?"
                )
    return ""


def _alike(blocks: Sequence[np.ndarray], devices: Sequence[int]) -> bool:
    """Whether all of these devices hold the same."""
    first = blocks[devices[0]]
    return all(blocks[d].shape == first.shape and close(blocks[d], first) for d in devices[1:])


def _any_alike(blocks: Sequence[np.ndarray], devices: Sequence[int]) -> bool:
    """Whether two of these devices hold the same."""
    return len(devices) < 2 or any(_alike(blocks, pair) for pair in itertools.combinations(devices, 2))


def _right_part(seen: Compared) -> str:
    """Which part of every block is right, where blocks are cut into as many as there are devices along an axis."""
    places = np.unravel_index(np.arange(len(seen.blocks)), tuple(seen.mesh.values()))
    for (axis, size), own in zip(seen.mesh.items(), places, strict=True):
        for dimension in (d for d, n in enumerate(seen.expected[0].shape) if size > 1 and n % size == 0):
            right = [
                [k for k, part in enumerate(np.split(well, size, dimension)) if part.all()]
                for block, due in zip(seen.blocks, seen.expected, strict=True)
                for well in [close_entries(block, due, seen.roundings)]
            ]
            cut = f"Cut every block along dimension {dimension} into as many parts as there are devices along {axis}:"
            if right == [[int(k)] for k in own]:
                return f"{cut} only the part with the device's own place along {axis} is right. Who brings the others?"
            if right == [[0]] * len(right):
                return f"{cut} only the first part is right."
            if right == [[k for k in range(size) if k != int(mine)] for mine in own]:
                return f"{cut} only the part with the device's own place along {axis} is wrong."
    return ""


def _wrong_region(pairs: Sequence[tuple[np.ndarray, np.ndarray]], roundings: int) -> str:
    """The part of a block that is wrong, all of it and nothing else, where it is the same in every block that is."""
    wrong = [~close_entries(*pair, roundings) for pair in pairs]
    bounds = {_box(where) for where in wrong if where.any()}
    if len(bounds) > 1 or None in bounds or any(where.all() for where in wrong):
        return ""
    return f"Where a block is wrong, just {region(bounds.pop() or ())} of it is, and the rest is right."


def _box(where: np.ndarray) -> tuple[tuple[int, int], ...] | None:
    """Where these entries start and stop in each dimension; None where there are others between them."""
    at = np.argwhere(where)
    bounds = tuple((int(first), int(last) + 1) for first, last in zip(at.min(axis=0), at.max(axis=0), strict=True))
    return bounds if math.prod(stop - start for start, stop in bounds) == len(at) else None


def _one_number(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
    """Every block holds one number, or one along a dimension, which is made of those that are due there."""
    ndim = pairs[0][1].ndim
    ways = [
        (None, "All entries of a block"),
        *((k, f"Along dimension {k} of every block all entries") for k in range(ndim)),
    ]
    for axis, where in ways if ndim > 1 else ways[:ndim]:
        if any(due.size < ENOUGH or np.ptp(block, axis).any() or not np.ptp(due, axis).any() for block, due in pairs):
            continue
        for words, made in (("mean", np.mean), ("sum", np.sum), ("largest", np.max), ("smallest", np.min)):
            if all(_is_made(block, due, made, axis) for block, due in pairs):
                return f"{where} are the same: the {words} of those that are due there. Was one asked for?"
    return ""


def _is_made(block: np.ndarray, due: np.ndarray, made: Callable[..., np.ndarray], axis: int | None) -> bool:
    """Whether entries are made of those that are due along a dimension, by the measure of just those."""
    bound = ROUNDINGS * np.finfo(np.float32).eps / 2 * made(np.abs(due), axis, keepdims=True)
    return bool((np.abs(block - made(due, axis, keepdims=True)) <= bound).all())


def _by_entry(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
    """Along a dimension of few entries: which are right on all devices; which hold what is due at others."""
    shape = pairs[0][1].shape
    for dimension in (d for d, size in enumerate(shape) if 1 < size <= FEW_ALONG):
        found, due = ([np.moveaxis(pair[side], dimension, 0) for pair in pairs] for side in (0, 1))
        entries = range(shape[dimension])
        right = [k for k in entries if all(close(f[k], d[k]) for f, d in zip(found, due, strict=True))]
        every = f"Along dimension {dimension} of every block"
        # (Of a block that is right all over, no entry tells anything.)
        told = [np.ravel(d[right]) for f, d in zip(found, due, strict=True) if not close(f, d)]
        if right and told and len(np.unique(np.concatenate(told))) >= ENOUGH:
            return right_along(dimension, right)
        moved = [(k, j) for k in entries for j in entries if k != j and _holds_another(found, due, k, j)]
        if moved:
            at, where = moved[0]
            return f"{every}, what stands at {at} is due at {where} (counted from 0). What is its number?"
    return ""


def _zeros_by_entry(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
    """Along a dimension of few entries: which are nothing but zeros on all devices, though several others are due
    there. (That one number is 0 may be chance.)"""
    shape = pairs[0][1].shape
    for dimension in (d for d, size in enumerate(shape) if 1 < size <= FEW_ALONG):
        found, due = ([np.moveaxis(pair[side], dimension, 0) for pair in pairs] for side in (0, 1))
        every, entries = f"Along dimension {dimension} of every block", range(shape[dimension])
        zeros = [k for k in entries if not any(f[k].any() for f in found) and all(d[k].any() for d in due)]
        several = len(np.unique(np.concatenate([np.ravel(d[zeros]) for d in due]))) >= ENOUGH
        if zeros and len(zeros) < len(entries) and several:
            return f"{every} there are only zeros in {by_number(zeros)} (counted from 0). {WHAT_BELONGS_THERE}"
    return ""


def _holds_another(found: Sequence[np.ndarray], due: Sequence[np.ndarray], k: int, j: int) -> bool:
    """Whether on every device entry k is what is due at entry j, and that is no chance."""
    return len(np.unique(due[0][j])) >= ENOUGH and all(close(f[k], d[j]) for f, d in zip(found, due, strict=True))


def _zeros_elsewhere(seen: Compared, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
    """All is right but for which entries are 0."""
    if any(due.dtype.kind != "f" or not np.isfinite(block).all() for block, due in pairs):
        return ""
    both = [(block != 0) & (due != 0) for block, due in pairs]
    alike = (np.where(at, block, due) for at, (block, due) in zip(both, pairs, strict=True))
    if not all(close(one, due, seen.roundings) for one, (_, due) in zip(alike, pairs, strict=True)):
        return ""
    agree = np.concatenate([due[at] for at, (_, due) in zip(both, pairs, strict=True)])
    if len(np.unique(agree)) < ENOUGH:
        return ""
    wrong = [(block, due, ~close_entries(block, due, seen.roundings)) for block, due in pairs]
    lost = any(((block == 0) & off).any() for block, _, off in wrong)
    left = any(((due == 0) & off).any() for _, due, off in wrong)
    if lost and left:
        return (
            "Wherever neither is 0, what you have and what is due agree: it is other entries that are 0. What decides "
            "which are, and from what does it count?"
        )
    if lost:
        return "All that is not 0 is right, but entries are 0 that should not be. What sets them to 0?"
    return "Only entries are wrong that should be 0. What is to set them to 0?"


def _runs(seen: Compared, pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
    """Which entries along a dimension are right, on which devices, where these are other ones on each: a run of them,
    or none, or all."""
    for dimension in range(pairs[0][1].ndim):
        devices: dict[tuple[int, int], list[int]] = {}
        for device, pair in enumerate(pairs):
            found, due = (np.moveaxis(side, dimension, 0) for side in pair)
            right = [k for k in range(len(due)) if close(found[k], due[k], seen.roundings)]
            devices.setdefault((min(right, default=0), max(right, default=-1) + 1) if right else (0, 0), []).append(
                device
            )
            if right and right[-1] - right[0] + 1 != len(right):
                break
        else:
            whole = pairs[0][1].shape[dimension]
            some = {bounds: held for bounds, held in devices.items() if bounds[1]}
            if not _tell(some, pairs, dimension):
                continue
            if 0 < len(some) <= FEW_RUNS and any(bounds != (0, whole) for bounds in some):
                each = (
                    f"{'all entries' if bounds == (0, whole) else _from_to(*bounds)} on {numbered('device', held)}"
                    for bounds, held in some.items()
                )
                return (
                    f"Along dimension {dimension} of the blocks, right are {' and '.join(each)} (counted from 0), and "
                    "no others."
                )
    return ""


def _tell(
    some: Mapping[tuple[int, int], Sequence[int]], pairs: Sequence[tuple[np.ndarray, np.ndarray]], dimension: int
) -> bool:
    """Whether there are so many numbers in these runs of entries that they are not right by chance."""
    right = [
        np.ravel(np.moveaxis(pairs[device][1], dimension, 0)[start:stop])
        for (start, stop), held in some.items()
        for device in held
    ]
    alone = any(run.size == 1 for run in right)  # a single number is right by chance
    return bool(right) and not alone and len(np.unique(np.concatenate(right))) >= ENOUGH


def _from_to(start: int, stop: int) -> str:
    return f"entries {start} to {stop - 1}" if stop - start > 1 else f"entry {start}"


def _only_some(seen: Compared) -> str:
    """The devices that came out right: by their places along an axis, where these say it, else by their numbers."""
    places = np.unravel_index(np.arange(len(seen.blocks)), tuple(seen.mesh.values()))
    for axis, own in zip(seen.mesh, places, strict=True):
        right = sorted({int(own[d]) for d in seen.right})
        if seen.right and seen.right == [d for d in range(len(seen.blocks)) if int(own[d]) in right]:
            return f"Only the devices with {numbered('place', right)} along {axis} came out right (counted from 0)."
    return f"Only {numbered('device', seen.right)} came out right." if seen.right else ""
