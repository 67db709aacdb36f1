"""What an instructor takes of the course: `course.toml`, beside nbgrader_config.py. Without that file it is everything.

name = "Parallel programming"              # on the start page
help = "Ask in our forum: https://…"       # where to ask, on the start page
stretch = "bonus"                          # "counted" (as it is without a word), "bonus", or "left out"
late = "10 % a day, at most 50 %"          # taken off what is handed in after it is due
free_days = 3                              # days late that each student may use up in the whole course

[lessons.07_matmul]                        # a table for each lesson that is taken; without any, all are
due = 2027-03-01T23:59:00+01:00
weight = 2                                 # of the lesson in the whole course; 1 without a word
exercises = ["block_matmul", "case3"]      # without a word, all of the lesson
stretch = "counted"                        # for this lesson
points = { case3 = 6 }                     # in place of the course's own

[extensions]                               # by the names of the folders in submitted/
ada = { 07_matmul = 2027-03-05T23:59:00+01:00 }

[groups]                                   # one hand-in for several students, the latest of theirs
team1 = ["ben", "cleo"]
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from grader.arrays.words import one_line
from grader.classroom.course.headings import ExerciseHeading, exercise_heading
from grader.classroom.store import Unavailable

PLAN = "course.toml"
Stretch = Literal["counted", "bonus", "left out"]
LATE = re.compile(r"(\d+(?:\.\d+)?) ?% an? (day|hour)(?:, at most (\d+(?:\.\d+)?) ?%)?")
PERIODS = {"day": 86_400, "hour": 3_600}
OF_COURSE = ("name", "help", "stretch", "late", "free_days", "lessons", "extensions", "groups")
OF_LESSON = ("due", "weight", "exercises", "stretch", "points")


@dataclass(frozen=True)
class Late:
    """What is taken off a mark that is late: a share of it for each period that has begun, up to a share in all."""

    share: float
    seconds: int
    most: float = 1.0

    def penalty(self, score: float, seconds_late: float) -> float:
        """The points that are taken off `score`."""
        periods = math.ceil(seconds_late / self.seconds)
        return round(score * min(self.share * periods, self.most), 2)

    def __str__(self) -> str:
        period = next(name for name, seconds in PERIODS.items() if seconds == self.seconds)
        most = f", at most {100 * self.most:g} %" if self.most < 1 else ""
        return f"{100 * self.share:g} % {'an' if period == 'hour' else 'a'} {period}{most}"


@dataclass(frozen=True)
class LessonPlan:
    """What is taken of one lesson; `left_out` are the others of its exercises, `bonus` those that add points alone."""

    due: datetime | None = None
    weight: float = 1.0
    left_out: frozenset[str] = frozenset()
    bonus: frozenset[str] = frozenset()
    points: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The course as it is taken: its lessons in order, and the `others`; it is somebody's `own` with a course.toml.

    `extensions` are due dates by student and lesson; `groups` hold the students that hand in together, by name.
    """

    name: str
    lessons: Mapping[str, LessonPlan]
    others: frozenset[str] = frozenset()
    late: Late | None = None
    own: bool = False
    free_days: int = 0
    extensions: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    help: str = ""

    def members(self, student: str) -> tuple[str, ...]:
        """Those who hand in with a student, who is one of them."""
        return next((members for members in self.groups.values() if student in members), (student,))

    def due(self, student: str, lesson: str) -> datetime | None:
        """When a lesson is due for a student: the latest date that anybody of the group has."""
        dates = [self.extensions.get(one, {}).get(lesson) for one in self.members(student)]
        return max(filter(None, [self.of(lesson).due, *dates]), default=None)

    def of(self, lesson: str) -> LessonPlan:
        return self.lessons.get(lesson, LessonPlan())

    @property
    def left_out(self) -> frozenset[str]:
        """All exercises that lessons have and this course has not."""
        return frozenset().union(*(lesson.left_out for lesson in self.lessons.values()))


def plan_of(root: Path) -> Plan:
    """The plan of the course in this folder. Raises Unavailable, with the line of course.toml that is wrong."""
    sources = {p.stem: p for p in sorted((root / "solutions").glob("*/*.md")) if p.stem == p.parent.name}
    file = root / PLAN
    if not file.exists():
        return Plan("", dict.fromkeys(sources, LessonPlan()))
    try:
        text = file.read_text()
        settings = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unavailable(f"{PLAN} is no TOML: {error}.") from error
    return _Reader(text).course(settings, sources)


def exercises_of(source: Path) -> dict[str, bool]:
    """The exercises of a lesson in order, from its source; each with whether it is of the core."""
    found: dict[str, bool] = {}
    heading: ExerciseHeading | None = None
    for line in source.read_text().splitlines():
        if line.startswith("##"):
            heading = exercise_heading(line)
        if answer := re.fullmatch(r":answer: (\w+)", line):
            found[answer[1]] = heading is None or heading.is_core
    return found


class _Reader:
    """Reads the settings; what is wrong is said with its line and its key."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()

    def course(self, settings: Mapping[str, Any], sources: Mapping[str, Path]) -> Plan:
        self._known(settings, OF_COURSE, ())
        tables = self._kind(settings, "lessons", dict, "a table for each lesson, [lessons.NN_topic]", (), {})
        self._known(tables, sources, ("lessons",))
        stretch = self._stretch(settings, (), "counted")
        taken = [name for name in sources if name in tables or not tables]
        lessons = {name: self._lesson(name, tables.get(name, {}), sources[name], stretch) for name in taken}
        return Plan(
            name=self._kind(settings, "name", str, "a text", (), ""),
            lessons=lessons,
            others=frozenset(sources) - frozenset(taken),
            late=self._late(settings),
            own=True,
            help=self._kind(settings, "help", str, "a text", (), ""),
            free_days=self._free_days(settings),
            extensions=self._extensions(settings, lessons),
            groups=self._groups(settings),
        )

    def _lesson(self, name: str, table: Any, source: Path, stretch: Stretch) -> LessonPlan:
        where = ("lessons", name)
        if not isinstance(table, dict):
            self._wrong(where, "should be a table, such as [lessons.07_matmul]")
        self._known(table, OF_LESSON, where)
        all_of_it = exercises_of(source)
        listed = self._kind(table, "exercises", list, 'a list of names, such as ["case3"]', where, None)
        stretch = self._stretch(table, where, stretch)
        if listed is not None:
            self._known(listed, all_of_it, (*where, "exercises"))
            if not listed:
                self._wrong((*where, "exercises"), "is empty; leave out the lesson's table to leave out the lesson")
        left_out = (
            frozenset(all_of_it) - frozenset(listed)
            if listed is not None
            else frozenset(one for one, core in all_of_it.items() if not core and stretch == "left out")
        )
        taken = [one for one in all_of_it if one not in left_out]
        return LessonPlan(
            due=self._due(table, where),
            weight=self._number(table, "weight", where, 1.0, least=0.0),
            left_out=left_out,
            bonus=frozenset(one for one in taken if stretch == "bonus" and not all_of_it[one]),
            points=self._points(table, where, taken),
        )

    def _points(self, table: Mapping[str, Any], where: tuple[str, ...], taken: Collection[str]) -> dict[str, float]:
        points = self._kind(table, "points", dict, "a table, such as { case3 = 6 }", where, {})
        self._known(points, taken, (*where, "points"))
        return {name: self._number(points, name, (*where, "points"), 0.0, least=0.5) for name in points}

    def _stretch(self, table: Mapping[str, Any], where: tuple[str, ...], default: Stretch) -> Stretch:
        value = table.get("stretch", default)
        if value not in get_args(Stretch):
            choices = ", ".join(f'"{choice}"' for choice in get_args(Stretch))
            self._wrong((*where, "stretch"), f"is one of {choices}; it is {value!r}")
        return value  # type: ignore[no-any-return]  # one of those

    def _due(self, table: Mapping[str, Any], where: tuple[str, ...], name: str = "due") -> datetime | None:
        due = table.get(name)
        if due is None:
            return None
        if not isinstance(due, datetime) or due.tzinfo is None:
            self._wrong(
                (*where, name),
                "should be a date and a time with its distance from UTC, such as 2027-03-01T23:59:00+01:00 "
                f"(no quotes); it is {due!s}",
            )
        return due

    def _late(self, settings: Mapping[str, Any]) -> Late | None:
        words = self._kind(settings, "late", str, "a text", (), "")
        if not words:
            return None
        found = LATE.fullmatch(words)
        if found is None or not (share := float(found[1])) <= 100 or float(found[3] or 100) > 100:
            self._wrong(("late",), f'should read as "10 % a day" or "2 % an hour, at most 50 %"; it is {words!r}')
        return Late(share / 100, PERIODS[found[2]], float(found[3] or 100) / 100)

    def _free_days(self, settings: Mapping[str, Any]) -> int:
        if not (days := self._number(settings, "free_days", (), 0, least=0)).is_integer():
            self._wrong(("free_days",), f"should be a whole number of days; it is {days:g}")
        return int(days)

    def _extensions(
        self, settings: Mapping[str, Any], lessons: Mapping[str, LessonPlan]
    ) -> dict[str, dict[str, datetime]]:
        words = "a table for each student, such as ada = { 07_matmul = 2027-03-05T23:59:00+01:00 }"
        students = self._kind(settings, "extensions", dict, words, (), {})
        for student in students:
            where = ("extensions", student)
            self._known(self._kind(students, student, dict, words, where[:1], {}), lessons, where)
            if undated := [name for name in students[student] if lessons[name].due is None]:
                self._wrong((*where, undated[0]), f"extends nothing: give [lessons.{undated[0]}] a date `due` first")
        return {
            student: {name: due for name in table if (due := self._due(table, ("extensions", student), name))}
            for student, table in students.items()
        }

    def _groups(self, settings: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        groups = self._kind(settings, "groups", dict, 'a list of students for each group, team1 = ["ada"]', (), {})
        seen: dict[str, str] = {}
        for name, members in groups.items():
            if not isinstance(members, list) or not all(isinstance(one, str) for one in members):
                self._wrong(
                    ("groups", name), f'should be a list of students, such as ["ada", "ben"]; it is {members!r}'
                )
            for one in members:
                if seen.setdefault(one, name) != name:
                    self._wrong(("groups", name, one), f"is in the group {seen[one]} already; leave out one of the two")
        return {name: tuple(members) for name, members in groups.items()}

    def _number(
        self, table: Mapping[str, Any], name: str, where: tuple[str, ...], default: float, least: float
    ) -> float:
        value = table.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
            self._wrong((*where, name), f"should be a number, {least:g} or more; it is {value!r}")
        return float(value)

    def _kind(
        self, table: Mapping[str, Any], name: str, kind: type, words: str, where: tuple[str, ...], default: Any
    ) -> Any:
        if name in table and not isinstance(table[name], kind):
            self._wrong((*where, name), f"should be {words}; it is {table[name]!r}")
        return table.get(name, default)

    def _known(self, names: Iterable[Any], known: Iterable[str], where: tuple[str, ...]) -> None:
        known = list(known)
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4) or known
                self._wrong((*where, str(name)), f"is not known here. Is it one of these: {', '.join(near)}?")

    def _wrong(self, path: tuple[str, ...], words: str) -> NoReturn:
        number = self._line(path)
        place = f"{PLAN}, line {number}" if number else PLAN
        raise Unavailable(
            f"{place}: {one_line('.'.join(path))} {one_line(words, 500)}{'' if words.endswith('?') else '.'}"
        )

    def _line(self, path: tuple[str, ...]) -> int:
        """The line that names the last part of a path, or of the longest beginning of it that a line names; else 0."""
        at, found = 0, 0
        for part in path:
            name = re.compile(rf'(^|[\s\[.,{{"\']){re.escape(part)}($|[\s\].,}}="\'])')
            hits = (k for k in range(at, len(self.lines)) if name.search(self.lines[k].partition("#")[0]))
            if (hit := next(hits, None)) is not None:
                at, found = hit, hit + 1
        return found


def in_utc(due: datetime) -> datetime:
    """A time as nbgrader's gradebook keeps it: in UTC, and silent about it."""
    return due.astimezone(UTC).replace(tzinfo=None)
