"""Right programs, but for the place of a sum: behind a later step, or on each device for itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grader.programs.deviation import Deviation, Made, Model, step_words
from grader.programs.plain import product_of
from grader.programs.stepwise import (
    REDUCTIONS,
    SUMS,
    Instead,
    Otherwise,
    TracedStep,
)

SHARES: Mapping[str, Callable[[Any, int], Any]] = {
    "the largest": lambda part, dimension: part.max(dimension, keepdims=True),
    "the smallest": lambda part, dimension: part.min(dimension, keepdims=True),
    "the first": lambda part, dimension: part.take([0], dimension),
    "the last": lambda part, dimension: part.take([-1], dimension),
}
FEW_LATER = 4  # steps behind a sum, before which it could have been due


def behind_the_sum(model: Model, steps: Sequence[TracedStep]) -> Iterator[Deviation]:
    """The parts of a sum are added up, or their means averaged, only behind a later step."""
    if model.right.loops:
        return
    for step, which, axis in _sums(model, [step for step in steps if step.name in SUMS]):
        n, number = model.sizes[axis], step.number
        for factor, together, what in ((1, np.sum, "the parts of"), (n, np.mean, "the devices' own means from")):
            runs = [model.done(Otherwise({number: _of_part(which, place, n, factor)})) for place in range(n)]
            behind = [step for step in steps if any(number in source.steps for source in step.sources)]
            for later in behind[:FEW_LATER]:
                if not _is_of_jaxs_own(later):
                    results = [run.steps[later.number].result for run in runs]
                    yield Deviation(
                        f"{what} {SUMS[step.name]} along {axis} are taken together only behind "
                        f"{step_words(later, _fed(later, number))}",
                        "What may be done to a part of a sum, and what only to the whole?",
                        model.made_with({later.number: _at_once(results, together)}),
                        (number, which, later.number),
                    )


def _at_once(results: Sequence[Any], together: Callable[..., Any]) -> Instead:
    return lambda step, _: together(results, axis=0).astype(step.result.dtype)


def _fed(step: TracedStep, number: int) -> int:
    """The operand of a step into which another has gone."""
    return next(k for k, source in enumerate(step.sources) if number in source.steps)


def _is_of_jaxs_own(step: TracedStep) -> bool:
    """Whether it is the step of a maximum in JAX that is there for infinities alone."""
    return step.name == "max" and any(np.isinf(a).all() for a in step.operands if a.dtype.kind == "f")


def of_own_parts(model: Model, steps: Sequence[TracedStep]) -> Iterator[Deviation]:
    """One sum or maximum, or two, that each device takes of its own part alone."""
    found = sorted(_sums(model, steps), key=lambda one: list(model.sizes).index(one[2]))
    for some in [*((one,) for one in found), *itertools.pairwise(found)]:
        if len({axis for *_, axis in some}) > 1 or len({step.number for step, *_ in some}) < len(some):
            continue
        axis, n = some[0][2], model.sizes[some[0][2]]
        for factor in (1, n):
            if factor > 1 and any(step.name not in SUMS for step, *_ in some):
                continue
            kinds = ["a mean" if factor > 1 else step_words(step, 0) for step, *_ in some]
            yield Deviation(
                f"{_of_kinds(kinds)} taken by each device along {axis} of its own part alone",
                "What does a device lack there, and who holds it?",
                _alone(model, some, n, factor),
                tuple(number for step, which, _ in some for number in (step.number, which)),
                axis,
            )


def of_other_shares(model: Model, steps: Sequence[TracedStep]) -> Iterator[Deviation]:
    """A sum to which each device brings something else of its own part than the sum of that."""
    for step, which, axis in _sums(model, [step for step in steps if step.name == "reduce_sum"]):
        for words, share in SHARES.items():
            yield Deviation(
                f"each device along {axis} brings {words} of its own part to a sum",
                "What does a device bring of its own?",
                model.made_with({step.number: _of_shares(which, model.sizes[axis], share)}),
                (step.number, which),
            )


def _of_shares(which: int, n: int, share: Callable[..., Any]) -> Instead:
    def instead(step: TracedStep, _: Any) -> Any:
        dimension = step.axes[which]
        parts = np.split(step.operands[0], n, dimension)
        whole = sum(share(part, dimension) for part in parts)
        others = tuple(axis for axis in step.axes if axis != dimension)
        return np.asarray(np.sum(whole, axis=others, keepdims=True).squeeze(step.axes), step.result.dtype)

    return instead


def _of_kinds(kinds: Sequence[str]) -> str:
    if len(kinds) == 1:
        return f"{kinds[0]} is"
    return f"{' and then '.join(kinds)} are"


def _alone(model: Model, some: Sequence[tuple[TracedStep, int, str]], n: int, factor: float) -> Made:
    def made(place: int) -> list[Any]:
        return model.done(
            Otherwise({step.number: _of_part(which, place, n, factor) for step, which, _ in some})
        ).results

    return made


def _sums(model: Model, steps: Sequence[TracedStep]) -> Iterator[tuple[TracedStep, int, str]]:
    """The steps that take something together along a dimension that could be cut over the devices along an axis."""
    for step in steps:
        for which, size in enumerate(_taken_together(step)):
            yield from ((step, which, axis) for axis, n in model.sizes.items() if size % n == 0)


def _taken_together(step: TracedStep) -> list[int]:
    """The sizes of the dimensions that a step takes together."""
    if step.name in REDUCTIONS:
        return [step.operands[0].shape[k] for k in step.axes]
    if step.name == "dot_general":
        return [step.operands[0].shape[k] for k in step.params["dimension_numbers"][0][0]]
    return []


def _part(step: TracedStep, which: int, place: int, n: int) -> Any:
    """What a step comes to of one of the n parts of such a dimension alone."""
    if step.name in REDUCTIONS:
        part = np.split(step.operands[0], n, step.axes[which])[place]
        return np.asarray(REDUCTIONS[step.name][1](part, axis=step.axes), part.dtype)
    summed = step.params["dimension_numbers"][0]
    cut = [np.split(a, n, summed[side][which])[place] for side, a in enumerate(step.operands)]
    return product_of(*cut, dimension_numbers=step.params["dimension_numbers"])


def _of_part(which: int, place: int, n: int, factor: float) -> Instead:
    return lambda step, _: _part(step, which, place, n) * np.asarray(factor, step.result.dtype)
