"""The recorded answers: `answers/NN_topic.jsonl`, one row for each distinct behavior.

Their authors had read the notebooks, and nothing of the grader. The first line of a file is the lesson's setting: the
imports and helper functions that several of its answers use. Every other line is a row:

    exercise, name  which exercise it answers, and a name that no other answer to it has
    right           whether it is a right answer
    split           "tuning" or "held_out": a search is written by looking at the first half, and measured on the other
    check, mistake  the first check it misses, and the known mistake it makes; "" for none
    points          for each check, in the notebook and in grading; `null` if it is never judged there
    source          a cell that defines the function, or the table as an expression, in which `right` is the first
                    answer to the same exercise
    found           the findings about that check, the most specific first: their kinds, and the fields of the first if
                    they are short

A new row needs no more than `exercise`, `name`, `right`, and `source`: `recorded_all.py LESSON --write marks` adds the
rest.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from searches import measured

from grader.exercises.verdict import Verdict
from grader.findings.finding import FINDING_KINDS, Finding, Rank, finding_to_json

FOLDER = Path(__file__).with_name("answers")
LESSONS = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
HALVES = ("tuning", "held_out")
DIGITS = 4  # of the points that are recorded
SHORT = 150  # characters of a finding that is recorded with its fields
FASTER = 10  # times as fast as it is, in `hurried`

T = TypeVar("T")
Points = Mapping[str, Sequence[float] | None]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One recorded answer, and how it was judged."""

    exercise: str
    name: str
    right: bool
    split: str = ""
    check: str = ""
    mistake: str = ""
    points: Points = field(default_factory=dict)
    source: str
    found: Sequence[Mapping[str, Any]] = ()
    lesson: str = ""


@dataclass(frozen=True)
class Replayed:
    """How an answer is judged today. `searches` are the processor seconds that each search took, and `by` the search
    that made each finding, if they were measured."""

    points: Points
    check: str
    mistake: str
    found: Sequence[Mapping[str, Any]] = ()
    seconds: float = 0.0
    searches: Mapping[str, float] = field(default_factory=dict)
    by: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        return self.points.get("grading") is not None and not self.check


@functools.cache
def _lines(lesson: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{lesson}.jsonl").read_text().splitlines()]


def setting(lesson: str) -> str:
    """The imports and helper functions that the answers of a lesson share."""
    return _lines(lesson)[0]["setting"]


@functools.cache
def rows(lesson: str) -> list[Row]:
    """The recorded answers of a lesson, in the order of its exercises."""
    return [Row(**line, lesson=lesson) for line in _lines(lesson)[1:]]


def find_row(exercise: str, name: str) -> Row:
    """The recorded answer of this name to an exercise."""
    return next(r for lesson in LESSONS for r in rows(lesson) if (r.exercise, r.name) == (exercise, name))


def write(lesson: str, changed: Iterable[Row]) -> None:
    """Write the rows of a lesson."""
    lines: list[dict[str, Any]] = [{"setting": setting(lesson)}]
    for row in changed:
        line = asdict(row)
        del line["lesson"]
        if not row.found:
            del line["found"]
        lines.append(line)
    (FOLDER / f"{lesson}.jsonl").write_text("".join(f"{_text(line)}\n" for line in lines))


def _text(line: Mapping[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def kept(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """What is recorded of findings: that a known mistake gives this is recorded anyway, differences are long, and an
    author's words may change."""
    kinds: list[Mapping[str, Any]] = [{"is": one["is"]} for one in found]
    own = [one for one in found[:1] if FINDING_KINDS[one["is"]].rank not in (Rank.BARE, Rank.KNOWN)]
    if own and own[0]["is"] != "AuthorSays" and len(_text(own[0])) <= SHORT:
        kinds[0] = found[0]
    return kinds


def is_marked_alike(row: Row, today: Replayed) -> bool:
    """Whether an answer's marks are the recorded ones."""
    return (row.points, row.check, row.mistake) == (today.points, today.check, today.mistake)


def spread(every: Sequence[T], number: int) -> Sequence[T]:
    """About this many of them, evenly spread."""
    return every[:: max(1, len(every) // number)]


def split_of(row: Row, mistake: str) -> str:
    """The half that a new row belongs to: that of other answers with the same known mistake, else one by chance."""
    alike = (one for one in rows(row.lesson) if mistake and (one.exercise, one.mistake) == (row.exercise, mistake))
    digest = hashlib.sha256(f"{row.exercise} {mistake or row.name}".encode()).digest()
    return next((one.split for one in alike if one.split), HALVES[digest[0] % 2])


def answer(row: Row) -> Any:
    """What a student who wrote this has: a function whose source can be found, or a table."""
    from answering import define  # not above: where there is no nbformat, rows can still be read

    space: dict[str, Any] = {"__name__": "__main__"}
    define(setting(row.lesson), space)
    if row.source.startswith("{"):
        if "**right" in row.source:
            space["right"] = answer(next(one for one in rows(row.lesson) if one.exercise == row.exercise))
        return eval(row.source, space)
    define(row.source, space)
    return space[row.exercise]


def replay(row: Row, measure: bool = False) -> Replayed:
    """Judge an answer: with the notebook's cases, and if it passes those, with the cases of grading."""
    from answering import verdict

    from grader.lessons import find

    exercise, given, start = find(row.exercise), answer(row), _seconds()
    with measured() if measure else contextlib.nullcontext() as log:
        notebook = verdict(exercise, given, seed=0)
        grading = verdict(exercise, given, thorough=True) if notebook.passed else None
    seconds = _seconds() - start
    points = {"notebook": _points(notebook), "grading": grading and _points(grading)}
    last = grading or notebook
    findings = findings_of(last)
    return Replayed(
        points,
        last.failure.check if last.failure else "",
        last.mistake,
        [finding_to_json(one) for one in findings],
        seconds,
        dict(log.seconds) if log else {},
        [log.search_of.get(one, "") for one in findings] if log else [],
    )


def hurried(row: Row) -> Replayed:
    """The same where every clock goes faster."""
    with contextlib.ExitStack() as clocks:
        for name in ("process_time", "monotonic", "perf_counter", "time"):
            clocks.enter_context(mock.patch.object(time, name, _faster(getattr(time, name))))
        return replay(row)


def _faster(clock: Callable[[], float]) -> Callable[[], float]:
    start = clock()
    return lambda: start + FASTER * (clock() - start)


def in_both(row: Row) -> tuple[Sequence[Finding], Sequence[Finding]]:
    """What is found of the first case of the same draw that fails, in the notebook and in grading; nothing if that is
    another case."""
    from answering import verdict

    from grader.lessons import find

    exercise, given = find(row.exercise), answer(row)
    notebook, grading = (verdict(exercise, given, seed=0, thorough=thorough) for thorough in (False, True))
    if (notebook.failing, notebook.where) != (grading.failing, grading.where):
        return [], []
    return findings_of(notebook), findings_of(grading)


def _seconds() -> float:
    """Processor seconds of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def _points(verdict: Verdict) -> list[float]:
    return [round(outcome.points, DIGITS) for outcome in verdict.outcomes]


def findings_of(verdict: Verdict) -> list[Finding]:
    """The findings about the first check that was missed, the most specific first."""
    return sorted(verdict.failure.findings if verdict.failure else (), key=lambda one: -one.rank)
