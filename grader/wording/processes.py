"""Functions that run in several processes."""

from __future__ import annotations

from dataclasses import replace

from grader.findings.processes import (
    DidNotEnd,
    FirstRow,
    NoMain,
    NotKilled,
    ProcessesAgree,
    ProcessesSilent,
    RightWithOtherCount,
    WrongInProcess,
)
from grader.wording.said import Said, said, says


@says(DidNotEnd)
def _(f: DidNotEnd) -> Said:
    when = " after they were killed and restarted" if f.again else ""
    return Said(f"The processes didn't finish{when}.", detail=f.message)


@says(NotKilled)
def _(f: NotKilled) -> Said:
    return Said(
        f"The run finished without printing `step {f.step} …`.",
        cause="It was supposed to be killed at that line.",
        question="Does your function print a line for every step, with its number, as soon as the step is done?",
    )


@says(NoMain)
def _(f: NoMain) -> Said:
    return Said("The answer should be a function of `process_id` and `num_processes`.")


@says(ProcessesSilent)
def _(f: ProcessesSilent) -> Said:
    return Said("Some processes returned nothing.", expected=f"{f.expected} values", found=str(f.found))


@says(WrongInProcess)
def _(f: WrongInProcess) -> Said:
    inside = said(f.what) if f.what else Said(f"The value of process {f.process} is wrong.")
    where = " · ".join(filter(None, (f"process {f.process}", inside.where)))
    if not f.parts:
        return replace(inside, where=where)
    (name, expected, found), *rest = f.parts
    more = "\n".join(f"- {part}: expected {one}, found {other}" for part, one, other in rest)
    return Said(f"{name[:1].upper()}{name[1:]} is wrong.", expected=expected, found=found, where=where, detail=more)


@says(RightWithOtherCount)
def _(f: RightWithOtherCount) -> Said:
    what = "processes" if f.what == "processes" else "devices in each process"
    return Said(
        cause=f"This was correct with {f.right} {what}, but not with {f.wrong}.",
        question="Does your code contain a number that holds for only one of the two?",
    )


@says(FirstRow)
def _(f: FirstRow) -> Said:
    return Said(
        cause=f"The first row on {f.device} is row {f.found} of this process's `{f.argument}`; it should be row "
        f"{f.expected}.",
        question="Which rows belong to this process, and which of those to each device?",
    )


@says(ProcessesAgree)
def _(f: ProcessesAgree) -> Said:
    return Said(
        cause="All processes have the same wrong value.",
        question="Do they all make the same mistake, or does one of them pass it to the others?",
    )
