"""A reference, traced once and run in NumPy as often as needed: as it is, on other arrays, or with one step changed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend import core

from grader.jax_versions import as_needed, open_jaxpr
from grader.programs.in_numpy import in_numpy
from grader.programs.jaxprs import equations
from grader.programs.traceable import in_jax

MOST_EQUATIONS = 300  # of a reference; in a longer one, such as a training, a single step means little
CALLS = ("jit", "pjit", "custom_jvp_call", "custom_vjp_call", "closed_call", "checkpoint", "remat", "remat2")
ACTIVATIONS = ("relu", "gelu", "silu", "sigmoid")  # called functions that are single steps


class CannotTrace(Exception):
    """A reference that JAX cannot trace, or one that is too long."""


@dataclass(frozen=True, eq=False)
class TracedStep:
    """One operation. Its operands and results are numbers of values."""

    name: str
    run: Callable[..., Sequence[Any]]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    params: Mapping[str, Any]


class TracedReference:
    """A traced function of arrays, as a list of steps. `origins` has for each value the inputs that it is made of."""

    def __init__(self, jaxpr: Any):
        self.constants, self.origins = dict[int, Any](), list[frozenset[int]]()
        self.steps = list[TracedStep]()
        self.inputs = [self._new({k}) for k in range(len(open_jaxpr(jaxpr).invars))]
        self.outputs = self._read(jaxpr, self.inputs)

    def __call__(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """The arrays of the result."""
        values = self.values(arrays)
        return [np.asarray(values[k]) for k in self.outputs]

    def values(self, arrays: Sequence[Any]) -> dict[int, Any]:
        """All values, by number."""
        values = self.constants | dict(zip(self.inputs, arrays, strict=True))
        for step in self.steps:
            values.update(zip(step.results, step.run(*(values[k] for k in step.operands)), strict=True))
        return values

    def with_instead(self, values: Mapping[int, Any], number: int, instead: Any) -> list[np.ndarray]:
        """The arrays of the result if a step gave another value: only the steps that depend on it run again."""
        changed = {self.steps[number].results[0]: instead}
        for step in self.steps[number + 1 :]:
            if not changed.keys().isdisjoint(step.operands):
                operands = (changed.get(k, values[k]) for k in step.operands)
                changed.update(zip(step.results, step.run(*operands), strict=True))
        return [np.asarray(changed.get(k, values[k])) for k in self.outputs]

    def _new(self, origins: Any = ()) -> int:
        self.origins.append(frozenset(origins))
        return len(self.origins) - 1

    def _constant(self, value: Any) -> int:
        number = self._new()
        self.constants[number] = value
        return number

    def _read(self, closed: Any, given: Sequence[int]) -> list[int]:
        """The steps of a jaxpr, those of what it calls among them; the numbers of its results."""
        jaxpr = open_jaxpr(closed)
        consts = zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=True)
        numbers = dict(zip(jaxpr.invars, given, strict=True)) | {v: self._constant(value) for v, value in consts}
        number = lambda v: self._constant(_literal(v)) if isinstance(v, core.Literal) else numbers[v]  # noqa: E731
        for eqn in jaxpr.eqns:
            operands = tuple(map(number, eqn.invars))
            inner, name = _called_by(eqn)
            if inner is not None and name not in ACTIVATIONS:
                results = tuple(self._read(inner, operands))
            else:
                origins = frozenset[int]().union(*(self.origins[k] for k in operands))
                results = tuple(self._new(origins) for _ in eqn.outvars)
                self.steps.append(TracedStep(name, _runner(eqn, inner), operands, results, eqn.params))
            numbers.update(zip(eqn.outvars, results, strict=True))
        return [number(v) for v in jaxpr.outvars]


def traced_reference(
    reference: Callable[..., Any], arguments: Sequence[Any], only: int | None = None
) -> TracedReference:
    """The reference on arrays, or pytrees of them, of these shapes; if asked, `only` the array of that number in its
    result. Raises CannotTrace."""
    try:
        jaxpr = as_needed(jax.make_jaxpr(in_jax(reference))(*arguments), only)
    except Exception as error:  # it may look at its numbers, or take no such shapes
        raise CannotTrace from error
    if sum(1 for _ in equations(jaxpr)) > MOST_EQUATIONS:
        raise CannotTrace
    return TracedReference(jaxpr)


def _runner(eqn: Any, inner: Any) -> Callable[..., Sequence[Any]]:
    if inner is not None:
        steps = TracedReference(inner)
        return lambda *operands: steps(operands)
    return functools.partial(_run, eqn)


def _run(eqn: Any, *operands: Any) -> list[Any]:
    """An operation in NumPy, or in JAX where NumPy doesn't have it."""
    arrays = [_plain(operand) for operand in operands]
    if (found := in_numpy(eqn, arrays)) is not None:
        return [found]
    results = eqn.primitive.bind(*operands, **eqn.params)
    return [_plain(result) for result in (results if eqn.primitive.multiple_results else [results])]


def _plain(value: Any) -> Any:
    """A value as an array of NumPy's; what is none, such as a key, as it is."""
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return value
    return np.asarray(value)


def _literal(literal: core.Literal) -> np.ndarray:
    aval: Any = literal.aval
    return np.asarray(literal.val, aval.dtype)


def _called_by(eqn: Any) -> tuple[Any, str]:
    """What an equation calls, if it does, and what that is called; else the name of its operation."""
    if eqn.primitive.name not in CALLS:
        return None, eqn.primitive.name
    inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
    only = open_jaxpr(inner).eqns if "name" not in eqn.params else []
    name = eqn.params.get("name") or (only[0].params.get("name", "") if len(only) == 1 else "")
    return inner, name
