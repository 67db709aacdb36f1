"""What a program's devices hold, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from grader.arrays.words import enumeration, numbered, region
from grader.findings import programs as kinds
from grader.wording.said import Said, says

OPERATIONS = {  # a step of a reference, if not by the name of its operation; what joins its other operand
    "add": ("the addition", "of"),
    "sub": ("the subtraction", "of"),
    "mul": ("the multiplication", "by"),
    "div": ("the division", "by"),
    "max": ("the maximum", "with"),
    "min": ("the minimum", "with"),
    "neg": ("the minus sign", ""),
    "integer_pow": ("the power", ""),
    "dot_general": ("a matmul", ""),
    "reduce_sum": ("a sum", ""),
}


def part_name(part: kinds.ResultPart) -> str:
    """A part of a result, inside a sentence."""
    if part.argument:
        return f"the gradient with respect to `{part.argument}`"
    return f"`{part.place}`" if part.place else "the result"


def names(parts: Sequence[kinds.ResultPart], more: int = 0) -> str:
    return enumeration([*map(part_name, parts), *([f"{more} more"] if more else [])])


def upper_first(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def _subject(part: kinds.ResultPart) -> str:
    return upper_first(part_name(part))


def on(mesh: Iterable[int]) -> str:
    return f"{' × '.join(map(str, mesh))} devices"


@says(kinds.ResultPart)
def _(f: kinds.ResultPart) -> Said:
    return Said(where=part_name(f))


@says(kinds.WrongArrayCount)
def _(f: kinds.WrongArrayCount) -> Said:
    return Said("The result has the wrong number of arrays.", _arrays(f.expected), _arrays(f.found))


def _arrays(count: int) -> str:
    return f"{count} array{'s' * (count != 1)}"


@says(kinds.WrongResultKeys)
def _(f: kinds.WrongResultKeys) -> Said:
    return Said("The result has the wrong dict keys.", _keys(f.expected), _keys(f.found))


def _keys(keys: Sequence[str]) -> str:
    return " / ".join(map(repr, keys)) or "no key"


@says(kinds.WrongResultShape)
def _(f: kinds.WrongResultShape) -> Said:
    return Said(f"{_subject(f.part)} has the wrong shape.", str(f.expected), str(f.found))


@says(kinds.WrongResultDtype)
def _(f: kinds.WrongResultDtype) -> Said:
    return Said(f"{_subject(f.part)} has the wrong dtype.", f.expected, f.found, question="Which step changes it?")


@says(kinds.NoGradient)
def _(f: kinds.NoGradient) -> Said:
    return Said(
        "JAX can't take the gradient of this result.",
        cause="Its arrays have the right shapes, but they are in different containers than the reference's.",
        question="Is there a list instead of a tuple, or a tuple around a single array?",
    )


@says(kinds.WrongElement)
def _(f: kinds.WrongElement) -> Said:
    held = "full array" if f.replicated else f"shard {region(f.bounds)}"
    where = f"device {f.device}, {held}, element {list(f.index)}" if f.bounds else f"device {f.device}"
    return Said(f"{_subject(f.part)} has wrong values.", f.expected, f.found, where)


@says(kinds.WrongSharding)
def _(f: kinds.WrongSharding) -> Said:
    return Said(
        "Correct values, but the wrong sharding.",
        f"`{f.expected}`, {f.expected_elements:,} elements per device",
        f"`{f.found}`, {f.found_elements:,}",
        part_name(f.part) if f.part != kinds.ResultPart() else "",
    )


@says(kinds.FitUnknown)
def _(f: kinds.FitUnknown) -> Said:
    return Said("No compiler could tell whether this fits.", detail=f.reason)


@says(kinds.PodRefusal)
def _(f: kinds.PodRefusal) -> Said:
    return Said(f"The compiler for {f.pod} rejected your program.", detail=f.message)


@says(kinds.NothingDone)
def _(f: kinds.NothingDone) -> Said:
    return Said(
        detail="Each device ends up with exactly what the plain formula gives with no sharding annotations, and the "
        "compiler chooses all of the communication that this needs, so it earns no points yet."
    )


@says(kinds.StepChanged)
def _(f: kinds.StepChanged) -> Said:
    what = part_name(f.part).removeprefix("the ") if f.part else "result"
    question = "Does your program do that, or something equivalent?"
    return Said(cause=f"You get exactly this {what} if {_changed(f)}.", question=question)


def _changed(f: kinds.StepChanged) -> str:
    step, joined = OPERATIONS.get(f.operation, (f"`{f.operation}`", ""))
    operand = f"`{f.argument}`" if f.argument else f.constant
    devices = f"devices along `{f.axes[0]}`" if f.axes else "devices"
    if f.change == "once per device":
        what = f"{operand} is added" if operand else f"{step} counts"
        return f"{what} once for each of the {devices}"
    if f.change == "divided by devices":
        return f"{step} is divided by the number of {devices}"
    named = f"{step} {joined} {operand}" if operand else step
    return f"{named} is left out" if f.change == "left out" else f"{named} comes last"


@says(kinds.SharesCounted)
def _(f: kinds.SharesCounted) -> Said:
    what = f"{region(f.region)} of its block" if f.region else "the result"
    question = "Which device's contribution belongs where, and how often?"
    return Said(cause=f"On device {f.device}, {what} {enumeration(list(_counted(f)))}.", question=question)


def _counted(f: kinds.SharesCounted) -> Iterator[str]:
    if f.expected_in:
        yield f"holds what belongs in {region(f.expected_in)}"
    if f.missing:
        yield f"lacks what `{f.argument}` on {numbered('device', f.missing)} contributes"
    for times in sorted({n for _, n in f.repeated}):
        devices = numbered("device", [device for device, n in f.repeated if n == times])
        yield f"counts what `{f.argument}` on {devices} contributes {times} times"


@says(kinds.PassedElsewhere)
def _(f: kinds.PassedElsewhere) -> Said:
    if f.there == f.here:
        return Said(
            where=f"correct on {on(f.here)} with other arguments",
            question="Which length, or number that is given, differs here and is hard-coded in your program?",
        )
    if f.check in ("runs", "shape", "values", "sharding"):
        return Said(
            where=f"correct on {on(f.there)}, incorrect on {on(f.here)}",
            question="Is a number, or the notebook's own mesh, hard-coded in your program?",
        )
    return Said(
        where=f"within the limits on {on(f.there)}, not on {on(f.here)}",
        question="Is a number, or the notebook's own mesh, hard-coded in your program?",
    )


@says(kinds.RightParts)
def _(f: kinds.RightParts) -> Said:
    verb = "is" if len(f.parts) == 1 and not f.more else "are"
    cause = f"{upper_first(names(f.parts, f.more))} {verb} correct on every device."
    return Said(cause=cause, question="What is different about the others?")


@says(kinds.AlikeParts)
def _(f: kinds.AlikeParts) -> Said:
    also = f"; also wrong: {names(f.others, f.more_others)}" if f.others else ""
    return Said(where=f"in {names(f.parts, f.more)}{also}")


@says(kinds.AxisShards)
def _(f: kinds.AxisShards) -> Said:
    return Said(cause=_sharded(f))


def _sharded(f: kinds.AxisShards) -> str:
    found, expected = (f"dimension {d}" if d is not None else "nothing" for d in (f.found, f.expected))
    return f"`{f.axis}` shards {found}, but should shard {expected}"


@says(kinds.AxesShard)
def _(f: kinds.AxesShard) -> Said:
    question = "Which line of your program sets that sharding?"
    return Said(cause=f"{'; '.join(map(_sharded, f.axes))}.", question=question)


@says(kinds.ShardsElsewhere)
def _(f: kinds.ShardsElsewhere) -> Said:
    return Said(
        cause="Devices hold shards that belong on other devices.",
        question="In which order are the mesh's devices, or the axes in your spec?",
    )
