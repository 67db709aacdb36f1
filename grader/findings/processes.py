"""What is wrong with a function that runs in several processes."""

from __future__ import annotations

from dataclasses import dataclass

from grader.findings.finding import Finding, Rank


@dataclass(frozen=True)
class DidNotEnd(Finding):
    """Some process failed, or all waited for one another, as the launch says. `again`: after they had been killed and
    started again."""

    message: str
    again: bool = False


@dataclass(frozen=True)
class NotKilled(Finding):
    """The run was to be killed at the line that it prints for a step, and printed none."""

    step: int


@dataclass(frozen=True)
class NoMain(Finding):
    """The answer is no function of a process."""


@dataclass(frozen=True)
class ProcessesSilent(Finding):
    """Fewer processes returned something than should have."""

    expected: int
    found: int


@dataclass(frozen=True)
class WrongInProcess(Finding):
    """What is wrong with the value that a process returned. `parts` are the wrong parts of a tuple: what the author
    calls each, what is expected, and what was found."""

    process: int
    what: Finding | None
    parts: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class ProcessesAgree(Finding, rank=Rank.SOME):
    """All processes have the same wrong value."""


EXAMPLES = (
    DidNotEnd("Process 0 failed first: it raised ValueError: 3 (in `raise ValueError(3)`)."),
    DidNotEnd("They did not come to an end: process 1 was ended.", again=True),
    NotKilled(12),
    NoMain(),
    ProcessesSilent(4, 3),
    WrongInProcess(1, None, (("the number of all devices", "8", "2"),)),
    ProcessesAgree(),
)
