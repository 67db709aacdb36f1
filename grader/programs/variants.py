"""Variants of a reference: what comes out when one of its steps is left out, moved, or done by each device alone.

A reference is traced, and done again with a step changed. Where a variant gives what a wrong program gave, on
every mesh that was tried, that step is what the program's author should look at.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.arrays.laid import Array
from grader.jax_versions import as_needed
from grader.programs.stepwise import ACTIVATIONS, REDUCTIONS, SUMS, Instead, Otherwise, Stepwise, TracedStep, length

Key = tuple[str, tuple[int, ...]]  # of a departure: its words, and the steps that it is about

MOST_EQUATIONS = 300  # of a reference; in a longer one, such as a training, a single step means little
MOST_STEPS = 60  # that are changed, for the same reason
MOST_PAIRS = 20  # of steps that are left out at once
A_FACTOR_OR_A_DIVISOR = "a factor stands where a divisor should, or a divisor where a factor should"


@dataclass(frozen=True)
class Departure:
    """Another value in the place of a step's, and what is done to the result at the end.

    `at` tells departures of the same words apart: the numbers of their steps, each with that of an operand.
    """

    words: str
    instead: Mapping[int, Instead]
    at_the_end: Callable[[Any], Any] = lambda result: result
    turned: Callable[[Any], Any] | None = None
    at: tuple[int, ...] = ()

    @property
    def key(self) -> Key:
        return self.words, self.at


# Other dimensions for those along which a reference in NumPy takes sums and maxima.
TURNS: Mapping[str, Callable[[Any], Any]] = {
    "sums and maxima run over all dimensions": lambda axis: None,
    "sums and maxima run along the other dimension": lambda axis: {0: 1, 1: 0, -1: 0, -2: -1}.get(axis, axis),
}
FOLDS = ("sum", "mean", "max", "min", "var", "std", "prod", "amax", "amin")


class Variants:
    """The variants of a reference of named arrays, on a mesh of these sizes; none of one that cannot be traced.

    They are variants of the whole result, or of its array of the number `only`.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        arguments: Mapping[str, Any],
        sizes: Mapping[str, int],
        only: int | None = None,
    ):
        self.only, self.count = only, 0
        self.given = jax.tree.leaves(tuple(arguments.values()))
        placed = [(n, path) for n, a in arguments.items() for path, _ in jax.tree.leaves_with_path(a)]
        self.names = [f"{name}{jax.tree_util.keystr(path)}" for name, path in placed]
        self.changes: dict[Key, Departure] = {}
        try:
            self.closed = as_needed(jax.make_jaxpr(in_jax(reference))(*arguments.values()), only)
            if length(self.closed) > MOST_EQUATIONS:
                return
            steps = list(Stepwise(self.closed, self.given, self.names).steps.values())
        except Exception:  # a reference may do what is not to be traced
            return
        self.count = len(steps)
        if len(steps) <= MOST_STEPS:
            turns = (Departure(words, {}, turned=turn) for words, turn in TURNS.items())
            self.changes = {change.key: change for change in [*_changes(steps, sizes), *turns]}
        self.reference, self.arguments = reference, tuple(arguments.values())

    def result(self, key: Key) -> list[np.ndarray]:
        """What comes out with a change: the arrays of the result; none where it cannot be done."""
        change = self.changes[key]
        try:
            if change.turned:
                return self._turned(change.turned)
            run = Stepwise(self.closed, self.given, self.names, Otherwise(change.instead))
            return [np.asarray(change.at_the_end(array)) for array in run.results]
        except (TypeError, ValueError, IndexError):
            return []

    def like(self, key: Key, count: int) -> list[Key]:
        """The changes that are the same as one of a reference of so many steps: its own; and where there are others,
        as of more layers, all of the same words."""
        if count == self.count:
            return [key] if key in self.changes else []
        return [other for other in self.changes if other[0] == key[0]]

    def _turned(self, turned: Callable[[Any], Any]) -> list[np.ndarray]:
        """The result of a reference that is written in NumPy, whose sums and maxima run along other dimensions."""
        given = jax.tree.map(lambda a: _Traced(jnp.asarray(a), turned), self.arguments)
        arrays = [np.asarray(array) for array in jax.tree.leaves(_opened(self.reference(*given)))]
        return arrays if self.only is None else [arrays[self.only]]


def _changes(steps: Sequence[TracedStep], sizes: Mapping[str, int]) -> Iterator[Departure]:
    """The changes of single steps; then two steps left out at once.

    A step that changes nothing is in no pair that is found: the other one alone is tried before.
    """
    left_out: list[Departure] = []
    names = Counter(step.besides(kept) for step in steps for kept in step.alike)
    for k, step in enumerate(steps):
        for kept in step.alike:
            name, keep, at = step.besides(kept), {k: _operand(kept)}, (k, kept)
            again = functools.partial(step.again, kept)
            left_out.append(Departure(f"{name} is left out", keep, at=at))
            yield left_out[-1]
            if names[name] == 1:  # else it would not be told which of them
                yield Departure(f"{name} comes at the very end", keep, again, at=at)
                yield Departure(f"{name} comes once more at the end", {}, again, at=at)
    counted = functools.partial(_counted, sizes=sizes)
    for k, step, otherwise in ((k, step, kind) for kind in (_exchanged, counted) for k, step in enumerate(steps)):
        for words, instead in otherwise(step):
            yield Departure(words, {k: instead}, at=(k,))
    for one, other in itertools.islice(itertools.combinations(left_out, 2), MOST_PAIRS):
        if not one.instead.keys() & other.instead.keys():
            both = " and ".join(change.words.removesuffix(" is left out") for change in (one, other))
            yield Departure(f"{both} are left out", {**one.instead, **other.instead}, at=one.at + other.at)


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
        yield words, _of_first(functools.partial(np.max, axis=step.axes))
    if step.name in ("mul", "div"):
        yield A_FACTOR_OR_A_DIVISOR, _the_other_way
    if step.name == "sub":
        yield "the two sides of a difference are exchanged", lambda step, _: step.operands[1] - step.operands[0]


def _counted(step: TracedStep, sizes: Mapping[str, int]) -> Iterator[tuple[str, Instead]]:
    """A step whose value counts as often as there are devices, or is divided by their number."""
    for among, n in _numbers_of_devices(sizes):
        # (All devices are as many on every mesh: in a sum of so many terms their number is that of the terms.)
        if step.name in SUMS and (among or n != step.terms):
            yield f"{SUMS[step.name]} counts once for each of the devices{among}", _times(n)
            yield f"{SUMS[step.name]} is divided by the number of devices{among}", _times(1 / n)
        for other in (0, 1) if step.name == "add" else ():
            if len(step.sources[other].arguments) == 1:
                name = next(iter(step.sources[other].arguments))
                yield f"`{name}` is added once for each of the devices{among}", _added(other, n)


def _operand(k: int) -> Instead:
    return lambda step, _: step.operands[k]


def _of_first(function: Callable[[Any], Any]) -> Instead:
    return lambda step, _: np.asarray(function(step.operands[0]))


def _the_other_way(step: TracedStep, _: Mapping[int, TracedStep]) -> Any:
    """A product in the place of a quotient, or a quotient in that of a product."""
    with np.errstate(all="ignore"):
        made = (np.divide if step.name == "mul" else np.multiply)(*step.operands)
    return made.astype(np.asarray(step.result).dtype)


def _times(n: float) -> Instead:
    return lambda step, _: step.result * n


def _added(k: int, n: int) -> Instead:
    """An operand of a sum, n times."""
    return lambda step, _: step.result + (n - 1) * step.operands[k]


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


def in_jax(reference: Callable[..., Any]) -> Callable[..., Any]:
    """A reference as a function that JAX can trace, whether it is written in JAX or in NumPy."""

    def traceable(*given: Any) -> Any:
        with warnings.catch_warnings(action="ignore"):  # JAX's, that it has no float64 here
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
            axis = self.turned(opened["axis"])
            opened |= {"axis": axis} if axis is None else {"axis": axis, "keepdims": True}  # what follows is its like
        return opened

    def _wrapped(self, tree: Any) -> Any:
        return jax.tree.map(lambda x: _Traced(x, self.turned) if isinstance(x, jax.Array) else x, tree)


def _opened(tree: Any) -> Any:
    is_traced = lambda x: isinstance(x, _Traced)  # noqa: E731
    return jax.tree.map(lambda x: x.value if is_traced(x) else x, tree, is_leaf=is_traced)
