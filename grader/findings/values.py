"""Why what a function returned is wrong. A `path` is the way to a part of it, such as a[0].b; to the whole it is ""."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.findings.finding import Finding, Rank

Sort = Literal["number", "truth value", "text", "list", "dict", "mesh", "array", "array on devices", "None"]
Way = Literal["from the host", "from anywhere", "to the host", "not in place"]
_WAYS: tuple[Way, ...] = ("from the host", "from anywhere", "to the host", "not in place")


@dataclass(frozen=True)
class WrongValue(Finding):
    """A part of the result is another value than the expected one, which is not told if it is a text (None)."""

    path: str
    expected: str | None
    found: str


@dataclass(frozen=True)
class WrongKey(Finding):
    """A dict lacks a key, or has one that it should not have."""

    path: str
    key: str
    missing: bool


@dataclass(frozen=True)
class WrongCount(Finding):
    """A list has another number of elements than the expected one."""

    path: str
    expected: int
    found: int


@dataclass(frozen=True)
class OnWrongDevices(Finding):
    """An array is not on the expected devices; on none if it is not on devices at all."""

    path: str
    expected: tuple[int, ...]
    found: tuple[int, ...]


@dataclass(frozen=True)
class WrongShard(Finding):
    """A device holds another part of an array than it should."""

    path: str
    device: int
    expected: str
    found: str


@dataclass(frozen=True)
class WrongBlock(Finding):
    """A device holds the expected part of an array, but not its values: which element is the first, or None if the
    dtype or the shape is wrong."""

    path: str
    device: int
    part: str
    element: tuple[int, ...] | None
    expected: str
    found: str


@dataclass(frozen=True)
class ShouldRaise(Finding):
    """A ValueError is expected; which value was returned, or which other error raised, if any."""

    message: str
    returned: str | None = None
    raised: str | None = None


@dataclass(frozen=True)
class BarredWay(Finding):
    """The result is right, but an array came by a way that the exercise does not allow."""

    way: Way
    array: str


@dataclass(frozen=True)
class NotPlain(Finding):
    """The answer is not a plain value."""


@dataclass(frozen=True)
class UnlikeOthers(Finding, rank=Rank.SOME):
    """In this case the function returns nothing, and in others something; or it raises, as only others should."""

    does: Literal["returns nothing", "raises"]


@dataclass(frozen=True)
class WrongFacts(Finding, rank=Rank.CAUSE):
    """Of what is read in a text, these facts are wrong: the name of each, and what the text says of it, if it does."""

    facts: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class OtherKind(Finding, rank=Rank.SOME + 10):
    """Another kind of value is expected; `of`: a list of such. What was found is None if it is no plain value."""

    expected: Sort
    found: Sort | None
    of: Sort | None = None


EXAMPLES = (
    *(
        WrongValue("", "(8, 4)", "(4, 4)"),
        WrongValue("spec.jobs[0].hosts", "6", "1"),
        WrongValue("[1]", None, "'wait'"),
    ),
    *(WrongKey("", "all-reduce", missing=True), WrongKey("spec", "hosts", missing=False), WrongCount("", 5, 4)),
    *(OnWrongDevices("[0]", (0, 1, 2, 3), (4, 5, 6, 7)), OnWrongDevices("", (0, 1), ())),
    WrongShard("", 1, "[0:4, 2:4]", "[2:4, 0:4]"),
    WrongBlock("", 0, "[0:4, 0:2]", (1, 0), "7", "1"),
    WrongBlock("[1]", 2, "[2:4]", None, "float32[2]", "bfloat16[2]"),
    ShouldRaise("4 rows cannot be split over 3 devices", returned="(1, 4)"),
    ShouldRaise("4 rows cannot be split over 3 devices", raised="TypeError"),
    ShouldRaise("4 rows cannot be split over 3 devices"),
    *(BarredWay(way, "float32[8,6]") for way in _WAYS),
    *(NotPlain(), UnlikeOthers("returns nothing"), UnlikeOthers("raises")),
    WrongFacts((("the number of nodes", "1"), ("the number of tasks", None))),
    *(OtherKind("number", "text"), OtherKind("list", None, "array on devices")),
)
