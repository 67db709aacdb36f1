"""Why there is no answer to judge, why one could not be judged, and where the rest of it is taught."""

from __future__ import annotations

from grader.arrays.words import enumeration
from grader.findings.verdicts import (
    CannotCheck,
    Crashed,
    Deadlocked,
    GateClosed,
    GraderFailed,
    NotChecked,
    NotReached,
    Taught,
    TooLong,
)
from grader.wording.said import Said, says


@says(NotChecked)
def _(f: NotChecked) -> Said:
    return Said(f"Not checked yet: fix “{f.first}” first.")


@says(CannotCheck)
def _(f: CannotCheck) -> Said:
    return Said("This can't be checked.", detail=f.message)


@says(GateClosed)
def _(f: GateClosed) -> Said:
    return Said(
        f"This gate opens once `{f.before}` is correct.",
        cause="What you write here builds on it. Grading judges every gate, whichever are open here.",
        question=f"Run the check of `{f.before}` first.",
    )


@says(NotReached)
def _(f: NotReached) -> Said:
    return Said("The notebook never reached this check.", cause=f.ending)


@says(GraderFailed)
def _(f: GraderFailed) -> Said:
    return Said(
        "The grader itself failed on this answer.",
        detail=f"{f.error}: {f.message}",
        cause="This isn't your fault.",
        question="Tell your instructor, please.",
    )


@says(TooLong)
def _(f: TooLong) -> Said:
    return Said(
        f"Your program didn't finish within {f.seconds:g} seconds.",
        cause="The arrays have only a few hundred elements.",
        question="Is there a loop that never ends?",
    )


@says(Deadlocked)
def _(f: Deadlocked) -> Said:
    return Said(
        "Deadlock: the devices wait for one another.",
        cause="Some devices never reach a collective that the others call.",
        question="Have every device call the same collectives in the same order.",
    )


@says(Crashed)
def _(f: Crashed) -> Said:
    if f.message:
        return Said("Your program couldn't be run to its end.", detail=f.message)
    return Said("Running your program on eight devices ended its process.", question="Does it need a lot of memory?")


@says(Taught)
def _(f: Taught) -> Said:
    pieces = "pieces of this are" if len(f.lessons) > 1 else "piece you need is"
    return Said(detail=f"The {pieces} in {enumeration([f'`{lesson}`' for lesson in f.lessons])}.")
