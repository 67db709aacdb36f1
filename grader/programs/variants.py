"""Variants of a reference: what comes out when one of its steps is left out, moved, or done by each device alone.

A reference is traced, and done again with a step changed. Where a variant gives what a wrong program gave, on
every mesh that was tried, that step is what the program's author should look at.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.extend import core
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.arrays.laid import Array
from grader.jax_versions import open_jaxpr

MOST_EQUATIONS = 300  # of a reference; in a longer one, such as a training, a single step means little
MOST_STEPS = 40  # that are changed, for the same reason
MOST_PAIRS = 20  # of steps that are left out at once
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
    "reduce_sum": ("a sum", jnp.sum),
    "reduce_max": ("a maximum", jnp.max),
    "reduce_min": ("a minimum", jnp.min),
}
ACTIVATIONS = {
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
}
CALLS = ("jit", "pjit", "custom_jvp_call", "custom_vjp_call", "closed_call")
DICE = ("uniform", "normal", "bernoulli", "fold_in", "split", "choice", "randint", "permutation", "threefry")


@dataclass(frozen=True)
class TracedStep:
    """An operation of a reference: its name, its operands, and of which arguments each of them is made.

    `again` does it once more, on another array in the place of the operand that could pass for its result.
    """

    name: str
    operands: Sequence[Any]
    made_of: Sequence[frozenset[str]]
    result: Any
    again: Callable[[int, Any], Any]
    axes: tuple[int, ...] = ()

    @property
    def alike(self) -> list[int]:
        """The operands that could stand in the place of the result."""
        if self.name not in (*UNARY, *BINARY, *ACTIVATIONS):
            return []
        form = (np.shape(self.result), jnp.result_type(self.result))
        return [k for k, a in enumerate(self.operands) if (np.shape(a), jnp.result_type(a)) == form]

    def besides(self, kept: int) -> str:
        """What is done to one operand."""
        if self.name in ACTIVATIONS or self.name in UNARY:
            return f"`{self.name}`" if self.name in ACTIVATIONS else UNARY[self.name]
        other = 1 - kept
        if not self.made_of[other]:
            by = {"div": "by", "max": "with", "min": "with"}.get(self.name, "of")
            return f"{BINARY[self.name]} {by} {_constant(self.operands[other])}"
        new = self.made_of[other] - self.made_of[kept]
        return f"`{next(iter(new))}`" if len(new) == 1 and new == self.made_of[other] else BINARY[self.name]


def _constant(value: Any) -> str:
    values = np.unique(np.asarray(value))
    return f"{values[0]:g}" if len(values) == 1 else "a constant"


# What stands in the place of a step's result, given its operands and that result.
Instead = Callable[[Sequence[Any], Any], Any]


@dataclass(frozen=True)
class Departure:
    """Another value in the place of a step's, and what is done to the result at the end."""

    words: str
    instead: Mapping[int, Instead]
    at_the_end: Callable[[Any], Any] = lambda result: result
    turned: Callable[[Any], Any] | None = None


# Other dimensions for those along which a reference in NumPy takes sums and maxima.
TURNS: Mapping[str, Callable[[Any], Any]] = {
    "sums and maxima run over all dimensions": lambda axis: None,
    "sums and maxima run along the other dimension": lambda axis: {0: 1, 1: 0, -1: 0, -2: -1}.get(axis, axis),
}
FOLDS = ("sum", "mean", "max", "min", "var", "std", "prod", "amax", "amin")


class Variants:
    """The variants of a reference of named arrays, on a mesh of these sizes; none of one that cannot be traced."""

    def __init__(self, reference: Callable[..., Any], arguments: Mapping[str, Any], sizes: Mapping[str, int]):
        self.given = jax.tree.leaves(tuple(arguments.values()))
        self.names = [n for n, a in arguments.items() for _ in jax.tree.leaves(a)]
        self.changes: dict[str, Departure] = {}
        try:
            self.closed = jax.make_jaxpr(in_jax(reference))(*arguments.values())
            if _length(self.closed) > MOST_EQUATIONS:
                return
            steps = _Run(self.closed, self.given, self.names).steps
        except Exception:  # a reference may do what is not to be traced
            return
        if len(steps) <= MOST_STEPS:
            self.changes = {change.words: change for change in _changes(steps, sizes)}
            self.changes |= {words: Departure(words, {}, turned=turn) for words, turn in TURNS.items()}
        self.reference, self.arguments = reference, tuple(arguments.values())

    def result(self, words: str) -> list[np.ndarray]:
        """What comes out with the change of these words: the arrays of the result; none where it cannot be done."""
        change = self.changes[words]
        try:
            if change.turned:
                return self._turned(change.turned)
            run = _Run(self.closed, self.given, self.names, change.instead)
            return [np.asarray(change.at_the_end(array)) for array in run.results]
        except (TypeError, ValueError):
            return []

    def _turned(self, turned: Callable[[Any], Any]) -> list[np.ndarray]:
        """The result of a reference that is written in NumPy, whose sums and maxima run along other dimensions."""
        given = jax.tree.map(lambda a: _Traced(jnp.asarray(a), turned), self.arguments)
        return [np.asarray(array) for array in jax.tree.leaves(_opened(self.reference(*given)))]


def _changes(steps: Sequence[TracedStep], sizes: Mapping[str, int]) -> Iterator[Departure]:
    """The changes of single steps; then two steps left out at once."""
    left_out: list[Departure] = []
    for k, step in enumerate(steps):
        for kept in step.alike:
            name, keep = step.besides(kept), {k: _operand(kept)}
            again = functools.partial(step.again, kept)
            left_out.append(Departure(f"{name} is left out", keep))
            yield left_out[-1]
            yield Departure(f"{name} comes at the very end", keep, again)
            yield Departure(f"{name} comes once more at the end", {}, again)
        yield from (Departure(words, {k: instead}) for words, instead in [*_exchanged(step), *_counted(step, sizes)])
    for one, other in itertools.islice(itertools.combinations(left_out, 2), MOST_PAIRS):
        if not one.instead.keys() & other.instead.keys():
            both = " and ".join(change.words.removesuffix(" is left out") for change in (one, other))
            yield Departure(f"{both} are left out", {**one.instead, **other.instead})


def _exchanged(step: TracedStep) -> Iterator[tuple[str, Instead]]:
    """Another operation of the same kind."""
    if step.name in ACTIVATIONS:
        for name, function in ACTIVATIONS.items():
            if name != step.name:
                yield f"`{name}` stands in the place of `{step.name}`", _of_first(function)
    if step.name in REDUCTIONS:
        for name, (other, reduction) in REDUCTIONS.items():
            if name != step.name:
                words = f"{other} stands in the place of {REDUCTIONS[step.name][0]}"
                yield words, _of_first(functools.partial(reduction, axis=step.axes))
    if step.name == "argmax":
        words = "the largest number itself stands in the place of where it is"
        yield words, _of_first(functools.partial(jnp.max, axis=step.axes))
    if step.name == "sub":
        yield "the two sides of a difference are exchanged", lambda operands, _: operands[1] - operands[0]


def _counted(step: TracedStep, sizes: Mapping[str, int]) -> Iterator[tuple[str, Instead]]:
    """A step whose value counts as often as there are devices, or is divided by their number."""
    for among, n in _numbers_of_devices(sizes):
        if step.name in SUMS:
            yield f"{SUMS[step.name]} counts once for each of the devices{among}", _times(n)
            yield f"{SUMS[step.name]} is divided by the number of devices{among}", _times(1 / n)
        for other in (0, 1) if step.name == "add" else ():
            if len(step.made_of[other]) == 1:
                name = next(iter(step.made_of[other]))
                yield f"`{name}` is added once for each of the devices{among}", _added(other, n)


def _operand(k: int) -> Instead:
    return lambda operands, _: operands[k]


def _of_first(function: Callable[[Any], Any]) -> Instead:
    return lambda operands, _: function(operands[0])


def _times(n: float) -> Instead:
    return lambda _, result: result * n


def _added(k: int, n: int) -> Instead:
    """An operand of a sum, n times."""
    return lambda operands, result: result + (n - 1) * operands[k]


def _numbers_of_devices(sizes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Along an axis, and all; also of axes with one device, so that what is said has the same words on every mesh."""
    yield from ((f" along {name}", n) for name, n in sizes.items())
    if len(sizes) > 1:
        yield "", math.prod(sizes.values())


def alone(
    reference: Callable[..., Any], arguments: Mapping[str, Array], sizes: Mapping[str, int], along: Sequence[str]
) -> list[Any]:
    """What comes out on every device when it knows of the arguments only what is on its own place along some axes.

    Raises whatever the reference makes of arrays of these shapes.
    """
    blocks_of = {name: _cut_along(a, sizes, along) for name, a in arguments.items()}
    count = math.prod(sizes.values())
    return [jax.tree.leaves(reference(*(parts[d] for parts in blocks_of.values()))) for d in range(count)]


def _cut_along(array: Any, sizes: Mapping[str, int], along: Sequence[str]) -> list[Any]:
    """The parts of an argument, or of a pytree of them, that devices hold who differ along some axes only."""
    cut = [_parts(a.value, _only(a.spec, along), sizes) for a in jax.tree.leaves(array)]
    return [jax.tree.unflatten(jax.tree.structure(array), parts) for parts in zip(*cut, strict=True)]


def _parts(value: np.ndarray, spec: P, sizes: Mapping[str, int]) -> list[np.ndarray]:
    return [value[index] for index in blocks(value.shape, spec, dict(sizes)).indices]


def _only(spec: P, along: Sequence[str]) -> P:
    names = [(entry,) if isinstance(entry, str) else tuple(entry or ()) for entry in spec]
    return P(*(tuple(name for name in entry if name in along) or None for entry in names))


class _Run:
    """A traced reference, done step by step."""

    def __init__(
        self,
        closed: Any,
        given: Sequence[Any],
        names: Sequence[str],
        instead: Mapping[int, Instead] | None = None,
    ):
        self.instead, self.steps = instead or {}, list[TracedStep]()
        made_of = [frozenset([name]) for name in names]
        self.results, _ = self._done(open_jaxpr(closed), closed.consts, given, made_of)

    def _done(
        self, jaxpr: core.Jaxpr, consts: Sequence[Any], given: Sequence[Any], made_of: Sequence[frozenset[str]]
    ) -> tuple[list[Any], list[frozenset[str]]]:
        value: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *given], strict=True))
        made: dict[Any, frozenset[str]] = dict(zip(jaxpr.invars, made_of, strict=True))
        read = lambda v: v.val if isinstance(v, core.Literal) else value[v]  # noqa: E731
        of = lambda v: frozenset() if isinstance(v, core.Literal) else made.get(v, frozenset())  # noqa: E731
        for eqn in jaxpr.eqns:
            operands, sources = [read(v) for v in eqn.invars], [of(v) for v in eqn.invars]
            inner, name = _called(eqn)
            if inner is not None and name not in ACTIVATIONS and not any(die in name for die in DICE):
                results, kinds = self._done(open_jaxpr(inner), getattr(inner, "consts", ()), operands, sources)
            else:
                results = self._stepped(eqn, name, operands, sources)
                kinds = [frozenset[str]().union(*sources)] * len(results)
            value |= dict(zip(eqn.outvars, results, strict=True))
            made |= dict(zip(eqn.outvars, kinds, strict=True))
        return [read(v) for v in jaxpr.outvars], [of(v) for v in jaxpr.outvars]

    def _stepped(self, eqn: Any, name: str, operands: list[Any], sources: list[frozenset[str]]) -> list[Any]:
        def bound(*operands: Any) -> list[Any]:
            if name in ACTIVATIONS:
                return [ACTIVATIONS[name](operands[0])]
            results = eqn.primitive.bind(*operands, **eqn.params)
            return list(results) if eqn.primitive.multiple_results else [results]

        results = bound(*operands)
        if name not in {**UNARY, **BINARY, **SUMS, **REDUCTIONS, **ACTIVATIONS, "argmax": ""}:
            return results
        again = lambda k, other: bound(*operands[:k], other, *operands[k + 1 :])[0]  # noqa: E731
        number = len(self.steps)
        self.steps.append(TracedStep(name, operands, sources, results[0], again, eqn.params.get("axes", ())))
        return [self.instead[number](operands, results[0])] if number in self.instead else results


def _called(eqn: Any) -> tuple[Any, str]:
    """What an equation calls, if it does, and what that is called; else the name of its operation."""
    if eqn.primitive.name not in CALLS:
        return None, eqn.primitive.name
    inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
    only = open_jaxpr(inner).eqns if "name" not in eqn.params else []
    name = eqn.params.get("name") or (only[0].params.get("name", "") if len(only) == 1 else "")
    return inner, name


def _length(jaxpr: Any) -> int:
    """How many equations there are, those of what is called among them."""
    return sum(1 if (inner := _called(eqn)[0]) is None else _length(inner) for eqn in open_jaxpr(jaxpr).eqns)


def in_jax(reference: Callable[..., Any]) -> Callable[..., Any]:
    """A reference as a function that JAX can trace, whether it is written in JAX or in NumPy."""

    def traceable(*given: Any) -> Any:
        try:
            return reference(*given)
        except Exception:  # what NumPy says of a traced array depends on what was asked of it
            return _opened(reference(*jax.tree.map(_wrapped_once, given)))

    return traceable


def _wrapped_once(value: Any) -> Any:
    return _Traced(value) if isinstance(value, jax.Array) else value


class _Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A JAX array for a reference that is written in NumPy; `turned` says along which dimensions it is to be folded."""

    def __init__(self, value: Any, turned: Callable[[Any], Any] | None = None):
        self.value, self.turned = value, turned

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        named = getattr(jnp, ufunc.__name__)
        return self._wrapped((named if method == "__call__" else getattr(named, method))(*_opened(given), **options))

    def __array_function__(self, function: Any, _: Any, given: Any, options: Any) -> Any:
        named = getattr(jnp, function.__name__)
        return self._wrapped(named(*_opened(given), **self._options(function.__name__, options)))

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.value, name)
        if callable(attribute) and not isinstance(attribute, jax.Array):
            return lambda *given, **options: self._wrapped(attribute(*_opened(given), **self._options(name, options)))
        return self._wrapped(attribute)

    def __getitem__(self, index: Any) -> Any:
        return self._wrapped(self.value[_opened(index)])

    def __len__(self) -> int:
        return len(self.value)

    def _options(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        opened = dict(_opened(dict(options)))
        if self.turned and name in FOLDS and "axis" in opened:
            opened["axis"] = self.turned(opened["axis"])
        return opened

    def _wrapped(self, tree: Any) -> Any:
        return jax.tree.map(lambda x: _Traced(x, self.turned) if isinstance(x, jax.Array) else x, tree)


def _opened(tree: Any) -> Any:
    is_traced = lambda x: isinstance(x, _Traced)  # noqa: E731
    return jax.tree.map(lambda x: x.value if is_traced(x) else x, tree, is_leaf=is_traced)
