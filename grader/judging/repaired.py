"""The one change that makes a wrong program right: what it changes is what is wrong with the program.

Said where nothing else explains an answer. It is no guess: the changed program was run on each of the cases.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from grader.judging.behaviour import Execution
from grader.programs.edits import FOLLOWING
from grader.programs.execution import Failed, Result
from grader.programs.repairs import Repair
from grader.programs.sites import AT_A_PRODUCT, AT_A_RESULT, AT_AN_INDEX

AT_ONCE = 16  # repairs that are compiled together: one more takes some 10 ms, one alone 40
MOST_TRIED = 64  # repairs of a program
SECONDS_REPAIRING = 0.6  # of computing, after which no more are tried: somebody waits
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
OPPOSITE = {
    "addition": "a subtraction",
    "subtraction": "an addition",
    "multiplication": "a division",
    "division": "a multiplication",
    "elementwise maximum": "a minimum",
    "elementwise minimum": "a maximum",
}

Right = Callable[[Execution, Sequence[Result]], bool]


def first_that_helps(runs: Sequence[Execution], right: Right) -> Repair | None:
    """The first repair after which a program is right in all of these runs."""
    try:
        repairs = runs[0].repairs[:MOST_TRIED]
    except Failed:
        return None
    begun = time.process_time()
    for first in range(0, len(repairs), AT_ONCE):
        for repair in _saving(repairs[first : first + AT_ONCE], runs[0], right):
            if all(repair in run.repairs and any(_saving([repair], run, right)) for run in runs[1:]):
                return repair
        if time.process_time() - begun > SECONDS_REPAIRING:
            break
    return None


def _saving(repairs: Sequence[Repair], run: Execution, right: Right) -> Iterator[Repair]:
    """Those repairs after which a program is right in a run. Where some cannot be compiled, the others still are."""
    try:
        results = run.results_with(repairs)
    except Failed:
        half = len(repairs) // 2
        for part in (repairs[:half], repairs[half:]) if half else ():
            yield from _saving(part, run, right)
        return
    yield from (repair for repair, found in zip(repairs, results, strict=True) if right(run, found))


def repair_words(repair: Repair) -> str:
    """What such a repair says of a program."""
    return f"Every value would be right if {_changed_words(repair)}"


def _changed_words(repair: Repair) -> str:
    collective, along = f"the {repair.kind} over {' and '.join(repair.axes)}", " and ".join(repair.along)
    place, way = _place(repair), repair.way
    if repair.kind == AT_A_PRODUCT and way == "sum":
        return (
            f"a product of matrices were added up along {along} as soon as it is there. "
            "Who holds the other parts of that sum?"
        )
    if repair.kind == AT_A_RESULT and way in ("sum", "mean"):
        step = "added up" if way == "sum" else "averaged"
        return f"the devices along {along} {step} what they hold at the end."
    if way in FOLLOWING or way in ("transposed", "over the root"):
        return _followed(way, place)
    return {
        "leave out": f"{collective} were left out. What is it to bring, and who lacks that?",
        "turn round": f"{collective} sent the other way round. Who sends to whom?",
        "run along": f"{collective} ran over {along}. Whose parts belong together?",
        "average": f"{collective} took the average. What it adds up, is that a share of "
        "the whole, or a value of its own?",
        "add up": f"{collective} counted once for each of its devices. Is something "
        "divided by their number that should not be?",
        "turn about": f"{place} were turned round: its two sides exchanged. Which belongs where?",
        "other": f"{place} were {OPPOSITE.get(repair.kind, '')}. Which of the two is meant?",
        "or equal": f"{place} judged equal numbers the other way. Where does what you compare begin, and where end?",
        "one more": f"{place} {_counts(repair)} one more. From where do you count, and up to where?",
        "one less": f"{place} {_counts(repair)} one less. From where do you count, and up to where?",
        "one further": f"{place} {_names(repair)} the next device along {' and '.join(repair.axes)} (behind the last "
        "comes the first). Whose block is it?",
        "one back": f"{place} {_names(repair)} the device before along {' and '.join(repair.axes)} (before the first "
        "comes the last). Whose block is it?",
        "other axis": f"{place} were the one over {along}. Along which axis does what you number lie?",
        "skip": f"{place} were left out. What is it for?",
        "keep first": f"{place} were left out, and only its first operand kept. What is the other one for?",
        "keep second": f"{place} were left out, and only its second operand kept. What is the other one for?",
    }[way]


def _place(repair: Repair) -> str:
    """What would change, and which it is of several: in the order of computing, JAX's own functions looked into."""
    if repair.kind == AT_A_RESULT:
        return f"result {repair.number} of what runs on each device" if repair.number else "what comes out at the end"
    over = f" over {' and '.join(repair.axes)}" if repair.axes else ""
    kind = "product of matrices" if repair.kind == AT_A_PRODUCT else repair.kind.replace(AT_AN_INDEX, "`axis_index`")
    return f"the {ordinal(repair.number)} {kind}{over}"


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


def _names(repair: Repair) -> str:
    return "gave" if repair.kind == AT_AN_INDEX else "sent to"
