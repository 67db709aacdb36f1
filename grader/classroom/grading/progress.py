"""How a long run shows how far it is, and how it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

MINUTE = 60.0  # seconds between two lines where there is no terminal


class Stopped(Exception):
    """Somebody stopped the run; the text says how far it came."""


def progress_bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def a_minute(speed: float | None) -> str:
    return f"{60 * speed:.0f} a minute" if speed else ""


@dataclass
class EachMinute:
    """Says how far a run is where no bar can be drawn: a line a minute, whoever reads it (a log, `tee`, `cron`)."""

    console: Console
    what: str
    count: int
    clock: Callable[[], float] = time.monotonic
    done: int = 0

    def __post_init__(self) -> None:
        self.begun = self.said = self.clock()

    def step(self) -> None:
        """One more is done."""
        self.done += 1
        now = self.clock()
        if not self.console.is_terminal and now - self.said >= MINUTE:
            self.said = now
            speed = a_minute(self.done / (now - self.begun))
            self.console.print(f"{self.what}: {self.done} of {self.count}, {speed}", highlight=False)
