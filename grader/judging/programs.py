"""Programs: traced, never called; held against what one device computes, and against what they may cost.

The rungs: it runs; its shape; its values on every device; its layout; its communication; its work. Zeros with a right
layout earn nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from grader.arrays.laid import Array, holds_arrays, values_of
from grader.exercises.answers import Problem
from grader.exercises.case import Case
from grader.exercises.compilers import compilers_bytes, par
from grader.exercises.errors import meaning, stopped
from grader.exercises.exercise import Exercise, Mistake
from grader.exercises.verdict import Blamed, Score
from grader.jax_versions import compiled_quickly, quick_options
from grader.judging import costs, results
from grader.judging.arrangements import arrangement, tells_little
from grader.judging.behaviour import Execution, arrays_given, block_values, same_behaviour, same_blocks, same_results
from grader.judging.dependence import depends
from grader.judging.deviating import deviating
from grader.judging.ladder import Alike, Done, Hint, Ladder, Rung, mistaken_on
from grader.judging.miss import Miss
from grader.judging.nothing import nothing_done
from grader.judging.otherwise import by_entries, by_shares, one_otherwise, otherwise
from grader.judging.picked import wrong_rows
from grader.judging.plain_numbers import with_plain_numbers
from grader.judging.products import wrong_products
from grader.judging.reductions import of_blocks
from grader.judging.references import come_of, of_arrays
from grader.judging.repaired import REPLACING, is_undone, try_repairs
from grader.judging.results import Expected
from grader.judging.shapes import shape_evidence
from grader.judging.signatures import (
    ALL_ZERO,
    FOLLOWS,
    WITHIN_A_PERCENT,
    Compared,
    allowed_elsewhere,
    off_by,
    on,
    opposite,
    right_elsewhere,
    right_with_others,
    signature,
)
from grader.judging.silenced import right_without
from grader.programs.execution import Failed, Result
from grader.programs.program import Program, with_gradient
from grader.programs.repairs import Repair
from grader.programs.structure import Collective, Structure, times

OFF_THE_OTHER_WAY = "What else is wrong is off by the same factor, the other way: does the one follow from the other?"
OF_DIVISION = "layout", "communication"  # checks that hang on how arrays are divided
# What is so of a program that does not miss a check on one mesh, and of one that does on another.
WELL = {
    "runs": ("it runs", "it does not"),
    "shape": ("the shapes are right", "they are not"),
    "layout": ("the layout is right", "it is not"),
}


class ProgramLadder(Ladder):
    """The values are worth a half, what they cost the rest."""

    runs = Program

    @property
    def rungs(self) -> Sequence[Rung]:
        points = self.exercise.points
        sent = costs.sent_as_compiled if self.exercise.by_compiler else costs.sent_as_written
        return [
            Rung("runs", 0.0, lambda k: _runs(self.done[k])),
            Rung("shape", 0.0, self._compared(results.shape)),
            Rung("values", points * 0.5, self._compared(results.values)),
            Rung("layout", 0.0, self._compared(results.layout)),
            Rung("communication", points * 0.25, lambda k: sent(self._run(k))),
            Rung("work", points * 0.25, lambda k: costs.work_divided(self._run(k))),
        ]

    def _compared(self, miss: Callable[[Execution, Expected], Miss | None]) -> Callable[[int], Miss | None]:
        """The result on every device, held against what is expected there."""
        return lambda k: miss(self._run(k), _expected(self.exercise, self.cases[k]))

    def _run(self, k: int) -> Execution:
        run = self.done[k]
        assert isinstance(run, Execution)  # the first rung saw to it
        return run

    def likenesses(self, check: str) -> Sequence[Alike]:
        """Where the result is wrong it decides; but a mistake that sends the same as well goes first."""
        if check == "work":
            return [self._held_alike]
        wrong = check in ("shape", "values")
        return [self._behave_alike, self._come_to_the_same] if wrong else [self._behave_alike]

    def _behave_alike(self, case: Case, one: Done, other: Done) -> bool:
        if not isinstance(one, Execution) or not isinstance(other, Execution):
            return False
        return same_behaviour(one, other, by_compiler=self.exercise.by_compiler)

    def _misses(self, check: str, failing: int, wrong: Done) -> bool:
        """Where too little is computed beside a transfer, it has to be such a one as in the answer."""
        if not super()._misses(check, failing, wrong):
            return False
        if check != "communication" or not isinstance(wrong, Execution):
            return True
        return costs.idle_transfers(wrong) == costs.idle_transfers(self._run(failing))

    def _held_alike(self, case: Case, one: Done, other: Done) -> bool:
        """Where memory counts, so does what is given away."""
        return self._behave_alike(case, one, other) and _donated(one) == _donated(other)

    def _come_to_the_same(self, case: Case, one: Done, other: Done) -> bool:
        return isinstance(one, Execution) and isinstance(other, Execution) and same_results(one, other)

    def parts(self, k: int, done: Done) -> Sequence[Any]:
        """The arrays of the result."""
        return self._arrays(done)

    def _arrays(self, done: Done) -> Sequence[Result]:
        try:
            return done.results if isinstance(done, Execution) else ()
        except Failed:
            return ()

    def mistaken(self, mistake: Mistake, k: int, check: str = "") -> Iterable[Done]:
        """To compile a gradient takes most of the time, and most mistakes are told apart by their results."""
        differs = {"shape": self._begins_otherwise, "values": self._begins_otherwise, "": self._begins_wrong}.get(check)
        if differs and self.cases[k].cotangents is not None and self._arrays(self.done[k]):
            # (Before gradients all spellings come to the same, if JAX makes a program of them.)
            before = mistaken_on(self.exercise, mistake, _without_gradients(self.cases[k]))
            made = next((arrays for wrong in before if (arrays := self._arrays(wrong))), ())
            if differs(k, made):
                return ()
        return super().mistaken(mistake, k, check)

    def _begins_otherwise(self, k: int, made: Sequence[Result]) -> bool:
        """Whether results without gradients are not those of the answer to a case."""
        own, case = self._before_gradients(k), self.cases[k]
        return len(own) != len(made) or any(_told_apart(a, b, case) for a, b in zip(own, made, strict=True))

    def _begins_wrong(self, k: int, made: Sequence[Result]) -> bool:
        """Whether one of them is wrong, and not as in the answer."""
        own, case = self._before_gradients(k), self.cases[k]
        if len(own) != len(made):
            return True
        due = dict(list(_expected(self.exercise, case).items())[: len(made)])
        each = zip(results.right(self._run(k), made, due), own, made, strict=True)
        return any(not well and _told_apart(a, b, case) for well, a, b in each)

    def _before_gradients(self, k: int) -> Sequence[Result]:
        run = self._run(k)
        return [result for (place, _), result in zip(run.forms, run.results, strict=True) if place.startswith("[0]")]

    def right_parts(self, k: int, done: Done) -> Sequence[bool]:
        found, due = self.parts(k, done), _expected(self.exercise, self.cases[k])
        return results.right(done, found, due) if isinstance(done, Execution) and len(found) == len(due) else ()

    def same_part(self, k: int, one: Result, other: Result) -> bool:
        return same_blocks(one, other, self.cases[k].roundings)

    def witnesses(self, failing: int) -> Sequence[int]:
        """Three at most: the one drawn alike on another mesh, on its own the last, which is square, and the very first,
        on which nothing was missed. (To run a mistake on all would keep the student waiting.)"""
        own = [k for k, case in enumerate(self.cases) if case.mesh == self.cases[failing].mesh]
        others = [k for k in range(len(self.cases)) if k not in own]
        elsewhere = [k for k in others if self.cases[k].mesh == self.cases[others[0]].mesh]
        alike = [elsewhere[own.index(failing) % len(elsewhere)]] if elsewhere else []
        return list(dict.fromkeys([*alike, *[0][:failing], *[k for k in own if k != failing][-1:]]))

    def is_untouched(self, k: int) -> bool:
        return all(self._is_formula(j) for j in (k, *self.witnesses(k)))

    def _is_formula(self, k: int) -> bool:
        run, nothing = self.done[k], nothing_done(self.exercise, self.cases[k])
        return isinstance(run, Execution) and nothing is not None and same_behaviour(run, nothing, by_compiler=True)

    def score(self) -> Score | None:
        if not self.exercise.against_compiler:
            return None
        yours = sum(self._run(k).structure.bytes_sent for k in range(len(self.cases)))
        return Score(par(self.cases), yours, compilers_bytes(self.exercise, self.cases))

    def signature(self, check: str, k: int) -> str:
        """What the wrong arrays of the result give away; else, on which mesh all was well."""
        if check == "values":
            runs = [self._run(j) for j in {k: 0, self._witness(k): 0}]
            result = self._run(k), _expected(self.exercise, self.cases[k])
            if words := results.exchanged(*result) or results.as_given(*result):
                return words
            if self._is_result_wrong(k) and (
                words := otherwise(self.exercise, runs) or self._ratio(k) or by_shares(self.exercise, runs[0])
            ):
                return words
            if (words := self._signature_of_arrays(k, self._elsewhere(k))) or not self._is_result_wrong(k):
                several = len(self._run(k).results) > 1
                return " ".join(filter(None, (self._all_right_elsewhere(k) if words and several else "", words)))
            return one_otherwise(self.exercise, runs, *self._first_wrong(k))
        if check == "runs" and (words := _meaning(self.done[k])):
            return words
        if check == "shape" and (words := self._of_shapes(k)):
            return words
        if words := self._well_before(check, k):
            return words
        return results.how_laid_out(self._run(k), _expected(self.exercise, self.cases[k])) if check == "layout" else ""

    def _ratio(self, k: int) -> str:
        """By what all of a result is multiplied, where it is a single array of several numbers; and that it is right on
        another mesh, where it is."""
        other = self._elsewhere(k)
        if len(self._run(k).results) > 1 or other is None or not (seen := self._seen(k, 0)).expected[0].ndim:
            return ""
        elsewhere = self._seen(other, 0)
        if (right := self._right_where(k)) and (alone := off_by(seen, None)):
            return f"{alone} {right}"
        words = off_by(seen, elsewhere)
        own = [j for j in self.witnesses(k) if j != k and self.cases[j].mesh == self.cases[k].mesh]
        return (
            words if all(_alike_words(words, off_by(self._seen(j, 0), elsewhere)) for j in own) else off_by(seen, None)
        )

    def _witness(self, k: int) -> int:
        """The first case that bears witness; this one where none does."""
        return next(iter(self.witnesses(k)), k)

    def _elsewhere(self, k: int) -> int | None:
        """That case, where it is on another mesh."""
        other = self._witness(k)
        return other if self.cases[other].mesh != self.cases[k].mesh else None

    def _all_right_elsewhere(self, k: int) -> str:
        """That all is right on another mesh, in every case."""
        if (other := self._elsewhere(k)) is None:
            return ""
        there = self.cases[other].mesh
        cases = [j for j, case in enumerate(self.cases) if case.mesh == there]
        right = all(all(self.right_parts(j, self.done[j])) for j in cases)
        return right_elsewhere(on(there), on(self.cases[k].mesh)) if right else ""

    def _of_shapes(self, k: int) -> str:
        """What the wrong shapes have to do with those that are due, where that is so on every mesh."""
        result = self._run(k), _expected(self.exercise, self.cases[k])
        if words := (
            results.as_many_as_given(*result)
            or results.several_for_one(*result)
            or results.arrays_missing(*result)
            or results.exchanged(*result)
        ):
            return words
        tried = [
            results.wrong_shape(self._run(j), _expected(self.exercise, self.cases[j])) for j in (k, *self.witnesses(k))
        ]
        if not (elsewhere := self._well_before("shape", k)):
            return shape_evidence([one for one in tried if one]) if tried[0] else ""
        # (Arguments may have the same length by chance, and this is seen on one mesh only.)
        lengths = [replace(one, given={}) for one in tried if one]
        return " ".join(filter(None, (elsewhere, shape_evidence(lengths) if tried[0] else "")))

    def _well_before(self, check: str, k: int) -> str:
        """That this check was passed on another mesh; "" where nothing was tried on another."""
        mesh, before = self.cases[k].mesh, [case.mesh for case in self.cases[:k]]
        if not before or mesh in before:
            return ""
        there, here = on(before[0]), on(mesh)
        return right_elsewhere(there, here, WELL[check]) if check in WELL else allowed_elsewhere(there, here)

    def _right_before(self, k: int) -> str:
        """That values were right on the very mesh on which they are wrong now, where they were: so it is no mesh that
        they hang on."""
        mesh = self.cases[k].mesh
        return right_with_others(on(mesh)) if any(case.mesh == mesh for case in self.cases[:k]) else ""

    def _is_result_wrong(self, k: int) -> bool:
        """Whether there is anything wrong besides gradients."""
        due = _expected(self.exercise, self.cases[k])
        wrong = [place for place, well in zip(due, self.right_parts(k, self.done[k]), strict=False) if not well]
        return self.cases[k].cotangents is None or any(place.startswith("[0]") for place in wrong)

    def _first_wrong(self, k: int) -> tuple[int, str]:
        """The first array of the result that is wrong in a case: its number, and its name."""
        number = next(n for n, well in enumerate(self.right_parts(k, self.done[k])) if not well)
        return number, results.name_in_result(self.cases[k], list(_expected(self.exercise, self.cases[k]))[number])

    def _signature_of_arrays(self, k: int, elsewhere: int | None) -> str:
        """What the first wrong array gives away, and of which others that is so; `elsewhere` is a case on another mesh.

        It is said of the result as a whole only where all that is wrong in it gives the same away.
        """
        wrong = {
            array: (self._seen(k, array), None if elsewhere is None else self._seen(elsewhere, array))
            for array in range(len(self._run(k).results))
            if self._seen(k, array).wrong
        }
        if len(wrong) > 1 and not any(_any(here) for here, _ in wrong.values()):
            return ALL_ZERO if len(wrong) == len(self._run(k).results) else f"Of {self._named(k, [*wrong])}: {ALL_ZERO}"
        given_away = {array: signature(*seen) for array, seen in wrong.items()}
        said = [words for words in given_away.values() if words]
        words = next((words for words in said if words != WITHIN_A_PERCENT), next(iter(said), ""))
        alike = [array for array, others in given_away.items() if words in (others, off_by(*wrong[array], of_few=True))]
        if not words or len(alike) == len(given_away):
            return words
        others = [array for array in wrong if array not in alike]
        opposites = all(opposite(wrong[alike[0]], wrong[array]) for array in others)
        rest = OFF_THE_OTHER_WAY if opposites else f"Also wrong: {self._named(k, others)}."
        return f"Of {self._named(k, alike)}: {words} {rest}"

    def _named(self, k: int, arrays: Sequence[int]) -> str:
        """Arrays of the result of a case by their names, the first few of them."""
        places = list(_expected(self.exercise, self.cases[k]))
        names = [results.name_in_result(self.cases[k], places[array]) for array in arrays[: results.MOST_NAMED]]
        more = f" and {len(arrays) - results.MOST_NAMED} more" if len(arrays) > results.MOST_NAMED else ""
        return f"{', '.join(names)}{more}"

    def repairs(self, check: str, k: int) -> tuple[Repair | None, Mistake | None]:
        if check != "values":
            return None, None
        run = [j for j, done in enumerate(self.done) if isinstance(done, Execution)]
        every = dict.fromkeys([k, *self.witnesses(k), *run])  # all: the words speak of all
        tried = try_repairs([self._run(j) for j in every])
        if repair := tried.first(self._is_right):
            return repair, None
        for mistake in self.exercise.mistakes:
            repair = tried.first(functools.partial(self._is_mistaken, mistake), REPLACING)
            if repair and self._does_as_much(mistake, repair, k) and not self._is_what_it_does(mistake, repair, k):
                return repair, mistake
        return None, None

    def deviation(self, check: str, k: int) -> str:
        if check != "values" or not self.right_parts(k, self.done[k]):
            return ""
        runs = self._runs(k)
        expected = functools.partial(_expected, self.exercise)
        if words := deviating(self.exercise, runs, expected):
            return words
        run, due = runs[0], _expected(self.exercise, self.cases[k])
        words = wrong_products(run, due) or wrong_rows(run, due) or by_entries(self.exercise, run)
        words = words or self._of_places(k, runs, expected)
        return f"{self._right_where(k)} {words}".strip() if words else ""

    def _runs(self, k: int) -> list[Execution]:
        """The runs of a case, and of those that bear witness besides."""
        return [self._run(j) for j in dict.fromkeys([k, *self.witnesses(k)])]

    def _of_places(self, k: int, runs: Sequence[Execution], expected: Callable[[Case], Expected]) -> str:
        """Where in its arrays a result is wrong, or what it would be right without."""
        words = arrangement(self._seen_first(k))
        if words and not tells_little(words):
            return words
        if without := right_without(runs, expected):
            return without
        return (results.which_are_right(runs[0], expected(self.cases[k])) or words) if words else ""

    def remaining(self, check: str, k: int) -> str:
        if check != "values" or not self.right_parts(k, self.done[k]):
            return ""
        runs = self._runs(k)
        expected = functools.partial(_expected, self.exercise)
        first = runs[0], expected, *self._first_wrong(k)
        itself = self._is_result_wrong(k)
        words = (
            of_blocks(runs)
            or (depends(*first) if itself else "")
            or results.which_are_right(runs[0], expected(self.cases[k]))
            or (with_plain_numbers(*first) if itself else "")
        )
        return f"{self._right_where(k)} {words}".strip() or costs.sent_otherwise(runs[0])

    def _right_where(self, k: int) -> str:
        """Where else it is right: with other arguments, or on another mesh."""
        return self._right_before(k) or self._all_right_elsewhere(k)

    def _seen_first(self, k: int) -> Compared:
        """The first wrong array of a case."""
        return self._seen(k, self._first_wrong(k)[0])

    def _is_right(self, run: Execution, found: Sequence[Result]) -> bool:
        return all(results.right(run, found, _expected(self.exercise, run.case)))

    def _does_as_much(self, mistake: Mistake, repair: Repair, k: int) -> bool:
        """Whether a mistake has the collective that is to run along other axes: else these are any along which it does
        nothing."""
        return repair.way != "run along" or any(
            c.kind == repair.kind and set(c.axes) == set(repair.along)
            for wrong in mistaken_on(self.exercise, mistake, self.cases[k])
            if isinstance(wrong, Execution)
            for c in wrong.structure.collectives
        )

    def _is_what_it_does(self, mistake: Mistake, repair: Repair, k: int) -> bool:
        """Whether a mistake is just what a repair brings about: it would be right without that."""
        wrong = (one for one in mistaken_on(self.exercise, mistake, self.cases[k]) if isinstance(one, Execution))
        return any(is_undone(repair, one, self._is_right) for one in wrong)

    def _is_mistaken(self, mistake: Mistake, run: Execution, found: Sequence[Result]) -> bool:
        """Whether results are those of a mistake, and wrong; what was right before they were repaired still is."""
        due = _expected(self.exercise, run.case)
        before, after = (results.right(run, arrays, due) for arrays in (run.results, found))
        if all(after) or any(was and not still for was, still in zip(before, after, strict=False)):
            return False
        return any(
            len(made := self._arrays(wrong)) == len(found)
            and all(same_blocks(*pair, run.case.roundings) for pair in zip(found, made, strict=True))
            for wrong in mistaken_on(self.exercise, mistake, run.case)
        )

    def hint(self, check: str, k: int) -> Hint:
        """What explains the values does not say where: the collective that one would have to change does."""
        found = super().hint(check, k)
        if found.repair or not found.words or check != "values":
            return found
        tried = try_repairs(self._runs(k), at_collectives=True)
        return replace(found, repair=tried.first(self._is_right))

    def blamed(self, check: str, k: int, miss: Miss, hint: Hint) -> Blamed | None:
        run = self.done[k]
        if not isinstance(run, Execution):
            return super().blamed(check, k, miss, hint)
        try:
            authored = run.structure.authored
        except Failed:
            return None
        kinds = tuple(c.kind for c in authored)
        if about := miss.about if hint.repair is None else _changed(hint.repair, authored):
            return Blamed(k, about, kinds, "most" if miss.most else "")
        return Blamed(k, () if check in OF_DIVISION else tuple(range(len(kinds))), kinds, "all")

    def _seen(self, k: int, array: int) -> Compared:
        result = self._run(k).results[array]
        whole = list(_expected(self.exercise, self.cases[k]).values())[array]
        places = [str(index) for index in result.blocks.indices]
        arrays = {name: a for name, a in self.cases[k].arguments.items() if isinstance(a, Array)}
        return Compared(
            [_numbers_of(block) for block in block_values(result)],
            [_numbers_of(block) for block in results.expected_blocks(result, whole)],
            self.cases[k].mesh,
            places,
            self.cases[k].roundings,
            {name: count for name, count in self.cases[k].arguments.items() if type(count) is int},
            results.lengths(self.cases[k])
            | {f"the number of entries of `{name}`": a.value.size for name, a in arrays.items()},
            {
                name: [a.value[index] for index in result.blocks.indices]
                for _, name, a in arrays_given(self.cases[k])
                if a.value.shape == whole.shape and a.value.dtype.kind == "f"
            },
        )


def _alike_words(words: str, others: str) -> bool:
    """Whether two ratios are the same, or follow the same number."""
    return words == others or bool(follows := words.partition(FOLLOWS)[2]) and follows == others.partition(FOLLOWS)[2]


def _any(seen: Compared) -> bool:
    """Whether any number of an array is not 0."""
    return any(block.any() for block in seen.blocks)


def _numbers_of(block: np.ndarray) -> np.ndarray:
    """A block of numbers: 0 and 1 for truth values."""
    return block.astype(np.int32) if block.dtype.kind == "b" else block


@functools.lru_cache(maxsize=64)
def _without_gradients(case: Case) -> Case:
    """The case in which nothing is asked for but the result."""
    return replace(case, cotangents=None, limits=())


def _told_apart(one: Result, other: Result, case: Case) -> bool:
    """Whether two arrays are told apart by their blocks. The compiler may lay one out otherwise where it is alone."""
    if one.blocks.shape != other.blocks.shape:
        return True
    return one.blocks.indices == other.blocks.indices and not same_blocks(one, other, case.roundings)


def _donated(done: Done) -> tuple[int, ...]:
    assert isinstance(done, Execution)  # it behaves as another does
    return done.structure.donated


def _changed(repair: Repair, authored: Sequence[Collective]) -> tuple[int, ...]:
    """The numbers of the collectives that a repair changes."""
    alike = [n for n, c in enumerate(authored) if c.kind == repair.kind]
    if repair.every:
        return tuple(n for n in alike if authored[n].axes == repair.axes)
    return tuple(alike[repair.number :][:1])


@functools.lru_cache(maxsize=1024)
def _expected(exercise: Exercise, case: Case) -> Expected:
    """Every array that the result should have, by where it stands in it; then those of the gradients."""
    arrays = [values_of(a) for a in case.arguments.values() if holds_arrays(a)]
    with compiled_quickly():  # it runs once
        if case.cotangents is None:
            result = come_of(exercise, case, arrays)
        else:
            both = jax.jit(with_gradient(of_arrays(exercise, case), len(arrays)), compiler_options=quick_options())
            result = both(*arrays, values_of(case.cotangents))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(result)}


def _runs(run: Done) -> Miss | None:
    if isinstance(run, Problem):
        return Miss(stopped(run))
    if not isinstance(run, Execution):
        return Miss("The answer should be a program: a function of arrays.")
    try:
        if miss := _waits(run) or _calls_out(run):
            return miss
        run.finish()
    except Failed as error:
        return Miss(stopped(_refused(error)))
    return None


def _refused(error: Failed) -> Problem:
    return Problem("error", error.kind, str(error))


def _meaning(run: Done) -> str:
    """What it means that a program does not run."""
    if isinstance(run, Problem):
        return meaning(run)
    if isinstance(run, Execution):
        try:
            run.finish()
        except Failed as error:
            return meaning(_refused(error))
    return ""


def _waits(run: Execution) -> Miss | None:
    if not run.may_wait_for_ever:
        return None
    unsure = [c for c in run.structure.collectives if c.times is None]
    about = next((n for n, c in enumerate(run.structure.authored) if c.times is None), None)
    waiting = next((words for c in unsure if (words := _who_waits(run.structure, c))), None)
    return Miss(
        (
            waiting
            or f"The {unsure[0].kind}{_over(unsure[0])} stands in a branch, or in a loop without a fixed number of "
            "turns. A device that does not come by leaves the others waiting for ever, so this was not run."
        )
        + " Let every device call it, and choose between results with jnp.where.",
        about=() if about is None else (about,),
    )


def _who_waits(structure: Structure, collective: Collective) -> str:
    """Who waits for whom at a collective, if the text of the program says so."""
    visits, pair = collective.visits, structure.waiting(collective)
    if visits is None or pair is None:
        return ""
    waiting, missing = pair
    return (
        f"Device {waiting} calls the {collective.kind}{_over(collective)} {times(visits[waiting])}, device {missing} "
        f"{times(visits[missing])}: it stands in a branch, or in a loop, and each device decides for "
        f"itself. Device {waiting} would be left waiting for ever for device {missing}, so this was not run."
    )


def _over(collective: Collective) -> str:
    return f" over {', '.join(collective.axes)}" if collective.axes else ""


def _calls_out(run: Execution) -> Miss | None:
    if not (foreign := run.structure.foreign):
        return None
    return Miss(
        f"The program calls `{foreign[0]}`, which is no operation of the devices but code outside of them, so "
        "this was not run. Compute with jax.numpy and jax.lax; what jax.numpy.linalg takes from LAPACK is not needed "
        "here."
    )
