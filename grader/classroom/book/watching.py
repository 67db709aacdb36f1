"""The page of programs to watch: its text lies in `book/watch.md`, where a comment stands for each replay."""

from __future__ import annotations

import re

from grader.arrays.devices import eight_devices
from grader.classroom.book.programs import WATCHED
from grader.replays.page import PLAYER

PLACE = re.compile(r"<!-- replay: (\w+) -->")


def with_replays(text: str) -> str:
    """The page's Markdown with its replays, and behind them the one script that draws them all."""
    eight_devices()
    filled = PLACE.sub(lambda found: _raw(WATCHED[found[1]]().as_data()), text)
    return f"{filled}\n{_raw(f'<script>{PLAYER}</script>')}\n"


def _raw(html: str) -> str:
    return f"``````{{raw}} html\n{html}\n``````"
