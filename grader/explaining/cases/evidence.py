"""What the cases in which a plain value is wrong have in common: evidence, if no declared mistake explains them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from grader.arrays.numbers import same_value
from grader.explaining.cases.right_cases import right_in
from grader.explaining.cases.tried import Tried, is_small
from grader.explaining.compared.relations import relations_of
from grader.explaining.compared.single_numbers import is_number, sizes_in
from grader.explaining.telling import most_telling
from grader.findings.cases import InFirstCase
from grader.findings.finding import Finding, Rank
from grader.findings.quantities import Quantity


def nothing() -> Finding | None:
    return None


def evidence(
    tried: Sequence[Tried], changed: Callable[[], Finding | None] = nothing, *, processes: bool = False
) -> tuple[Finding, ...]:
    """The best that is true of all wrong cases, and how they differ from the right ones.

    `changed` looks for a change to the reference that gives the same; it is asked only if what the cases have in common
    tells little. `processes`: what is tried are processes, and not cases.
    """
    wrong, right = [one for one in tried if not one.right], [one for one in tried if one.right]
    common = _in_common([one for one in wrong if one.found is not None], processes)
    best = common
    if best is None or best.rank < Rank.RELATION:
        best = changed() or common
    return tuple(filter(None, (best, right_in(right, wrong, processes=processes))))


def _in_common(wrong: Sequence[Tried], processes: bool) -> Finding | None:
    """The most telling relation of all wrong cases; of something that is no number, else one of the first of them."""
    if not wrong:
        return None
    sizes = _that_differ([dict(sizes_in(one.given)) for one in wrong])
    relations = [
        [found for found in relations_of(one.found, one.expected, one.given, told) if not _is_chance(found, wrong)]
        for one, told in zip(wrong, sizes, strict=True)
    ]
    common = most_telling(relations)
    if (common and common.rank >= Rank.RELATION) or is_number(wrong[0].found):
        return common
    first = next((found for found in relations[0] if not _is_chance_in_one(found, wrong)), None)
    if first is None or (common and first.rank <= common.rank):
        return common
    return first if len(wrong) == 1 else InFirstCase(first, process=processes)


def _is_chance(found: Finding, wrong: Sequence[Tried]) -> bool:
    """Whether a number of the case is named, and all wrong elements are one and the same small number, or truth
    value."""
    if not any(True for _ in _numbers_in(found, wrong[0].given)):
        return False
    odd = [element for one in wrong for element in _wrong_elements(one)]
    return bool(odd) and is_small(odd[0]) and all(same_value(element, odd[0]) for element in odd)


def _is_chance_in_one(found: Finding, wrong: Sequence[Tried]) -> bool:
    """Whether a small number of the case is named: in a single one of several cases that is chance."""
    return len(wrong) > 1 and any(map(is_small, _numbers_in(found, wrong[0].given)))


def _numbers_in(found: Finding, given: Mapping[str, Any]) -> Iterator[Any]:
    """The arguments, and the numbers of a case, that a finding names."""
    if isinstance(found, Quantity):
        yield dict(sizes_in(given)).get(found)
    for value in vars(found).values():
        if isinstance(value, Finding):
            yield from _numbers_in(value, given)


def _wrong_elements(one: Tried) -> list[Any]:
    """The elements of a list that are wrong; of anything else the whole."""
    both = one.found, one.expected
    if not all(isinstance(side, (list, tuple)) for side in both) or len(one.found) != len(one.expected):
        return [one.found]
    return [found for found, expected in zip(*both, strict=True) if not same_value(found, expected)]


def _that_differ(sizes: Sequence[Mapping[Quantity, float]]) -> list[dict[Quantity, float]]:
    """Of each case the numbers that are others elsewhere: one that never changes may be a factor by chance."""
    return [{name: n for name, n in some.items() if len({other.get(name) for other in sizes}) > 1} for some in sizes]
