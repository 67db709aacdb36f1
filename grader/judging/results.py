"""What a program's devices hold in the end, against what they should: the shapes, the values, the layout."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import jax
import numpy as np

from grader.arrays.blocks import Blocks, blocks
from grader.arrays.laid import Array, holds_arrays
from grader.arrays.meshes import spelled
from grader.arrays.numbers import close, close_entries
from grader.arrays.ratios import Ratio, ratio
from grader.arrays.words import number, region
from grader.exercises.case import Case
from grader.judging.behaviour import Execution, block_values, specs_due
from grader.judging.layouts import layout_evidence
from grader.judging.miss import Miss
from grader.judging.shapes import Shaped, counts_of
from grader.judging.wording import lower_first
from grader.programs.execution import Result

ALL_DIGITS = 17  # of a float
FEW_ROUNDINGS = 8  # more, and an array is no longer as it was given
THE_RESULT = "The result"  # where it is a single array
MOST_NAMED = 4  # arrays that are named at once

Expected = Mapping[str, np.ndarray]  # every array that is due, by where it stands in the result


def shape(run: Execution, expected: Expected) -> Miss | None:
    forms = run.forms
    without_gradient = len(expected) != len(forms) and run.case.cotangents is not None
    if without_gradient:  # there is none of another structure
        expected = {place: whole for place, whole in expected.items() if place.startswith("[0]")}
        forms = [form for form in forms if form[0].startswith("[0]")]
    if len(expected) != len(forms):
        arrays = f"{len(expected)} array{'s' * (len(expected) != 1)}"
        return Miss(f"The function should return {arrays}; it returns {len(forms)}.")
    keys = [(_keys(place), _keys(returned)) for place, (returned, _) in zip(expected, forms, strict=True)]
    if (unlike := next((pair for pair in keys if pair[0] != pair[1]), None)) is not None:
        return Miss(
            f"The result should be made as the reference's is, with {_key_words(unlike[0])}; yours has "
            f"{_key_words(unlike[1])} there."
        )
    for k, (place, (_, have)) in enumerate(zip(expected, forms, strict=True)):
        want = expected[place].shape
        if want != have:
            return Miss(
                f"{name_in_result(run.case, place)} should have shape {want}; yours has {have}.",
                *_pictures(run, expected, k) if len(want) == len(have) else (),
            )
    if without_gradient:
        return Miss(_why_without_gradient(run, expected))
    return _made_of_others(run, expected)


def _made_of_others(run: Execution, expected: Expected) -> Miss | None:
    """That an array is made of numbers of another kind: complex ones are not held against others, and whole ones, or
    such of few bits, are the right ones by chance where floats are due."""
    for result, (place, whole) in zip(run.results, expected.items(), strict=True):
        have, name = block_values(result)[0].dtype, name_in_result(run.case, place)
        if have.kind == "c" != whole.dtype.kind:
            return Miss(f"{name} should be made of {whole.dtype}; yours is of {have}.")
        if whole.dtype.kind == "f" and not _holds_floats(have):
            return Miss(
                f"{name} should be made of float32; yours is of {have}, into which not every such number fits. Which "
                "step makes it so?"
            )
    return None


def _holds_floats(dtype: np.dtype) -> bool:
    """Whether any number of float32 can be one of these."""
    return dtype.kind in "fc" and dtype.itemsize >= np.dtype(np.float32).itemsize


def _why_without_gradient(run: Execution, expected: Expected) -> str:
    """Why no gradient is taken of a result of the right shapes: its numbers are of another type, or its structure is
    another."""
    for result, (place, whole) in zip(run.results, expected.items(), strict=True):
        if (have := block_values(result)[0].dtype) != whole.dtype:
            name = name_in_result(run.case, place)
            return f"{name} should be made of {whole.dtype}; yours is of {have}, and no gradient is taken of that."
    return (
        "The arrays of the result have the right shapes, but it is made in another way than the reference's (a list "
        "for a tuple, or a tuple of one array for that array), and no gradient is taken of that."
    )


def wrong_shape(run: Execution, expected: Expected) -> Shaped | None:
    """The first array of a result that has another shape than is due, where there are as many arrays as are due: but
    for gradients, which a result of the wrong shape has none of."""
    asked = [place for place in expected if run.case.cotangents is None or place.startswith("[0]")]
    if len(run.forms) not in (len(expected), len(asked)):
        return None
    arrays = {name: a.value.shape for name, a in run.case.arguments.items() if isinstance(a, Array)}
    pairs = ((have, whole.shape) for (_, have), whole in zip(run.forms, expected.values(), strict=False))
    return next((Shaped(*pair, counts_of(run.case.mesh), arrays) for pair in pairs if pair[0] != pair[1]), None)


def as_many_as_given(run: Execution, expected: Expected) -> str:
    """Which argument has the shapes of a result of too many arrays, or too few, where a gradient is to be taken: it may
    be that gradient. "" where none has."""
    if len(expected) == len(run.forms) or run.case.cotangents is None:
        return ""
    have = sorted(shape for place, shape in run.forms if place.startswith("[0]"))
    shapes = {
        name: sorted(a.value.shape for a in jax.tree.leaves(given))
        for name, given in run.case.arguments.items()
        if holds_arrays(given)
    }
    alike = next((name for name, given in shapes.items() if given == have), "")
    return (
        f"What it returns has the shapes of `{alike}`, as it was given. Is that a gradient with respect to it? The "
        "function itself is due: its gradient is taken from outside."
        if alike
        else ""
    )


def several_for_one(run: Execution, expected: Expected) -> str:
    """Where in a result of too many arrays several stand in the place of one, as a list of them does; "" if nowhere."""
    if len(run.forms) <= len(expected) or run.case.cotangents is not None:
        return ""
    for place in filter(None, expected):
        inside = [found for found, _ in run.forms if found.startswith(f"{place}[")]
        if inside:
            return (
                f"{name_in_result(run.case, place)} should be one array, and in its place stand {len(inside)}. What "
                "makes one array of several?"
            )
    return ""


def arrays_missing(run: Execution, expected: Expected) -> str:
    """Which of the arrays that are due are among those of a result that has more, or fewer; "" where none is."""
    if len(run.forms) == len(expected) or run.case.cotangents is not None:
        return ""
    left, missing = list(run.results), []
    for place, whole in expected.items():
        found = next((k for k, result in enumerate(left) if right(run, [result], {place: whole})[0]), None)
        if found is None:
            missing.append(f"`{name_in_result(run.case, place)}`")
        else:
            left.pop(found)  # one array is not two of those that are due
    if len(missing) == len(expected):
        return ""
    if not missing:
        return "All that is due is there, and something besides. What of it was asked for?"
    return f"No array of it is what should be {' or '.join(missing)}, counted from 0; the others are there."


def exchanged(run: Execution, expected: Expected) -> str:
    """Which arrays of a result stand in one another's place; "" where something else is wrong with one of them."""
    if not len(run.forms) == len(expected) > 1 or run.case.cotangents is not None:
        return ""
    wrong = [k for k, well in enumerate(right(run, run.results, expected)) if not well]
    places = list(expected)
    found = {}
    for k in wrong:
        due = {places[k]: expected[places[k]]}
        found[k] = next((j for j in wrong if j != k and right(run, [run.results[j]], due)[0]), None)
    if None in found.values() or len({*found.values()}) < len(wrong) or not found:
        return ""
    each = [
        f"what should be {in_a_sentence(name_in_result(run.case, places[k]))} stands as "
        f"{in_a_sentence(name_in_result(run.case, run.forms[j][0]))}"
        for k, j in found.items()
        if j is not None
    ]
    more = f", and so do {len(each) - 2} more" if len(each) > 2 else ""
    return (
        f"The arrays are right, but they stand in one another's place: {' and '.join(each[:2])}{more}. In which order "
        "are they due?"
    )


def as_given(run: Execution, expected: Expected) -> str:
    """Which of the wrong arrays of a result are arguments as they came; "" where none is."""
    if len(run.results) != len(expected):
        return ""
    given = [
        (f"`{name}{jax.tree_util.keystr(path)}`", np.asarray(array.value))
        for name, argument in run.case.arguments.items()
        if holds_arrays(argument)
        for path, array in jax.tree.leaves_with_path(argument)
    ]
    arrays = zip(run.results, expected.items(), right(run, run.results, expected), strict=True)
    told = []
    for result, (place, whole), well in arrays:
        same = (
            label
            for label, array in given
            if not well and array.shape == whole.shape and len(np.unique(array)) > 2
            if all(close(block, array[index], FEW_ROUNDINGS) for index, block in _placed(result))
        )
        if len(np.unique(whole)) > 2 and (label := next(same, "")):
            told.append(f"{name_in_result(run.case, place)} is {label}, as it was given")
    more = f", and so with {len(told) - 2} more" if len(told) > 2 else ""
    return f"{'; '.join(told[:2])}{more}. What was to be done to it?" if told else ""


def _placed(result: Result) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
    """The block of every device, and where in the array it is."""
    return zip(result.blocks.indices, block_values(result), strict=True)


def lengths(case: Case) -> dict[str, int]:
    """The lengths of the dimensions of all that a program is given, by their words."""
    found = dict[str, int]()
    for name, given in case.arguments.items():
        if holds_arrays(given):
            for path, array in jax.tree.leaves_with_path(given):
                label = f"`{name}{jax.tree_util.keystr(path)}`"
                found |= {f"the length of dimension {k} of {label}": n for k, n in enumerate(array.value.shape)}
                if not path:
                    found |= _on_a_device(label, array, case.mesh)
    return found


def _on_a_device(label: str, array: Array, mesh: Mapping[str, int]) -> dict[str, int]:
    """The same of one device's block of an array that is cut, and how many entries it has."""
    block = blocks(array.value.shape, array.spec, dict(mesh)).bounds(0)
    own = [stop - start for start, stop in block]
    if math.prod(own) == array.value.size:
        return {}
    cut = ((k, n) for k, n in enumerate(own) if n != array.value.shape[k])
    return {
        **{f"the length of dimension {k} of {label} on a device": n for k, n in cut},
        f"the number of entries of {label} on a device": math.prod(own),
    }


def _keys(place: str) -> list[str]:
    """The dict keys on the way to a part of a result. A list may stand for a tuple."""
    return re.findall(r"\['([^']*)'\]", place)


def _key_words(keys: list[str]) -> str:
    return f"the key {' / '.join(map(repr, keys))}" if keys else "no key of a dict"


def name_in_result(case: Case, place: str) -> str:
    """What to call a part of the result, given where it stands."""
    if case.cotangents is not None:
        (side, rest), arrays = _first(place), [name for name, a in case.arguments.items() if holds_arrays(a)]
        if side == 1:
            k, inside = _first(rest)
            return f"The gradient with respect to {arrays[k or 0]}{inside}"
        place = rest
    if not place:
        return THE_RESULT
    k, inside = _first(place)
    return f"Result{place}" if k is None else f"Result {k}{inside}"


def beside(name: str) -> str:
    """Behind what is said of an array of a result, in brackets, which it is; "" where there is only one."""
    return "" if name == THE_RESULT else f" ({in_a_sentence(name)})"


def in_a_sentence(name: str) -> str:
    """A name of a part of the result as it stands inside a sentence."""
    return lower_first(name) if name.startswith("The ") else name


def _first(place: str) -> tuple[int | None, str]:
    """The number that a place begins with, if any, and the rest of it."""
    match = re.match(r"\[(\d+)\]", place)
    return (int(match[1]), place[match.end() :]) if match else (None, place)


def values(run: Execution, expected: Expected) -> Miss | None:
    for k, (place, whole) in enumerate(expected.items()):
        result = run.results[k]
        for device, (index, block) in enumerate(zip(result.blocks.indices, block_values(result), strict=True)):
            if not close(block, whole[index], run.case.roundings):
                return Miss(
                    _first_difference(run, place, k, device, whole),
                    *_pictures(run, expected, k),
                    _ratios(run, expected),
                )
    return None


def right(run: Execution, results: Sequence[Result], expected: Expected) -> list[bool]:
    """Which of these results have the values that are due, on every device."""
    return [
        result.blocks.shape == whole.shape
        and all(
            close(block, whole[index], run.case.roundings)
            for index, block in zip(result.blocks.indices, block_values(result), strict=True)
        )
        for whole, result in zip(expected.values(), results, strict=True)
    ]


def which_are_right(run: Execution, expected: Expected) -> str:
    """The arrays that are right in a result of several; "" where none of them is."""
    names = [name_in_result(run.case, place) for place in expected]
    well = [name for name, is_right in zip(names, right(run, run.results, expected), strict=True) if is_right]
    if not well:
        return ""
    more = f" and {len(well) - MOST_NAMED} more" if len(well) > MOST_NAMED else ""
    return f"Right on every device: {', '.join(well[:MOST_NAMED])}{more}. What goes into the rest, and not into that?"


def _ratios(run: Execution, expected: Expected) -> tuple[Ratio, ...]:
    """How the result compares with what is expected, array by array, where there are several."""
    if len(expected) == 1:
        return ()
    return tuple(
        ratio(name_in_result(run.case, place), block_values(result), expected_blocks(result, whole))
        for (place, whole), result in zip(expected.items(), run.results, strict=True)
    )


def whole_due(due: Callable[[Case], Expected], case: Case, number: int) -> np.ndarray:
    """An array of the result that is due in a case, by its number, without gradients."""
    return list(due(replace(case, cotangents=None)).values())[number]


def expected_blocks(result: Result, whole: np.ndarray) -> list[np.ndarray]:
    """What should be where the result is, device by device."""
    return [whole[index] for index in result.blocks.indices]


def _first_difference(run: Execution, place: str, k: int, device: int, whole: np.ndarray) -> str:
    name, result = name_in_result(run.case, place), run.results[k]
    block, expected = block_values(result)[device], whole[result.blocks.indices[device]]
    claimed = " (its copy of the whole)" if result.claims_copies else ""
    if not expected.ndim:
        return f"{name} is wrong on device {device}: it {_should_be(expected, block)}."
    at = tuple(int(i) for i in np.argwhere(~close_entries(block, expected, run.case.roundings))[0])
    return (
        f"{name} is wrong on device {device}. It holds {region(result.blocks.bounds(device))}{claimed}; in that block "
        f"entry {list(at)} {_should_be(expected[at], block[at])}."
    )


def _should_be(expected: np.ndarray, entry: np.ndarray) -> str:
    due, found = (number(float(value)) for value in (expected, entry))
    if due == found:  # they differ further behind
        due, found = (number(float(value), ALL_DIGITS) for value in (expected, entry))
    return f"should be {due}, and it is {found}"


def _pictures(run: Execution, expected: Expected, k: int) -> tuple[Blocks, Blocks]:
    whole = list(expected.values())[k]
    picture = blocks(whole.shape, specs_due(run.case)[k], dict(run.case.mesh), value=whole)
    return picture, run.results[k].blocks


def layout(run: Execution, expected: Expected) -> Miss | None:
    if (k := _laid_out_otherwise(run)) is None:
        return None
    result, place, spec = run.results[k], list(expected)[k], specs_due(run.case)[k]
    due, found = _pictures(run, expected, k)
    return Miss(
        f"{name_in_result(run.case, place)} has the right values, but is not laid out as it should be: "
        f"{spelled(spec)} was wanted, {due.entries} entries on each device; yours is laid out as "
        f"{result.layout}, {found.entries} on each.",
        due,
        found,
    )


def how_laid_out(run: Execution, expected: Expected) -> str:
    """In what the first layout that is not as it should be differs from the one that is due."""
    k = _laid_out_otherwise(run)
    return "" if k is None else layout_evidence(*reversed(_pictures(run, expected, k)))


def _laid_out_otherwise(run: Execution) -> int | None:
    """The number of the first array that is not laid out as it should be."""
    return next((k for k, result in enumerate(run.results) if not result.as_asked), None)
