"""Right programs, but for an activation: another one, none, or one too many."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from grader.arrays.numbers import close
from grader.programs.deviation import Deviation, Model, step_words
from grader.programs.stepwise import (
    ACTIVATIONS,
    Instead,
    Otherwise,
    TracedStep,
)
from grader.programs.variants import MOST_STEPS

TAKEN_FOR_ONE = ACTIVATIONS | {"softmax": jax.nn.softmax}


def of_activations(model: Model) -> Iterator[Deviation]:
    """An activation that is another, left out wherever it stands, or taken of the result as well."""
    if len(model.steps) > MOST_STEPS:
        return
    found = list(_activations(model.steps))
    for name in dict.fromkeys(one.name for one in found):
        some = [one for one in found if one.name == name]
        every = f"every `{name}`" if len(some) > 1 else f"`{name}`"
        for other, function in TAKEN_FOR_ONE.items():
            if other != name:
                instead = {one.at: one.instead(function) for one in some}
                words = f"`{other}` stands in the place of {every}"
                yield Deviation(words, "Which is asked for?", model.made_with(instead))
        left_out = {one.at: one.instead(np.asarray) for one in some}
        yield Deviation(f"{every} is left out", "Where is it due?", model.made_with(left_out))
        for k, array in enumerate(model.given):
            if array.dtype.kind == "f" and array.ndim > 1:
                early = model.given_with(k, np.asarray(ACTIVATIONS[name](array)))
                words = f"{every} is left out, and `{name}` is taken of `{model.names[k]}`"
                yield Deviation(words, "Where is it due?", model.made(Otherwise(left_out), early))
        yield from _taken_too(model, name, found)
        again = functools.partial(_at_the_end, model, ACTIVATIONS[name])
        yield Deviation(f"`{name}` is taken of the result, too", "Where is it due?", again)


def _taken_too(model: Model, name: str, found: Sequence[_Activation]) -> Iterator[Deviation]:
    """An activation that is taken of one more sum or product, as behind the last layer."""
    used = {id(one.operand(model.right.steps[one.at], model.right.steps)) for one in found}
    added = {id(operand) for step in model.steps if step.name == "add" for operand in step.operands}
    for step in reversed(model.steps):
        if step.name in ("add", "dot_general") and step.result.ndim and id(step.result) not in used | added:
            words = f"`{name}` is taken of {step_words(step, 0)}, too"
            yield Deviation(words, "Where is it due?", model.made_with({step.number: _taken(name)}), (step.number,))


def _taken(name: str) -> Instead:
    return lambda step, _: np.asarray(ACTIVATIONS[name](step.result))


@dataclass(frozen=True)
class _Activation:
    """An activation in a reference: what it is called, the step at which it is there, and what it is taken of."""

    name: str
    at: int
    operand: Callable[[TracedStep, Mapping[int, TracedStep]], Any]

    def instead(self, function: Callable[..., Any]) -> Instead:
        return lambda step, done: np.asarray(function(self.operand(step, done)))


def _activations(steps: Sequence[TracedStep]) -> Iterator[_Activation]:
    """The activations in a reference. JAX writes some of them as one step, others as several."""
    for step in steps:
        constants = [k for k, source in enumerate(step.sources) if step.name == "max" and not source.steps]
        zeros = [k for k in constants if not np.any(step.operands[k])]
        if step.name in (*ACTIVATIONS, "logistic"):
            yield _Activation("sigmoid" if step.name == "logistic" else step.name, step.number, _operand(0))
        elif len(zeros) == 1:
            yield _Activation("relu", step.number, _operand(1 - zeros[0]))
        elif step.name == "mul" and (found := _in_several_steps(step, steps)):
            yield found


def _operand(k: int) -> Callable[[TracedStep, Mapping[int, TracedStep]], Any]:
    return lambda step, _: step.operands[k]


def _result_of(number: int) -> Callable[[TracedStep, Mapping[int, TracedStep]], Any]:
    return lambda _, done: done[number].result


def _in_several_steps(last: TracedStep, steps: Sequence[TracedStep]) -> _Activation | None:
    """The activation that ends with a step, if one does: known by its numbers."""
    before = [
        step
        for step in steps
        if step.result.dtype.kind == "f" and any(step.number in source.steps for source in last.sources)
    ]
    if not any(step.name in ("tanh", "logistic", "erf") for step in before):
        return None
    for step, name in itertools.product(before, ("gelu", "silu")):
        if step.name in ("dot_general", "add") and close(ACTIVATIONS[name](step.result), last.result):
            return _Activation(name, last.number, _result_of(step.number))
    return None


def _at_the_end(model: Model, function: Callable[..., Any], _: int) -> list[Any]:
    return [np.asarray(function(array)) for array in model.right.results]
