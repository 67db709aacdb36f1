"""What a wrong program makes of ones, or of zeros, in the place of an argument: there it is plain what is due."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from grader.arrays.laid import Array
from grader.arrays.numbers import close
from grader.arrays.words import number
from grader.exercises.case import Case
from grader.judging.behaviour import Execution, arrays_given, block_values, operands, with_value
from grader.judging.results import Expected, beside, whole_due
from grader.programs.execution import Failed, Result

MOST_REPLACED = 8  # arguments that are made ones, and zeros
FEWEST_DIFFERENT = 3  # different numbers: fewer are alike by chance
DIGITS, MORE_DIGITS = 3, 6  # where few show no difference
ANOTHER = 2.7  # a number unlike 1, and no short one in binary
BEYOND = 0.1  # of the range that is due: a number so far outside is no chance


@dataclass(frozen=True, eq=False)
class _Made:
    """What came of one number in all places of an argument, and what was due; `several` numbers stood there before."""

    argument: str
    ones: bool
    several: bool
    found: np.ndarray
    due: np.ndarray
    right: bool
    asked: Callable[[], str] = str  # where it is right with ones

    @property
    def given(self) -> str:
        return f"With {'ones' if self.ones else 'zeros'} for `{self.argument}`"


def with_plain_numbers(run: Execution, due: Callable[[Case], Expected], array: int, name: str) -> str:
    """What is told by an argument that is nothing but ones, or zeros, of an array of a result, of this number and with
    this name."""
    made = list(_made(run, due, array))
    for tell in (_one_number_due, _of_ranges, _right_with_ones):
        if words := next((words for one in made if (words := tell(one, name))), ""):
            return words
    return ""


def _one_number_due(made: _Made, name: str) -> str:
    """That one number is due everywhere; of a single number, where it is a whole one."""
    mean = float(np.mean(made.due))
    whole = abs(mean - round(mean)) < 1e-6
    if (
        made.right
        or not close(made.due, np.full_like(made.due, mean))
        or not (made.due.size > FEWEST_DIFFERENT or whole)
    ):
        return ""
    every = "every entry" if made.due.size > 1 else "it"
    for digits in (DIGITS, MORE_DIGITS):
        should, low, high = (number(float(n), digits) for n in (mean, made.found.min(), made.found.max()))
        if not should == low == high:
            yours = low if low == high else f"between {low} and {high}"
            return f"{made.given} {every} should be {should}{beside(name)}, and yours is {yours}."
    return ""


def _of_ranges(made: _Made, name: str) -> str:
    """That numbers are outside of the range that is due, where nothing else goes into them."""
    low, high = float(made.due.min()), float(made.due.max())
    least, most = float(made.found.min()), float(made.found.max())
    room = BEYOND * (high - low)
    if (
        made.ones
        or made.right
        or len(np.unique(made.due)) <= FEWEST_DIFFERENT
        or (least > low - room and most < high + room)
    ):
        return ""
    due, found = (f"between {number(a, DIGITS)} and {number(b, DIGITS)}" for a, b in ((low, high), (least, most)))
    return f"{made.given} all numbers should be {due}{beside(name)}, and yours are {found}."


def _right_with_ones(made: _Made, name: str) -> str:
    """That a program is right where it does not matter which number of an argument goes where."""
    if not (made.right and made.ones and made.several) or len(np.unique(made.due)) <= FEWEST_DIFFERENT:
        return ""
    return f"{made.given} yours would be right{beside(name)}{made.asked()}"


def _asked(run: Execution, due: Callable[[Case], Expected], array: int, argument: str, given: Array) -> str:
    """What is asked of a program that is right with ones: whether it is with another number as well, and whether what
    is due is as many times as large as the numbers are."""
    another, twice = (
        with_value(run.case, argument, given, value.astype(given.value.dtype))
        for value in (np.full_like(given.value, ANOTHER), 2 * given.value)
    )
    try:
        (results,) = run.results_on([operands(another)])
    except Failed:
        return "."
    if not _is_right(run, results[array], whole_due(due, another, array)):
        return f", but not with {ANOTHER} everywhere. Where does it matter how large its numbers are?"
    if close(whole_due(due, twice, array), 2 * whole_due(due, run.case, array)):
        return ". Which of its numbers goes where?"
    return ". Where does it matter that its numbers differ?"


def _made(run: Execution, due: Callable[[Case], Expected], array: int) -> Iterator[_Made]:
    arrays = [given for given in arrays_given(run.case) if given[2].value.dtype.kind == "f"][:MOST_REPLACED]
    asked = [
        (argument, name, ones, a, with_value(run.case, argument, a, np.full_like(a.value, ones)))
        for argument, name, a in arrays
        for ones in (True, False)
    ]
    try:
        found = run.results_on([operands(case) for *_, case in asked]) if asked else []
    except Failed:
        return
    for (argument, name, ones, a, case), results in zip(asked, found, strict=True):
        whole = whole_due(due, case, array)
        values = np.concatenate([np.ravel(block) for block in block_values(results[array])])
        right, several = _is_right(run, results[array], whole), len(np.unique(a.value)) > FEWEST_DIFFERENT
        if whole.dtype.kind == values.dtype.kind == "f" and np.isfinite(whole).all() and np.isfinite(values).all():
            question = functools.partial(_asked, run, due, array, argument, a)
            yield _Made(name, ones, several, values, whole, right, question)


def _is_right(run: Execution, result: Result, whole: np.ndarray) -> bool:
    pairs = zip(block_values(result), result.blocks.indices, strict=True)
    return all(close(block, whole[index], run.case.roundings) for block, index in pairs)
