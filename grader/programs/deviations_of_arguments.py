"""Right programs, but for one argument: another one, another form of it, its parts in other places."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from grader.programs.deviation import Deviation, Made, Model

FEW_ENTRIES = 4  # along a dimension: so few may be things of their own, such as queries, keys and values
ROUND_NUMBERS = (0.1, 0.01, 0.5, 1.0)  # which a notebook may have given a name


def exchanged_arguments(model: Model) -> Iterator[Deviation]:
    for i, j in itertools.combinations(range(len(model.given)), 2):
        one, other = model.given[i], model.given[j]
        if one.shape == other.shape and one.ndim and one.dtype == other.dtype:
            exchanged = [*model.given]
            exchanged[i], exchanged[j] = other, one
            words = f"`{model.names[i]}` and `{model.names[j]}` are exchanged"
            yield Deviation(words, "Which is which?", model.made(given=exchanged))


def exchanged_entries(model: Model) -> Iterator[Deviation]:
    """Two of few entries, as where one array holds queries, keys and values."""
    for k, array in enumerate(model.given):
        for dimension, size in enumerate(array.shape):
            for i, j in itertools.combinations(range(size), 2) if size <= FEW_ENTRIES else ():
                order = [{i: j, j: i}.get(entry, entry) for entry in range(size)]
                turned = " (so it stands the other way round)" if size > 2 and order == [*range(size)][::-1] else ""
                yield Deviation(
                    f"entries {i} and {j} of `{model.names[k]}` along dimension {dimension} are exchanged{turned}",
                    "Which is which?",
                    model.made(given=model.given_with(k, array.take(order, dimension))),
                )


def of_arguments(model: Model, kinds: str) -> Iterator[Deviation]:
    """Arguments of these kinds of numbers in another form."""
    for k, array in enumerate(model.given):
        for words, question, other in _forms(array, model.sizes) if array.dtype.kind in kinds else ():
            yield Deviation(f"`{model.names[k]}` {words}", question, model.made(given=model.given_with(k, other)), (k,))


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


def _with_count(model: Model, name: str, count: int) -> Made:
    return lambda _: model.anew(model.given, {**model.counts, name: count})


def of_numbers(model: Model) -> Iterator[Deviation]:
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
            yield Deviation(f"`{model.names[k]}` {words}", question, model.made(given=given))
    for name, count in model.counts.items():
        for words, by in (("one more", 1), ("one less", -1)):
            yield Deviation(f"`{name}` is {words}", question, _with_count(model, name, count + by))


def mirrored(model: Model) -> Iterator[Deviation]:
    """Before stands for behind: an argument the other way round, and what comes out turned round again."""
    for k, array in enumerate(model.given):
        for dimension in range(array.ndim):
            if any(result.ndim <= dimension for result in model.right.results):
                continue
            turned = model.made(given=model.given_with(k, np.flip(array, dimension)))
            yield Deviation(
                f"before and behind are exchanged in `{model.names[k]}`, along dimension {dimension}",
                "Who is whose neighbour, and on which side?",
                functools.partial(_turned_back, turned, dimension),
                (k, dimension),
            )


def _turned_back(made: Made, dimension: int, place: int) -> list[Any]:
    return [np.flip(array, dimension) for array in made(place)]


def of_all_parts(model: Model) -> Iterator[Deviation]:
    """The parts of the arguments, as devices hold them, in other places."""
    for k, axis, dimension in _cuts(model):
        yield from _of_parts(model, k, axis, dimension)


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
        return Deviation(words, question, model.made(given=model.given_with(k, array)), (k, dimension))

    yield of(f"the parts of {label} along {axis} stand in reverse order", np.concatenate(parts[::-1], dimension))
    for step, where in ((1, "on"), (-1, "back")):
        moved = np.roll(array, step * array.shape[dimension] // n, dimension)
        yield of(f"the parts of {label} are moved {where} by one device along {axis}", moved)
    if dimension:
        stacked = np.stack(parts).reshape(array.shape)
        yield of(f"the parts of {label} along {axis} are stacked, and the stack is reshaped", stacked)
    if array.shape[dimension] > n:
        dealt = np.stack(parts, dimension + 1).reshape(array.shape)
        yield of(
            f"the parts of {label} along {axis} are mixed, entry by entry along dimension {dimension}: the first of "
            "each part, then the second of each",
            dealt,
        )
    first = np.concatenate([parts[0]] * n, dimension)
    yield of(f"the part of {label} on the first device along {axis} stands in the place of all", first)
    yield Deviation(
        f"each device along {axis} has its own part of {label} in the place of all",
        question,
        lambda place: model.done(given=model.given_with(k, np.concatenate([parts[place]] * n, dimension))).results,
        (k, dimension),
        axis,
    )


def of_fewer_rows(model: Model) -> Iterator[Deviation]:
    """Of the rows that a device has, of what is cut by rows of this number, only some count."""
    for axis, n in model.sizes.items():
        cut: dict[int, list[int]] = {}
        for k, along, dimension in _cuts(model):
            if along == axis and not dimension and n > 1:
                cut.setdefault(len(model.given[k]) // n, []).append(k)
        for own, which in reversed(cut.items()):  # data come behind parameters
            for words, kept in _kept_rows(own, model.counts):
                yield Deviation(
                    f"of the rows of each device along {axis} {words}",
                    "Which rows are to come in?",
                    functools.partial(_with_rows, model, which, n, kept),
                )
                if "equal parts" in words:
                    share = len(range(own)[kept]) / own
                    yield Deviation(
                        f"of the rows of each device along {axis} {words}, and yet it is divided by all of them",
                        "Which rows are to come in?",
                        functools.partial(_with_rows, model, which, n, kept, share=share),
                    )


def _kept_rows(own: int, counts: Mapping[str, int]) -> Iterator[tuple[str, slice]]:
    """Which of so many rows may count, in words."""
    if own < 2:
        return
    for name, part in [(name, own // count) for name, count in counts.items() if 1 < count < own and not own % count]:
        yield f"only those of the first of `{name}` equal parts count", slice(part)
        yield f"only those of the last of `{name}` equal parts count", slice(own - part, own)
        yield f"those of the last of `{name}` equal parts do not count", slice(own - part)
    yield "only the first counts", slice(1)
    yield "only the last counts", slice(own - 1, own)
    yield "only the first half counts", slice(own // 2)
    yield "only the second half counts", slice(own // 2, own)
    yield "only every second counts", slice(None, None, 2)
    yield "the first does not count", slice(1, own)
    yield "the last does not count", slice(own - 1)


def _with_rows(
    model: Model, cut: Sequence[int], n: int, kept: slice, place: int, share: float | None = None
) -> list[Any]:
    given = [*model.given]
    for k in cut:
        given[k] = np.concatenate([part[kept] for part in np.split(given[k], n)])
    made = model.anew(given, model.counts)
    return made if share is None else [array * share for array in made]


def of_cut_arguments(model: Model) -> Iterator[Deviation]:
    """Each device has only its own part of an argument that is whole on all."""
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


def _on_parts(model: Model, k: int, parts: Sequence[Any]) -> Made:
    return lambda place: model.anew(model.given_with(k, parts[place]), model.counts)
