"""The ladder of a program: it runs; its shape; its values on every device; its layout; its communication; its work.

Each rung is tried on every case, and after the first miss the rest are not tried, so that a student hears
one thing at a time and zeros with a right layout earn nothing. A missed rung is then named: by the mistake
that behaves the same, else by a general signature, else by the first difference and nothing more.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from grader.arrays.blocks import Blocks, blocks
from grader.arrays.laid import holds_arrays, values_of
from grader.arrays.meshes import spelled
from grader.arrays.numbers import close, tolerance
from grader.arrays.ratios import Ratio, ratio
from grader.exercises.answers import Answer, Problem
from grader.exercises.exercise import Case, Exercise
from grader.exercises.verdict import Outcome, Verdict
from grader.judging import costs
from grader.judging.behaviour import Execution, specs
from grader.judging.errors import in_plain_words
from grader.judging.explain import explain
from grader.judging.miss import Miss
from grader.judging.signatures import signature
from grader.programs.execution import Failed, Result
from grader.programs.program import with_gradient
from grader.programs.structure import Collective, times

# What each rung of a program's ladder is worth, as a share of the exercise's points.
LADDER = {"runs": 0.0, "shape": 0.0, "values": 0.5, "layout": 0.0, "communication": 0.25, "work": 0.25}
Expected = Mapping[str, np.ndarray]


def judge_program(exercise: Exercise, cases: Sequence[Case], runs: Sequence[Execution | Answer]) -> Verdict:
    rungs: dict[str, Callable[[int], Miss | None]] = {
        "runs": lambda k: _runs(runs[k]),
        "shape": lambda k: _shape(runs[k], _expected(exercise, cases[k])),
        "values": lambda k: _values(runs[k], _expected(exercise, cases[k])),
        "layout": lambda k: _layout(runs[k], _expected(exercise, cases[k])),
        "communication": lambda k: (costs.by_compiler if exercise.by_compiler else costs.communication)(runs[k]),
        "work": lambda k: costs.work(runs[k]),
    }
    outcomes: list[Outcome] = []
    for check, rung in rungs.items():
        worth = exercise.points * LADDER[check]
        failing, miss = next(((k, m) for k in range(len(cases)) if (m := rung(k))), (0, None))
        if miss:
            named = explain(exercise, cases, runs, failing)
            words = named.words if named else _signature(exercise, cases[failing], runs[failing], check)
            missed = Outcome(
                exercise.name,
                check,
                0.0,
                worth,
                named.name if named else "",
                "\n\n".join(filter(None, (miss.words, words))),
            )
            outcomes.append(missed)
            outcomes += _not_tried(exercise, check)
            return Verdict(
                exercise.name, tuple(outcomes), describe(cases[failing]), miss.expected, miss.found, miss.ratios
            )
        outcomes.append(Outcome(exercise.name, check, worth, worth))
    return Verdict(exercise.name, tuple(outcomes))


def _not_tried(exercise: Exercise, missed: str) -> list[Outcome]:
    rest = list(LADDER)[list(LADDER).index(missed) + 1 :]
    return [
        Outcome(exercise.name, c, 0.0, exercise.points * LADDER[c], words=f"Not tried: “{missed}” comes first.")
        for c in rest
    ]


@functools.lru_cache(maxsize=1024)
def _expected(exercise: Exercise, case: Case) -> Expected:
    """Every array of the result that is due, by where it stands in it; gradients come behind it."""
    arrays = [values_of(a) for a in case.arguments.values() if holds_arrays(a)]

    def reference(*given: Any) -> Any:
        each = iter(given)
        return exercise.reference(*(next(each) if holds_arrays(a) else a for a in case.arguments.values()))

    if case.cotangents is None:
        result = reference(*arrays)
    else:
        result = jax.jit(with_gradient(reference, len(arrays)))(*arrays, values_of(case.cotangents))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(result)}


def _runs(run: Execution | Answer) -> Miss | None:
    if isinstance(run, Problem):
        return Miss(in_plain_words(run))
    if not isinstance(run, Execution):
        return Miss("The answer should be a program: a function of arrays.")
    try:
        return _waits(run) or _calls_out(run) or (run.ran and None)
    except Failed as error:
        return Miss(in_plain_words(Problem("error", error.kind, str(error))))


def _waits(run: Execution) -> Miss | None:
    if not run.may_wait_for_ever:
        return None
    unsure = [c for c in run.structure.collectives if c.times is None]
    told = next(((c, *pair) for c in unsure if (pair := run.structure.waiting(c))), None)
    return Miss(
        (
            _who_waits(*told)
            if told
            else f"The {unsure[0].kind}{_over(unsure[0])} stands in a branch, or in a loop without a fixed number of "
            "turns. A device that does not come by leaves the others waiting for ever, so this was not run."
        )
        + " Let every device call it, and choose between results with jnp.where."
    )


def _who_waits(found: Collective, waiting: int, missing: int) -> str:
    return (
        f"Device {waiting} calls the {found.kind}{_over(found)} {times(found.visits[waiting])}, device {missing} "
        f"{times(found.visits[missing])}: it stands in a branch, or in a loop, and each device decides for "
        f"itself. Device {waiting} would be left waiting for ever for device {missing}, so this was not run."
    )


def _over(found: Collective) -> str:
    return f" over {', '.join(found.axes)}" if found.axes else ""


def _calls_out(run: Execution) -> Miss | None:
    if not (foreign := run.structure.foreign):
        return None
    return Miss(
        f"The program calls `{foreign[0]}`, which is no operation of the devices but code outside of them, so "
        "this was not run. Compute with jax.numpy and jax.lax."
    )


def _shape(run: Execution, expected: Expected) -> Miss | None:
    wanted, got = [(place, due.shape) for place, due in expected.items()], run.forms
    if len(wanted) != len(got):
        return Miss(f"The function should return {len(wanted)} array(s); it returns {len(got)}.")
    if (keys := [_keys(place) for place, _ in wanted]) != (found := [_keys(place) for place, _ in got]):
        want, have = next((w, h) for w, h in zip(keys, found, strict=True) if w != h)
        return Miss(
            f"The result should be made as the reference's is, with {_key_words(want)}; yours has "
            f"{_key_words(have)} there."
        )
    for k, ((place, want), (_, have)) in enumerate(zip(wanted, got, strict=True)):
        if want != have:
            return Miss(
                f"{_named(run.case, place)} should have shape {want}; yours has {have}.",
                *_pictures(run, expected, k) if len(want) == len(have) else (),
            )
    return None


def _keys(place: str) -> list[str]:
    """The dict keys on the way to a part of a result. A list or a tuple, who would mind."""
    return re.findall(r"\['([^']*)'\]", place)


def _key_words(keys: list[str]) -> str:
    return f"the key {' / '.join(map(repr, keys))}" if keys else "no key of a dict"


def _named(case: Case, place: str) -> str:
    """A part of the result as one speaks of it, given where it stands."""
    if case.cotangents is not None:
        (side, rest), arrays = _first(place), [name for name, a in case.arguments.items() if holds_arrays(a)]
        if side == 1:
            number, inside = _first(rest)
            return f"The gradient by {arrays[number]}{inside}"
        place = rest
    if not place:
        return "The result"
    number, inside = _first(place)
    return f"Result{place}" if number is None else f"Result {number}{inside}"


def _first(place: str) -> tuple[int | None, str]:
    """The number that a place begins with, if any, and the rest of it."""
    match = re.match(r"\[(\d+)\]", place)
    return (int(match[1]), place[match.end() :]) if match else (None, place)


def _values(run: Execution, expected: Expected) -> Miss | None:
    for k, (place, whole) in enumerate(expected.items()):
        held = run.results[k].held
        for device, (index, block) in enumerate(zip(held.indices, held.values, strict=True)):
            if not close(block, whole[index], run.case.roundings):
                return Miss(
                    _first_difference(run, place, k, device, whole),
                    *_pictures(run, expected, k),
                    _ratios(run, expected),
                )
    return None


def _ratios(run: Execution, expected: Expected) -> tuple[Ratio, ...]:
    """What came out against what is due, array by array, where there are several."""
    if len(expected) == 1:
        return ()
    return tuple(
        ratio(_named(run.case, place), result.held.values, _due(result, whole))
        for (place, whole), result in zip(expected.items(), run.results, strict=True)
    )


def _due(result: Result, whole: np.ndarray) -> list[np.ndarray]:
    """What should lie where the result lies, device by device."""
    return [whole[index] for index in result.held.indices]


def _first_difference(run: Execution, place: str, number: int, device: int, whole: np.ndarray) -> str:
    name, result = _named(run.case, place), run.results[number]
    index, block = result.held.indices[device], result.held.values[device]
    wanted = whole[index]
    claimed = " (its copy of the whole)" if result.claims_copies else ""
    if not wanted.ndim:
        return f"{name} is wrong on device {device}: it should be {_number(wanted)}, and it is {_number(block)}."
    bound = tolerance(wanted, run.case.roundings)
    at = tuple(int(i) for i in np.argwhere(~np.isclose(block, wanted, rtol=0, atol=bound))[0])
    return (
        f"{name} is wrong on device {device}. It holds {_region(index)}{claimed}; in that block entry "
        f"{list(at)} should be {_number(wanted[at])}, and it is {_number(block[at])}."
    )


def _region(index: tuple[slice, ...]) -> str:
    return f"[{', '.join(f'{s.start}:{s.stop}' for s in index)}]"


def _number(value: Any) -> str:
    return f"{float(value):.6g}"


def _pictures(run: Execution, expected: Expected, number: int) -> tuple[Blocks, Blocks]:
    whole = list(expected.values())[number]
    due = blocks(whole.shape, specs(run.case)[number], dict(run.case.mesh), value=whole)
    return due, run.results[number].held


def _layout(run: Execution, expected: Expected) -> Miss | None:
    for k, ((place, whole), spec) in enumerate(zip(expected.items(), specs(run.case), strict=True)):
        result = run.results[k]
        if not result.as_asked:
            due = blocks(whole.shape, spec, run.case.mesh)
            return Miss(
                f"{_named(run.case, place)} has the right values, but does not lie as it should: "
                f"{spelled(spec)} was wanted, {due.entries} entries on each device; yours lies "
                f"{result.layout}, {result.held.entries} on each.",
                *_pictures(run, expected, k),
            )
    return None


def _signature(exercise: Exercise, case: Case, run: Execution | Answer, check: str) -> str:
    """What the first wrong array of the result gives away."""
    if check != "values":
        return ""
    for result, whole in zip(run.results, _expected(exercise, case).values(), strict=True):
        due = _due(result, whole)
        if not all(close(f, w, case.roundings) for f, w in zip(result.held.values, due, strict=True)):
            return signature(result.held.values, due, case.mesh)
    return ""


def describe(case: Case) -> str:
    """A case in one line: the mesh, every array's shape and layout, and what else is given."""
    mesh = " × ".join(f"{name}={size}" for name, size in case.mesh.items())
    arrays = [
        f"{name}{jax.tree_util.keystr(path)}: {'×'.join(map(str, a.value.shape))} {spelled(a.spec)}"
        for name, argument in case.arguments.items()
        if holds_arrays(argument)
        for path, a in jax.tree.leaves_with_path(argument)
    ]
    others = [f"{name}={a!r}" for name, a in case.arguments.items() if not holds_arrays(a)]
    return "; ".join(filter(None, [f"mesh {mesh}" if mesh else "", *arrays, *others]))
