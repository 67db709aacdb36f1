"""What a program's devices hold in the end, compared with what is expected: the shapes, the values, the sharding."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from grader.arrays.blocks import Blocks, blocks
from grader.arrays.laid import holds_arrays
from grader.arrays.meshes import spelled
from grader.arrays.numbers import close, close_entries
from grader.arrays.ratios import Ratio, ratio
from grader.arrays.words import number
from grader.exercises.case import Case
from grader.findings import programs as kinds
from grader.findings.programs import ResultPart
from grader.judging.behaviour import Execution, block_values, specs_due
from grader.judging.miss import Miss
from grader.programs.execution import Result

ALL_DIGITS = 17  # of a float

Expected = Mapping[str, np.ndarray]  # every array that is expected, by its place in the result


def shape(run: Execution, expected: Expected) -> Miss | None:
    forms = run.forms
    without_gradient = len(expected) != len(forms) and run.case.cotangents is not None
    if without_gradient:  # there is none of another structure
        expected = {place: full for place, full in expected.items() if place.startswith("[0]")}
        forms = [form for form in forms if form[0].startswith("[0]")]
    if len(expected) != len(forms):
        return Miss((kinds.WrongArrayCount(len(expected), len(forms)),))
    for place, (returned, _) in zip(expected, forms, strict=True):
        if _keys(place) != _keys(returned):
            return Miss((kinds.WrongResultKeys(_keys(place), _keys(returned)),))
    for k, (place, (_, found)) in enumerate(zip(expected, forms, strict=True)):
        if (want := expected[place].shape) != found:
            drawn = pictures(run, expected, k) if len(want) == len(found) else ()
            return Miss((kinds.WrongResultShape(result_part(run.case, place), want, found),), *drawn)
    return _without_gradient(run, expected) if without_gradient else _of_another_kind(run, expected)


def _of_another_kind(run: Execution, expected: Expected) -> Miss | None:
    """An array of numbers of another kind: complex ones are not compared with others, and integers, or floats of few
    bits, are right by chance where floats are expected."""
    for result, (place, full) in zip(run.results, expected.items(), strict=True):
        found = block_values(result)[0].dtype
        if (found.kind == "c" != full.dtype.kind) or (full.dtype.kind == "f" and not _holds_floats(found)):
            return _wrong_dtype(run, place, full, found)
    return None


def _holds_floats(dtype: np.dtype) -> bool:
    """Whether any number of float32 can be one of these."""
    return dtype.kind in "fc" and dtype.itemsize >= np.dtype(np.float32).itemsize


def _without_gradient(run: Execution, expected: Expected) -> Miss:
    """Why no gradient is taken of a result of the right shapes: its dtype, or its structure."""
    for result, (place, full) in zip(run.results, expected.items(), strict=True):
        if (found := block_values(result)[0].dtype) != full.dtype:
            return _wrong_dtype(run, place, full, found)
    return Miss((kinds.NoGradient(),))


def _wrong_dtype(run: Execution, place: str, full: np.ndarray, found: np.dtype) -> Miss:
    return Miss((kinds.WrongResultDtype(result_part(run.case, place), str(full.dtype), str(found)),))


def _keys(place: str) -> tuple[str, ...]:
    """The dict keys on the way to a part of a result. A list may stand for a tuple."""
    return tuple(re.findall(r"\['([^']*)'\]", place))


def result_part(case: Case, place: str) -> ResultPart:
    """A part of the result, given its place. With cotangents, [0] is the function's own result, and [1] its gradients
    with respect to the arguments that hold arrays, one after the other."""
    if case.cotangents is None or place.startswith("[0]"):
        own = place if case.cotangents is None else place.removeprefix("[0]")
        number, inside = re.fullmatch(r"(?:\[(\d+)\])?(.*)", own).groups()  # type: ignore[union-attr]
        named = f"{case.parts[int(number)]}{inside}" if number and case.parts else f"result{own}"
        return ResultPart(named if own else "")
    names = [name for name, argument in case.arguments.items() if holds_arrays(argument)]
    number, inside = re.fullmatch(r"\[1\](?:\[(\d+)\])?(.*)", place).groups()  # type: ignore[union-attr]
    return ResultPart("", f"{names[int(number or 0)]}{inside}")


def values(run: Execution, expected: Expected) -> Miss | None:
    for k, (place, full) in enumerate(expected.items()):
        result = run.results[k]
        for device, (index, block) in enumerate(zip(result.blocks.indices, block_values(result), strict=True)):
            if not close(block, full[index], run.case.roundings):
                element = _first_wrong(run, place, result, device, full)
                return Miss((element,), *pictures(run, expected, k), _ratios(run, expected))
    return None


def right(run: Execution, results: Sequence[Result], expected: Expected) -> list[bool]:
    """Which of these results have the expected values, on every device."""
    return [
        result.blocks.shape == full.shape
        and all(
            close(block, full[index], run.case.roundings)
            for index, block in zip(result.blocks.indices, block_values(result), strict=True)
        )
        for full, result in zip(expected.values(), results, strict=True)
    ]


def _ratios(run: Execution, expected: Expected) -> tuple[Ratio, ...]:
    """How the result compares with what is expected, array by array, if there are several."""
    if len(expected) == 1:
        return ()
    return tuple(
        ratio(_label(result_part(run.case, place)), block_values(result), expected_blocks(result, full))
        for (place, full), result in zip(expected.items(), run.results, strict=True)
    )


def _label(part: ResultPart) -> str:
    """A name for a part in a table: result[0]['w'], d/dw of a gradient."""
    return f"d/d{part.argument}" if part.argument else part.place or "result"


def expected_blocks(result: Result, full: np.ndarray) -> list[np.ndarray]:
    """What should be where the result is, device by device."""
    return [full[index] for index in result.blocks.indices]


def _first_wrong(run: Execution, place: str, result: Result, device: int, full: np.ndarray) -> kinds.WrongElement:
    block, expected = block_values(result)[device], full[result.blocks.indices[device]]
    at = tuple(int(i) for i in np.argwhere(~close_entries(block, expected, run.case.roundings))[0])
    pair = float(expected[at]), float(block[at])
    want, found = map(number, pair)
    if want == found:  # they differ in later digits
        want, found = (number(value, ALL_DIGITS) for value in pair)
    bounds = tuple((int(start), int(stop)) for start, stop in result.blocks.bounds(device))
    return kinds.WrongElement(result_part(run.case, place), device, result.claims_copies, bounds, at, want, found)


def pictures(run: Execution, expected: Expected, k: int) -> tuple[Blocks, Blocks]:
    full = list(expected.values())[k]
    picture = blocks(full.shape, specs_due(run.case)[k], dict(run.case.mesh), value=full)
    return picture, run.results[k].blocks


def layout(run: Execution, expected: Expected) -> Miss | None:
    if (k := wrongly_sharded(run)) is None:
        return None
    result, part = run.results[k], result_part(run.case, list(expected)[k])
    want, found = pictures(run, expected, k)
    spec = spelled(specs_due(run.case)[k])
    return Miss((kinds.WrongSharding(part, spec, result.layout, want.entries, found.entries),), want, found)


def wrongly_sharded(run: Execution) -> int | None:
    """The number of the first array that does not have the expected sharding."""
    return next((k for k, result in enumerate(run.results) if not result.as_asked), None)
