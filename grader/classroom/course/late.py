"""When a lesson is due for a student, and what is taken off a mark that is late: course.toml, told to nbgrader."""

from __future__ import annotations

import math
import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.utils import parse_utc

from grader.classroom.course.plan import PERIODS, Plan, in_utc, plan_of

TIME = "timestamp.txt"  # where nbgrader's own exchange says when something was handed in
LONGEST_TIME = 128  # bytes of it
DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?( [A-Z]{1,5}| [+-]\d{4})?\s*")
DAY = PERIODS["day"]


@dataclass(frozen=True)
class Terms:
    """What applies to one student in one lesson: when it is due, whether that is an extension, how many free days it
    took and how many there are in the course, and who handed in together."""

    due: datetime | None = None
    extended: bool = False
    free_days: int = 0
    of_days: int = 0
    group: tuple[str, ...] = ()

    @property
    def dates(self) -> tuple[str, ...]:
        """Sentences that name nobody; none where nothing is special."""
        found = (
            f"Extended to {self.due:%Y-%m-%d %H:%M %Z}." if self.due and self.extended else "",
            f"{self.free_days} of {self.of_days} free days used here." if self.free_days else "",
        )
        return tuple(filter(None, found))

    @property
    def notes(self) -> tuple[str, ...]:
        """All sentences, for the student and the instructor."""
        return (*self.dates, f"Handed in by a group: {', '.join(self.group)}.") if self.group else self.dates


def terms_of(root: Path, plan: Plan, student: str, lesson: str) -> Terms:
    due, group = plan.due(student, lesson), plan.members(student)
    return Terms(
        due,
        due != plan.of(lesson).due,
        _free_days(root, plan, student).get(lesson, 0),
        plan.free_days,
        group if len(group) > 1 else (),
    )


def _free_days(root: Path, plan: Plan, student: str) -> dict[str, int]:
    """How many of a student's free days each lesson takes: the one that is due first takes first."""
    dates = {name: due for name in plan.lessons if (due := plan.due(student, name))}
    left, taken = plan.free_days, {}
    for lesson in sorted(dates, key=lambda name: dates[name]) if left else ():
        came = handed_in_at(root / "submitted" / student / lesson)
        late = (came - in_utc(dates[lesson])).total_seconds() if came else 0
        taken[lesson] = min(left, max(0, math.ceil(late / DAY)))
        left -= taken[lesson]
    return taken


def handed_in_at(folder: Path) -> datetime | None:
    """When something was handed in, in UTC, if a small file beside it says so."""
    file = folder / TIME
    try:
        status = file.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LONGEST_TIME:
            return None  # reading a pipe would wait
        date = file.read_text()
        return parse_utc(date.strip()) if DATE.fullmatch(date) else None  # nbgrader opens a time zone's name as a file
    except (OSError, ValueError, AttributeError):  # AttributeError: nbgrader's, for the 30th of February
        return None


class LatePenalty(LateSubmissionPlugin):
    """nbgrader's rule for late hand-ins, as course.toml has it; nbgrader's own where that says nothing.

    nbgrader counts from the date of the whole class: an extension and free days are taken off that.
    """

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        root = Path(self.config.CourseDirectory.get("root") or ".")
        plan, lesson = plan_of(root), str(getattr(self.parent, "assignment_id", ""))
        terms, due = terms_of(root, plan, student_id, lesson), plan.of(lesson).due
        granted = (terms.due - due if terms.due and due else timedelta()) + timedelta(days=terms.free_days)
        if (seconds := total_seconds_late - granted.total_seconds()) <= 0:
            return 0.0
        if plan.late is None:
            return super().late_submission_penalty(student_id, score, seconds)
        return plan.late.penalty(score, seconds)


def enter_due_dates(book: Gradebook, plan: Plan) -> None:
    """Enter when each lesson is due into nbgrader's gradebook. Where there is no plan, what a person entered stays."""
    if plan.own:
        for name, lesson in plan.lessons.items():
            book.update_or_create_assignment(name, duedate=in_utc(lesson.due) if lesson.due else None)


def lateness(plan: Plan, terms: Terms, lesson: str, folder: Path) -> list[str]:
    """All that decides what a hand-in loses for being late: when it came, when it was due, and the rule.

    Of the time only what can be read counts; without one, nothing is late.
    """
    if (came := handed_in_at(folder)) is None:
        return [*terms.notes]
    return [str(came), str(plan.of(lesson).due), str(plan.late), *terms.notes]


def is_due(due: datetime | None) -> bool:
    """Whether a date has passed; what has none counts from the start."""
    return due is None or due <= datetime.now(UTC)
