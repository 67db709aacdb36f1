"""How a wrong plain value relates to the expected one, in English."""

from __future__ import annotations

from grader.arrays.words import enumeration, number
from grader.findings import relations as kinds
from grader.wording.quantities import quantity_name
from grader.wording.said import Said, said, says

_EXACT = 1e-9  # relative: how near a factor is to the part that is said


@says(kinds.OffByQuantity)
def _(f: kinds.OffByQuantity) -> Said:
    how = "divided by" if f.divided else "times"
    question = "Is it divided once too often?" if f.divided else "Is it multiplied once too often?"
    return Said(cause=f"It is the expected value {how} {quantity_name(f.quantity)}.", question=question)


@says(kinds.TimesExpected)
def _(f: kinds.TimesExpected) -> Said:
    if f.factor == -1:
        return Said(cause="It has the wrong sign.", question="What is subtracted from what?")
    return Said(cause=f"It is {_times(f.factor)} the expected value.", question="Where does that factor come from?")


def _times(factor: float) -> str:
    inverse = round(1 / factor)
    is_part = 0 < factor < 1 and abs(factor * inverse - 1) < _EXACT
    return f"1/{inverse} of" if is_part else f"{number(factor)} times"


@says(kinds.TooLargeBy)
def _(f: kinds.TooLargeBy) -> Said:
    side, times = ("large" if f.times > 0 else "small"), abs(f.times)
    if f.quantity is None:
        question = "Is it a matter of what is counted, or of rounding?"
        return Said(cause=f"It is too {side} by {number(times)}.", question=question)
    much = f"{'' if times == 1 else f'{number(times)} times '}{quantity_name(f.quantity)}"
    return Said(cause=f"It is too {side} by {much}.", question="Which term is that?")


@says(kinds.OnOneSide)
def _(f: kinds.OnOneSide) -> Said:
    return Said(cause=f"It is too {f.side}.")


@says(kinds.Reordered)
def _(f: kinds.Reordered) -> Said:
    how = {
        "reversed": "in the opposite order",
        "rotated": "rotated: the list starts with another one",
        "two swapped": "but two of them are swapped",
        "any": "in a different order",
    }[f.how]
    return Said(cause=f"The elements are correct, {how}.", question="Which one comes first?")


@says(kinds.OtherElements)
def _(f: kinds.OtherElements) -> Said:
    if f.how == "extra":
        return Said(cause="All expected elements are there, plus extra ones.", question="Which ones don't belong?")
    which = {"first missing": "the first ones", "last missing": "the last ones", "missing": "elements"}[f.how]
    return Said(cause=f"What you have is correct, but {which} are missing.", question="Where do you start, and stop?")


@says(kinds.WrongGroups)
def _(f: kinds.WrongGroups) -> Said:
    right = {
        "order": "The values and their order are correct",
        "values": "All expected values are there",
        "count": "The number of values is correct",
    }[f.same]
    return Said(cause=f"{right}, but not the shape, or how lists are nested.", question="Which shape is expected?")


@says(kinds.SameProduct)
def _(f: kinds.SameProduct) -> Said:
    cause = "The product of these numbers is correct, but not every number is."
    return Said(cause=cause, question="Which of them should be larger, and which smaller?")


@says(kinds.OtherLength)
def _(f: kinds.OtherLength) -> Said:
    return Said(cause=f"It has {f.side} elements than expected.")


@says(kinds.OtherKeys)
def _(f: kinds.OtherKeys) -> Said:
    if f.how == "extra":
        return Said(cause="Everything expected is there, plus extra keys.", question="Which keys don't belong?")
    return Said(cause="Nothing in the dict is wrong, but keys are missing.", question="Which keys should it have?")


@says(kinds.WrongParts)
def _(f: kinds.WrongParts) -> Said:
    of = " of the process" if f.in_process else ""
    how = {
        "replicated": f"is the same on every device{of} and should be sharded",
        "sharded": f"is sharded and should be the same on every device{of}",
        "more": "is split into too many parts",
        "fewer": "is split into too few parts",
    }
    each = "; ".join(f"dimension {k} {how[one]}" for k, one in f.dimensions)
    return Said(cause=f"{each[:1].upper()}{each[1:]}.", question="Which mesh axis should shard which dimension?")


@says(kinds.OnlyThere)
def _(f: kinds.OnlyThere) -> Said:
    places = enumeration([f"`{place}`" for place in f.places]) if f.places else ""
    only = f"Only {places} {'is' if len(f.places) == 1 else 'are'} wrong." if places else ""
    if f.each is None:
        return Said(cause=only, question="What is different there?")
    one = said(f.each)
    if len(f.places) == 1 and not f.inside:
        return Said(cause=f"{only} {one.cause}", question=one.question)
    which = f"wrong {'value inside' if f.inside else 'element'}"
    return Said(cause=f"{only} For each {which}: {one.cause}".strip(), question=one.question)
