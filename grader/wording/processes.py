"""Functions that run in several processes."""

from __future__ import annotations

from dataclasses import replace

from grader.findings.processes import (
    DidNotEnd,
    NoMain,
    NotKilled,
    ProcessesAgree,
    ProcessesSilent,
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


@says(ProcessesAgree)
def _(f: ProcessesAgree) -> Said:
    return Said(
        cause="All processes have the same wrong value.",
        question="Do they all make the same mistake, or does one of them pass it to the others?",
    )
