"""What is so of the arguments of some cases and not of others, besides their being equal: of meshes, specs, numbers.

A trait is words that go on behind "where", computed from what was given.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnDevices, OnMesh
from grader.arrays.words import number

_Given = Mapping[str, Any]
EXACTLY = 12  # digits of a bound
BY_CHANCE = 1 / 8  # how often cases may fall so without a reason, where it is told that they do
BOTH_SIDES = 2  # cases on either side, for a bound between numbers to be no chance


def apart(wrong: Sequence[_Given], right: Sequence[_Given]) -> str:
    """Which right cases there are, by a trait that all wrong ones have and no right one; or the other way round."""
    for some, others, which in ((wrong, right, "in none of those where"), (right, wrong, "only in those where")):
        if words := _in_all_of(some, others):
            return f"{which} {words}"
    if min(len(wrong), len(right)) < BOTH_SIDES:
        return ""
    bounds = list(_bounds(wrong, right))
    if alone := next((words for words, holds in bounds if not any(map(holds, right))), ""):
        return "" if _is_chance(wrong, right) else f"in none of those where {alone}"
    both = (
        f"{one}, and {other}"
        for (one, a), (other, b) in itertools.combinations(bounds, 2)
        if not any(a(case) and b(case) for case in right)
    )
    return f"in none of those where {words}" if (words := next(both, "")) else ""


def _is_chance(wrong: Sequence[_Given], right: Sequence[_Given]) -> bool:
    """Whether one of the numbers that are given may well be larger in all cases of a kind, or smaller, without a
    reason."""
    numbers = sum(_is_finite(value) for value in wrong[0].values())
    return 2 * numbers > BY_CHANCE * math.comb(len(wrong) + len(right), len(wrong))


def _in_all_of(some: Sequence[_Given], others: Sequence[_Given]) -> str:
    """The traits of all of some cases that none of the others has: the first of each argument, and what is so of
    several arguments alike of the first of them."""
    several = min(len(some), len(others)) >= BOTH_SIDES
    elsewhere = {trait for given in others for trait in traits(given, several)}
    first, *rest = ([*traits(given, several)] for given in some)
    common = [trait for trait in first if trait not in elsewhere and all(trait in one for one in rest)]
    if of_two := next((trait for trait in common if "` and `" in trait), ""):
        return of_two
    by_argument = {trait.split("`")[1]: trait for trait in reversed(common)}
    alike = {re.sub(r"`.*?`", "", trait): trait for trait in by_argument.values()}  # the last ones are the first
    return ", and ".join(reversed(alike.values()))


def traits(given: _Given, several: bool) -> Iterator[str]:
    """All that is so of these arguments, the most particular first; of numbers only where there are several cases."""
    yield from _of_two_arrays({name: value for name, value in given.items() if isinstance(value, OnDevices)})
    for name, value in given.items():
        if isinstance(value, OnMesh):
            yield from _of_mesh(f"`{name}`", value)
        elif isinstance(value, OnDevices):
            yield from _of_array(name, value)
        elif isinstance(value, P):
            yield from _of_spec(f"`{name}`", value)
        elif type(value) is int and several:
            yield from _of_count(f"`{name}`", value)
        elif isinstance(value, (list, tuple)):
            yield from _of_list(f"`{name}`", value)
            yield from _of_counts(f"`{name}`", value) if several else ()


def _of_two_arrays(arrays: Mapping[str, OnDevices]) -> Iterator[str]:
    """How two arrays stand to one another: their meshes, the order of their devices, their specs, their numbers."""
    for (one, a), (other, b) in itertools.combinations(arrays.items(), 2):
        both = f"`{one}` and `{other}`"
        if a.mesh is None or b.mesh is None:
            continue
        in_order = [mesh.order or tuple(range(math.prod(mesh.sizes.values()))) for mesh in (a.mesh, b.mesh)]
        alike = [*a.mesh.sizes.items()] == [*b.mesh.sizes.items()]
        if alike and in_order[0] != in_order[1] and sorted(in_order[0]) == sorted(in_order[1]):
            yield f"{both} are on meshes of one shape, over devices in another order"
        one_mesh = alike and in_order[0] == in_order[1]
        if one_mesh and a.spec != b.spec:
            yield f"{both} are on one mesh, by different specs"
        if one_mesh and a.value.shape == b.value.shape and (a.value != b.value).any():
            yield f"{both} are on one mesh, and hold different numbers"


def _of_array(name: str, array: OnDevices) -> Iterator[str]:
    if array.instead:
        yield f"a device holds a copy of `{name}` that differs"
    if array.mesh is not None:
        yield from _of_mesh(f"the mesh of `{name}`", array.mesh)
        yield from _of_spec(f"the spec of `{name}`", array.spec)


def _of_counts(name: str, counts: Sequence[Any]) -> Iterator[str]:
    """What is so of whole numbers together, such as the lengths of a shape."""
    if len(counts) > 0 and all(type(count) is int for count in counts):
        yield f"the product of {name} is {math.prod(counts)}"
        if sum(count > 1 for count in counts) < 2:
            yield f"no more than one number of {name} is above 1"


def _of_mesh(name: str, mesh: OnMesh) -> Iterator[str]:
    if list(mesh.order) != sorted(mesh.order):
        yield f"the devices of {name} do not stand in the order of their numbers"
    if len(mesh.sizes) > 2:
        yield f"{name} has more than two axes"
    if len(mesh.sizes) == 1:
        yield f"{name} has one axis"
    if 1 in mesh.sizes.values():
        yield f"an axis of {name} has one device only"
    if len({*mesh.sizes.values()}) < len(mesh.sizes):
        yield f"two axes of {name} are of one size"


def _of_spec(name: str, spec: P) -> Iterator[str]:
    entries = tuple(spec)
    if any(isinstance(entry, tuple) and len(entry) > 1 for entry in entries):
        yield f"an entry of {name} has several axes"
    if entries and entries[0] is None and any(entries):
        yield f"{name} begins with None"
    if not any(entries):
        yield f"{name} names no axis"
    if sum(bool(entry) for entry in entries) > 1:
        yield f"{name} names axes for more than one dimension"


def _of_count(name: str, count: int) -> Iterator[str]:
    if count == 0:
        yield f"{name} is 0"
    if count == 1:
        yield f"{name} is 1"
    if count < 1 or count & (count - 1):
        yield f"{name} is no power of two"
    yield f"{name} is {'odd' if count % 2 else 'even'}"


def _of_list(name: str, entries: Sequence[Any]) -> Iterator[str]:
    if not entries:
        yield f"{name} is empty"
    if len(entries) == 1:
        yield f"{name} has one entry"
    if any(
        a == b for a, b in itertools.combinations(entries, 2) if isinstance(a, (int, float, str)) and type(a) is type(b)
    ):
        yield f"an entry of {name} stands in it twice"
    if _in_other_places([entry for entry in entries if isinstance(entry, (list, tuple))]):
        yield f"lists in {name} have the same word at different places"


def _in_other_places(lists: Sequence[Sequence[Any]]) -> bool:
    """Whether a word that several lists have stands, where it first occurs, elsewhere in one than in another."""
    words = [[entry if isinstance(entry, str) else None for entry in entries] for entries in lists]
    return any(
        one.index(word) != other.index(word)
        for one, other in itertools.combinations(words, 2)
        for word in {*one} & {*other}
        if word is not None
    )


def _bounds(wrong: Sequence[_Given], right: Sequence[_Given]) -> Iterator[tuple[str, Callable[[_Given], bool]]]:
    """Of each number that was given, the bound that all wrong cases are beyond and some right ones are not."""
    for name in wrong[0]:
        bad, good = ([float(given[name]) for given in some if _is_finite(given.get(name))] for some in (wrong, right))
        if len(bad) < len(wrong) or len(good) < len(right):
            continue
        below, above = [v for v in good if v < min(bad)], [v for v in good if v > max(bad)]
        if below:
            yield f"`{name}` is larger than {number(max(below), EXACTLY)}", functools.partial(_at_least, name, min(bad))
        if above:
            yield f"`{name}` is smaller than {number(min(above), EXACTLY)}", functools.partial(_at_most, name, max(bad))


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _at_least(name: str, bound: float, given: _Given) -> bool:
    return bool(given[name] >= bound)


def _at_most(name: str, bound: float, given: _Given) -> bool:
    return bool(given[name] <= bound)
