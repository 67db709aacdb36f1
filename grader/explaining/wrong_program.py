"""A program that is wrong in one case: the facts of it, and in which of the other cases it is right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from grader.arrays.blocks import blocks
from grader.arrays.laid import Array, holds_arrays
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.explaining.compared.compared import Compared
from grader.findings.programs import PassedElsewhere, ResultPart
from grader.findings.quantities import Quantity
from grader.judging import results
from grader.judging.behaviour import Execution, block_values, execution_of
from grader.judging.judgment import Behavior
from grader.judging.references import expected_results, right_arrays
from grader.judging.results import Expected


@dataclass(frozen=True, eq=False)
class WrongProgram:
    """What a program came to in all cases: the number of one in which it misses a check, and of those that are looked
    at besides."""

    exercise: Exercise
    cases: Sequence[Case]
    done: Sequence[Behavior]
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
        """That run, and those of the witnesses."""
        return [self.run_on(k) for k in dict.fromkeys([self.failing, *self.witnesses])]

    @property
    def expected(self) -> Expected:
        """What is expected in the failing case."""
        return self.expected_on(self.case)

    @property
    def right(self) -> Sequence[bool]:
        """Which arrays are right in the failing case."""
        return self.right_on(self.failing)

    @property
    def wrong(self) -> list[int]:
        """The numbers of the arrays that are wrong there."""
        return [k for k, well in enumerate(self.right) if not well]

    @property
    def first_wrong(self) -> int:
        return self.wrong[0]

    def run_on(self, k: int) -> Execution:
        return execution_of(self.done[k])

    def expected_on(self, case: Case) -> Expected:
        return expected_results(self.exercise, case)

    def right_on(self, k: int) -> Sequence[bool]:
        return right_arrays(self.exercise, self.cases[k], self.done[k])

    @property
    def elsewhere(self) -> int | None:
        """The first witness, if it is on another mesh."""
        return next((k for k in self.witnesses[:1] if self.cases[k].mesh != self.case.mesh), None)

    @property
    def is_result_wrong(self) -> bool:
        """Whether there is anything wrong besides gradients."""
        return self.case.cotangents is None or any(not self.part(k).argument for k in self.wrong)

    def part(self, array: int) -> ResultPart:
        return results.result_part(self.case, list(self.expected)[array])

    def passed_elsewhere(self, check: str) -> PassedElsewhere | None:
        """That this check was passed before, on another mesh."""
        before = [case.mesh for case in self.cases[: self.failing]]
        if not before or self.case.mesh in before:
            return None
        return PassedElsewhere(check, _shape(before[0]), _shape(self.case.mesh))

    @property
    def values_right_elsewhere(self) -> PassedElsewhere | None:
        """That all values are right on the same mesh with other arguments, or on another mesh in every case."""
        here = _shape(self.case.mesh)
        if any(case.mesh == self.case.mesh for case in self.cases[: self.failing]):
            return PassedElsewhere("values", here, here)
        if (other := self.elsewhere) is None:
            return None
        there = self.cases[other].mesh
        alike = [k for k, case in enumerate(self.cases) if case.mesh == there]
        right = all(self.right_on(k) and all(self.right_on(k)) for k in alike)
        return PassedElsewhere("values", _shape(there), here) if right else None

    def compared(self, array: int, k: int | None = None) -> Compared:
        """An array of the result and the one expected: in the failing case, or in another."""
        k = self.failing if k is None else k
        case, result = self.cases[k], self.run_on(k).results[array]
        full = list(self.expected_on(case).values())[array]
        return Compared(
            [_numbers_in(block) for block in block_values(result)],
            [_numbers_in(block) for block in results.expected_blocks(result, full)],
            case.mesh,
            [str(index) for index in result.blocks.indices],
            case.roundings,
            numbers_of(case),
        )


def numbers_of(case: Case) -> dict[Quantity, float]:
    """What a result may be off by: the whole numbers that a program is given, and its arrays' lengths and sizes."""
    numbers: dict[Quantity, float] = {Quantity("argument", k): n for k, n in case.arguments.items() if type(n) is int}
    for name, given in case.arguments.items():
        for path, array in jax.tree.leaves_with_path(given) if holds_arrays(given) else ():
            label = f"{name}{jax.tree_util.keystr(path)}"
            numbers |= {Quantity("length", label, k): n for k, n in enumerate(array.value.shape)}
            if not path:
                numbers |= {Quantity("elements", label): array.value.size} | _on_a_device(label, array, case.mesh)
    return numbers


def _on_a_device(label: str, array: Array, mesh: Mapping[str, int]) -> dict[Quantity, float]:
    """The lengths and the size of one device's block of an array that is sharded."""
    own = [stop - start for start, stop in blocks(array.value.shape, array.spec, dict(mesh)).bounds(0)]
    if math.prod(own) == array.value.size:
        return {}
    sharded = ((k, n) for k, n in enumerate(own) if n != array.value.shape[k])
    lengths: dict[Quantity, float] = {Quantity("length", label, k, on_device=True): n for k, n in sharded}
    return lengths | {Quantity("elements", label, on_device=True): math.prod(own)}


def _numbers_in(block: np.ndarray) -> np.ndarray:
    """A block of numbers: 0 and 1 for truth values."""
    return block.astype(np.int32) if block.dtype.kind == "b" else block


def _shape(mesh: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(mesh.values())
