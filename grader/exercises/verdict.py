"""What the judge says of one answer, and what it says of one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from grader.arrays.blocks import Blocks
from grader.arrays.ratios import Ratio
from grader.findings.finding import Finding
from grader.findings.verdicts import NotChecked
from grader.programs.origins import Line, Origin

MOST_LINES_TOLD = 3  # of several that a miss is about
MOST_ROWS_TOLD = 3  # of several that are wrong in a table, each for another reason
Why = Literal["", "most", "all", "returned"]


@dataclass(frozen=True)
class Score:
    """Bytes that each device sends, added up over the cases: what is enough (`par`), the answer's, the compiler's."""

    par: int
    yours: int
    compilers: int

    @property
    def star(self) -> bool:
        """Whether the answer sends less than the compiler's own program."""
        return self.yours < self.compilers


@dataclass(frozen=True)
class Blamed:
    """What of an answer a miss is about: the answer's case, and the numbers of those of its collectives.

    `kinds` are the kinds of all that it has, in their order: origins are shown only where they are of the same.
    `why` these: they are what is wrong; or they send most, besides others; or it is not known where the fault is, and
    they are all that there are; or they hand back what is wrong. Without numbers it is about what divides arrays.
    `others` are other cases with which it is the same, as rows of a table.
    """

    case: int
    numbers: tuple[int, ...]
    kinds: tuple[str, ...]
    why: Why = ""
    others: tuple[int, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one answer.

    `outcomes` has one record for each check. `failing` is the number of the case in which a check was missed, and
    `where` describes that case. `expected` and `found` are what each device should hold in it and what it holds, if
    that helps; `ratios` compares each array of the result with the expected one, if there are several. `score` compares
    a right program with the compiler's, if the exercise asks for that; `orders` are those of a pipeline's devices.
    `blamed` is what the miss is about. The student's own `lines` are no part of what is judged: equal answers have
    equal verdicts, and `with_lines` fills in their lines.
    """

    exercise: str
    outcomes: tuple[Outcome, ...]
    where: Finding | None = None
    expected: Blocks | None = None
    found: Blocks | None = None
    ratios: tuple[Ratio, ...] = ()
    score: Score | None = None
    orders: tuple[tuple[str, ...], ...] = ()
    blamed: Blamed | None = None
    failing: int | None = None
    lines: tuple[Line, ...] = ()

    @property
    def points(self) -> float:
        return round(sum(o.points for o in self.outcomes), 2)

    @property
    def worth(self) -> float:
        return round(sum(o.worth for o in self.outcomes), 2)

    @property
    def failure(self) -> Outcome | None:
        """The first check that was missed; an open one only if nothing else was missed."""
        return min((o for o in self.outcomes if not o.passed), key=lambda o: o.open, default=None)

    @property
    def passed(self) -> bool:
        return self.failure is None

    @property
    def state(self) -> str:
        """One of right, partly, wrong and open."""
        if self.points >= self.worth:
            return "right"
        if self.points > 0:
            return "partly"
        return "open" if self.failure and self.failure.open else "wrong"

    @property
    def mistake(self) -> str:
        return self.failure.mistake if self.failure else ""


def missed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [o for o in outcomes if o.tried and not o.passed]


def explained_rows(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The rows of a table that a card explains: all if they are few, else the first few that differ in their reason."""
    wrong = missed(outcomes)
    if len(wrong) <= MOST_ROWS_TOLD:
        return wrong
    told: list[Outcome] = []
    for outcome in wrong:
        if len(told) < MOST_ROWS_TOLD and not any(outcome.is_as(one) for one in told):
            told.append(outcome)
    return told


def with_lines(verdict: Verdict, origins: Sequence[Sequence[Origin]]) -> Verdict:
    """The verdict with the lines that its miss is about; `origins` are those of each answer, in the order of the cases.

    There are none where the origins are not those of the answer that was judged.
    """
    blamed = verdict.blamed
    if blamed is None:
        return verdict
    cases = (case for case in (blamed.case, *blamed.others) if case < len(origins))
    lines = tuple(dict.fromkeys(one.line for case in cases for one in _shown(blamed, origins[case]) if one.line))
    if blamed.why == "all":
        lines = tuple(line for line in lines if not line.backward)
        return replace(verdict, lines=lines) if len(lines) <= MOST_LINES_TOLD else verdict
    return replace(verdict, lines=lines[:MOST_LINES_TOLD])


def _shown(blamed: Blamed, origins: Sequence[Origin]) -> Sequence[Origin]:
    """Those of an answer's origins that a miss is about; none where they are not of the answer that was judged."""
    collectives = [one for one in origins if not one.divides]
    if tuple(one.kind for one in collectives) != blamed.kinds:
        return ()
    if not blamed.numbers:
        return [one for one in origins if one.divides]
    return [collectives[number] for number in blamed.numbers if number < len(collectives)]


@dataclass(frozen=True)
class Outcome:
    """What one check of one exercise came to: the only record that leaves a run.

    `tried`: whether this check was made at all; none is made after one that was missed. `open`: there is no answer yet.
    If it was not passed, `findings` say why: first what is wrong, then what explains it; `mistake` is the name of the
    declared mistake that behaves the same, or "".
    """

    exercise: str
    check: str
    points: float
    worth: float
    passed: bool
    tried: bool = True
    mistake: str = ""
    findings: tuple[Finding, ...] = ()
    open: bool = False

    def is_as(self, other: Outcome) -> bool:
        """Whether two rows of a table are wrong for the same reason."""
        if self.mistake or other.mistake:
            return self.mistake == other.mistake
        return len(self.findings) > 1 and self.findings[1:] == other.findings[1:]

    @classmethod
    def earned(cls, exercise: str, check: str, worth: float) -> Outcome:
        return cls(exercise, check, worth, worth, passed=True)

    @classmethod
    def missed(
        cls, exercise: str, check: str, worth: float, findings: tuple[Finding, ...], mistake: str = ""
    ) -> Outcome:
        return cls(exercise, check, 0.0, worth, passed=False, mistake=mistake, findings=findings)

    @classmethod
    def left_open(cls, exercise: str, check: str, worth: float, findings: tuple[Finding, ...]) -> Outcome:
        return cls(exercise, check, 0.0, worth, passed=False, tried=False, findings=findings, open=True)

    @classmethod
    def untried(cls, exercise: str, check: str, worth: float, first: str) -> Outcome:
        """`first` is the earlier check that was missed."""
        return cls(exercise, check, 0.0, worth, passed=False, tried=False, findings=(NotChecked(first),))
