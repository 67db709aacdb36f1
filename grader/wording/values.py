"""What is wrong with a plain value, in English."""

from __future__ import annotations

from grader.arrays.words import enumeration, numbered
from grader.findings import values as kinds
from grader.wording.said import Said, says

SORTS = {
    "number": "a number",
    "truth value": "`True` or `False`",
    "text": "a string",
    "list": "a list or a tuple",
    "dict": "a dict",
    "mesh": "a mesh",
    "array": "a NumPy array",
    "array on devices": "an array on devices",
    "None": "`None`",
}
_WAYS = {  # what happened, and what to ask
    "not in place": (
        "The values are right, but the memory isn't reused.",
        "`{}` of the result isn't in the memory of an array that was passed in, so both exist at once.",
        "Which call should donate its argument?",
    ),
    "from the host": (
        "The result is right, but went through host memory.",
        "`{}` was copied to the devices from the host: by NumPy, by a list, or by a `device_put` that has to split "
        "it into other blocks for other devices.",
        "Which step can stay on the devices?",
    ),
    "to the host": (
        "The result is right, but went through host memory.",
        "`{}` was in host memory on the way, or came from there.",
        "Which arrays have to move at all?",
    ),
    "from anywhere": (
        "The result is right, but was created elsewhere.",
        "`{}` was first on other devices or on the host, and was sent from there.",
        "Which call creates it where it belongs?",
    ),
}
NO_POINTS_LOST = "That costs no points, but time or memory on real chips."


def _of(path: str, result: str = "The result") -> str:
    """A part of the result, at the beginning of a sentence."""
    return f"`{path}` of the result" if path else result


@says(kinds.WrongValue)
def _(f: kinds.WrongValue) -> Said:
    return Said(f"{_of(f.path)} is wrong.", expected=f.expected or "", found=f.found)


@says(kinds.WrongKey)
def _(f: kinds.WrongKey) -> Said:
    return Said(f"{_of(f.path)} {'lacks the key' if f.missing else 'has an extra key,'} `{f.key}`.")


@says(kinds.WrongCount)
def _(f: kinds.WrongCount) -> Said:
    expected, found = (f"{n} {'element' if n == 1 else 'elements'}" for n in (f.expected, f.found))
    return Said(f"{_of(f.path)} has the wrong length.", expected=expected, found=found)


@says(kinds.OnWrongDevices)
def _(f: kinds.OnWrongDevices) -> Said:
    found = numbered("device", f.found) if f.found else "not an array on several devices"
    return Said(f"{_of(f.path)} is on the wrong devices.", expected=numbered("device", f.expected), found=found)


@says(kinds.WrongShard)
def _(f: kinds.WrongShard) -> Said:
    where = f"Shard on device {f.device}"
    return Said(f"{_of(f.path)} has the wrong sharding.", expected=f.expected, found=f.found, where=where)


@says(kinds.WrongBlock)
def _(f: kinds.WrongBlock) -> Said:
    element = f", element {list(f.element)}" if f.element is not None else ""
    what = "has wrong values" if element else "has the wrong type"
    where = f"Device {f.device}, shard {f.part}{element}"
    return Said(f"{_of(f.path)} {what} on device {f.device}.", expected=f.expected, found=f.found, where=where)


@says(kinds.ShouldRaise)
def _(f: kinds.ShouldRaise) -> Said:
    found = f.raised or (f"it returned {f.returned}" if f.returned else "it raised nothing, and returned nothing")
    question = "" if f.raised or f.returned else "Is the error caught, or only printed?"
    return Said("It should raise a ValueError.", expected=f"ValueError: {f.message}", found=found, question=question)


@says(kinds.BarredWay)
def _(f: kinds.BarredWay) -> Said:
    headline, cause, question = _WAYS[f.way]
    return Said(headline, cause=f"{cause.format(f.array)} {NO_POINTS_LOST}", question=question)


@says(kinds.NotPlain)
def _(f: kinds.NotPlain) -> Said:
    return Said("The answer should be a plain value.")


@says(kinds.UnlikeOthers)
def _(f: kinds.UnlikeOthers) -> Said:
    if f.does == "raises":
        cause = "A ValueError is expected in some cases, but not in this one."
        return Said(cause=cause, question="How do you tell them apart?")
    cause = "In other cases, the function returns something."
    return Said(cause=cause, question="Which branch ends without a `return`, or returns `None`?")


@says(kinds.WrongFacts)
def _(f: kinds.WrongFacts) -> Said:
    each = [f"{name} (yours: {text})" if text else name for name, text in f.facts]
    return Said(cause=f"Your text is wrong about {enumeration(each)}.", question="Which line decides that?")


@says(kinds.OtherKind)
def _(f: kinds.OtherKind) -> Said:
    elements = " of arrays on devices" if f.of == "array on devices" else ""
    found = f", but this is {SORTS[f.found]}" if f.found else ""
    return Said(cause=f"Expected {SORTS[f.expected]}{elements}{found}.")
