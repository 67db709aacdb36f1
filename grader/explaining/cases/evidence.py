"""What the cases in which a plain value is wrong have in common: evidence, if no declared mistake explains them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grader.arrays.numbers import same_value
from grader.explaining.cases.right_cases import right_in
from grader.explaining.cases.tried import ENOUGH_CASES, Tried, is_small
from grader.explaining.compared.relations import relations_of
from grader.explaining.compared.single_numbers import is_number, sizes_in
from grader.explaining.telling import most_telling
from grader.findings.cases import InFirstCase, OffDependsOn
from grader.findings.finding import Finding, Rank
from grader.findings.quantities import Quantity

SAME_OFF = 1e-6  # relative: how near two numbers are that are off by the same


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
        best = changed() or _better(_off_depends_on(wrong), common)
    return tuple(filter(None, (best, right_in(right, wrong, processes=processes))))


def _better(one: Finding | None, other: Finding | None) -> Finding | None:
    return max(filter(None, (one, other)), key=lambda found: found.rank, default=None)


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


def _off_depends_on(wrong: Sequence[Tried]) -> Finding | None:
    """The fewest arguments that determine by which factor numbers are off: wherever the others differ alone, that
    stays."""
    numbers = [value for one in wrong for value in (one.found, one.expected)]
    if not wrong or not all(is_number(value) and value == value for value in numbers):
        return None
    if any(isinstance(value, np.ndarray) for one in wrong for value in one.given.values()):
        return None
    texts = [{name: repr(value) for name, value in one.given.items()} for one in wrong]
    vary = [name for name in texts[0] if len({text.get(name) for text in texts}) > 1]
    factors = [one.found / one.expected if one.expected else np.inf for one in wrong]
    if not np.isfinite(factors).all() or _stays(factors, (), texts):
        return None
    few = (some for n in range(1, len(vary)) for some in itertools.combinations(vary, n))
    found = next((some for some in few if _follows(factors, some, vary, texts)), None)
    return OffDependsOn(found, tuple(name for name in vary if name not in found)) if found else None


def _follows(by: Sequence[float], some: Sequence[str], vary: Sequence[str], texts: Sequence[Mapping[str, str]]) -> bool:
    """Whether it is off by the same wherever these arguments are the same, which does not hold without one of them, and
    each other argument has differed there in enough cases."""
    fewer = itertools.combinations(some, len(some) - 1)
    if not _stays(by, some, texts) or any(_stays(by, less, texts) for less in fewer):
        return False
    groups = _groups(some, texts)
    others = (name for name in vary if name not in some)
    return all(sum(len({texts[k][name] for k in ks}) - 1 for ks in groups) >= ENOUGH_CASES - 1 for name in others)


def _stays(by: Sequence[float], some: Sequence[str], texts: Sequence[Mapping[str, str]]) -> bool:
    """Whether these numbers are the same wherever some arguments are."""
    return all(np.allclose([by[k] for k in ks], by[ks[0]], rtol=SAME_OFF, atol=0) for ks in _groups(some, texts))


def _groups(some: Sequence[str], texts: Sequence[Mapping[str, str]]) -> Sequence[Sequence[int]]:
    """The numbers of the cases that have these arguments in common."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for k, text in enumerate(texts):
        groups.setdefault(tuple(text.get(name, "") for name in some), []).append(k)
    return list(groups.values())
