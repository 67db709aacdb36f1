"""Deviations from a reference: what comes out where one thing in it is other than it should be.

An edit of a wrong program (`grader.programs.repairs`) finds what there is too much in it, or otherwise. What is missing
from it, nobody can edit; but the same may be missing from the reference. Each deviation is a right program but for one
argument, one step, one loop, or the place at which a sum is taken.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.numbers import close
from grader.programs.plain import product_of
from grader.programs.stepwise import (
    ACTIVATIONS,
    AS_IT_IS,
    BINARY,
    COMPARED,
    DRAWS,
    REDUCTIONS,
    SUMS,
    UNARY,
    Instead,
    Otherwise,
    Stepwise,
    TracedStep,
    length,
)
from grader.programs.variants import MOST_EQUATIONS, MOST_STEPS, in_jax

OTHER = {
    "add": ("a subtraction", "an addition", np.subtract),
    "sub": ("an addition", "a subtraction", np.add),
    "mul": ("a division", "a multiplication", np.divide),
    "div": ("a multiplication", "a division", np.multiply),
    "max": ("a minimum", "a maximum", np.minimum),
    "min": ("a maximum", "a minimum", np.maximum),
}
FEW_ENTRIES = 4  # along a dimension: so few may be things of their own, such as queries, keys and values
FEW_LATER = 4  # steps behind a sum, before which it could have been due
ROUND_NUMBERS = (0.1, 0.01, 0.5, 1.0)  # which a notebook may have given a name


Made = Callable[[int], Sequence[Any]]  # the arrays of a result, on the devices at a place along an axis


@dataclass(frozen=True, eq=False)
class Deviation:
    """Something that is otherwise than in a right program: in words, what to ask then, and what comes out.

    `made` gives the arrays of the result; where there is an axis `along`, those on the devices at this place
    along it.
    `at` tells deviations of the same words apart.
    """

    words: str
    question: str
    made: Made
    at: tuple[int, ...] = ()
    along: str = ""


class Model:
    """A reference, traced on the arguments of a case: `given` are the arrays of these, `names` what they are called, as
    params['b1'], and `specs` how they lie on a mesh of these sizes.

    Plain numbers that are floats are arrays here; `counts` are the whole ones, by name. The reference takes both as
    keywords. Raises whatever tracing it does, and ValueError for one that is too long.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        arguments: Mapping[str, Any],
        numbers: Mapping[str, float],
        sizes: Mapping[str, int],
    ):
        self.reference, self.sizes = reference, sizes
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
        return jax.make_jaxpr(
            in_jax(lambda trees, rates: self.reference(*trees, **rates, **counts)),
        )(trees, rates)

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


def _done(model: Model, otherwise: Otherwise = AS_IT_IS, given: Sequence[Any] | None = None) -> Made:
    return lambda _: model.done(otherwise, given).results


def _with_steps(model: Model, instead: Mapping[int, Instead]) -> Made:
    return _done(model, Otherwise(instead))


def _anew(model: Model, name: str, count: int) -> Made:
    return lambda _: model.anew(model.given, {**model.counts, name: count})


def deviations(model: Model) -> Iterator[Deviation]:
    """All that are tried, the likeliest first."""
    few = model.steps if len(model.steps) <= MOST_STEPS else []
    yield from _of_arguments(model, "biu")
    yield from _of_numbers(model)
    yield from _exchanged_arguments(model)
    yield from _exchanged_entries(model)
    yield from _of_softmaxes(model, few)
    yield from _behind_the_sum(model, few)
    yield from _of_own_parts(model, few)
    yield from _in_other_order(model, few)
    for step in few:
        yield from _of_a_step(model, step)
    yield from _everywhere(model)
    yield from _of_loops(model)
    for k, axis, dimension in _cuts(model):
        yield from _of_parts(model, k, axis, dimension)
    yield from _mirrored(model)
    yield from _of_arguments(model, "f")
    yield from _of_cut_arguments(model)


def _exchanged_arguments(model: Model) -> Iterator[Deviation]:
    for i, j in itertools.combinations(range(len(model.given)), 2):
        one, other = model.given[i], model.given[j]
        if one.shape == other.shape and one.ndim and one.dtype == other.dtype:
            exchanged = [*model.given]
            exchanged[i], exchanged[j] = other, one
            words = f"`{model.names[i]}` and `{model.names[j]}` are exchanged"
            yield Deviation(words, "Which is which?", _done(model, given=exchanged))


def _exchanged_entries(model: Model) -> Iterator[Deviation]:
    """Two of few entries, as where one array holds queries, keys and values."""
    for k, array in enumerate(model.given):
        for dimension, size in enumerate(array.shape):
            for i, j in itertools.combinations(range(size), 2) if size <= FEW_ENTRIES else ():
                order = [{i: j, j: i}.get(entry, entry) for entry in range(size)]
                yield Deviation(
                    f"entries {i} and {j} of `{model.names[k]}` along dimension {dimension} are exchanged",
                    "Which is which?",
                    _done(model, given=model.given_with(k, array.take(order, dimension))),
                )


def _of_arguments(model: Model, kinds: str) -> Iterator[Deviation]:
    """Arguments of these kinds of numbers in another form."""
    for k, array in enumerate(model.given):
        for words, question, other in _forms(array, model.sizes) if array.dtype.kind in kinds else ():
            yield Deviation(
                f"`{model.names[k]}` {words}", question, _done(model, given=model.given_with(k, other)), (k,)
            )


def _forms(array: np.ndarray, sizes: Mapping[str, int]) -> Iterator[tuple[str, str, Any]]:
    """Other forms of an argument, of the same shape."""
    if array.dtype == bool:
        yield "is turned round, true for false", "Which entries count?", ~array
    elif array.dtype.kind in "iu":
        yield "is one more everywhere", "From where do you count?", array + 1
        yield "is one less everywhere", "From where do you count?", array - 1
    elif array.ndim:
        yield "is nothing but zeros", "Where does it come in?", np.zeros_like(array)
        yield "is nothing but ones", "Where does it come in?", np.ones_like(array)
        yield "has the other sign", "What is taken from what?", -array
        yield "is taken by its absolute value", "What is its sign for?", np.abs(array)
    if array.ndim == 2 and array.shape[0] == array.shape[1] > 1:
        yield "is transposed", "Which dimension is which?", array.T
    for dimension in range(array.ndim):
        along = f"along dimension {dimension}"
        yield f"stands the other way round {along}", "What comes first?", np.flip(array, dimension)
        for step, where in ((1, "on"), (-1, "back")):
            moved = np.roll(array, step, dimension)
            yield f"is moved {where} by one {along}", "From where do you count?", moved


def _of_numbers(model: Model) -> Iterator[Deviation]:
    """Another number in the place of one that is given."""
    question = "Do you use the number that you are given, as it is?"
    for k, number in enumerate(model.given):
        if number.ndim or number.dtype.kind != "f":
            continue
        others = [("has the other sign", -number), *((f"is {other:g}", other) for other in ROUND_NUMBERS)]
        for axis, n in model.sizes.items():
            others += [(f"is divided by the number of devices along {axis}", number / n)]
            others += [(f"is multiplied by the number of devices along {axis}", number * n)]
        for words, other in others:
            given = model.given_with(k, np.asarray(other, number.dtype))
            yield Deviation(f"`{model.names[k]}` {words}", question, _done(model, given=given))
    for name, count in model.counts.items():
        for words, by in (("one more", 1), ("one less", -1)):
            yield Deviation(f"`{name}` is {words}", question, _anew(model, name, count + by))


def _mirrored(model: Model) -> Iterator[Deviation]:
    """Before stands for behind: an argument the other way round, and what comes out turned round again."""
    for k, array in enumerate(model.given):
        for dimension in range(array.ndim):
            if any(result.ndim <= dimension for result in model.right.results):
                continue
            turned = _done(model, given=model.given_with(k, np.flip(array, dimension)))
            yield Deviation(
                f"before and behind are exchanged in `{model.names[k]}`, along dimension {dimension}",
                "Who is whose neighbour, and on which side?",
                functools.partial(_turned_back, turned, dimension),
                (k, dimension),
            )


def _turned_back(made: Made, dimension: int, place: int) -> list[Any]:
    return [np.flip(array, dimension) for array in made(place)]


def _cuts(model: Model) -> Iterator[tuple[int, str, int]]:
    """Which argument is cut along which axis, and in which dimension."""
    for k, (array, spec) in enumerate(zip(model.given, model.specs, strict=True)):
        for dimension, entry in enumerate(spec):
            if isinstance(entry, str) and array.shape[dimension] % model.sizes[entry] == 0:
                yield k, entry, dimension


def _of_parts(model: Model, k: int, axis: str, dimension: int) -> Iterator[Deviation]:
    """The parts of an argument, one on each device, in other places."""
    n, array, label = model.sizes[axis], model.given[k], f"`{model.names[k]}`"
    parts = np.split(array, n, dimension)
    question = "Whose part belongs where?"

    def of(words: str, array: np.ndarray) -> Deviation:
        return Deviation(words, question, _done(model, given=model.given_with(k, array)), (k, dimension))

    yield of(f"the parts of {label} along {axis} stand in reverse order", np.concatenate(parts[::-1], dimension))
    for step, where in ((1, "on"), (-1, "back")):
        moved = np.roll(array, step * array.shape[dimension] // n, dimension)
        yield of(f"the parts of {label} are moved {where} by one device along {axis}", moved)
    if dimension:
        stacked = np.stack(parts).reshape(array.shape)
        yield of(f"the parts of {label} along {axis} are stacked, and the stack is reshaped", stacked)
    first = np.concatenate([parts[0]] * n, dimension)
    yield of(f"the part of {label} on the first device along {axis} stands in the place of all", first)
    yield Deviation(
        f"each device along {axis} has its own part of {label} in the place of all",
        question,
        lambda place: model.done(given=model.given_with(k, np.concatenate([parts[place]] * n, dimension))).results,
        (k, dimension),
        axis,
    )


def _sums(model: Model, steps: Sequence[TracedStep]) -> Iterator[tuple[TracedStep, int, str]]:
    """The steps that take something together along a dimension that could lie on the devices along an axis."""
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


def _behind_the_sum(model: Model, steps: Sequence[TracedStep]) -> Iterator[Deviation]:
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
                        f"{_named(later, _fed(later, number))}",
                        "What may be done to a part of a sum, and what only to the whole?",
                        _with_steps(model, {later.number: _at_once(results, together)}),
                        (number, which, later.number),
                    )


def _at_once(results: Sequence[Any], together: Callable[..., Any]) -> Instead:
    return lambda step, _: together(results, axis=0).astype(step.result.dtype)


def _fed(step: TracedStep, number: int) -> int:
    """The operand of a step into which another has gone."""
    return next(k for k, source in enumerate(step.sources) if number in source.steps)


def _named(step: TracedStep, kept: int) -> str:
    """What a step does to one of its operands, by its kind."""
    if step.name in SUMS or step.name in REDUCTIONS:
        return SUMS.get(step.name) or REDUCTIONS[step.name][0]
    if step.name not in (*UNARY, *BINARY, *ACTIVATIONS):
        return "a choice" if step.name == "select_n" else "a later step"
    words = step.besides(kept) if len(step.operands) < 3 else BINARY[step.name]
    return f"{BINARY[step.name]} of {words}" if step.name in BINARY and words.startswith("`") else words


def _is_of_jaxs_own(step: TracedStep) -> bool:
    """Whether it is the step of a maximum in JAX that is there for infinities alone."""
    return step.name == "max" and any(np.isinf(a).all() for a in step.operands if a.dtype.kind == "f")


def _of_softmaxes(model: Model, steps: Sequence[TracedStep]) -> Iterator[Deviation]:
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
                _with_steps(model, {last.number: _softmax_along(first.number, dimension)}),
                (last.number,),
            )


def _softmax_along(first: int, dimension: int) -> Instead:
    return lambda step, done: np.asarray(jax.nn.softmax(done[first].operands[0], axis=dimension))


def _of_own_parts(model: Model, steps: Sequence[TracedStep]) -> Iterator[Deviation]:
    """One sum or maximum, or two, that each device takes of its own part alone."""
    found = sorted(_sums(model, steps), key=lambda one: list(model.sizes).index(one[2]))
    for some in [*((one,) for one in found), *itertools.pairwise(found)]:
        if len({axis for *_, axis in some}) > 1 or len({step.number for step, *_ in some}) < len(some):
            continue
        axis, n = some[0][2], model.sizes[some[0][2]]
        for factor in (1, n):
            if factor > 1 and any(step.name not in SUMS for step, *_ in some):
                continue
            kinds = ["a mean" if factor > 1 else _named(step, 0) for step, *_ in some]
            yield Deviation(
                f"{_of_kinds(kinds)} taken by each device along {axis} of its own part alone",
                "What does a device lack there, and who holds it?",
                _alone(model, some, n, factor),
                tuple(number for step, which, _ in some for number in (step.number, which)),
                axis,
            )


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


def _in_other_order(model: Model, steps: Sequence[TracedStep]) -> Iterator[Deviation]:
    """Of two steps, one behind the other, the second comes first."""
    for first, second in itertools.permutations(steps, 2):
        for k, j in itertools.product(first.alike, second.alike):
            if second.operands[j] is not first.result:
                continue

            yield Deviation(
                f"{_named(second, j)} comes before {_named(first, k)}",
                "Which of the two comes first?",
                _with_steps(model, {second.number: _turned(first.number, k, j)}),
                (first.number, second.number, k, j),
            )


def _turned(first: int, k: int, j: int) -> Instead:
    """A step, and behind it the one that came before: they take their operands k and j from one another."""
    return lambda step, done: done[first].again(k, step.again(j, done[first].operands[k]))


def _of_a_step(model: Model, step: TracedStep) -> Iterator[Deviation]:
    ways = itertools.chain(_exchanged(step), _renumbered(step, model.sizes), _drawn(step))
    for k, (words, question, instead) in enumerate(ways):
        yield Deviation(words, question, _with_steps(model, {step.number: instead}), (step.number, k))


def _exchanged(step: TracedStep) -> Iterator[tuple[str, str, Instead]]:
    """Another operation, other operands, or another constant."""
    if step.name in OTHER:
        other, this, function = OTHER[step.name]
        words = f"{other} stands in the place of {this}"
        yield words, "Which of the two is meant?", lambda step, _: function(*step.operands)
    if step.name == "div":
        words = "what is divided and what divides are exchanged"
        yield words, "Which is which?", lambda step, _: np.divide(*step.operands[::-1])
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


def _drawn_by(draw: Callable[..., Any]) -> Instead:
    return lambda step, _: np.asarray(draw(step.operands[0], step.result.shape, step.result.dtype))


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
        zeros = [k for k, a in enumerate(step.operands) if not step.sources[k].steps and not np.any(a)]
        if step.name in (*ACTIVATIONS, "logistic"):
            yield _Activation("sigmoid" if step.name == "logistic" else step.name, step.number, _operand(0))
        elif step.name == "max" and len(zeros) == 1:
            yield _Activation("relu", step.number, _operand(1 - zeros[0]))
        elif step.name == "mul" and (found := _in_several_steps(step, steps)):
            yield found


def _operand(k: int) -> Callable[[TracedStep, Mapping[int, TracedStep]], Any]:
    return lambda step, _: step.operands[k]


def _result_of(number: int) -> Callable[[TracedStep, Mapping[int, TracedStep]], Any]:
    return lambda _, done: done[number].result


def _in_several_steps(last: TracedStep, steps: Sequence[TracedStep]) -> _Activation | None:
    """The activation that ends with a step, if one does: known by its numbers."""
    before = [step for step in steps if any(step.number in source.steps for source in last.sources)]
    if not any(step.name in ("tanh", "logistic", "erf") for step in before):
        return None
    for step, name in itertools.product(before, ("gelu", "silu")):
        if step.name in ("dot_general", "add") and close(ACTIVATIONS[name](step.result), last.result):
            return _Activation(name, last.number, _result_of(step.number))
    return None


def _everywhere(model: Model) -> Iterator[Deviation]:
    """An activation that is another, left out wherever it stands, or taken of the result as well."""
    if len(model.steps) > MOST_STEPS:
        return
    found = list(_activations(model.steps))
    for name in dict.fromkeys(one.name for one in found):
        some = [one for one in found if one.name == name]
        every = f"every `{name}`" if len(some) > 1 else f"`{name}`"
        for other, function in ACTIVATIONS.items():
            if other != name:
                instead = {one.at: one.instead(function) for one in some}
                words = f"`{other}` stands in the place of {every}"
                yield Deviation(words, "Which is asked for?", _with_steps(model, instead))
        left_out = {one.at: one.instead(np.asarray) for one in some}
        yield Deviation(f"{every} is left out", "Where is it due?", _with_steps(model, left_out))
        again = functools.partial(_at_the_end, model, ACTIVATIONS[name])
        yield Deviation(f"`{name}` is taken of the result, too", "Where is it due?", again)


def _at_the_end(model: Model, function: Callable[..., Any], _: int) -> list[Any]:
    return [np.asarray(function(array)) for array in model.right.results]


def _of_loops(model: Model) -> Iterator[Deviation]:
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
        yield Deviation(words, question, _done(model, Otherwise(turns=turns)))
    for words, begin in (("ones", np.ones_like), ("zeros", np.zeros_like)):
        yield Deviation(
            f"a loop begins with {words}",
            "With what does it begin?",
            _done(model, Otherwise(begin=begin)),
        )


def _on_parts(model: Model, k: int, parts: Sequence[Any]) -> Made:
    return lambda place: model.anew(model.given_with(k, parts[place]), model.counts)


def _of_cut_arguments(model: Model) -> Iterator[Deviation]:
    """Each device has only its own part of an argument that lies whole on all."""
    for k, (array, spec) in enumerate(zip(model.given, model.specs, strict=True)):
        for axis, n in model.sizes.items():
            if axis not in jax.tree.leaves(tuple(spec)) and array.ndim and array.shape[0] % n == 0:
                parts = np.split(array, n)
                yield Deviation(
                    f"`{model.names[k]}` is cut along {axis}, and each device has only its own part",
                    "Who needs how much of it?",
                    _on_parts(model, k, parts),
                    (k,),
                    axis,
                )
