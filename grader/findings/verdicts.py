"""Why there is no answer to judge, why one could not be judged, and where the rest of it is taught."""

from __future__ import annotations

from dataclasses import dataclass

from grader.findings.finding import Finding, Rank


@dataclass(frozen=True)
class NotChecked(Finding, rank=Rank.BARE):
    """A check is made only after the one before it is passed."""

    first: str


@dataclass(frozen=True)
class CannotCheck(Finding, rank=Rank.BARE):
    """There is no such exercise, or there are no eight devices, as the message of the error says."""

    message: str


@dataclass(frozen=True)
class GateClosed(Finding, rank=Rank.BARE):
    """An exercise builds on another one, which isn't correct yet."""

    before: str


@dataclass(frozen=True)
class NotReached(Finding, rank=Rank.BARE):
    """A notebook ended before this check; how it ended."""

    ending: str


@dataclass(frozen=True)
class GraderFailed(Finding, rank=Rank.BARE):
    """The grader itself failed on an answer."""

    error: str
    message: str


@dataclass(frozen=True)
class TooLong(Finding, rank=Rank.BARE):
    """A program was stopped after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Deadlocked(Finding, rank=Rank.BARE):
    """Running a program aborted its process: its devices wait for one another."""


@dataclass(frozen=True)
class Crashed(Finding, rank=Rank.BARE):
    """Running a program ended its process; what is known of how, if anything."""

    message: str = ""


@dataclass(frozen=True)
class Taught(Finding, rank=Rank.BARE):
    """The lessons that have the pieces of an answer."""

    lessons: tuple[str, ...]


EXAMPLES = (
    NotChecked("values"),
    CannotCheck("There is no exercise named 'case33'. Did you mean case3?"),
    GateClosed("assemble_model"),
    NotReached("Its notebook was stopped after 300 seconds."),
    GraderFailed("KeyError", "'x'"),
    TooLong(60.0),
    Deadlocked(),
    Crashed(),
    Crashed("The evaluator answered what it never answers: not a number"),
    Taught(("06", "07")),
)
