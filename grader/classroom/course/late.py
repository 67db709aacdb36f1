"""What is taken off a mark that is late, and when a lesson is due: course.toml, told to nbgrader."""

from __future__ import annotations

from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.plugins import LateSubmissionPlugin

from grader.classroom.course.plan import Plan, in_utc, plan_of

TIME = "timestamp.txt"  # where nbgrader's own exchange says when something was handed in
LONGEST_TIME = 128  # bytes of it


class LatePenalty(LateSubmissionPlugin):
    """nbgrader's rule for late hand-ins, as course.toml has it; nbgrader's own where that says nothing."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        late = plan_of(Path(self.config.CourseDirectory.get("root") or ".")).late
        if late is None:
            return super().late_submission_penalty(student_id, score, total_seconds_late)
        return late.penalty(score, total_seconds_late)


def enter_due_dates(book: Gradebook, plan: Plan) -> None:
    """Enter when each lesson is due into nbgrader's gradebook. Where there is no plan, what a person entered stays."""
    if plan.own:
        for name, lesson in plan.lessons.items():
            book.update_or_create_assignment(name, duedate=in_utc(lesson.due) if lesson.due else None)


def lateness(root: Path, lesson: str, folder: Path) -> list[str]:
    """All that decides how late a hand-in is: when it came, when it was due, and the rule. Nothing without a time."""
    file = folder / TIME
    if not file.is_file() or file.is_symlink() or file.stat().st_size > LONGEST_TIME:
        return []
    plan = plan_of(root)
    return [file.read_bytes().decode("latin-1"), str(plan.of(lesson).due), str(plan.late)]
