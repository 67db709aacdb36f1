"""The searches that explain wrong results of a program, for each check the cheap ones first."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from grader.arrays.laid import Array
from grader.explaining.changed.otherwise import step_changed, step_of_one_changed
from grader.explaining.changed.shares import shares
from grader.explaining.compared.arrays import relations
from grader.explaining.compared.compared import devices_along
from grader.explaining.compared.shapes import Shaped, shape_relations
from grader.explaining.compared.shardings import sharding_relations
from grader.explaining.telling import in_all
from grader.explaining.wrong_arrays import alike_parts, right_parts
from grader.explaining.wrong_program import WrongProgram
from grader.findings.finding import Finding, Rank
from grader.findings.programs import AlikeParts, RightParts
from grader.judging import costs
from grader.judging.behaviour import Execution
from grader.judging.results import Expected, pictures, wrongly_sharded

_Search = Callable[[WrongProgram], Iterator[Finding]]
OF_ALL_ELEMENTS = Rank.RELATION + 10  # and more: the rank of relations that tell one cause
MOST_COMPARED = 12  # wrong arrays of a result, that are compared with the expected ones


def best(searches: Sequence[_Search], wrong: WrongProgram) -> Finding | None:
    """The finding with the highest rank, of equals the first. After a cause no search is begun."""
    top: Finding | None = None
    for search in searches:
        for found in search(wrong):
            top = found if top is None or found.rank > top.rank else top
            if top.rank >= Rank.CAUSE:
                return top
    return top


def evidence_of(check: str, wrong: WrongProgram) -> tuple[Finding, ...]:
    """The best finding; then where else the check is passed, and of which arrays the finding is true."""
    found = best(_SEARCHES.get(check, ()), wrong)
    elsewhere = wrong.values_right_elsewhere if check == "values" else wrong.passed_elsewhere(check)
    alike = _alike(wrong, found) if check == "values" and found is not None else None
    return tuple(one for one in (found, elsewhere, alike) if one is not None)


def value_relations(wrong: WrongProgram) -> Iterator[Finding]:
    """How the wrong arrays relate to the expected ones."""
    for given in _given_away(wrong).values():
        yield from given


@functools.lru_cache(maxsize=2)
def _given_away(wrong: WrongProgram) -> Mapping[int, list[Finding]]:
    """The relations of each wrong array; those that carry a number of a case hold in the other case as well."""
    others = wrong.witnesses if wrong.elsewhere is not None else ()
    return {
        k: list(
            relations(
                wrong.compared(k), *(wrong.compared(k, n) for n in others if False in wrong.right_on(n)[k : k + 1])
            )
        )
        for k in wrong.wrong[:MOST_COMPARED]
    }


def _alike(wrong: WrongProgram, found: Finding) -> AlikeParts | None:
    """Of which arrays a relation is true, if not of all that are wrong."""
    if len(wrong.right) < 2 or isinstance(found, RightParts):
        return None
    alike = [k for k, given in _given_away(wrong).items() if found in given]
    is_all = len(alike) == len(wrong.right) or alike == wrong.wrong[:1] == wrong.wrong
    return alike_parts(wrong, alike) if alike and not is_all else None


def one_changed(wrong: WrongProgram) -> Iterator[Finding]:
    """A change that gives one of several arrays, unless all elements of some are off in the same way."""
    if not any(found.rank >= OF_ALL_ELEMENTS for given in _given_away(wrong).values() for found in given):
        yield from step_of_one_changed(wrong)


def shape_searches(wrong: WrongProgram) -> Iterator[Finding]:
    """How the first wrong shape relates to the expected one, in all cases."""
    tried = [_shaped(wrong.run_on(k), wrong.expected_on(wrong.cases[k])) for k in (wrong.failing, *wrong.witnesses)]
    if tried[0] is None:
        return
    shapes = [one for one in tried if one]
    if wrong.passed_elsewhere("shape"):  # arguments may have the same length by chance, if there is only one mesh
        shapes = [replace(one, given={}) for one in shapes]
    yield from in_all([list(shape_relations(one)) for one in shapes])


def _shaped(run: Execution, expected: Expected) -> Shaped | None:
    """The first array of another shape than expected. (There may be none of the gradients.)"""
    asked = [place for place in expected if run.case.cotangents is None or place.startswith("[0]")]
    if len(run.forms) not in (len(expected), len(asked)):
        return None
    given = {name: a.value.shape for name, a in run.case.arguments.items() if isinstance(a, Array)}
    pairs = ((found, full.shape) for (_, found), full in zip(run.forms, expected.values(), strict=False))
    numbers = devices_along(run.case.mesh)
    return next((Shaped(*pair, numbers, given) for pair in pairs if pair[0] != pair[1]), None)


def sharding_searches(wrong: WrongProgram) -> Iterator[Finding]:
    """How the first wrong sharding differs from the expected one."""
    if (k := wrongly_sharded(wrong.run)) is not None:
        yield from sharding_relations(*reversed(pictures(wrong.run, wrong.expected, k)))


def _sent_otherwise(wrong: WrongProgram) -> Iterator[Finding]:
    """How its communication differs from what it may send."""
    if found := costs.sent_otherwise(wrong.run):
        yield found


_SEARCHES: Mapping[str, Sequence[_Search]] = {
    "shape": (shape_searches,),
    "values": (
        value_relations,
        right_parts,
        shares,
        step_changed,
        one_changed,
        _sent_otherwise,
    ),
    "sharding": (sharding_searches,),
}
