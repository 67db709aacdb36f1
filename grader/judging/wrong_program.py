"""A program that is wrong in one case: the facts of it, and in which of the other cases it is well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grader.arrays.laid import Array
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.judging import results
from grader.judging.behaviour import Execution, arrays_given, block_values
from grader.judging.compared import Compared, on
from grader.judging.ladder import Done
from grader.judging.references import expected_results
from grader.judging.results import Expected
from grader.programs.execution import Failed, Result

# What is so of a program that does not miss a check on one mesh, and of one that does on another.
WELL = {
    "runs": ("it runs", "it does not"),
    "shape": ("the shapes are right", "they are not"),
    "values": ("this is right", "it is not"),
    "layout": ("the layout is right", "it is not"),
}


def execution_of(done: Done) -> Execution:
    """What a program does on a case."""
    assert isinstance(done, Execution)  # the first rung saw to it
    return done


def arrays_of(done: Done) -> Sequence[Result]:
    """The arrays of a result; nothing where there is none."""
    try:
        return done.results if isinstance(done, Execution) else ()
    except Failed:
        return ()


def right_arrays(exercise: Exercise, case: Case, done: Done) -> Sequence[bool]:
    """Which arrays of a result are right; nothing where there are not as many as are due."""
    found, due = arrays_of(done), expected_results(exercise, case)
    return results.right(done, found, due) if isinstance(done, Execution) and len(found) == len(due) else ()


@dataclass(frozen=True, eq=False)
class WrongProgram:
    """What a program came to in all cases: the number of one in which it misses a check, and of those that bear
    witness besides."""

    exercise: Exercise
    cases: Sequence[Case]
    done: Sequence[Done]
    failing: int
    witnesses: Sequence[int]

    @property
    def case(self) -> Case:
        return self.cases[self.failing]

    @property
    def run(self) -> Execution:
        """The run of the failing case."""
        return self.run_on(self.failing)

    @property
    def runs(self) -> list[Execution]:
        """That run, and those of the cases that bear witness."""
        return [self.run_on(k) for k in dict.fromkeys([self.failing, *self.witnesses])]

    @property
    def expected(self) -> Expected:
        """What is expected in the failing case."""
        return self.expected_on(self.case)

    @property
    def right(self) -> Sequence[bool]:
        """Which arrays are right in the failing case."""
        return self.right_on(self.failing)

    def run_on(self, k: int) -> Execution:
        return execution_of(self.done[k])

    def expected_on(self, case: Case) -> Expected:
        return expected_results(self.exercise, case)

    def right_on(self, k: int) -> Sequence[bool]:
        return right_arrays(self.exercise, self.cases[k], self.done[k])

    @property
    def witness(self) -> int:
        """The first case that bears witness; the failing one where none does."""
        return next(iter(self.witnesses), self.failing)

    @property
    def elsewhere(self) -> int | None:
        """That case, where it is on another mesh."""
        return self.witness if self.cases[self.witness].mesh != self.case.mesh else None

    @property
    def is_result_wrong(self) -> bool:
        """Whether there is anything wrong besides gradients."""
        wrong = [place for place, well in zip(self.expected, self.right, strict=False) if not well]
        return self.case.cotangents is None or any(place.startswith("[0]") for place in wrong)

    @property
    def first_wrong(self) -> tuple[int, str]:
        """The first array of the result that is wrong: its number, and its name."""
        number = next(n for n, well in enumerate(self.right) if not well)
        return number, self.name(number)

    def name(self, array: int) -> str:
        """What an array of the result is called."""
        return results.name_in_result(self.case, list(self.expected)[array])

    def named(self, arrays: Sequence[int]) -> str:
        """Arrays of the result by their names inside a sentence, the first few of them."""
        names = [results.in_a_sentence(self.name(array)) for array in arrays[: results.MOST_NAMED]]
        more = f" and {len(arrays) - results.MOST_NAMED} more" if len(arrays) > results.MOST_NAMED else ""
        return f"{', '.join(names)}{more}"

    def well_before(self, check: str) -> str:
        """That this check was passed on another mesh; "" where nothing was tried on another."""
        mesh, before = self.case.mesh, [case.mesh for case in self.cases[: self.failing]]
        if not before or mesh in before:
            return ""
        there, here = on(before[0]), on(mesh)
        return _right_elsewhere(there, here, check) if check in WELL else _allowed_elsewhere(there, here)

    @property
    def right_where(self) -> str:
        """Where else it is right: with other arguments, or on another mesh."""
        return self._right_before or self.all_right_elsewhere

    @property
    def _right_before(self) -> str:
        """That values were right on the very mesh on which they are wrong now, where they were: so it is no mesh that
        they hang on."""
        mesh = self.case.mesh
        return _right_with_others(on(mesh)) if any(case.mesh == mesh for case in self.cases[: self.failing]) else ""

    @property
    def all_right_elsewhere(self) -> str:
        """That all is right on another mesh, in every case."""
        if (other := self.elsewhere) is None:
            return ""
        there = self.cases[other].mesh
        cases = [k for k, case in enumerate(self.cases) if case.mesh == there]
        right = all(all(self.right_on(k)) for k in cases)
        return _right_elsewhere(on(there), on(self.case.mesh), "values") if right else ""

    def compared(self, array: int, k: int | None = None) -> Compared:
        """An array of the result and the one expected: in the failing case, or in another."""
        k = self.failing if k is None else k
        case, result = self.cases[k], self.run_on(k).results[array]
        whole = list(self.expected_on(case).values())[array]
        arrays = {name: a for name, a in case.arguments.items() if isinstance(a, Array)}
        return Compared(
            [_numbers_of(block) for block in block_values(result)],
            [_numbers_of(block) for block in results.expected_blocks(result, whole)],
            case.mesh,
            [str(index) for index in result.blocks.indices],
            case.roundings,
            {name: count for name, count in case.arguments.items() if type(count) is int},
            results.lengths(case) | {f"the number of entries of `{name}`": a.value.size for name, a in arrays.items()},
            {
                name: [a.value[index] for index in result.blocks.indices]
                for _, name, a in arrays_given(case)
                if a.value.shape == whole.shape and a.value.dtype.kind == "f"
            },
        )


def _numbers_of(block: np.ndarray) -> np.ndarray:
    """A block of numbers: 0 and 1 for truth values."""
    return block.astype(np.int32) if block.dtype.kind == "b" else block


def _right_elsewhere(there: str, here: str, check: str) -> str:
    """That a check is passed on one mesh and not on another."""
    well, wrong = WELL[check]
    return (
        f"On {there} {well}; on {here} {wrong}. Does something in it hold for one mesh only (a number, a name, "
        "the notebook's own mesh)? Or does what is wrong not show there, as where an axis has few devices?"
    )


def _right_with_others(here: str) -> str:
    """That a result is right on the same mesh with other arguments."""
    return (
        f"On {here} this was right with other arguments, and with these it is not. Is a length, or a number that "
        "is given, another one here, and written into the program?"
    )


def _allowed_elsewhere(there: str, here: str) -> str:
    """Of what a program may cost there is some to spare: to be within that is not yet to be right."""
    return (
        f"On {there} that is within what is allowed; on {here} it is not. How does what it costs depend on the number "
        "of devices?"
    )
