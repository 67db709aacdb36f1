"""A notebook in, the executed and judged notebook out; and the nbgrader preprocessor that does it.

The student's code runs in a worker, which hands out programs and values; the judge, another process,
decides on them; here the two are only brought together, and the verdicts written into the check cells in
the form that nbgrader reads.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Integer

from grader.answers import Problem, asks, from_json, to_json
from grader.check import Mark
from grader.classroom.handin import registered
from grader.classroom.judging import Judge, Judged, present, shared_judge
from grader.classroom.notebook import answer_expression, checked, checks, restore
from grader.classroom.sandbox import Ended, Limits, run
from grader.exercise import Outcome
from grader.judge import Verdict
from grader.lessons import find


@dataclass(frozen=True)
class Graded:
    """An executed notebook with its verdicts, in the order of the check cells."""

    notebook: NotebookNode
    verdicts: tuple[Verdict, ...]


def grade_notebook(nb: NotebookNode, release: NotebookNode, *, seed: int, judge: Judge,
                   limits: Limits = Limits()) -> Graded:
    """Run a hand-in in a worker, judge each exercise of the release, and fill in the check cells."""
    nb = restore(nb, release)
    with ThreadPoolExecutor(1) as judging:  # an answer is judged while the notebook goes on
        judged: dict[str, Future[Judged]] = {}

        def take(name: str, answers: Any) -> None:
            if name not in judged:
                judged[name] = judging.submit(_judged, name, answers, seed, judge)

        outputs, ending = _work(nb, seed, limits, take)
    verdicts = []
    for position, cell in enumerate(nb.cells):
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        if name := checked(cell):
            result = judged[name].result() if name in judged else _unreached(name, ending)
            cell.outputs = _outputs(result)
            verdicts.append(result.verdict)
        else:
            cell.outputs = outputs.get(position, [])
    return Graded(nb, tuple(verdicts))


def _work(nb: NotebookNode, seed: int, limits: Limits,
          take: Callable[[str, Any], None]) -> tuple[dict[int, list], str]:
    """Outputs by cell, and why the worker ended early ("" when it did not). `take` gets each check's answers."""
    code = [k for k, cell in enumerate(nb.cells) if cell.cell_type == "code"]
    job = {"cell_seconds": limits.cell_seconds, "steps": [_step(nb.cells[k], seed) for k in code]}
    expected = set(checks(nb))
    outputs: dict[int, list] = {}
    try:
        with contextlib.closing(run("grader.classroom.worker", json.dumps(job), limits)) as lines:
            for message in map(_read, lines):
                number, name = message.get("cell"), message.get("check")
                if message.get("end") is True:
                    break
                if isinstance(number, int) and 0 <= number < len(code):
                    outputs[code[number]] = _readable(message.get("outputs"))
                elif isinstance(name, str) and name in expected:
                    take(name, message.get("answers"))
    except Ended as why:
        return outputs, str(why)
    return outputs, ""


def _read(line: str) -> dict[str, Any]:
    """A message of the worker; what is none (students' code may have written it) says nothing."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _step(cell: NotebookNode, seed: int) -> dict[str, Any]:
    if not (name := checked(cell)):
        return {"source": cell.source}
    exercise = find(name)
    asked = asks(exercise, exercise.draw_cases(seed, thorough=True))
    return {"check": name, "form": exercise.form, "expression": answer_expression(cell.source), "asks": to_json(asked)}


def _readable(outputs: Any) -> list[NotebookNode]:
    """A cell's outputs, if they are outputs."""
    try:
        nb = new_notebook(cells=[new_code_cell(outputs=nbformat.from_dict(outputs))])
        nbformat.validate(nb)
    except (nbformat.ValidationError, TypeError, AttributeError, RecursionError):
        return [new_output("stream", name="stderr", text="[The outputs of this cell cannot be shown.]\n")]
    return nb.cells[0].outputs


def _unreached(name: str, ending: str) -> Judged:
    words = f"This check was never reached. {ending}"
    return present(Verdict(name, (Outcome(name, "answered", 0.0, find(name).points, words=words),)))


def _judged(name: str, answers: Any, seed: int, judge: Judge) -> Judged:
    exercise = find(name)
    count = len(exercise.draw_cases(seed, thorough=True))
    try:
        if not isinstance(answers, list) or len(answers) != count:
            raise ValueError(f"{count} answers are due")
        from_json(answers)
    except (ValueError, RecursionError) as error:
        answers = to_json([Problem("refused", message=f"The answer cannot be read: {error}.")] * count)
    return judge(exercise, seed, answers)


def _outputs(judged: Judged) -> list[NotebookNode]:
    """A check cell's outputs: the card, then the points as nbgrader wants them, a number within [0, worth]."""
    verdict = judged.verdict
    points = Mark(min(max(verdict.points, 0.0), verdict.worth))
    record = {"grader": [asdict(outcome) for outcome in verdict.outcomes]}
    return [new_output("display_data", {"text/html": judged.html, "text/plain": judged.text}, metadata=record),
            new_output("execute_result", {"text/plain": repr(points)}, execution_count=None)]


class JudgedExecute(NbGraderPreprocessor):
    """nbgrader's Execute, replaced: the notebook runs in a worker and is judged outside it."""

    cell_seconds = Float(60, help="Seconds that one cell may take.").tag(config=True)
    seconds = Float(300, help="Seconds that one notebook may take.").tag(config=True)
    seed = Integer(-1, help="Seed of the cases; drawn anew for every run when negative.").tag(config=True)
    judge: Callable[..., Any] = staticmethod(shared_judge)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        limits = Limits(cell_seconds=self.cell_seconds, seconds=self.seconds)
        seed = self.seed if self.seed >= 0 else run_seed()
        graded = grade_notebook(nb, registered(resources["nbgrader"]), seed=seed, judge=self.judge(), limits=limits)
        return graded.notebook, resources


_SEED = secrets.randbits(32)


def run_seed() -> int:
    """The secret seed of this run: the same for all students of a class."""
    return _SEED
