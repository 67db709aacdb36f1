"""The ways out to an instructor: a terminal, and a table for a spreadsheet.

What a stranger wrote (names, files, errors) is made legible here, on its way out, so that no caller can forget it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from grader.arrays.words import legible

FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # how a formula begins, in some spreadsheet
# What a spreadsheet that parts cells at semicolons or tabs, as in much of Europe, takes for the beginning of a cell.
PARTED = re.compile(r"""([;\t\n][\s"';]*)([=+@＝＋－＠-]?)""")


def terminal(stderr: bool = False) -> Console:
    """A console on which text steers nothing: what is printed has colours and lines, which are ours, and no links."""
    console = Console(stderr=stderr)
    console.push_render_hook(_Legible())
    return console


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV. A text that a spreadsheet would take for a formula has an apostrophe before it."""
    csv.writer(text := io.StringIO()).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, int | float):
        return value
    text = PARTED.sub(lambda begun: f"{begun[1]}'{begun[2]}" if begun[2] else begun[0], legible(value))
    return f"'{text}" if text.startswith(FORMULA) else text


class _Legible(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Legibly(one) for one in renderables]


class _Legibly:
    """Something to print, with the text made legible that comes out in the end."""

    def __init__(self, content: ConsoleRenderable):
        self.content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in console.render(self.content, options):
            style = part.style and part.style.update_link(None)
            yield part if part.control else Segment(legible(part.text), style)
