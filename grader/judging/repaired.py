"""The one change that makes a wrong program right: what it changes is what is wrong with the program.

Said where nothing else explains an answer. It is no guess: the changed program was run on each of the cases.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from grader.judging.behaviour import Execution
from grader.programs.collectives import COLLECTIVE_KINDS
from grader.programs.edits import FOLLOWING
from grader.programs.execution import Failed, Result
from grader.programs.repairs import WAYS, Repair
from grader.programs.sites import AT_A_PRODUCT, AT_A_RESULT, AT_AN_INDEX, STEPS

AT_ONCE = 16  # repairs that are compiled together: one more takes some 10 ms, one alone 40
MOST_TRIED = 64  # repairs of a program
MOST_TRIED_FOR_A_LINE = 6  # where what is wrong is known already
SECONDS_REPAIRING = 0.6  # of computing, after which no more are tried: somebody waits
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
# Ways that mend a collective, whatever else is wrong. (To leave a step out, to turn it round or to count it otherwise
# may bring about a mistake that nobody made: a mean that counts once for each device is a sum.)
OF_JAX_TOO = " (counted with those in JAX's own functions)"
REPLACING = ("run along", "sum", "mean")
OPPOSITE = {
    "addition": "a subtraction",
    "subtraction": "an addition",
    "multiplication": "a division",
    "division": "a multiplication",
    "elementwise maximum": "a minimum",
    "elementwise minimum": "a maximum",
}

Fits = Callable[[Execution, Sequence[Result]], bool]


@dataclass(frozen=True)
class Attempts:
    """A wrong program on several cases, and what it comes to on the first with each repair that was tried there."""

    runs: Sequence[Execution]
    results: Sequence[tuple[Repair, Sequence[Result]]]

    def first(self, fits: Fits, ways: Collection[str] = WAYS) -> Repair | None:
        """The first repair of these ways with which the results fit in all of the cases."""
        for repair, found in self.results:
            if repair.way in ways and fits(self.runs[0], found) and self._fit_elsewhere(repair, fits):
                return repair
        return None

    def _fit_elsewhere(self, repair: Repair, fits: Fits) -> bool:
        return all(
            repair in run.repairs and any(fits(run, found) for _, found in _repaired([repair], run))
            for run in self.runs[1:]
        )


def try_repairs(runs: Sequence[Execution], *, at_collectives: bool = False) -> Attempts:
    """Try the likeliest repairs of a program on the first of these cases, as many as there is time for; of those
    `at_collectives` alone, a few."""
    try:
        repairs = runs[0].repairs
    except Failed:
        return Attempts(runs, [])
    if at_collectives:
        repairs = tuple(one for one in repairs if one.kind in COLLECTIVE_KINDS)[:MOST_TRIED_FOR_A_LINE]
    found, begun = list[tuple[Repair, Sequence[Result]]](), time.process_time()
    for first in range(0, min(len(repairs), MOST_TRIED), AT_ONCE):
        if time.process_time() - begun < SECONDS_REPAIRING:
            found += _repaired(repairs[first : first + AT_ONCE], runs[0])
    return Attempts(runs, found)


def is_undone(repair: Repair, run: Execution, fits: Fits) -> bool:
    """Whether a program fits once the collective is taken back that a repair brings: left out, or run along the axes
    that the repair found. Then what the repair brings is what is wrong with the program."""
    try:
        there = [one for one in run.repairs if one.axes == repair.along and one.way in ("leave out", "run along")]
    except Failed:
        return False
    back = [one for one in there if one.way == "leave out" or one.along == repair.axes]
    return any(fits(run, found) for _, found in _repaired(back[:MOST_TRIED_FOR_A_LINE], run))


def _repaired(repairs: Sequence[Repair], run: Execution) -> list[tuple[Repair, Sequence[Result]]]:
    """What a program comes to with each of these. Where some cannot be compiled, the others still are."""
    try:
        return list(zip(repairs, run.results_with(repairs), strict=True))
    except Failed:
        half = len(repairs) // 2
        return [*_repaired(repairs[:half], run), *_repaired(repairs[half:], run)] if half else []


def repair_words(repair: Repair, left: str = "") -> str:
    """What such a repair says of a program; of one in which there is a mistake `left` with it, what that says."""
    if left:
        return (
            f"Two things at once. One of them would be mended if {_changed_words(repair)}\n\nWhat is left then, a "
            f"known mistake gives exactly; is it yours? If so: {left}"
        )
    return f"Every value would be right if {_changed_words(repair)}"


def _changed_words(repair: Repair) -> str:
    place, along, way = _place(repair), " and ".join(repair.along), repair.way
    if repair.kind == AT_A_PRODUCT and way == "sum":
        return (
            f"{'every' if repair.every else 'a'} product of matrices were added up along {along} as soon as it is "
            "there. Who holds the other parts of that sum?"
        )
    if repair.kind == AT_A_RESULT and way in ("sum", "mean"):
        step = "added up" if way == "sum" else "averaged"
        return f"the devices along {along} {step} {_held(repair)}."
    if way in FOLLOWING or way in ("transposed", "over the root"):
        return _followed(way, place)
    return {
        "leave out": f"{place} were left out. What is it to bring, and who lacks that?",
        "turn round": f"{place} sent the other way round. Who sends to whom?",
        "run along": f"{place} ran over {along}. Whose parts belong together?",
        "average": f"{place} were divided by the number of its devices. What it adds up, is that a share of the whole, "
        "or a value of its own?",
        "add up": f"{place} counted once for each of its devices. Is something "
        "divided by their number that should not be?",
        "total": f"{place} added up what the devices bring. Which of it does yours take?",
        "largest": f"{place} took the largest of what the devices bring. What does yours make of it?",
        "turn about": f"{place} were the other way round: what stands first last. Which belongs where?",
        "opposite": f"{place} were its own opposite: true where it is false. When is it to hold?",
        "other": f"{place} were {OPPOSITE.get(repair.kind, '')}. Which of the two is meant?",
        "or equal": f"{place} judged equal numbers the other way (the end of a loop that counts is such a "
        "comparison, too). Where does it begin, and where end?",
        "one more": f"{place} {_counts(repair)} one more. From where do you count, and up to where?",
        "one less": f"{place} {_counts(repair)} one less. From where do you count, and up to where?",
        "one further": f"{place} {_names(repair, 'behind')} (behind the last comes the first). Whose block is it?",
        "one back": f"{place} {_names(repair, 'before')} (before the first comes the last). Whose block is it?",
        "other axis": f"{place} were the one over {along}. Along which axis is what you number?",
        "skip": f"{place} were left out. What is it for?",
        "keep first": f"{place} were left out, and only its first operand kept. What is the other one for?",
        "keep second": f"{place} were left out, and only its second operand kept. What is the other one for?",
    }[way]


def _place(repair: Repair) -> str:
    """What would change, and which it is of several: in the order of computing, JAX's own functions looked into."""
    if repair.kind == AT_A_RESULT and repair.every:
        return "all that comes out at the end"
    if repair.kind == AT_A_RESULT:
        return "what comes out at the end" if repair.among == 1 else _result(repair)
    over = f"over {' and '.join(repair.axes)}" if repair.axes else ""
    kind = "product of matrices" if repair.kind == AT_A_PRODUCT else repair.kind.replace(AT_AN_INDEX, "`axis_index`")
    if repair.every or repair.among == 1:
        return " ".join(filter(None, ("every" if repair.every else "the", kind, over)))
    besides = OF_JAX_TOO if repair.kind in STEPS.values() else over and f" ({over})"
    return f"the {ordinal(repair.number)} {kind}{besides}"  # counted are those over other axes as well


def _held(repair: Repair) -> str:
    """What devices hold at the end: all of it, or one of several results."""
    if repair.every or repair.among == 1:
        return f"{'all that' if repair.every else 'what'} they hold at the end"
    return f"what they hold as {_result(repair)}"


def _result(repair: Repair) -> str:
    return f"result {repair.number} (counted from 0) of what runs on each device"


def ordinal(number: int) -> str:
    """Which of several, counted from 0, in words."""
    return ORDINALS[number] if number < len(ORDINALS) else f"{number + 1}th"


def _followed(way: str, place: str) -> str:
    ends = {
        "relu": "were followed by a relu. Where is it due: before what is added up, or behind it?",
        "the square": "were squared.",
        "the square root": "were followed by a square root.",
        "the other sign": "had the other sign. What is taken from what?",
        "twice": "were twice as large. Which factor is missing?",
        "half": "were half as large. What counts twice?",
        "transposed": "were transposed. Which dimension is which?",
        "over the root": "were divided by the root of how many numbers it adds up.",
    }
    return f"{place} {ends[way]}"


def _counts(repair: Repair) -> str:
    if repair.kind == AT_AN_INDEX:
        return "gave"
    return "began" if "slice" in repair.kind else "took a number that is"


def _names(repair: Repair, where: str) -> str:
    does, which = ("gave", "which it gives") if repair.kind == AT_AN_INDEX else ("sent to", "to which it sends")
    return f"{does} the device {where} that {which}, along {' and '.join(repair.axes)}"
