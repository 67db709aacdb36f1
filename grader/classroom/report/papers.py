"""Graded hand-ins, read from where `grader grade` has left them: the gradebook, and `autograded/`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat
from nbgrader.api import MissingEntry, SubmittedAssignment

from grader.classroom.course.build import gradebook
from grader.classroom.course.late import Terms, terms_of
from grader.classroom.course.notebook import ANSWER, CHECK, grade_id
from grader.classroom.course.plan import plan_of
from grader.classroom.grading.digest import Digest, digests_in
from grader.classroom.grading.grade import MOVED, hand_ins_of
from grader.classroom.grading.record import HandIn


@dataclass(frozen=True)
class Paper:
    """One student's graded hand-in to a lesson: by exercise the points, what they are of, what the judge found, the
    student's own cell; `moved` holds points before and after, where the last change of a check moved them. `late`
    points are taken off in all; the exercises that are a `bonus` add points, and nothing to what there is to be had."""

    student: str
    points: Mapping[str, float]
    worth: Mapping[str, float]
    digests: Mapping[str, Digest]
    sources: Mapping[str, str] = field(default_factory=dict)
    moved: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    late: float = 0.0
    bonus: frozenset[str] = frozenset()
    terms: Terms = Terms()

    @property
    def share(self) -> float:
        """How much of the points that there are to be had, from 0; beyond 1 by a bonus."""
        most = sum(worth for name, worth in self.worth.items() if name not in self.bonus)
        return (sum(self.points.values()) - self.late) / (most or 1)


def papers_of(root: Path, names: Collection[str] = ()) -> dict[str, list[Paper]]:
    """The graded hand-ins of the lessons named, or of all, by lesson in order."""
    found: dict[str, list[Paper]] = {}
    moved, plan = moves(root), plan_of(root)
    with gradebook(root) as book:
        for hand_in in hand_ins_of(root):
            if (not names or hand_in.lesson in names) and hand_in.at("autograded").exists():
                try:
                    submission = book.find_submission(hand_in.lesson, hand_in.student)
                except MissingEntry:
                    continue  # it was being graded when somebody stopped the run
                bonus = plan.of(hand_in.lesson).bonus
                paper = _paper(hand_in, submission, bonus, moved.get((hand_in.student, hand_in.lesson), {}))
                terms = terms_of(root, plan, hand_in.student, hand_in.lesson)
                found.setdefault(hand_in.lesson, []).append(replace(paper, terms=terms))
    return dict(sorted(found.items()))


def _paper(
    hand_in: HandIn,
    submission: SubmittedAssignment,
    bonus: frozenset[str],
    moved: Mapping[str, tuple[float, float]],
) -> Paper:
    nb = nbformat.read(hand_in.at("autograded"), 4)
    grades = {g.name.removeprefix(CHECK): g for one in submission.notebooks for g in one.grades}
    points = {name: grade.score for name, grade in grades.items()}
    worth = {name: grade.max_score for name, grade in grades.items()}
    digests = {one.exercise: one for one in digests_in(nb)}
    sources = {grade_id(c).removeprefix(ANSWER): c.source for c in nb.cells if grade_id(c).startswith(ANSWER)}
    late = submission.late_submission_penalty or 0.0
    return Paper(hand_in.student, points, worth, digests, sources, moved, late, bonus)


def moves(root: Path) -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    """Whose points moved when marks last moved: student and lesson → exercise → points before and now."""
    file = root / MOVED
    lines = json.loads(file.read_text()) if file.exists() else []
    return {(student, lesson): {name: (b, n) for name, b, n in changes} for student, lesson, changes in lines}
