"""One hand-in: graded, written into nbgrader's gradebook by nbgrader itself, and its feedback page.

What is in the gradebook already, with the same verdicts, is left alone; what a person has written there
(grades, comments) stays in any case.
"""

from __future__ import annotations

import functools
import logging
import re
import warnings
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import SAWarning
from traitlets.config import Config

from grader.classroom.course.build import configuration, gradebook, nbgrader
from grader.classroom.course.notebook import checked
from grader.classroom.grading.execute import UNREACHED, Graded, JudgedExecute
from grader.classroom.handins import handin
from grader.classroom.store import key, write
from grader.classroom.verdicts.judge import OUR_FAULT
from grader.classroom.walls.bubblewrap import NoWalls
from grader.exercises.verdict import Outcome

TRIES = 3  # of a step of nbgrader's, when another process has the gradebook locked


@dataclass(frozen=True)
class HandIn:
    """One student's notebook for one lesson, where nbgrader expects it."""

    root: Path
    student: str
    lesson: str

    def at(self, step: str, suffix: str = ".ipynb") -> Path:
        return self.root / step / self.student / self.lesson / f"{self.lesson}{suffix}"


@dataclass(frozen=True)
class Row:
    """A hand-in's marks: points by exercise out of nbgrader's gradebook, or the problem with it.

    `before` holds the points of an earlier grading that this one replaced; `missed` names what went wrong;
    `attention` says for which reasons a person should look at it.
    """

    hand_in: HandIn
    points: dict[str, float] = field(default_factory=dict)
    worth: dict[str, float] = field(default_factory=dict)
    problem: str = ""
    before: dict[str, float] = field(default_factory=dict)
    missed: str = ""
    attention: tuple[str, ...] = ()

    @property
    def moved(self) -> dict[str, tuple[float, float]]:
        """Exercise to points before and now, where they differ."""
        return {
            name: (self.before[name], now)
            for name, now in self.points.items()
            if name in self.before and self.before[name] != now
        }


def record(hand_in: HandIn, again: bool = False) -> Row:
    """Grade a hand-in as far as that has not been done; `again` does it anew in any case."""
    try:
        return _recorded(hand_in, again)
    except handin.Unreadable as why:
        return Row(hand_in, problem=str(why))
    except NoWalls:
        raise
    except Exception as error:  # it is nobody's hand-in that is wrong, and the class goes on
        return Row(
            hand_in,
            problem=f"The grader failed ({type(error).__name__}: {error}). Put that right, and run it "
            "again: what is graded is kept.",
        )


def _recorded(hand_in: HandIn, again: bool) -> Row:
    graded, stamp = _graded(hand_in, again)
    done = hand_in.at("feedback", ".graded")  # written last, so with it all else is whole
    before = _row(hand_in) if done.exists() else None
    if before and done.read_text() == stamp:
        return before
    done.unlink(missing_ok=True)
    api = _api(hand_in.root)
    for step in (api.autograde, api.generate_feedback):
        if problem := _said(step, hand_in):
            return Row(hand_in, problem=f"nbgrader stopped: {problem}")
    write(done, stamp.encode())
    return replace(_row(hand_in), before=before.points if before else {})


def _graded(hand_in: HandIn, again: bool) -> tuple[Graded, str]:
    """The hand-in, run and judged, and the content of all that its record holds."""
    config = configuration(hand_in.root)
    nb, release = given(hand_in, config)
    graded = JudgedExecute(config=config).graded(nb, release, hand_in.lesson, hand_in.root, again)
    content = [[[c.cell_type, c.source, c.metadata.get("nbgrader")] for c in one.cells] for one in (nb, release)]
    return graded, key(content, [asdict(outcome) for verdict in graded.verdicts for outcome in verdict.outcomes])


def given(hand_in: HandIn, config: Config) -> tuple[NotebookNode, NotebookNode]:
    """What is graded, and the release it is held against. Raises Unreadable."""
    where = {"db_url": CourseDirectory(config=config).db_url, "notebook": hand_in.lesson, "assignment": hand_in.lesson}
    nb = handin.read(handin.named(hand_in.at("submitted").parent, hand_in.lesson))
    try:
        return nb, handin.registered(where)
    except MissingEntry:
        raise handin.Unreadable(f"There is no lesson {hand_in.lesson} in course/.") from None


@functools.cache
def _api(root: Path) -> NbGraderAPI:
    warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's own, and nobody's concern here
    logging.getLogger("tornado.application").setLevel(logging.CRITICAL)  # where nbgrader says what it also raises
    return nbgrader(root)


def _said(step, hand_in: HandIn) -> str:
    """Why a step of nbgrader's failed; "" when it did not."""
    for _ in range(TRIES):
        result = step(hand_in.lesson, hand_in.student, force=True)
        if result["success"]:
            return ""
        log = "\n".join((result.get("error", ""), result.get("log", "")))  # the log has the cause
        if "locked" not in log:
            break
    lines = [line for line in log.splitlines() if line.strip()] or ["it gave no reason"]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Entry)\b", line)]
    return (errors or lines)[-1].strip()


def _row(hand_in: HandIn) -> Row | None:
    """What the gradebook says of a hand-in that has been recorded."""
    if not hand_in.at("autograded").exists():
        return None
    with gradebook(hand_in.root) as book:
        try:
            submission = book.find_submission(hand_in.lesson, hand_in.student)
        except MissingEntry:
            return None
        grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
        found = {g.name.removeprefix("check_"): (g.score, g.max_score) for g in grades}
        waiting = sorted(g.name.removeprefix("check_") for g in grades if g.needs_manual_grade)
    judged = outcomes(hand_in)
    names = [*(n for n, _ in judged if n in found), *(n for n in found if n not in dict(judged))]
    return Row(
        hand_in,
        {n: found[n][0] for n in names},
        {n: found[n][1] for n in names},
        missed=_missed(judged),
        attention=tuple(_attention(judged, waiting)),
    )


def _missed(judged: list[tuple[str, list[Outcome]]]) -> str:
    """The mistakes that were named, exercise by exercise; many that were left open in one."""
    missed = [
        (name, next(o for o in found if not o.passed)) for name, found in judged if any(not o.passed for o in found)
    ]
    blank = [name for name, outcome in missed if outcome.check == "answered"]
    if len(blank) > 5:
        missed = [m for m in missed if m[0] not in blank] + [(f"{len(blank)} exercises", missed[0][1])]
    said = {"answered": "no answer"}
    return ", ".join(f"{name}: {o.mistake or said.get(o.check, o.check)}" for name, o in missed) or "nothing"


def _attention(judged: list[tuple[str, list[Outcome]]], waiting: list[str]) -> list[str]:
    first = {name: next((o for o in of_one if not o.passed), None) for name, of_one in judged}
    cut = [name for name, outcome in first.items() if outcome and outcome.check == UNREACHED]
    ours = [name for name, outcome in first.items() if outcome and outcome.check == OUR_FAULT]
    return [
        *([f"it stopped before {cut[0]}"] if cut else []),
        *(f"the grader failed on {name}" for name in ours),
        *(f"a grade by hand of {name} is to be looked at again" for name in waiting),
    ]


def outcomes(hand_in: HandIn) -> list[tuple[str, list[Outcome]]]:
    """What each check of an autograded notebook came to."""
    nb = nbformat.read(hand_in.at("autograded"), 4)
    return [
        (checked(cell), [Outcome(**o) for output in cell.outputs for o in output.get("metadata", {}).get("grader", [])])
        for cell in nb.cells
        if checked(cell)
    ]
