"""How a long run shows how far it is, and how it is stopped."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


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
