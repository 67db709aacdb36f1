"""The one change that makes a wrong program right: what it changes is what is wrong with the program.

Said where nothing else explains an answer. It is no guess: the changed program was run on each of the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grader.judging.behaviour import Execution
from grader.programs.execution import Failed, Result
from grader.programs.repairs import AT_A_PRODUCT, AT_A_RESULT, Repair
from grader.programs.structure import COLLECTIVE_KINDS

MOST_TRIED = 16  # repairs; each takes 30 to 60 ms in a small program, and somebody waits
MOST_TRIED_FOR_A_LINE = 6  # where what is wrong is known already

Right = Callable[[Execution, Sequence[Result]], bool]


def first_that_helps(runs: Sequence[Execution], right: Right, *, at_collectives: bool = False) -> Repair | None:
    """The first repair after which a program is right in all of these runs; `at_collectives`, a few are tried."""
    try:
        repairs = runs[0].repairs
    except Failed:
        return None
    if at_collectives:
        repairs = tuple(one for one in repairs if one.kind in COLLECTIVE_KINDS)[:MOST_TRIED_FOR_A_LINE]
    repairs = repairs[:MOST_TRIED]
    return next((repair for repair in repairs if all(_saves(repair, run, right) for run in runs)), None)


def _saves(repair: Repair, run: Execution, right: Right) -> bool:
    try:
        return repair in run.repairs and right(run, run.results_with(repair))
    except Failed:
        return False


def repair_words(repair: Repair) -> str:
    """What such a repair says of a program."""
    collective, along = f"the {repair.kind} over {' and '.join(repair.axes)}", " and ".join(repair.along)
    if repair.kind == AT_A_PRODUCT:
        return (
            f"Every value would be right if a product of matrices were added up along {along} as soon as it is there. "
            "Who holds the other parts of that sum?"
        )
    if repair.kind == AT_A_RESULT:
        step = "added up" if repair.way == "sum" else "averaged"
        return f"Every value would be right if the devices along {along} {step} what they hold at the end."
    return {
        "leave out": f"Every value would be right without {collective}. What is it to bring, and who lacks that?",
        "turn round": f"Every value would be right if {collective} sent the other way round. Who sends to whom?",
        "run along": f"Every value would be right if {collective} ran over {along}. Whose parts belong together?",
        "average": f"Every value would be right if {collective} took the average. What it adds up, is that a share of "
        "the whole, or a value of its own?",
        "add up": f"Every value would be right if {collective} counted once for each of its devices. Is something "
        "divided by their number that should not be?",
    }[repair.way]
