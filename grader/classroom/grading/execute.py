"""A notebook in, the executed and judged notebook out; and the nbgrader preprocessor that does it.

The student's code runs in a worker, which hands out programs and values; the judge decides on them
elsewhere; here the two are only brought together, and the verdicts written into the check cells in the form
that nbgrader reads. What a run said and what a verdict was are kept by content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Integer

from grader.check import Mark
from grader.classroom.course.notebook import checked, restore
from grader.classroom.grading.display import harmless_outputs, harmless_text, output
from grader.classroom.handins.handin import registered
from grader.classroom.inside.limits import Limits
from grader.classroom.inside.shown import shown
from grader.classroom.runs.run import Lesson, Run, code, lesson_of, run
from grader.classroom.store import FOLDER, Store, kept_in, key, version
from grader.classroom.verdicts.judge import DECIDES, OUR_FAULT, Judge, Judged, kept, present, shared_judge, unkept
from grader.exercises.answers import Problem
from grader.exercises.as_json import from_json, to_json
from grader.exercises.verdict import Outcome, Verdict
from grader.lessons import find

UNREACHED = "reached"  # the check of an outcome when its notebook did not come that far


@dataclass(frozen=True)
class Graded:
    """An executed notebook with its verdicts, in the order of the check cells."""

    notebook: NotebookNode
    verdicts: tuple[Verdict, ...]


def grade_notebook(
    nb: NotebookNode,
    release: NotebookNode,
    *,
    seed: int,
    judge: Judge,
    limits: Limits = Limits(),
    store: Store | None = None,
    lesson: Lesson | None = None,
) -> Graded:
    """Run a hand-in in a worker, judge each exercise of the release, and fill in the check cells.

    What `store` has of it is not done again. With a `lesson`, its worked examples need not be run for everybody: they
    show what they show in the solutions.
    """
    nb = restore(nb, release)
    store = store or Store(None)
    done = run(code(nb, lesson.examples if lesson else ()), seed, limits, store, lesson)
    verdicts = []
    number = -1
    for cell in nb.cells:
        if cell.cell_type != "code":
            if not (lesson and cell.cell_type == "markdown" and cell.source in lesson.texts):
                harmless_text(cell)
            continue
        number += 1
        cell.execution_count = None
        if name := checked(cell):
            result = _judged(name, done, seed, judge, store)
            cell.outputs = _outputs(result)
            verdicts.append(result.verdict)
        else:
            shown = lesson.shown.get(cell.source) if number in done.spared else done.outputs.get(number)
            cell.outputs = harmless_outputs(shown)
    return Graded(nb, tuple(verdicts))


def _judged(name: str, done: Run, seed: int, judge: Judge, store: Store) -> Judged:
    if name not in done.answers:
        words = f"This check was never reached. {done.ending}"
        return present(Verdict(name, (Outcome(name, UNREACHED, 0.0, find(name).points, words=words),)))
    answers = _checked(name, done.answers[name], seed)
    place = verdict_key(name, seed, answers)
    if (before := store.get("verdicts", place)) is None:
        judged = judge(find(name), seed, answers)
        if any(outcome.check == OUR_FAULT for outcome in judged.verdict.outcomes):
            return judged  # not kept: the next run tries again
        before = kept(judged)
        store.put("verdicts", place, before)
    return unkept(before)


def verdict_key(name: str, seed: int, answers: Any) -> str:
    return key(version(*shown(), *DECIDES), name, seed, answers)


def _checked(name: str, answers: Any, seed: int) -> Any:
    """The answers, if they are answers, as many as there are cases."""
    count = len(find(name).draw_cases(seed, thorough=True))
    try:
        if not isinstance(answers, list) or len(answers) != count:
            raise ValueError(f"{count} answers are due")
        from_json(answers)
    except (ValueError, RecursionError) as error:
        return to_json([Problem("refused", message=f"The answer cannot be read: {error}.")] * count)
    return answers


def _outputs(judged: Judged) -> list[NotebookNode]:
    """A check cell's outputs: the card, then the points as nbgrader wants them, a number within [0, worth]."""
    verdict = judged.verdict
    points = Mark(min(max(verdict.points, 0.0), verdict.worth))
    record = {"grader": [asdict(outcome) for outcome in verdict.outcomes]}
    card = {"text/html": judged.html, "text/plain": judged.text}
    return [
        output("display_data", data=card, metadata=record),
        output("execute_result", data={"text/plain": repr(points)}, metadata={}, execution_count=None),
    ]


class JudgedExecute(NbGraderPreprocessor):
    """nbgrader's Execute, replaced: the notebook runs in a worker and is judged outside it."""

    cell_seconds = Float(60, help="Seconds that one cell may take.").tag(config=True)
    seconds = Float(300, help="Seconds that one notebook may take.").tag(config=True)
    seed = Integer(-1, help="Seed of the cases; drawn once for each lesson, and kept, when negative.").tag(config=True)
    judge: Callable[..., Any] = staticmethod(shared_judge)

    @property
    def limits(self) -> Limits:
        return Limits(cell_seconds=self.cell_seconds, seconds=self.seconds)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        where = resources["nbgrader"]
        root = Path(self.config.CourseDirectory.get("root") or ".")
        return self.graded(nb, registered(where), where["assignment"], root).notebook, resources

    def graded(self, nb: NotebookNode, release: NotebookNode, lesson: str, root: Path, anew: bool = False) -> Graded:
        """The hand-in to a lesson of the course in `root`, run and judged as far as that has not been done."""
        store = Store(root / FOLDER, anew=True) if anew else kept_in(root / FOLDER)
        return grade_notebook(nb, release, judge=self.judge(), store=store, **self.how(lesson, root))

    def how(self, lesson: str, root: Path) -> dict[str, Any]:
        """By what the hand-ins to a lesson are graded, as `grade_notebook` takes it."""
        seed = self.seed if self.seed >= 0 else kept_in(root / FOLDER).seed(lesson)
        return {"seed": seed, "limits": self.limits, "lesson": lesson_of(root, lesson)}
