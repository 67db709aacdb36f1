"""How a wrong plain value relates to the expected one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.findings.arrays import ElementsMisplaced, SameSizeOtherShape
from grader.findings.finding import Finding, Rank
from grader.findings.quantities import Quantity


@dataclass(frozen=True)
class OffByQuantity(Finding, rank=Rank.RELATION + 8):
    """A number is the expected one, times a number of the case, or divided by it."""

    quantity: Quantity
    divided: bool


@dataclass(frozen=True)
class TimesExpected(Finding, rank=Rank.RELATION + 6):
    """A number is so many times the expected one."""

    factor: float


@dataclass(frozen=True)
class TooLargeBy(Finding, rank=Rank.RELATION + 5):
    """A number is too large by so many times a number of the case, or by a small whole number (None)."""

    times: float
    quantity: Quantity | None


@dataclass(frozen=True)
class OnOneSide(Finding, rank=Rank.SIDE):
    """A number is too large, or too small."""

    side: Literal["large", "small"]


@dataclass(frozen=True)
class Reordered(Finding, rank=Rank.RELATION + 6):
    """The elements are the expected ones in another order."""

    how: Literal["reversed", "rotated", "two swapped", "any"]


@dataclass(frozen=True)
class OtherElements(Finding, rank=Rank.RELATION + 6):
    """The elements of a list are right, and in order, but some are missing; or there are others besides."""

    how: Literal["first missing", "last missing", "missing", "extra"]


@dataclass(frozen=True)
class WrongGroups(Finding, rank=Rank.RELATION + 5):
    """The values are grouped otherwise than expected: in order they are the same, or the same in any order, or there
    are at least as many."""

    same: Literal["order", "values", "count"]


@dataclass(frozen=True)
class SameProduct(Finding, rank=Rank.RELATION + 3):
    """The product of the numbers is right, and not each of them."""


@dataclass(frozen=True)
class OtherLength(Finding, rank=Rank.SIDE):
    """A list has more or fewer elements than expected."""

    side: Literal["more", "fewer"]


@dataclass(frozen=True)
class OtherKeys(Finding, rank=Rank.RELATION + 5):
    """What a dict has is right, but keys are missing; or it has all that is expected, and other keys."""

    how: Literal["missing", "extra"]


@dataclass(frozen=True)
class WrongParts(Finding, rank=Rank.RELATION + 7):
    """Which dimensions of an array are divided otherwise over the devices (of one process) than they should be."""

    dimensions: tuple[tuple[int, Literal["replicated", "sharded", "more", "fewer"]], ...]
    in_process: bool = False


@dataclass(frozen=True)
class OnlyThere(Finding):
    """Which elements are wrong, if they are few; what is true of each of them, or of each wrong value `inside` them."""

    places: tuple[str, ...]
    each: Finding | None = None
    inside: bool = False

    def __post_init__(self) -> None:
        """It tells as much as what is true of each, and where they are tells something."""
        tells = (Rank.SOME if self.places else Rank.BARE), (self.each.rank if self.each else Rank.BARE)
        object.__setattr__(self, "rank", max(tells))


KEEPS_SECRET = (
    *(OnOneSide, Reordered, OtherElements, WrongGroups, SameProduct, OtherLength, OtherKeys),
    *(ElementsMisplaced, SameSizeOtherShape),
)


def reveals(finding: Finding) -> bool:
    """Whether the expected value can be worked out from a finding and the answer."""
    if isinstance(finding, OnlyThere):
        return finding.each is not None and reveals(finding.each)
    return not isinstance(finding, KEEPS_SECRET)


EXAMPLES = (
    *(OnOneSide("large"), SameProduct(), OtherLength("fewer")),
    OffByQuantity(Quantity("devices along", "x"), divided=True),
    OffByQuantity(Quantity("argument", "n"), divided=False),
    *(TimesExpected(4.0), TimesExpected(0.125), TimesExpected(-1.0)),
    *(TooLargeBy(-1, None), TooLargeBy(0.5, Quantity("argument", "n"))),
    *(Reordered("reversed"), Reordered("rotated"), Reordered("two swapped"), Reordered("any")),
    *(OtherElements("first missing"), OtherElements("last missing"), OtherElements("missing"), OtherElements("extra")),
    *(WrongGroups("order"), WrongGroups("values"), WrongGroups("count")),
    *(OtherKeys("missing"), OtherKeys("extra")),
    WrongParts(((0, "replicated"), (1, "sharded"))),
    WrongParts(((0, "fewer"),), in_process=True),
    OnlyThere(("a", "b")),
    *(OnlyThere(("[1]",), TimesExpected(2.0)), OnlyThere(("in",), OnOneSide("small"), inside=True)),
    *(OnlyThere((), OnOneSide("large")), OnlyThere((), OnOneSide("large"), inside=True)),
)
