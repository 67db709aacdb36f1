"""A traced reference, done again step by step: each step may be done otherwise, and loops may take other turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.extend import core

from grader.jax_versions import open_jaxpr, scan_parts
from grader.programs.plain import bound

MOST_TURNS = 64  # of a loop that is done turn by turn
UNARY = {
    "tanh": "the tanh",
    "logistic": "the sigmoid",
    "exp": "the exponential",
    "log": "the logarithm",
    "sqrt": "the root",
    "rsqrt": "the division by the root",
    "abs": "the absolute value",
    "square": "the square",
    "integer_pow": "the power",
    "neg": "the change of sign",
}
BINARY = {
    "add": "the addition",
    "sub": "the subtraction",
    "mul": "the factor",
    "div": "the division",
    "max": "the maximum",
    "min": "the minimum",
}
SUMS = {"dot_general": "a product of matrices", "reduce_sum": "a sum"}
REDUCTIONS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "reduce_sum": ("a sum", np.sum),
    "reduce_max": ("a maximum", np.max),
    "reduce_min": ("a minimum", np.min),
}
ACTIVATIONS = {
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
}
COMPARED = {"lt": np.greater, "gt": np.less, "le": np.greater_equal, "ge": np.less_equal}  # and what is their opposite
OTHER_STEPS = ("argmax", "iota", "select_n", "random_split", *COMPARED)
DRAWS = {"_uniform": jax.random.uniform, "_normal": jax.random.normal}
TRACED_STEPS = {*UNARY, *BINARY, *SUMS, *REDUCTIONS, *ACTIVATIONS, *OTHER_STEPS, *DRAWS}
CALLS = ("jit", "pjit", "custom_jvp_call", "custom_vjp_call", "closed_call", "checkpoint", "remat", "remat2")
DICE = ("uniform", "normal", "bernoulli", "fold_in", "split", "choice", "randint", "permutation", "threefry")


@dataclass(frozen=True)
class Sources:
    """Of which arguments a value is made, and of which steps, by their numbers."""

    arguments: frozenset[str] = frozenset()
    steps: frozenset[int] = frozenset()

    @classmethod
    def of(cls, several: Sequence[Sources]) -> Sources:
        return cls(
            frozenset[str]().union(*(one.arguments for one in several)),
            frozenset[int]().union(*(one.steps for one in several)),
        )


@dataclass(frozen=True, eq=False)
class TracedStep:
    """An operation of a reference, as it was done: its number, its name, its operands, and what those are made of.

    `again` does it once more, on another array in the place of one operand.
    """

    number: int
    name: str
    operands: Sequence[Any]
    sources: Sequence[Sources]
    result: Any
    params: Mapping[str, Any]
    again: Callable[[int, Any], Any]

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(self.params.get("axes", ()))

    @property
    def terms(self) -> int:
        """How many terms a sum has, or each sum of a product of matrices."""
        along = self.axes if self.name == "reduce_sum" else self.params["dimension_numbers"][0][0]
        return math.prod(np.shape(self.operands[0])[k] for k in along)

    @property
    def alike(self) -> list[int]:
        """The operands that could stand in the place of the result."""
        if self.name not in (*UNARY, *BINARY, *ACTIVATIONS):
            return []
        form = (np.shape(self.result), self.result.dtype)
        return [k for k, a in enumerate(self.operands) if (np.shape(a), a.dtype) == form]

    def besides(self, kept: int) -> str:
        """What is done to one operand."""
        if self.name in ACTIVATIONS or self.name in UNARY:
            return f"`{self.name}`" if self.name in ACTIVATIONS else UNARY[self.name]
        other = 1 - kept
        if not self.sources[other].arguments:
            by = {"div": "by", "max": "with", "min": "with"}.get(self.name, "of")
            return f"{BINARY[self.name]} {by} {_constant(self.operands[other])}"
        new = self.sources[other].arguments - self.sources[kept].arguments
        return f"`{next(iter(new))}`" if len(new) == 1 and new == self.sources[other].arguments else BINARY[self.name]


def _constant(value: Any) -> str:
    values = np.unique(np.asarray(value))
    return f"{values[0]:g}" if len(values) == 1 else "a constant"


# What stands in the place of a step's result, given that step as it would be, and the steps done before by number.
Instead = Callable[[TracedStep, Mapping[int, TracedStep]], Any]


@dataclass(frozen=True)
class Otherwise:
    """What is done otherwise: some steps, the turns that loops take, and what these begin with."""

    steps: Mapping[int, Instead] = field(default_factory=dict)
    turns: Callable[[list[int]], list[int]] = lambda turns: turns
    begin: Callable[[Any], Any] = lambda carry: carry


AS_IT_IS = Otherwise()


class Stepwise:
    """A traced function, done on these arrays of named arguments.

    `steps` are those that could be done otherwise, by number: a step in a loop as it was in the last turn, `loops` how
    many there are. `results` is what comes out, array by array.
    """

    def __init__(self, closed: Any, given: Sequence[Any], names: Sequence[str], otherwise: Otherwise = AS_IT_IS):
        self.otherwise, self.loops = otherwise, 0
        self.steps, self._numbers = dict[int, TracedStep](), dict[tuple[int, ...], int]()
        sources = [Sources(frozenset([name])) for name in names]
        self.results, _ = self._done(open_jaxpr(closed), closed.consts, list(given), sources, ())

    def _done(
        self,
        jaxpr: core.Jaxpr,
        consts: Sequence[Any],
        given: Sequence[Any],
        sources: Sequence[Sources],
        place: tuple[int, ...],
    ) -> tuple[list[Any], list[Sources]]:
        value: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *given], strict=True))
        made: dict[Any, Sources] = dict(zip(jaxpr.invars, sources, strict=True))
        read = lambda v: _number(v) if isinstance(v, core.Literal) else value[v]  # noqa: E731
        of = lambda v: Sources() if isinstance(v, core.Literal) else made.get(v, Sources())  # noqa: E731
        for k, eqn in enumerate(jaxpr.eqns):
            operands, kinds = [read(v) for v in eqn.invars], [of(v) for v in eqn.invars]
            results, out = self._equation(eqn, operands, kinds, (*place, k))
            value |= dict(zip(eqn.outvars, results, strict=True))
            made |= dict(zip(eqn.outvars, out, strict=True))
        return [read(v) for v in jaxpr.outvars], [of(v) for v in jaxpr.outvars]

    def _equation(
        self, eqn: Any, operands: list[Any], sources: list[Sources], place: tuple[int, ...]
    ) -> tuple[list[Any], list[Sources]]:
        inner, name = called_by(eqn)
        if inner is not None and name not in TRACED_STEPS and not any(die in name for die in DICE):
            return self._done(open_jaxpr(inner), getattr(inner, "consts", ()), operands, sources, place)
        if name == "scan" and eqn.params["length"] <= MOST_TURNS:
            return self._scanned(eqn.params, operands, sources, place)
        return self._stepped(eqn, name, operands, sources, place)

    def _stepped(
        self, eqn: Any, name: str, operands: list[Any], sources: list[Sources], place: tuple[int, ...]
    ) -> tuple[list[Any], list[Sources]]:
        def done(*operands: Any) -> list[Any]:
            if name in ACTIVATIONS:
                return [np.asarray(ACTIVATIONS[name](operands[0]))]
            return bound(eqn.primitive, operands, eqn.params)

        results, kinds = done(*operands), Sources.of(sources)
        if name not in TRACED_STEPS:
            return results, [kinds] * len(results)
        number = self._numbers.setdefault(place, len(self._numbers))
        again = lambda k, other: done(*operands[:k], other, *operands[k + 1 :])[0]  # noqa: E731
        step = TracedStep(number, name, operands, sources, results[0], eqn.params, again)
        if number in self.otherwise.steps:
            results = [self.otherwise.steps[number](step, self.steps)]
        self.steps[number] = step
        return results, [Sources(kinds.arguments, kinds.steps | {number})] * len(results)

    def _scanned(
        self, params: Mapping[str, Any], operands: list[Any], sources: list[Sources], place: tuple[int, ...]
    ) -> tuple[list[Any], list[Sources]]:
        """A loop, turn by turn."""
        self.loops += 1
        consts, carried = scan_parts(params)
        inner, split = params["jaxpr"], consts + carried
        carry, kinds = [self.otherwise.begin(a) for a in operands[consts:split]], [*sources]
        turns = list(range(params["length"]))
        rows, last = list[list[Any]](), list[Sources]()
        for turn in self.otherwise.turns(turns[::-1] if params["reverse"] else turns):
            given = [*operands[:consts], *carry, *(a[turn] for a in operands[split:])]
            out, last = self._done(open_jaxpr(inner), inner.consts, given, kinds, place)
            carry, kinds = out[:carried], [*kinds[:consts], *last[:carried], *kinds[split:]]
            rows.append(out[carried:])
        ordered = rows[::-1] if params["reverse"] else rows
        return [*carry, *(np.stack(column) for column in zip(*ordered, strict=True))], last or kinds[consts:split]


def _number(literal: core.Literal) -> np.ndarray:
    aval: Any = literal.aval
    return np.asarray(literal.val, aval.dtype)


def called_by(eqn: Any) -> tuple[Any, str]:
    """What an equation calls, if it does, and what that is called; else the name of its operation."""
    if eqn.primitive.name not in CALLS:
        return None, eqn.primitive.name
    inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
    only = open_jaxpr(inner).eqns if "name" not in eqn.params else []
    name = eqn.params.get("name") or (only[0].params.get("name", "") if len(only) == 1 else "")
    return inner, name


def length(jaxpr: Any) -> int:
    """How many equations there are, those of what is called among them."""
    return sum(1 if (inner := called_by(eqn)[0]) is None else length(inner) for eqn in open_jaxpr(jaxpr).eqns)
