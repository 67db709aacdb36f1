"""What is wrong in the rows of a table. Nothing here reveals the right answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.findings.finding import Finding, Rank
from grader.findings.values import NotPlain

Side = Literal["large", "small"]
NumberStanding = Literal["right", "large", "small", "large by an integer factor", "small by an integer factor"]


@dataclass(frozen=True)
class WrongRow(Finding):
    """The answer in a row is not the expected one."""

    row: str
    found: str


@dataclass(frozen=True)
class NoAnswerYet(Finding):
    """A row has no answer."""

    row: str


@dataclass(frozen=True)
class RowRefused(Finding):
    """What is in a row is no answer that can be judged; why."""

    row: str
    why: Finding


@dataclass(frozen=True)
class SameAsRow(Finding, rank=Rank.KNOWN):
    """A row is wrong for the same reason as an earlier one."""

    row: str


@dataclass(frozen=True)
class KindExpected(Finding, rank=Rank.CAUSE):
    """Something of another kind is expected in a row: one of these words; or an option, and no other word, or a single
    one."""

    kind: Literal["bool", "number", "list", "unquoted list", "words", "option", "single option"]
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class OptionMeans(Finding, rank=Rank.RELATION + 5):
    """What the chosen word stands for, in the author's words."""

    option: str


@dataclass(frozen=True)
class AuthorSays(Finding, rank=Rank.RELATION + 15):
    """What this wrong answer would stand for, in words that the author of the exercise computes from it."""

    words: str


@dataclass(frozen=True)
class RowAsks(Finding):
    """The author's question for rows whose keys have this part."""

    part: str


@dataclass(frozen=True)
class RightInRow(Finding, rank=Rank.RELATION + 10):
    """The same answer is right in another row."""

    row: str


@dataclass(frozen=True)
class RowsOffAlike(Finding, rank=Rank.RELATION + 20):
    """All wrong rows are off by the same factor or difference; or by what another, right row has."""

    by: Literal["factor", "difference", "another row"]
    count: int
    side: Side | None = None


@dataclass(frozen=True)
class OffByInteger(Finding, rank=Rank.RELATION):
    """A number is too large, or too small, by an integer factor."""

    side: Side


@dataclass(frozen=True)
class OffByRoughly(Finding, rank=Rank.SIDE + 5):
    """A number is too large or too small by roughly so much."""

    side: Side
    much: Literal["less than twice", "more than ten times"]


@dataclass(frozen=True)
class NumberByNumber(Finding, rank=Rank.RELATION):
    """How each number of a short tuple stands to the one expected."""

    standing: tuple[NumberStanding, ...]


EXAMPLES = (
    WrongRow("bytes sent", "3072"),
    NoAnswerYet("bytes sent"),
    RowRefused("bytes sent", NotPlain()),
    SameAsRow("all_gather"),
    KindExpected("words", ("halves", "stays", "doubles")),
    *(KindExpected("bool"), KindExpected("number"), KindExpected("list"), KindExpected("unquoted list")),
    *(KindExpected("option"), KindExpected("single option")),
    OptionMeans("SLURM_LOCALID"),
    AuthorSays("That is 8 times w, as if there were that many replicas."),
    RowAsks("devices that JAX uses"),
    RightInRow("v + v.T"),
    RowsOffAlike("factor", 2),
    RowsOffAlike("another row", 3, "large"),
    OffByInteger("large"),
    OffByRoughly("small", "less than twice"),
    NumberByNumber(("right", "large by an integer factor")),
)
