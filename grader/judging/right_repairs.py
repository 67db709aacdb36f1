"""The one change after which a wrong program is right in all cases, or after which only a known mistake is left."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from grader.exercises.exercise import Mistake
from grader.judging import results
from grader.judging.behaviour import Execution, same_blocks
from grader.judging.ladder import mistaken_on
from grader.judging.repaired import REPLACING, is_undone, try_repairs
from grader.judging.wrong_program import WrongProgram, arrays_of
from grader.programs.execution import Result
from grader.programs.repairs import Repair
from grader.programs.structure import Collective


def right_repair(wrong: WrongProgram) -> tuple[Repair | None, Mistake | None]:
    """That change, and the mistake that is left after it."""
    run = [k for k, done in enumerate(wrong.done) if isinstance(done, Execution)]
    every = dict.fromkeys([wrong.failing, *wrong.witnesses, *run])  # all: the words speak of all
    tried = try_repairs([wrong.run_on(k) for k in every])
    if repair := tried.first(functools.partial(_is_right, wrong)):
        return repair, None
    for mistake in wrong.exercise.mistakes:
        repair = tried.first(functools.partial(_is_mistaken, wrong, mistake), REPLACING)
        if repair and _does_as_much(wrong, mistake, repair) and not _is_what_it_does(wrong, mistake, repair):
            return repair, mistake
    return None, None


def right_collective(wrong: WrongProgram) -> Repair | None:
    """The change of a collective after which the values are right: it says where, and no more."""
    return try_repairs(wrong.runs, at_collectives=True).first(functools.partial(_is_right, wrong))


def repaired_collectives(repair: Repair, authored: Sequence[Collective]) -> tuple[int, ...]:
    """The numbers of the collectives that a repair changes."""
    alike = [n for n, c in enumerate(authored) if c.kind == repair.kind]
    if repair.every:
        return tuple(n for n in alike if authored[n].axes == repair.axes)
    return tuple(alike[repair.number :][:1])


def _is_right(wrong: WrongProgram, run: Execution, found: Sequence[Result]) -> bool:
    return all(results.right(run, found, wrong.expected_on(run.case)))


def _is_mistaken(wrong: WrongProgram, mistake: Mistake, run: Execution, found: Sequence[Result]) -> bool:
    """Whether results are those of a mistake, and wrong; what was right before they were repaired still is."""
    due = wrong.expected_on(run.case)
    before, after = (results.right(run, arrays, due) for arrays in (run.results, found))
    if all(after) or any(was and not still for was, still in zip(before, after, strict=False)):
        return False
    return any(
        len(made := arrays_of(one)) == len(found)
        and all(same_blocks(*pair, run.case.roundings) for pair in zip(found, made, strict=True))
        for one in mistaken_on(wrong.exercise, mistake, run.case)
    )


def _does_as_much(wrong: WrongProgram, mistake: Mistake, repair: Repair) -> bool:
    """Whether a mistake has the collective that is to run along other axes: else these are any along which it does
    nothing."""
    return repair.way != "run along" or any(
        c.kind == repair.kind and set(c.axes) == set(repair.along)
        for one in mistaken_on(wrong.exercise, mistake, wrong.case)
        if isinstance(one, Execution)
        for c in one.structure.collectives
    )


def _is_what_it_does(wrong: WrongProgram, mistake: Mistake, repair: Repair) -> bool:
    """Whether a mistake is just what a repair brings about: it would be right without that."""
    made = (one for one in mistaken_on(wrong.exercise, mistake, wrong.case) if isinstance(one, Execution))
    return any(is_undone(repair, one, functools.partial(_is_right, wrong)) for one in made)
