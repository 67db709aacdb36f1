"""One hand-in: graded, written into nbgrader's gradebook by nbgrader itself, and its feedback page.

A hand-in that is in the gradebook with the same verdicts is left alone. What a person has written there (grades,
comments) stays in any case.
"""

from __future__ import annotations

import functools
import logging
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader import api as nbgraders
from nbgrader.api import Grade, Gradebook, MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import Engine, Inspector
from sqlalchemy.exc import SAWarning

from grader.arrays.words import one_line
from grader.classroom.course.build import configuration, gradebook, nbgrader
from grader.classroom.course.late import TIME, Terms, handed_in_at, lateness, terms_of
from grader.classroom.course.notebook import CHECK, checked, checks
from grader.classroom.course.plan import plan_of
from grader.classroom.grading.digest import Digest, digest
from grader.classroom.grading.execute import REACHED, Graded, Grading, grade_notebook, grading_of
from grader.classroom.handins.archive import Unreadable
from grader.classroom.handins.handin import find_notebook, give_name, one_release, registered_release
from grader.classroom.handins.reading import read
from grader.classroom.handins.roster import RECEIVED, read_received
from grader.classroom.store import FOLDER, Store, kept_in, key, write
from grader.classroom.verdicts.judge import GRADER_WORKS, shared_judge
from grader.classroom.walls.bubblewrap import NoWalls
from grader.exercises.verdict import Verdict
from grader.guide.syllabus import syllabus
from grader.judging.pods import POD

MOST_REASON = 500  # characters of a reason that nbgrader gives
LONGEST_ERROR = 120  # characters of a student's error in a line for a person
CROSSED_TRIES = 3  # of a step of nbgrader's, when another process is at the gradebook
# What such a step then says: that it is locked, or that the student, who has handed in to two lessons, is there by now.
CROSSED = ("locked", "IntegrityError")


@dataclass(frozen=True)
class HandIn:
    """One student's notebook for one lesson, where nbgrader expects it."""

    root: Path
    student: str
    lesson: str

    def at(self, step: str, suffix: str = ".ipynb") -> Path:
        return self.root / step / self.student / self.lesson / f"{self.lesson}{suffix}"

    @property
    def seal(self) -> Path:
        """Written when all of its record is; it holds the content of that. (In feedback/ nbgrader would remove it.)"""
        return self.root / FOLDER / "recorded" / self.student / self.lesson


@dataclass(frozen=True)
class Row:
    """A hand-in's marks: points by exercise from nbgrader's gradebook, or the problem with the hand-in.

    `before` holds the points of an earlier grading that this one replaced; `digests` say what the judge found;
    `attention` holds the reasons why a person should look at it. `late` points are taken off in all; the exercises that
    are a `bonus` add points, and nothing to what there is to be had; `terms` are what applies to this student.
    """

    hand_in: HandIn
    points: dict[str, float] = field(default_factory=dict)
    worth: dict[str, float] = field(default_factory=dict)
    problem: str = ""
    before: dict[str, float] = field(default_factory=dict)
    digests: tuple[Digest, ...] = ()
    attention: tuple[str, ...] = ()
    late: float = 0.0
    bonus: frozenset[str] = frozenset()
    terms: Terms = Terms()

    @property
    def mark(self) -> float:
        """The points of the hand-in, after what is taken off."""
        return round(sum(self.points.values()) - self.late, 2)

    @property
    def most(self) -> float:
        """The points that there are to be had."""
        return round(sum(worth for name, worth in self.worth.items() if name not in self.bonus), 2)

    @property
    def moved(self) -> dict[str, tuple[float, float]]:
        """Exercise to points before and now, where they differ."""
        return {
            name: (self.before[name], now)
            for name, now in self.points.items()
            if name in self.before and self.before[name] != now
        }


def record(hand_in: HandIn, again: bool = False) -> Row:
    """Grade a hand-in that has not been graded, or has changed since; with `again`, in any case."""
    try:
        with one_release():
            return _recorded(hand_in, again)
    except Unreadable as why:
        return Row(hand_in, problem=str(why))
    except (NoWalls, MemoryError):
        raise
    except Exception as error:  # the fault is no hand-in's, and the class goes on
        return Row(
            hand_in,
            problem=f"The grader failed ({type(error).__name__}: {error}). Put that right, and run it "
            "again: what is graded is kept.",
        )


def _recorded(hand_in: HandIn, again: bool) -> Row:
    nb, grading = material(hand_in)
    folder = hand_in.root / FOLDER
    store = Store(folder, anew=True) if again else kept_in(folder)
    graded = grade_notebook(nb, grading, shared_judge(), store)
    plan, folder = plan_of(hand_in.root), hand_in.at("submitted").parent
    terms = terms_of(hand_in.root, plan, hand_in.student, hand_in.lesson)
    late = lateness(plan, terms, hand_in.lesson, folder)
    stamp = _stamp(nb, grading.release, graded, [*late, *sorted(plan.of(hand_in.lesson).bonus)])
    sealed = hand_in.seal.read_text() if hand_in.seal.exists() else ""
    doubts = (*_doubts(hand_in, nb, grading.release, graded), *_doubts_of_time(hand_in, folder))
    before = _row(hand_in, graded.verdicts, terms, doubts) if sealed else None
    if before and sealed == stamp and hand_in.at("feedback", ".html").exists():
        return before
    seen = _looked_at(hand_in) if sealed.split()[:1] == stamp.split()[:1] else set()
    hand_in.seal.unlink(missing_ok=True)
    api = _api(hand_in.root)
    for step in (api.autograde, api.generate_feedback):
        if problem := _problem(step, hand_in):
            return Row(hand_in, problem=f"nbgrader stopped: {problem}")
    _keep_looked_at(hand_in, seen)
    write(hand_in.seal, stamp.encode())
    row = _row(hand_in, graded.verdicts, terms, doubts)
    assert row is not None  # nbgrader has just recorded it
    return replace(row, before=before.points if before else {})


def material(hand_in: HandIn, store: Store | None = None) -> tuple[NotebookNode, Grading]:
    """The notebook to grade, and how it is graded, by the course's own store or another one. Raises Unreadable.

    With another store, nothing is written: no link beside a notebook of another name either.
    """
    config = configuration(hand_in.root)
    resources = {
        "db_url": CourseDirectory(config=config).db_url,
        "notebook": hand_in.lesson,
        "assignment": hand_in.lesson,
    }
    nb = read((find_notebook if store else give_name)(hand_in.at("submitted").parent, hand_in.lesson))
    try:
        release = registered_release(resources)
    except MissingEntry:
        raise Unreadable(f"There is no lesson {hand_in.lesson} in course/.") from None
    store = store or kept_in(hand_in.root / FOLDER)
    return nb, grading_of(hand_in.root, hand_in.lesson, hand_in.student, nb, release, config.JudgedExecute, store)


def recorded(hand_in: HandIn) -> Row | None:
    """A hand-in as it was last graded; None where it was not."""
    return _row(hand_in, (), Terms(), ()) if hand_in.seal.exists() else None


def _stamp(nb: NotebookNode, release: NotebookNode, graded: Graded, plan: Sequence[str]) -> str:
    """What decides a hand-in's marks, and what its page shows; of `plan` its lateness, and what is a bonus."""
    content = [[[c.cell_type, c.source, c.metadata.get("nbgrader")] for c in one.cells] for one in (nb, release)]
    points = [[outcome.points, outcome.worth] for verdict in graded.verdicts for outcome in verdict.outcomes]
    shown = [cell.outputs for cell in filter(checked, graded.notebook.cells)]
    return f"{key(content, points, *plan)} {key(shown)}"


def by_hand(hand_in: HandIn) -> set[str]:
    """The exercises that a person has graded by hand."""
    with gradebook(hand_in.root) as book:
        return {name for name, grade in _grades(book, hand_in).items() if grade.manual_score is not None}


def _looked_at(hand_in: HandIn) -> set[str]:
    """The exercises that a person has graded by hand and needn't look at again."""
    with gradebook(hand_in.root) as book:
        grades = _grades(book, hand_in).items()
        return {name for name, g in grades if g.manual_score is not None and not g.needs_manual_grade}


def _keep_looked_at(hand_in: HandIn, names: Collection[str]) -> None:
    """nbgrader asks for another look whenever it writes a page; with the same marks there is no reason to."""
    if names:
        with gradebook(hand_in.root) as book:
            for name, grade in _grades(book, hand_in).items():
                grade.needs_manual_grade &= name not in names
            book.db.commit()


def _grades(book: Gradebook, hand_in: HandIn) -> dict[str, Grade]:
    """nbgrader's grades of a hand-in, by exercise. Raises MissingEntry."""
    submission = book.find_submission(hand_in.lesson, hand_in.student)
    return {g.name.removeprefix(CHECK): g for notebook in submission.notebooks for g in notebook.grades}


def write_page(hand_in: HandIn) -> str:
    """Write a graded hand-in's feedback page; returns why it could not be written, "" when it was."""
    return _problem(_api(hand_in.root).generate_feedback, hand_in)


@functools.cache
def _api(root: Path) -> NbGraderAPI:
    warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's own, and nobody's concern here
    logging.getLogger("tornado.application").setLevel(logging.CRITICAL)  # nbgrader logs there what it also raises
    _share_engines()
    return nbgrader(root)


@functools.cache
def _share_engines() -> None:
    """Have nbgrader's gradebooks of one database share an engine of SQLAlchemy, for as long as this process lives.

    Eleven are opened for a hand-in, and a new engine has to compile every statement again: a fifth of the time that
    recording a hand-in takes. Each also looks whether its tables are there, which the first has seen to. To close a
    gradebook still closes its connections.
    """
    nbgraders.create_engine = functools.cache(nbgraders.create_engine)
    with_tables: dict[Engine, Inspector] = {}
    inspect, create_all = nbgraders.inspect, nbgraders.Base.metadata.create_all

    def inspected(engine: Engine) -> Inspector:
        inspector = with_tables.get(engine) or inspect(engine)
        if inspector.get_table_names():
            with_tables[engine] = inspector
        return inspector

    def created(bind: Engine) -> None:
        if bind not in with_tables:
            create_all(bind=bind)

    nbgraders.inspect, nbgraders.Base.metadata.create_all = inspected, created


def _problem(step: Callable[..., dict[str, Any]], hand_in: HandIn) -> str:
    """Why a step of nbgrader's failed; "" when it did not."""
    for _ in range(CROSSED_TRIES):
        result = step(hand_in.lesson, hand_in.student, force=True)
        if result["success"]:
            return ""
        log = "\n".join((result.get("error", ""), result.get("log", "")))  # the log has the cause
        if not any(sign in log for sign in CROSSED):
            break
    if "MemoryError" in log:
        raise MemoryError
    return _reason(log)


def _reason(log: str) -> str:
    """The line of a log with the last exception; where there is none, the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()] or ["it gave no reason"]
    errors = [line for line in lines if re.match(r"([A-Za-z_]\w*\.)*[A-Z]\w*(Error|Exception|Entry)\b", line)]
    return one_line((errors or [line for line in lines if "traceback" not in line.lower()] or lines)[-1], MOST_REASON)


def _row(hand_in: HandIn, verdicts: Sequence[Verdict], terms: Terms, doubts: Sequence[str]) -> Row | None:
    """A hand-in with these verdicts, with its marks from the gradebook; None where it has not been recorded."""
    if not hand_in.at("autograded").exists():
        return None
    with gradebook(hand_in.root) as book:
        try:
            grades = _grades(book, hand_in)
            late = book.find_submission(hand_in.lesson, hand_in.student).late_submission_penalty or 0.0
        except MissingEntry:
            return None
        order = [verdict.exercise for verdict in verdicts if verdict.exercise in grades]
        names = [*order, *(name for name in grades if name not in order)]
        return Row(
            hand_in,
            {name: grades[name].score for name in names},
            {name: grades[name].max_score for name in names},
            digests=tuple(map(digest, verdicts)),
            attention=(*doubts, *_attention(verdicts, sorted(n for n in grades if grades[n].needs_manual_grade))),
            late=late,
            bonus=plan_of(hand_in.root).of(hand_in.lesson).bonus,
            terms=terms,
        )


def _doubts(hand_in: HandIn, nb: NotebookNode, release: NotebookNode, graded: Graded) -> Iterator[str]:
    """Whether all of it may be worth nothing for another reason than its answers."""
    if (theirs := set(checks(nb))) and not theirs & set(checks(release)):
        others = [one.name for one in syllabus() if theirs & {exercise.name for exercise in one.exercises}]
        move = f" but of {others[0]}: move it to submitted/{hand_in.student}/{others[0]}" if others else ""
        yield f"its check cells aren't of this lesson{move}"
        return
    outputs = [output for cell in graded.notebook.cells for output in cell.get("outputs", ())]
    errors = [output for output in outputs if output.output_type == "error"]
    if errors and not any(verdict.points for verdict in graded.verdicts):
        first = one_line(f"{errors[0].ename}: {errors[0].evalue}", LONGEST_ERROR).rstrip(".")
        yield f"it earns nothing, and {len(errors)} of its cells stop with an error (the first: {first})"


def _doubts_of_time(hand_in: HandIn, folder: Path) -> Iterator[str]:
    """Whether it may be late although nobody knows for how long."""
    if handed_in_at(folder):
        return
    table = hand_in.root / "submitted" / RECEIVED
    late = _called_late(table, table.stat().st_mtime_ns) if table.exists() else frozenset()
    if (folder / TIME).exists():
        yield f"its {TIME} can't be read, so it counts as in time: write it like 2027-03-01 22:59:00 UTC"
    elif (hand_in.student, hand_in.lesson) in late:
        yield f"the platform calls it late and doesn't say when: write {TIME} beside it, like 2027-03-01 22:59:00 UTC"


@functools.lru_cache(maxsize=1)
def _called_late(table: Path, _: int) -> frozenset[tuple[str, str]]:
    return frozenset((row.student, row.lesson) for row in read_received(table.parent) if row.late)


def _attention(verdicts: Sequence[Verdict], by_hand: Sequence[str]) -> Iterator[str]:
    """Why a person should look at it. `by_hand` are exercises whose grade by hand nbgrader wants reviewed."""
    failures = [(verdict.exercise, verdict.failure.check) for verdict in verdicts if verdict.failure]
    if unreached := [name for name, check in failures if check == REACHED]:
        yield f"it stopped before {unreached[0]}"
    if any(verdict.failure.check == POD and verdict.failure.open for verdict in verdicts if verdict.failure):
        yield "a program for a pod could not be compiled: is the TPU's compiler here (`grader chips`)?"
    yield from (f"the grader failed on {name}" for name, check in failures if check == GRADER_WORKS)
    yield from (f"a grade by hand of {name} is to be looked at again" for name in by_hand)
