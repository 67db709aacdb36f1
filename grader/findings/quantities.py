"""Numbers of a case by what they count: what a wrong number, length or array may be off by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.findings.finding import Finding

What = Literal["devices along", "all devices", "argument", "length", "elements", "items", "product"]


@dataclass(frozen=True)
class Quantity(Finding):
    """One number of a case, such as the devices along a mesh axis, an argument, or the length of an array's dimension.

    `name` is that of the mesh axis, the argument or the array. Of a length, `dimension` is which. `on_device`: of one
    device's block. "items" are those of a list, "product" is that of all of an argument's numbers.
    """

    what: What
    name: str = ""
    dimension: int = 0
    on_device: bool = False


EXAMPLES = (
    Quantity("devices along", "x"),
    Quantity("all devices"),
    Quantity("argument", "num_microbatches"),
    Quantity("length", "x", 1, on_device=True),
    Quantity("elements", "x"),
    Quantity("items", "names"),
    Quantity("product", "shape"),
)
