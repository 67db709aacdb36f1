"""What the cases of a function have in common, and changes to the reference."""

from __future__ import annotations

from grader.arrays.words import enumeration
from grader.findings.cases import (
    ChangedReference,
    ErrorExpected,
    FunctionChange,
    GivenArgument,
    HasValue,
    InCase,
    InFirstCase,
    RightIn,
    RightWith,
)
from grader.wording.said import Said, said, says

CHANGES = {
    "instead": "`{0}` were used instead of `{1}`",
    "left out": "the factor `{0}` were left out",
    "not added": "`{0}` weren't added",
    "not subtracted": "`{0}` weren't subtracted",
    "not divided by": "it weren't divided by `{0}`",
    "exchanged": "`{0}` and `{1}` were swapped",
    "one less": "`{0} - 1` were used instead of `{0}`",
    "one more": "`{0} + 1` were used instead of `{0}`",
    "number one larger": "a number in the formula were larger by 1",
    "number one smaller": "a number in the formula were smaller by 1",
    "multiplied by": "`{0}` were multiplied by `{1}`",
    "divided by": "`{0}` were divided by `{1}`",
    "equal numbers": "a comparison of two equal numbers had the opposite result",
    "condition dropped": "one of several conditions were dropped",
    "special case dropped": "a special case weren't treated separately",
    "not transposed": "a matrix weren't transposed",
}
UNNAMED = {  # if it is no argument and no number that is changed
    "left out": "a factor were left out",
    "not added": "a term of a sum were left out",
    "not subtracted": "something weren't subtracted",
    "not divided by": "a division were left out",
}
EACH = {
    "": "",
    "process": " by process",
    "life": " by run",
    "first process": " in process 0",
    "first life": " in the first run",
}


@says(InCase)
def _(f: InCase) -> Said:
    mesh = " × ".join(f"{name}={size}" for name, size in f.mesh)
    return Said(where="; ".join(filter(None, [f.pod, f"mesh {mesh}" if mesh else "", *map(_given, f.given)])))


@says(GivenArgument)
def _(f: GivenArgument) -> Said:
    return Said(where=_given(f))


def _given(f: GivenArgument) -> str:
    return f"{f.name}{EACH[f.each]}: {f.value}"


@says(RightIn)
def _(f: RightIn) -> Said:
    cases = "processes" if f.processes else "cases"
    where = f"Correct in {f.right} of {f.of} {cases}."
    if f.pattern is None:
        return Said(where=where)
    pattern = said(f.pattern)
    return Said(where=f"{where} {pattern.where}", question=pattern.question)


def _differ(only: bool, condition: str) -> Said:
    """What tells the wrong cases from the right ones: what was tried, and no rule."""
    some, others = ("correct", "wrong") if only else ("wrong", "correct")
    return Said(where=f"In every {some} case {condition}, and in no {others} one.")


@says(HasValue)
def _(f: HasValue) -> Said:
    return _differ(f.only, f"{'the length of ' if f.of == 'length' else ''}`{f.argument}` is {f.value}")


@says(ErrorExpected)
def _(f: ErrorExpected) -> Said:
    return _differ(f.only, "an error is expected")


@says(RightWith)
def _(f: RightWith) -> Said:
    given = " and ".join(f"`{name}` = {value}" for name, value in f.arguments)
    names = enumeration([f"`{name}`" for name, _ in f.arguments])
    question = f"What {'do' if len(f.arguments) > 1 else 'does'} {names} change?"
    return Said(where=f"With {given} and everything else the same, it is correct.", question=question)


@says(InFirstCase)
def _(f: InFirstCase) -> Said:
    inside = said(f.finding)
    lead = "In the first wrong process" if f.process else "In the first wrong case"
    return Said(cause=f"{lead}: {inside.cause}" if inside.cause else "", question=inside.question)


@says(FunctionChange)
def _(f: FunctionChange) -> Said:
    return Said(cause=_changed(f))


def _changed(change: FunctionChange) -> str:
    return (
        CHANGES[change.kind].format(*change.names) if change.names else UNNAMED.get(change.kind, CHANGES[change.kind])
    )


@says(ChangedReference)
def _(f: ChangedReference) -> Said:
    yours = f"your `{f.key}`" if f.key else "your result"
    ways = ", or if ".join(map(_changed, f.changes))
    return Said(
        cause=f"In every case, {yours} is what you'd get if {ways}.",
        question="Does your function do that, or something equivalent?",
    )
