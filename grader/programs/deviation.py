"""A reference as a model of a right program, and what a deviation from it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.jax_versions import as_needed
from grader.programs.stepwise import (
    ACTIVATIONS,
    AS_IT_IS,
    BINARY,
    REDUCTIONS,
    SUMS,
    UNARY,
    Instead,
    Otherwise,
    Stepwise,
    TracedStep,
    length,
)
from grader.programs.variants import MOST_EQUATIONS, in_jax

Made = Callable[[int], Sequence[Any]]  # the arrays of a result, on the devices at a place along an axis


@dataclass(frozen=True, eq=False)
class Deviation:
    """Something that is otherwise than in a right program: in words, what to ask then, and what comes out.

    `made` gives the arrays of the result; where there is an axis `along`, those on the devices at a place along it.
    `at` tells deviations of the same words apart.
    """

    words: str
    question: str
    made: Made
    at: tuple[int, ...] = ()
    along: str = ""


class Model:
    """A reference, traced on the arguments of a case: `given` are the arrays of these, `names` what they are called, as
    params['b1'], and `specs` how they are laid out on a mesh of these sizes.

    Plain numbers that are floats are arrays here; `counts` are the whole ones, by name. The reference takes both as
    keywords. Of its results the one of the number `only` is left, where that is said. Raises whatever tracing it does, and ValueError for one that is too long.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        arguments: Mapping[str, Any],
        numbers: Mapping[str, float],
        sizes: Mapping[str, int],
        only: int | None = None,
    ):
        self.reference, self.sizes, self.only = reference, sizes, only
        self.counts = {name: number for name, number in numbers.items() if isinstance(number, int)}
        rates = {name: np.float32(number) for name, number in numbers.items() if isinstance(number, float)}
        placed = [(name, path, a) for name, tree in arguments.items() for path, a in jax.tree.leaves_with_path(tree)]
        self.tree = jax.tree.structure((tuple(arguments.values()), rates))
        self.names = [f"{name}{jax.tree_util.keystr(path)}" for name, path, _ in placed] + sorted(rates)
        self.given = [np.asarray(a.value) for _, _, a in placed] + [np.asarray(rates[name]) for name in sorted(rates)]
        self.specs: list[P] = [a.spec for _, _, a in placed] + [P()] * len(rates)
        self.closed = self._traced(self.given, self.counts)
        if length(self.closed) > MOST_EQUATIONS:
            raise ValueError("the reference is too long")

    def _traced(self, given: Sequence[Any], counts: Mapping[str, int]) -> Any:
        trees, rates = jax.tree.unflatten(self.tree, given)
        traceable = in_jax(lambda trees, rates: self.reference(*trees, **rates, **counts))
        return as_needed(jax.make_jaxpr(traceable)(trees, rates), self.only)

    @cached_property
    def right(self) -> Stepwise:
        return self.done()

    @property
    def steps(self) -> Sequence[TracedStep]:
        return list(self.right.steps.values())

    def done(self, otherwise: Otherwise = AS_IT_IS, given: Sequence[Any] | None = None) -> Stepwise:
        return Stepwise(self.closed, self.given if given is None else given, self.names, otherwise)

    def given_with(self, k: int, array: Any) -> list[Any]:
        """The arguments, but for one."""
        return [*self.given[:k], array, *self.given[k + 1 :]]

    def anew(self, given: Sequence[Any], counts: Mapping[str, int]) -> list[Any]:
        """The results for arguments of other shapes, or other counts: it has to be traced again."""
        return Stepwise(self._traced(given, counts), given, self.names).results

    def made(self, otherwise: Otherwise = AS_IT_IS, given: Sequence[Any] | None = None) -> Made:
        """What comes of a deviation that is the same on all devices."""
        return lambda _: self.done(otherwise, given).results

    def made_with(self, instead: Mapping[int, Instead]) -> Made:
        """What comes of it where steps are done otherwise."""
        return self.made(Otherwise(instead))


def step_words(step: TracedStep, kept: int) -> str:
    """What a step does to one of its operands, by its kind."""
    if step.name in SUMS or step.name in REDUCTIONS:
        return SUMS.get(step.name) or REDUCTIONS[step.name][0]
    if step.name not in (*UNARY, *BINARY, *ACTIVATIONS):
        return "a choice" if step.name == "select_n" else "a later step"
    words = step.besides(kept) if len(step.operands) < 3 else BINARY[step.name]
    return f"{BINARY[step.name]} of {words}" if step.name in BINARY and words.startswith("`") else words
