"""How a wrong array relates to the expected one, in English."""

from __future__ import annotations

from collections.abc import Collection

from grader.arrays.words import number, numbered
from grader.findings import arrays as kinds
from grader.wording.quantities import quantity_name
from grader.wording.said import Said, says

_EXACT = 1e-3  # relative: how near a factor is to the fraction that is said
CAUSES_OF = {
    "nan": "0 / 0, ∞ − ∞, 0 × ∞, or the logarithm or square root of a negative number",
    "inf": "a division by zero or the exponential of a large number",
    "-inf": "the logarithm of zero, or the start value of a maximum",
}
MISPLACED = {
    "array": ("in a different order", "What decides the order?"),
    "block": (
        "and on the right devices, but some are in the wrong place within their block",
        "In which order do the pieces arrive, and how are they concatenated?",
    ),
    "devices": (
        "the right number of times, but some are on the wrong device",
        "Which device has to send what to which, and where in its block does it go?",
    ),
}
WRONG_ZEROS = {  # whether there are zeros too many, and too few
    (True, False): ("Every nonzero element is correct, but some are wrongly zero.", "What sets them to zero?"),
    (False, True): ("The only wrong elements are some that should be zero.", "What should set them to zero?"),
    (True, True): ("Everything is correct except which elements are zero.", "What decides that, counting from where?"),
}  # fmt: skip


@says(kinds.WrongLength)
def _(f: kinds.WrongLength) -> Said:
    return _lengths(kinds.WrongLengths((f,)))


@says(kinds.WrongLengths)
def _lengths(f: kinds.WrongLengths) -> Said:
    ways = {(one.base is None and one.times is not None, one.base is None and one.over is not None) for one in f.each}
    question = {
        (True, False): "What is concatenated there: each device's own shard, replicas, or the full array?",
        (False, True): "Is something sharded there that should be the full array, or are the shards never gathered?",
        (True, True): "Over which axis is it split, and over which is it gathered?",
    }.get(next(iter(ways)) if len(ways) == 1 else (False, False), "Where is its length decided?")
    cause = "; ".join(map(_length, f.each))
    return Said(cause=f"{cause[:1].upper()}{cause[1:]}.", question=question)


def _length(one: kinds.WrongLength) -> str:
    base = quantity_name(one.base) if one.base else "the expected one"
    how = [f" times {quantity_name(one.times)}"] if one.times else []
    how += [f" divided by {quantity_name(one.over)}"] if one.over else []
    return f"the length of dimension {one.dimension} is {base}{','.join(how)}"


@says(kinds.ExtraDimension)
def _(f: kinds.ExtraDimension) -> Said:
    which = "One dimension" if f.dimension is None else f"Dimension {f.dimension}"
    if f.length is None:
        return Said(cause=f"{which} is one too many.", question="What should happen to that dimension?")
    if f.length == 1:
        return Said(cause=f"{which} is one too many; its length is 1.", question="What keeps it there?")
    cause = f"{which} is one too many; its length is {quantity_name(f.length)}."
    return Said(cause=cause, question="Are blocks stacked there that should be concatenated, or summed?")


@says(kinds.MissingDimension)
def _(f: kinds.MissingDimension) -> Said:
    which = "A dimension" if f.dimension is None else f"Dimension {f.dimension}"
    return Said(cause=f"{which} is missing.", question="Which line drops it?")


@says(kinds.SameSizeOtherShape)
def _(f: kinds.SameSizeOtherShape) -> Said:
    elements = "The elements are correct and in order" if f.same_elements else "The number of elements is correct"
    return Said(cause=f"{elements}, but the shape isn't.", question="Which dimensions should it have?")


@says(kinds.ReplicasDisagree)
def _(f: kinds.ReplicasDisagree) -> Said:
    cause = f"Devices {f.one} and {f.other} should hold replicas of the same block, but their values differ."
    if f.together:
        cause = f"{cause} The {f.together} of the replicas is the expected value."
        return Said(cause=cause, question="Which collective computes it?")
    return Said(cause=cause, question="Which line decides what each of them holds?")


@says(kinds.FactorIs)
def _(f: kinds.FactorIs) -> Said:
    if f.quantity.what in ("length", "elements"):
        question = "Is it a sum where a mean is expected, or the other way around?"
    elif f.too_large:
        question = "Is something summed once too often, or is a division missing?"
    else:
        question = "Is something divided once too often, or is it a mean where a sum is expected?"
    size = "large" if f.too_large else "small"
    return Said(cause=f"Every element is too {size} by a factor of {quantity_name(f.quantity)}.", question=question)


@says(kinds.OffByFactor)
def _(f: kinds.OffByFactor) -> Said:
    if f.elsewhere is not None:
        cause = f"Every element is {as_factor(f.factor)} in this case and {as_factor(f.elsewhere)} in another."
        return Said(cause=cause, question="Which factor changes from one case to the other?")
    if f.factor == -1:
        return Said(cause="Every element has the wrong sign.", question="Which operand is subtracted from which?")
    return Said(cause=f"Every element is {as_factor(f.factor)}.", question="Which factor is missing, or applied twice?")


def as_factor(factor: float) -> str:
    """What elements are that are so many times the expected ones."""
    if abs(factor) >= 1:
        return f"{number(factor, 4)} times {'too large' if factor > 0 else 'the expected value'}"
    whole = round(1 / abs(factor))
    part = f"1/{whole}" if abs(abs(factor) * whole - 1) < _EXACT else number(abs(factor), 3)
    return f"{'-' * (factor < 0)}{part} of the expected value"


@says(kinds.AllZero)
def _(f: kinds.AllZero) -> Said:
    return Said(cause="Every element is zero.", question="Which step makes it zero?")


@says(kinds.NotFinite)
def _(f: kinds.NotFinite) -> Said:
    cause = f"Some elements are `{f.value}`. That can come from {CAUSES_OF[f.value]}."
    return Said(cause=cause, question="Which step of yours can do that?")


@says(kinds.ElementsMisplaced)
def _(f: kinds.ElementsMisplaced) -> Said:
    where, question = MISPLACED[f.within]
    return Said(cause=f"All expected elements are there, {where}.", question=question)


@says(kinds.WrongZeros)
def _(f: kinds.WrongZeros) -> Said:
    cause, question = WRONG_ZEROS[f.lost, f.left]
    return Said(cause=cause, question=question)


@says(kinds.SameOnAllDevices)
def _(f: kinds.SameOnAllDevices) -> Said:
    along = f" along `{f.axis}`" if f.axis else ""
    cause = f"All devices{along} hold the same block, but their blocks should differ."
    return Said(cause=cause, question="Which step gives all of them the same block?")


@says(kinds.RightAlong)
def _(f: kinds.RightAlong) -> Said:
    wrong = [k for k in range(f.length) if k not in f.right]
    few = len(wrong) < len(f.right)
    which = f"every index except {', '.join(map(str, wrong))}" if few else f"only {_indices(f.right)}"
    is_or_are = "is" if few or len(f.right) == 1 else "are"
    cause = f"Along dimension {f.dimension}, {which} {is_or_are} correct."
    return Said(cause=cause, question=f"What is different {'there' if few else 'at the others'}?")


@says(kinds.OnlyDevicesRight)
def _(f: kinds.OnlyDevicesRight) -> Said:
    which = f"the devices with {_indices(f.which)} along `{f.axis}`" if f.axis else numbered("device", f.which)
    is_or_are = "are" if f.axis or len(f.which) > 1 else "is"
    question = "What do the other devices receive, or compute, differently?"
    return Said(cause=f"Only {which} {is_or_are} correct.", question=question)


def _indices(numbers: Collection[int]) -> str:
    return f"{'index' if len(numbers) == 1 else 'indices'} {', '.join(map(str, numbers))}"
