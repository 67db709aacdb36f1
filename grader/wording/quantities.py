"""Numbers of a case, as they are called inside a sentence."""

from __future__ import annotations

from grader.findings.quantities import Quantity
from grader.wording.said import Said, says


@says(Quantity)
def _(f: Quantity) -> Said:
    return Said(detail=quantity_name(f))


def quantity_name(q: Quantity) -> str:
    """What a number of a case is called."""
    block = " on each device" if q.on_device else ""
    return {
        "devices along": f"the number of devices along `{q.name}`",
        "all devices": "the number of devices",
        "argument": f"`{q.name}`",
        "length": f"the length of dimension {q.dimension} of `{q.name}`{block}",
        "elements": f"the number of elements of `{q.name}`{block}",
        "items": f"the number of items in `{q.name}`",
        "product": f"the product of `{q.name}`",
    }[q.what]
