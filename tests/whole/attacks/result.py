"""What came of an attack, and what an attacker got by it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

from grader.replays.page import DATA

FULL = {"block_matmul": 2.0, "case3": 4.0}
HIDDEN = 1500 << 20  # bytes of memory more than before: a run may have less


@dataclass(frozen=True)
class Result:
    """What came of a hand-in: all that an attacker could have got, or broken.

    `points` is empty when there are no marks. `canaries` are the baits whose text came out; `reached` the doors
    outside at which somebody knocked; `left` the files and processes that are there afterwards. `memory`,
    `processes` and `threads` are what the whole lab had at most, more than before; `size` is the graded notebook's.
    `later` are the points of an honest hand-in graded next, None when none was. `page` is the feedback page, `table`
    the grades.csv, and `copied` what else of the hand-in's folder was taken along.
    """

    points: dict[str, float] = field(default_factory=dict)
    raised: str = ""
    words: str = ""
    text: str = ""
    cards: str = ""
    size: int = 0
    seconds: float = 0.0
    canaries: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    memory: int = 0
    processes: int = 0
    threads: int = 0
    later: dict[str, float] | None = None
    page: str = ""
    table: str = ""
    copied: tuple[str, ...] = ()


Judgement = Callable[[Result], str]


def points_over(most: float) -> Judgement:
    def judgement(result: Result) -> str:
        wrong = [f"{name}: {points}" for name, points in result.points.items() if not 0 <= points <= FULL[name]]
        total = sum(result.points.values())
        return (
            f"marks out of range: {wrong}"
            if wrong
            else f"{total - most:g} points more than are due"
            if total > most
            else ""
        )

    return judgement


undeserved = points_over(0)


def leaked(result: Result) -> str:
    return f"read: {', '.join(result.canaries)}" if result.canaries else ""


def reached(result: Result) -> str:
    return f"reached: {', '.join(result.reached)}" if result.reached else ""


def left(result: Result) -> str:
    return f"left behind: {', '.join(result.left[:3])}" if result.left else ""


def broke(result: Result) -> str:
    return result.raised and f"the grader broke: {result.raised}"


def lost(result: Result) -> str:
    """What was earned before the attack is gone (its `place` is the middle of a solved hand-in)."""
    return "" if result.points.get("block_matmul") == FULL["block_matmul"] else "marks earned before it are gone"


def spoiled(result: Result) -> str:
    changed = result.later is not None and result.later != FULL
    return f"a later honest hand-in got {result.later}" if changed else ""


def said(word: str) -> Judgement:
    return lambda result: f"it could say: {word}" if word in result.text else ""


def wrote(megabytes: int) -> Judgement:
    """It could store more than this (an attack prints `wrote N MB` as it goes)."""

    def judgement(result: Result) -> str:
        most = max(map(int, re.findall(r"wrote (\d+) MB", result.text)), default=0)
        return f"{most} MB stored" if most > megabytes else ""

    return judgement


def made(count: int) -> Judgement:
    """It could make more of something than this (an attack prints `made N` as it goes)."""

    def judgement(result: Result) -> str:
        most = max(map(int, re.findall(r"made (\d+)", result.text)), default=0)
        return f"{most} of them" if most > count else ""

    return judgement


def swelled(result: Result) -> str:
    """Eight MiB is eight times what a notebook may show."""
    return f"a notebook of {result.size >> 20} MB" if result.size > 8 << 20 else ""


def grew(result: Result) -> str:
    return f"{result.memory >> 20} MB of memory" if result.memory > HIDDEN else ""


def multiplied(result: Result) -> str:
    return (
        f"{result.processes} processes, {result.threads} threads"
        if (result.processes > 100 or result.threads > 2000)
        else ""
    )


def unescaped(result: Result) -> str:
    """A replay's facts are data, which no browser runs."""
    return "a script in a card" if "<script" in result.cards.replace(DATA, "").lower() else ""


class _Links(HTMLParser):
    """Where a page leads, as a browser reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [(name, re.sub(r"[\x00-\x20]", "", value or "").lower()) for name, value in attrs]


def _links(page: str) -> Iterator[tuple[str, str]]:
    parser = _Links()
    parser.feed(page)
    yield from parser.links


def scripted(result: Result) -> str:
    """A click on the page runs a script, or opens a page made of the link itself."""
    bad = [to for _, to in _links(result.page) if re.match(r"(javascript|vbscript|data:(?!image/(png|jpeg|gif)))", to)]
    return f"a script in a link: {bad[0][:40]}" if bad else ""


def calling(result: Result) -> str:
    """The page loads something from elsewhere as it is opened: an address with `mallory` in it."""
    out = [to for name, to in _links(result.page) if name in ("src", "srcset", "poster") and "mallory" in to[:99]]
    return f"it calls {out[0][:40]}" if out else ""


def marked_up(result: Result) -> str:
    """HTML of the student's own is on the page, with the name that attacks give it."""
    return "HTML of the student's" if re.search(r"<[^<>]*\bid=.?mallory", result.page) else ""


def calculating(result: Result) -> str:
    """A cell of grades.csv is a formula for a spreadsheet."""
    cells = [cell for row in csv.reader(result.table.splitlines()) for cell in row]
    bad = [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell]
    return f"a formula: {bad[0][:40]}" if bad else ""


def copied(result: Result) -> str:
    return f"taken along: {', '.join(result.copied[:3])}" if result.copied else ""


def controlling(result: Result) -> str:
    return "it writes to the terminal of who grades" if "\x1b" in result.words + result.table else ""


def either(*judgements: Judgement) -> Judgement:
    return lambda result: next(filter(None, (judge(result) for judge in judgements)), "")


def blamed(result: Result) -> str:
    return "the grader blames itself, and alarms who grades" if "The grader itself failed" in result.words else ""


harm = either(points_over(sum(FULL.values())), leaked, reached, left, broke, spoiled, grew, multiplied, swelled)
crashed = either(broke, lost, spoiled, grew, blamed)
