"""How a wrong array relates to the expected one: its shape, then its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.findings.finding import Finding, Rank
from grader.findings.quantities import Quantity

Together = Literal["sum", "mean", "maximum"]
Odd = Literal["nan", "inf", "-inf"]
ODD: tuple[Odd, ...] = ("nan", "inf", "-inf")

# Shapes


@dataclass(frozen=True)
class WrongLength(Finding, rank=Rank.RELATION + 4):
    """A wrong length is another one (None: the expected one), `times` a number of the case, divided by one (`over`)."""

    dimension: int
    base: Quantity | None
    times: Quantity | None
    over: Quantity | None


@dataclass(frozen=True)
class WrongLengths(Finding, rank=Rank.RELATION + 4):
    """How each wrong length of a shape relates to the expected one."""

    each: tuple[WrongLength, ...]


@dataclass(frozen=True)
class ExtraDimension(Finding, rank=Rank.RELATION + 3):
    """One dimension too many, the others as expected. Of neighbors of one length none is named (None)."""

    dimension: int | None
    length: Quantity | Literal[1] | None


@dataclass(frozen=True)
class MissingDimension(Finding, rank=Rank.RELATION + 3):
    """One dimension too few, the others as expected."""

    dimension: int | None


@dataclass(frozen=True)
class SameSizeOtherShape(Finding, rank=Rank.SOME):
    """It has as many elements as expected in another shape, and the expected ones in order (`same_elements`)."""

    same_elements: bool


# Values


@dataclass(frozen=True)
class FactorIs(Finding, rank=Rank.RELATION + 18):
    """All elements are off by one factor, a number of the case in all cases that were compared: so many times too
    large, or as many times too small."""

    quantity: Quantity
    too_large: bool


@dataclass(frozen=True)
class OffByFactor(Finding, rank=Rank.RELATION + 17):
    """All elements are off by one factor: the same in all cases that were compared, or another one `elsewhere`."""

    factor: float
    elsewhere: float | None


@dataclass(frozen=True)
class ReplicasDisagree(Finding, rank=Rank.RELATION + 15):
    """Two devices should hold replicas of one block, and differ; together all replicas may give what is expected."""

    one: int
    other: int
    together: Together | None


@dataclass(frozen=True)
class AllZero(Finding, rank=Rank.RELATION + 10):
    """Every element is zero, on all devices."""


@dataclass(frozen=True)
class NotFinite(Finding, rank=Rank.RELATION + 9):
    """Elements are not finite where finite ones are expected."""

    value: Odd


@dataclass(frozen=True)
class ElementsMisplaced(Finding, rank=Rank.RELATION + 1):
    """All expected elements are there, as often as they should be, but in other places: of one array, within each
    device's block, or across devices."""

    within: Literal["array", "block", "devices"]


@dataclass(frozen=True)
class WrongZeros(Finding, rank=Rank.RELATION):
    """Everything is right except which elements are zero: some should not be (`lost`), others should be (`left`)."""

    lost: bool
    left: bool


@dataclass(frozen=True)
class SameOnAllDevices(Finding, rank=Rank.RELATION - 1):
    """All devices, or all along an axis, hold the same block, and should not."""

    axis: str | None


@dataclass(frozen=True)
class RightAlong(Finding, rank=Rank.SOME + 6):
    """At these indices along a dimension every block is right, and at no others."""

    dimension: int
    right: tuple[int, ...]
    length: int


@dataclass(frozen=True)
class OnlyDevicesRight(Finding, rank=Rank.SOME + 4):
    """Only these devices are right: by their indices along an axis if that says it, else by their numbers."""

    axis: str | None
    which: tuple[int, ...]


_LENGTH = WrongLength(0, base=None, times=Quantity("devices along", "x"), over=None)
EXAMPLES = (
    _LENGTH,
    WrongLengths((_LENGTH, WrongLength(1, base=Quantity("length", "x", 0), times=None, over=None))),
    ExtraDimension(0, Quantity("devices along", "x")),
    MissingDimension(1),
    SameSizeOtherShape(same_elements=True),
    ReplicasDisagree(0, 2, "sum"),
    FactorIs(Quantity("devices along", "data"), too_large=False),
    OffByFactor(0.3333, 0.08333),
    AllZero(),
    NotFinite("nan"),
    ElementsMisplaced("devices"),
    WrongZeros(lost=True, left=False),
    SameOnAllDevices("x"),
    RightAlong(0, (0,), 3),
    OnlyDevicesRight("x", (1, 3)),
)
