"""What the judge says of one answer, and what it says of one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from grader.arrays.blocks import Blocks
from grader.arrays.ratios import Ratio
from grader.arrays.words import enumeration
from grader.programs.origins import Line, Origin
from grader.programs.repairs import Repair

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

    `outcomes` has one record per check. `where` describes the case in which a check was missed;
    `expected` and `found` say, where that helps, what each device should hold in that case and what it does hold;
    `ratios` how each array of the result compares with the expected one, where there are several.
    `score` holds a right program against the compiler's, where the exercise asks for that; `orders` are those of a
    pipeline's devices, where the answer has some. `repair` is the one change that makes a wrong program right, where
    one was looked for and found.
    `blamed` is what the miss is about. Where in the student's cell that was written, `lines`, is no part of what is
    judged: equal answers have equal verdicts, and their lines are filled in by `with_lines`.
    """

    exercise: str
    outcomes: tuple[Outcome, ...]
    where: str = ""
    expected: Blocks | None = None
    found: Blocks | None = None
    ratios: tuple[Ratio, ...] = ()
    score: Score | None = None
    repair: Repair | None = None
    orders: tuple[tuple[str, ...], ...] = ()
    blamed: Blamed | None = None
    lines: tuple[Line, ...] = ()

    @property
    def points(self) -> float:
        return round(sum(o.points for o in self.outcomes), 2)

    @property
    def worth(self) -> float:
        return round(sum(o.worth for o in self.outcomes), 2)

    @property
    def failure(self) -> Outcome | None:
        """The first check that was missed; of what is open only where nothing else was missed."""
        return min((o for o in self.outcomes if not o.passed), key=lambda o: o.open, default=None)

    @property
    def passed(self) -> bool:
        return self.failure is None

    @property
    def state(self) -> str:
        """It in a word: right, partly, wrong or open."""
        if self.points >= self.worth:
            return "right"
        if self.points > 0:
            return "partly"
        return "open" if self.failure and self.failure.open else "wrong"

    @property
    def mistake(self) -> str:
        return self.failure.mistake if self.failure else ""

    @property
    def words(self) -> str:
        return self.failure.words if self.failure else ""

    @property
    def told(self) -> str:
        """What a card says: why the first check was missed; where every one is tried, as in a table, why the first few
        were, each for another reason, and in one line which others: first those that are wrong for the same."""
        missed, told = _missed(self.outcomes), told_rows(self.outcomes)
        if len(missed) <= MOST_ROWS_TOLD:
            return "\n\n".join(o.words for o in missed) or self.words
        rest = {o.check: next((one.check for one in told if o.is_as(one)), "") for o in missed if o not in told}
        groups = (
            _also_wrong([row for row in rest if rest[row] == check], check) for check in [o.check for o in told] + [""]
        )
        count = f"{len(missed)} of {len(self.outcomes)} rows are wrong."
        return "\n\n".join([count, *(o.words for o in told), " ".join(filter(None, groups))])


def _missed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [o for o in outcomes if o.tried and not o.passed]


def told_rows(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The rows of which it is told why they are wrong: few, or the first few that are wrong for different reasons."""
    missed = _missed(outcomes)
    if len(missed) <= MOST_ROWS_TOLD:
        return missed
    told: list[Outcome] = []
    for outcome in missed:
        if len(told) < MOST_ROWS_TOLD and not any(outcome.is_as(one) for one in told):
            told.append(outcome)
    return told


def _also_wrong(rows: Sequence[str], alike: str) -> str:
    """Which rows are wrong besides, where there are some: for the reason of a row that is told, or for their own."""
    if not rows:
        return ""
    named = enumeration([f"“{row}”" for row in rows])
    return f"The same as in “{alike}”: {named}." if alike else f"Wrong, too: {named}."


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
    Where it was not passed, `words` say why, and `mistake` is the name of the mistake that behaves the same, or "" when
    none does.
    """

    exercise: str
    check: str
    points: float
    worth: float
    passed: bool
    tried: bool = True
    mistake: str = ""
    words: str = ""
    open: bool = False

    @property
    def reason(self) -> str:
        """Why a row of a table is wrong, whatever it is and whatever stands there: the mistake, or else the words."""
        return self.mistake or self.words.removeprefix(f"{self.check}: ").partition(". ")[2]

    def is_as(self, other: Outcome) -> bool:
        """Whether two rows of a table are wrong for the same known reason."""
        return bool(self.reason) and self.reason == other.reason

    @classmethod
    def earned(cls, exercise: str, check: str, worth: float) -> Outcome:
        return cls(exercise, check, worth, worth, passed=True)

    @classmethod
    def missed(cls, exercise: str, check: str, worth: float, words: str, mistake: str = "") -> Outcome:
        return cls(exercise, check, 0.0, worth, passed=False, mistake=mistake, words=words)

    @classmethod
    def left_open(cls, exercise: str, check: str, worth: float, words: str) -> Outcome:
        return cls(exercise, check, 0.0, worth, passed=False, tried=False, words=words, open=True)

    @classmethod
    def untried(cls, exercise: str, check: str, worth: float, first: str) -> Outcome:
        """`first` is the earlier check that was missed."""
        return cls(exercise, check, 0.0, worth, passed=False, tried=False, words=f"Not tried: “{first}” comes first.")
