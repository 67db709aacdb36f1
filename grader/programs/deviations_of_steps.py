"""Right programs, but for one step: another operation, another order, other numbers, other turns of a loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from grader.programs.deviation import Deviation, Model, step_words
from grader.programs.stepwise import (
    BINARY,
    COMPARED,
    DRAWS,
    REDUCTIONS,
    Instead,
    Otherwise,
    TracedStep,
)

NAMED_STEPS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "add": ("an addition", np.add),
    "sub": ("a subtraction", np.subtract),
    "mul": ("a multiplication", np.multiply),
    "div": ("a division", np.divide),
    "max": ("a maximum", np.maximum),
    "min": ("a minimum", np.minimum),
}
SQUARES = ("square", "integer_pow")
TAKEN_FOR = {
    "add": ("sub", "mul"),
    "sub": ("add",),
    "mul": ("div", "add"),
    "div": ("mul",),
    "max": ("min",),
    "min": ("max",),
}


def in_other_order(model: Model, steps: Sequence[TracedStep]) -> Iterator[Deviation]:
    """Of two steps, one behind the other, the second comes first."""
    for first, second in itertools.permutations(steps, 2):
        for k, j in itertools.product(first.alike, second.alike):
            if second.operands[j] is first.result:
                yield Deviation(
                    f"{step_words(second, j)} comes before {step_words(first, k)}",
                    "Which of the two comes first?",
                    model.made_with({second.number: _turned(first.number, k, j)}),
                    (first.number, second.number, k, j),
                )


def _turned(first: int, k: int, j: int) -> Instead:
    """A step, and behind it the one that came before: they take their operands k and j from one another."""
    return lambda step, done: done[first].again(k, step.again(j, done[first].operands[k]))


def of_a_step(model: Model, step: TracedStep) -> Iterator[Deviation]:
    ways = itertools.chain(_exchanged(step), _renumbered(step, model.sizes), _drawn(step))
    for k, (words, question, instead) in enumerate(ways):
        yield Deviation(words, question, model.made_with({step.number: instead}), (step.number, k))


def _by(function: Callable[..., Any]) -> Instead:
    return lambda step, _: function(*step.operands)


def _exchanged(step: TracedStep) -> Iterator[tuple[str, str, Instead]]:
    """Another operation, other operands, or another constant."""
    for other in TAKEN_FOR.get(step.name, ()):
        (words, function), (this, _) = NAMED_STEPS[other], NAMED_STEPS[step.name]
        yield f"{words} stands in the place of {this}", "Which of the two is meant?", _by(function)
    if step.name == "div":
        words = "what is divided and what divides are exchanged"
        yield words, "Which is which?", lambda step, _: np.divide(*step.operands[::-1])
    if step.name in SQUARES:
        words = "an absolute value stands in the place of a square"
        yield words, "Which of the two is meant?", lambda step, _: np.abs(step.operands[0])
    if step.name == "select_n" and len(step.operands) == 3:
        words = "the two sides of a choice are exchanged"
        yield words, "Which entries count?", lambda step, _: np.where(*step.operands)
    if step.name in REDUCTIONS and step.result.ndim:
        name, fold = REDUCTIONS[step.name]
        words = f"{name} runs over all dimensions"
        yield words, "Along which dimension?", lambda step, _: np.full_like(step.result, fold(step.operands[0]))
    if step.name in COMPARED:
        yield "a comparison is turned round", "What is to be larger?", _instead_of_all(_turned_round(step))
    for k, source in enumerate(step.sources) if step.name in BINARY else ():
        if not source.arguments and not source.steps and step.operands[k].dtype.kind in "if":
            for by, words in ((1, "more"), (-1, "less")):
                yield f"a constant in {BINARY[step.name]} is one {words}", "What is it to count?", _moved(k, by)


def _turned_round(step: TracedStep) -> Any:
    """The comparison of the same two, the other way."""
    return COMPARED[step.name](*step.operands)


def _renumbered(step: TracedStep, sizes: Mapping[str, int]) -> Iterator[tuple[str, str, Instead]]:
    """Rows, or whatever a reference numbers, numbered otherwise."""
    if step.name != "iota":
        return
    count = step.result.shape[step.params["dimension"]]
    question = "Which number has the first row of a device?"
    yield "numbers begin at one", "From where do you count?", lambda step, _: step.result + 1
    for axis, n in sizes.items():
        if count % n == 0:
            m = count // n
            rows = step.result
            for words, numbers in (
                (f"rows are numbered within the part of each device along {axis}", rows % m),
                (f"rows have the number of their device along {axis}", rows // m),
                (f"the devices along {axis} number rows in turns, as cards are dealt", rows % m * n + rows // m),
            ):
                yield words, question, _instead_of_all(numbers)


def _instead_of_all(value: Any) -> Instead:
    return lambda step, _: value


def _moved(k: int, by: int) -> Instead:
    """A step whose operand k is more by this."""
    return lambda step, _: step.again(k, step.operands[k] + np.asarray(by, step.operands[k].dtype))


def _drawn(step: TracedStep) -> Iterator[tuple[str, str, Instead]]:
    """Other keys, or numbers drawn in another way."""
    if step.name == "random_split":
        yield "the keys of a split are taken in another order", "Which is for what?", lambda step, _: step.result[::-1]
    for name, draw in DRAWS.items() if step.name in DRAWS else ():
        if name != step.name:
            words = f"numbers are drawn by `{name[1:]}` in the place of `{step.name[1:]}`"
            yield (
                words,
                "Which numbers are asked for?",
                _drawn_by(draw),
            )


def _drawn_by(draw: Callable[..., Any]) -> Instead:
    return lambda step, _: np.asarray(draw(step.operands[0], step.result.shape, step.result.dtype))


def of_softmaxes(model: Model, steps: Sequence[TracedStep]) -> Iterator[Deviation]:
    """A softmax along another dimension."""
    of = {id(step.result): step for step in steps}
    for last in steps:
        over = of.get(id(last.operands[0])) if last.name == "div" else None
        first = of.get(id(over.operands[0])) if over and over.name == "exp" else None
        if first is None or first.name != "sub":
            continue
        for dimension in range(last.result.ndim):
            yield Deviation(
                f"a softmax runs along dimension {dimension} of its argument",
                "What is to add up to one?",
                model.made_with({last.number: _softmax_along(first.number, dimension)}),
                (last.number,),
            )


def _softmax_along(first: int, dimension: int) -> Instead:
    return lambda step, done: np.asarray(jax.nn.softmax(done[first].operands[0], axis=dimension))


def of_loops(model: Model) -> Iterator[Deviation]:
    if not model.right.loops:
        return
    question = "How many turns are there, and which is the first?"
    for words, turns in (
        ("a loop leaves out its last turn", lambda turns: turns[:-1]),
        ("a loop leaves out its first turn", lambda turns: turns[1:]),
        ("a loop takes its last turn twice", lambda turns: [*turns, turns[-1]]),
        ("a loop takes its first turn twice", lambda turns: [turns[0], *turns]),
        ("a loop goes the other way", lambda turns: turns[::-1]),
    ):
        yield Deviation(words, question, model.made(Otherwise(turns=turns)))
    for words, begin in (("ones", np.ones_like), ("zeros", np.zeros_like)):
        yield Deviation(
            f"a loop begins with {words}",
            "With what does it begin?",
            model.made(Otherwise(begin=begin)),
        )
