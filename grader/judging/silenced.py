"""Arguments without which a wrong program would be right: what is wrong is in what they go into.

A term that an argument has part in is nothing where that is nothing but zeros. So a program whose result is then the
one that is due is wrong in that term. It is no guess: both were computed, the program's result and the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from grader.arrays.numbers import same_value
from grader.exercises.case import Case
from grader.judging import results
from grader.judging.behaviour import Execution, arrays_given, operands, same_blocks, with_value
from grader.judging.results import Expected
from grader.programs.execution import Failed

MOST_SILENCED = 12  # arrays that are tried
NAMED_SILENT = 2  # of those without which it would be right
ENOUGH_DUE = 3  # different ones in what is due: fewer are right by chance


def right_without(runs: Sequence[Execution], due: Callable[[Case], Expected]) -> str:
    """Which argument would have to be nothing but zeros for these runs to be right; "" where there is none."""
    names: list[str] | None = None
    for run in runs:
        silent = _silenced(run.case) if names is None else {n: c for n, c in _silenced(run.case).items() if n in names}
        if not silent:
            return ""
        names = _right(run, silent, due)
    if not names:
        return ""
    whose = "yours" if runs[0].case.cotangents is None else "the result"
    if len(names) == 1:
        return f"With zeros for `{names[0]}` {whose} would be right. What is done to what comes of it?"
    told = ", or for ".join(f"`{name}`" for name in names[:NAMED_SILENT])
    return f"With zeros for {told}, {whose} would be right. What is done to what comes of them?"


def without_effect(runs: Sequence[Execution], due: Callable[[Case], Expected]) -> str:
    """Which argument may be nothing but zeros, and nothing changes that should; "" where there is none."""
    names: list[str] | None = None
    for run in runs if runs[0].case.cotangents is None else ():
        silent = {n: c for n, c in _silenced(run.case).items() if names is None or n in names}
        try:
            each = run.results_on([operands(case) for case in silent.values()]) if silent else []
        except Failed:
            return ""
        names = [
            name
            for (name, case), arrays in zip(silent.items(), each, strict=True)
            if all(same_blocks(one, other, run.case.roundings) for one, other in zip(run.results, arrays, strict=True))
            and not same_value(list(due(case).values()), list(due(run.case).values()))
        ]
    return (
        f"With zeros for `{names[0]}` yours stays as it is, and should change. Where does it come in?" if names else ""
    )


def _silenced(case: Case) -> dict[str, Case]:
    """The case with zeros for one array of floats, by the name of this."""
    found: dict[str, Case] = {}
    for argument, name, array in arrays_given(case):
        if array.value.dtype.kind == "f" and array.value.any():
            found[name] = with_value(case, argument, array, np.zeros_like(array.value))
    return found if 1 < len(found) <= MOST_SILENCED else {}


def _right(run: Execution, silent: Mapping[str, Case], due: Callable[[Case], Expected]) -> list[str]:
    """Those of these cases in which the program is right, by their names."""
    try:
        each = run.results_on([operands(case) for case in silent.values()])
    except Failed:
        return []
    whole = due(replace(run.case, cotangents=None))
    well = results.right(run, run.results[: len(whole)], whole)
    if all(well) and run.case.cotangents is not None:  # it is gradients that are wrong
        return []
    found = []
    for (name, case), arrays in zip(silent.items(), each, strict=True):
        expected = due(replace(case, cotangents=None))  # the result itself: gradients are none of it
        wrong = [one for one, is_right in zip(expected.values(), well, strict=True) if not is_right or all(well)]
        numbers = np.unique(np.concatenate([np.ravel(one) for one in wrong]))
        if (
            len(numbers) >= ENOUGH_DUE
            and all(one.any() for one in wrong)  # nothing comes of zeros, in whatever program
            and all(results.right(run, arrays[: len(expected)], expected))
        ):
            found.append(name)
    return found
