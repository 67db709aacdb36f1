"""The orders of a pipeline's devices."""

from __future__ import annotations

from grader.arrays.words import numbered
from grader.findings.schedules import (
    FirstBeyond,
    IdleSteps,
    NoBackward,
    NoTimetable,
    OtherPipeline,
    TooLongTimetable,
    TooManyHeld,
)
from grader.wording.said import Said, says

_MOST_NAMED = 8  # microbatches


@says(NoTimetable)
def _(f: NoTimetable) -> Said:
    if f.deadlock:
        return Said("The timetable never ends.", detail=f.message)
    return Said("These orders aren't a complete timetable.", detail=f.message)


@says(OtherPipeline)
def _(f: OtherPipeline) -> Said:
    return Said(
        "These orders are for a different pipeline.",
        expected=f"{f.devices} devices, {_microbatches(f.microbatches)}",
        found=f"{f.found_devices} devices, {_microbatches(f.found_microbatches)}",
    )


def _microbatches(numbers: tuple[int, ...]) -> str:
    first, last = numbers[0], numbers[-1]
    missing = sorted({*range(first, last)} - {*numbers})
    without = f" without {numbered('number', missing)}" if 0 < len(missing) <= _MOST_NAMED else ""
    return f"microbatches {first} to {last}{without or ', some of them missing' * bool(missing)}"


@says(NoBackward)
def _(f: NoBackward) -> Said:
    return Said("There are only forward passes.", question="Where do the backward passes belong in these orders?")


@says(TooManyHeld)
def _(f: TooManyHeld) -> Said:
    return Said(
        "A device holds too many activations.",
        expected=f"at most {f.expected:g} microbatches",
        found=f"{f.found:g}",
        where=f"device {f.device}",
        cause="A backward pass (or its W, if that is separate) frees what its forward pass stored.",
    )


@says(TooLongTimetable)
def _(f: TooLongTimetable) -> Said:
    return Said(
        f"The bubble is larger than that of {f.target}.",
        expected=f"{f.expected:.1%}",
        found=f"{f.found:.1%}, in {f.steps} steps",
    )


@says(FirstBeyond)
def _(f: FirstBeyond) -> Said:
    freed = f"the activations of {f.freed} were freed" if f.freed else "none of their activations were freed"
    return Said(
        cause=f"{f.work} is the first forward pass too many: {f.forward} ran before it, and {freed}.",
        question="Which backward pass could run before it?",
    )


@says(IdleSteps)
def _(f: IdleSteps) -> Said:
    before, between, after = f.found
    where = (
        f"idle steps of all devices: {before} before their first work, {between} in between, {after} after their last "
        f"({f.target}: {', '.join(map(str, f.expected))})"
    )
    if f.longest is None:
        return Said(where=where)
    device, work, steps, need = f.longest
    until = f", until {need} is done" if need else ""
    return Said(
        where=where,
        cause=f"The longest wait is {steps} step{'s' * (steps > 1)}: device {device}, before {work}{until}.",
        question="What could it do in the meantime?",
    )
