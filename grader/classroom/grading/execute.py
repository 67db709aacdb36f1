"""A notebook in, the executed and judged notebook out; and the nbgrader preprocessor that does it.

The student's code runs in a worker, which hands out programs and values. The judge decides on them elsewhere. Here
the two are only brought together, and the cards of the verdicts are written into the check cells in the form that
nbgrader reads. Runs and verdicts are kept by content.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Integer

from grader.checking import Mark
from grader.classroom.course.cells import Cell
from grader.classroom.course.notebook import checked, restore
from grader.classroom.course.plan import plan_of
from grader.classroom.grading.cards import card_of
from grader.classroom.grading.clerks import HAND_IN_SECONDS
from grader.classroom.grading.digest import DIGEST, as_record, digest
from grader.classroom.grading.display import harmless_outputs, output
from grader.classroom.grading.keys import verdict_key
from grader.classroom.grading.watching import offering_replays
from grader.classroom.handins.handin import registered_release
from grader.classroom.inside.limits import Limits
from grader.classroom.runs.run import Lesson, Run, Setup, code, lesson_of, run_hand_in
from grader.classroom.store import FOLDER, Store, kept_in, key
from grader.classroom.verdicts.judge import GRADER_WORKS, Judge, no_marks, shared_judge
from grader.classroom.verdicts.records import VERDICT, Judged, with_own_lines
from grader.exercises.answers import Problem
from grader.exercises.as_json import from_json, to_json
from grader.exercises.exercise import Exercise
from grader.exercises.verdict import Verdict
from grader.findings.problems import Refusal
from grader.findings.verdicts import NotReached
from grader.lessons import find

REACHED = "reached"  # the check that is missed when the notebook does not come as far as the check cell
DRAWN = -1  # for a seed: drawn once for each lesson, and kept


@dataclass(frozen=True)
class Graded:
    """An executed notebook with its verdicts, in the order of the check cells."""

    notebook: NotebookNode
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, eq=False)
class Grading:
    """How the hand-ins to a lesson are graded: held against its release, on the cases of a seed, within limits."""

    release: NotebookNode
    seed: int
    limits: Limits = Limits()
    lesson: Lesson = Lesson()


def grading_of(
    root: Path,
    lesson: str,
    student: str,
    nb: NotebookNode,
    release: NotebookNode,
    settings: Mapping[str, Any],
    store: Store,
) -> Grading:
    """How the course in `root` grades a hand-in; the settings are c.JudgedExecute of its nbgrader_config.py."""
    limits = Limits(
        cell_seconds=float(settings.get("cell_seconds", Limits.cell_seconds)),
        seconds=float(settings.get("seconds", Limits.seconds)),
    )
    if (seed := settings.get("seed", DRAWN)) < 0:
        first = plan_of(root).members(student)[0]  # for all of a group: so they are judged on the same cases
        seed = store.seed(lesson, store.attempt(lesson, first, _content(nb, release)))
    return Grading(release, seed, limits, lesson_of(root, lesson))


def _content(nb: NotebookNode, release: NotebookNode) -> list[tuple[str, str]]:
    """What makes one attempt another: a hand-in's own code cells, and where the checks stand among them.

    A check that is moved finds another answer. Its text is the release's, and does not count.
    """
    return [(cell.check, "" if cell.check else cell.source) for cell in code(restore(nb, release))]


def grade_notebook(nb: NotebookNode, grading: Grading, judge: Judge, store: Store) -> Graded:
    """Run a hand-in in a worker, judge each exercise of the release, and fill in the check cells.

    What `store` has is not done again. The lesson's worked examples need not run for every student: those that did
    not run get the outputs that are stored with the solutions.
    """
    _ran_and_judged.cache_clear()
    return _filled_in(nb, grading, judge, store)


def _filled_in(nb: NotebookNode, grading: Grading, judge: Judge, store: Store) -> Graded:
    lesson = grading.lesson
    nb = restore(nb, grading.release)
    cells, setup = code(nb, lesson.examples), Setup(grading.seed, grading.limits, store, lesson)
    worth = tuple((checked(cell), cell.metadata.nbgrader.points) for cell in nb.cells if checked(cell))
    run, judged = _ran_and_judged(cells, setup, worth, judge)
    verdicts = []
    for number, cell in enumerate(cell for cell in nb.cells if cell.cell_type == "code"):
        cell.execution_count = None
        if name := checked(cell):
            cell.outputs = _outputs(judged[name], run.answers.get(name), store)
            verdicts.append(judged[name].verdict)
        else:
            is_spare = number in run.spare_cells
            cell.outputs = _stored(lesson, cell.source) if is_spare else harmless_outputs(run.outputs.get(number))
    return Graded(nb, tuple(verdicts))


def _stored(lesson: Lesson, source: str) -> list[NotebookNode]:
    """The outputs of a worked example, as they are stored with the solutions; a copy of them, to be changed at will."""
    return from_dict(_harmless(lesson, source))


@functools.lru_cache(maxsize=256)  # they are the same in every hand-in to a lesson
def _harmless(lesson: Lesson, source: str) -> list[NotebookNode]:
    return harmless_outputs(lesson.outputs.get(source))


@functools.lru_cache(maxsize=1)
def _ran_and_judged(
    cells: tuple[Cell, ...], setup: Setup, worth: tuple[tuple[str, float], ...], judge: Judge
) -> tuple[Run, Mapping[str, Judged]]:
    """The run of a hand-in, and what each exercise gets of what the release gives for it.

    The last one is remembered, for a hand-in is judged first, and recorded by nbgrader's converter after that.
    """
    run = run_hand_in(cells, setup)
    exercises = [find(name).with_points(points) for name, points in worth]
    verdicts_of = {one.name: _judged(one, run, setup.seed, judge, setup.store) for one in exercises}
    lined = {name: with_own_lines(one, functools.partial(run.origins_of, name)) for name, one in verdicts_of.items()}
    return run, offering_replays(lined, cells, setup)


def _judged(exercise: Exercise, run: Run, seed: int, judge: Judge, store: Store) -> Judged:
    name = exercise.name
    if name not in run.answers:
        return no_marks(exercise, REACHED, NotReached(run.ending))
    answers = _legible(name, run.answers[name], seed)
    place = verdict_key(exercise, seed, answers)
    if record := store.get("verdicts", place):
        return Judged(VERDICT.read(record))
    judged = judge(exercise, seed, answers)
    facts = VERDICT.write(judged.verdict)
    if judged.doubtful:
        store.doubt("verdicts", place, facts, key(facts))
    elif all(outcome.check != GRADER_WORKS for outcome in judged.verdict.outcomes):  # else the next run tries again
        store.put("verdicts", place, facts)
    return judged


def _legible(name: str, answers: Any, seed: int) -> Any:
    """The answers, one for each case; where they are not that, as many answers that were refused."""
    count = len(find(name).draw_cases(seed, thorough=True))
    try:
        if not isinstance(answers, list) or len(answers) != count:
            raise ValueError(f"{count} answers are due")
        from_json(answers)
    except (ValueError, RecursionError):
        return to_json([Problem("refused", refusal=Refusal("unreadable"))] * count)
    return answers


def _outputs(judged: Judged, answers: Any, store: Store) -> list[NotebookNode]:
    """A check cell's outputs: the card, then the points as nbgrader wants them, a number within [0, worth]."""
    verdict, card = judged.verdict, card_of(judged, store)
    points = Mark(min(max(verdict.points, 0.0), verdict.worth))
    record = {"grader": VERDICT.write(verdict)["outcomes"], DIGEST: as_record(digest(verdict, answers))}
    return [
        output("display_data", data={"text/html": card.html, "text/plain": card.text}, metadata=record),
        output("execute_result", data={"text/plain": repr(points)}, metadata={}, execution_count=None),
    ]


class JudgedExecute(NbGraderPreprocessor):
    """nbgrader's Execute, replaced: the notebook runs in a worker and is judged outside it."""

    cell_seconds = Float(Limits.cell_seconds, help="Seconds that one cell may take.").tag(config=True)
    seconds = Float(Limits.seconds, help="Seconds that one notebook may take.").tag(config=True)
    hand_in_seconds = Float(HAND_IN_SECONDS, help="Seconds that all of grading one hand-in may take.").tag(config=True)
    seed = Integer(DRAWN, help="Seed of the cases; drawn once for each lesson, and kept, when negative.").tag(
        config=True
    )

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        where = resources["nbgrader"]
        root = Path(self.config.CourseDirectory.get("root") or ".")
        settings = self.trait_values(config=True)
        release, store = registered_release(where), kept_in(root / FOLDER)
        grading = grading_of(root, where["assignment"], where["student"], nb, release, settings, store)
        try:
            return _filled_in(nb, grading, shared_judge(), store).notebook, resources
        finally:
            _ran_and_judged.cache_clear()  # whoever asks again wants it done again
