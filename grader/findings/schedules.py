"""What is wrong with the orders of a pipeline's devices, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from grader.findings.finding import Finding, Rank


@dataclass(frozen=True)
class NoTimetable(Finding):
    """What was returned is no list of orders, or never ends, as the simulation says."""

    message: str
    deadlock: bool = False


@dataclass(frozen=True)
class OtherPipeline(Finding):
    """The orders are for another number of devices, or for other microbatches."""

    devices: int
    found_devices: int
    microbatches: tuple[int, ...]
    found_microbatches: tuple[int, ...]


@dataclass(frozen=True)
class NoBackward(Finding):
    """There are forward passes only."""


@dataclass(frozen=True)
class TooManyHeld(Finding):
    """A device holds the activations of more microbatches than is allowed."""

    device: int
    expected: float
    found: float


@dataclass(frozen=True)
class TooLongTimetable(Finding):
    """The bubble is larger than that of the target."""

    target: str
    steps: int
    expected: float
    found: float


@dataclass(frozen=True)
class FirstBeyond(Finding, rank=Rank.CAUSE):
    """The forward pass that first exceeds what is allowed, after so many others, of which some were freed."""

    work: str
    forward: int
    freed: int


@dataclass(frozen=True)
class IdleSteps(Finding, rank=Rank.RELATION):
    """Idle steps of all devices before their first work, between their work, and after the last; those of the
    target; and the longest wait in between: the device, its work, the steps, and what it needs."""

    target: str
    expected: tuple[int, int, int]
    found: tuple[int, int, int]
    longest: tuple[int, str, int, str] | None = None


EXAMPLES = (
    NoTimetable("A timetable is a list with an order for each device."),
    NoTimetable("Deadlock: every device with work left is waiting.", deadlock=True),
    OtherPipeline(4, 2, (0, 1, 2, 3), (0, 2, 3)),
    NoBackward(),
    TooManyHeld(0, 4.0, 8.0),
    TooLongTimetable("1F1B", 27, 0.273, 0.5),
    FirstBeyond("F4@0", 4, 0),
    IdleSteps("1F1B", (6, 12, 6), (6, 30, 6), (1, "B0@1", 5, "B0@2")),
)
