"""The changes to one step of a traced reference that are tried, each with the finding that says what it is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.explaining.changed.traced import ACTIVATIONS, TracedReference, TracedStep
from grader.findings.programs import StepChanged

MOST_STEPS = 60  # that may be changed: in a longer reference a single one means little
UNARY = ("tanh", "logistic", "exp", "log", "sqrt", "rsqrt", "abs", "square", "integer_pow", "neg", *ACTIVATIONS)
BINARY = ("add", "sub", "mul", "div", "max", "min")
SUMS = ("dot_general", "reduce_sum")


@dataclass(frozen=True, eq=False)
class StepChange:
    """A change, and the result with it."""

    finding: StepChanged
    result: Callable[[], list[np.ndarray]]


def changes(
    reference: TracedReference, arrays: Sequence[Any], names: Sequence[str], mesh: Mapping[str, int]
) -> list[StepChange]:
    """The changes to single steps of a reference of these arrays, which have these names."""
    steps = [(k, step) for k, step in enumerate(reference.steps) if step.name in (*UNARY, *BINARY, *SUMS)]
    if len(steps) > MOST_STEPS:
        return []
    there = _Place(reference, reference.values(arrays), names, mesh)
    left_out = [(k, step, kept, there.left_out(step, kept)) for k, step in steps for kept in there.alike(step)]
    how_often = Counter(finding for *_, finding in left_out)
    found = [there.change(finding, k, there.read(step)[kept]) for k, step, kept, finding in left_out]
    # (If there are several of one name, it would not be told which of them comes last.)
    found += [there.done_last(*one) for one in left_out if how_often[one[-1]] == 1]
    return found + [change for k, step in steps for change in there.counted(k, step)]


@dataclass(frozen=True, eq=False)
class _Place:
    """A reference with all its values."""

    reference: TracedReference
    values: Mapping[int, Any]
    names: Sequence[str]
    mesh: Mapping[str, int]

    def read(self, step: TracedStep) -> list[Any]:
        return [self.values[k] for k in step.operands]

    def change(self, finding: StepChanged, k: int, instead: Any) -> StepChange:
        return StepChange(finding, lambda: self.reference.with_instead(self.values, k, instead))

    def alike(self, step: TracedStep) -> Iterator[int]:
        """The operands that could stand in the place of the result."""
        result = self.values[step.results[0]]
        for kept, operand in enumerate(self.read(step)) if step.name in (*UNARY, *BINARY) else ():
            if (np.shape(operand), operand.dtype) == (np.shape(result), result.dtype):
                yield kept

    def left_out(self, step: TracedStep, kept: int) -> StepChanged:
        """That only one operand is kept."""
        if step.name in UNARY:
            return StepChanged("left out", step.name)
        other = step.operands[1 - kept]
        origins = self.reference.origins[other]
        if not origins:
            values = np.unique(np.asarray(self.values[other]))
            return StepChanged("left out", step.name, constant=f"{values[0]:g}" if len(values) == 1 else "a constant")
        new = origins - self.reference.origins[step.operands[kept]]
        argument = self.names[next(iter(origins))] if len(origins) == 1 and new == origins else ""
        return StepChanged("left out", step.name, argument)

    def done_last(self, k: int, step: TracedStep, kept: int, left_out: StepChanged) -> StepChange:
        finding = StepChanged("done last", step.name, left_out.argument, left_out.constant)
        operands = self.read(step)

        def result() -> list[np.ndarray]:
            before = self.reference.with_instead(self.values, k, operands[kept])
            return [np.asarray(step.run(*operands[:kept], array, *operands[kept + 1 :])[0]) for array in before]

        return StepChange(finding, result)

    def counted(self, k: int, step: TracedStep) -> Iterator[StepChange]:
        """A sum that counts as often as there are devices, or is divided by their number; so of a term of an addition
        that is made of one argument."""
        if step.name not in (*SUMS, "add"):
            return
        result, operands = self.values[step.results[0]], self.read(step)
        # (Of one axis, too: what is said has to be the same on every mesh.)
        along = [((axis,), n) for axis, n in self.mesh.items()]
        for axes, n in [*along, ((), math.prod(self.mesh.values()))] if len(self.mesh) > 1 else along:
            # (In a sum of so many terms the number of all devices may be that of the terms.)
            if step.name in SUMS and (axes or n != _terms(step, operands)):
                yield self.change(StepChanged("once per device", step.name, axes=axes), k, result * n)
                yield self.change(StepChanged("divided by devices", step.name, axes=axes), k, result / n)
            for operand, number in zip(operands, step.operands, strict=True) if step.name == "add" else ():
                if len(origins := self.reference.origins[number]) == 1:
                    finding = StepChanged("once per device", "add", self.names[next(iter(origins))], axes=axes)
                    yield self.change(finding, k, result + (n - 1) * operand)


def _terms(step: TracedStep, operands: Sequence[Any]) -> int:
    """How many terms a sum has, or each sum of a matmul."""
    along = step.params["axes"] if step.name == "reduce_sum" else step.params["dimension_numbers"][0][0]
    return math.prod(np.shape(operands[0])[k] for k in along)
