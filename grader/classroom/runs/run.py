"""A hand-in's own code, run in a worker; and what came of it, kept by content.

Running every notebook whole (`perform`) is right and simple. There are two quicker ways, each taken only where the
text shows that it answers the same, and where the solved lesson has been seen to:

- **In slices**, where a student's cells only define: an answer comes out of the few cells that it needs, once for all
  students who wrote these alike; no worked example is run. In the benchmark's class of 200 (lesson 07) that is true
  of 173 hand-ins: their 3,114 answers come out of 266 slices, or out of 1,519 where no two are spelled alike.
- **Without the spared examples**, where the cells do more: of such hand-ins there are 27, and each spares 20 of 21
  worked examples, which is more than half of the time of its run.

`WAYS = ()` switches both off: every hand-in is then run whole, with the same marks.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from grader.classroom.course.notebook import answer_expression, checked, grade_id, restore
from grader.classroom.inside.limits import REPORTED, Limits
from grader.classroom.inside.shown import shown
from grader.classroom.runs.cells import Cell
from grader.classroom.runs.slices import slices, spared
from grader.classroom.store import Store, key, version
from grader.classroom.walls.templates import Ended, Template, steadily
from grader.exercises.as_json import to_json
from grader.exercises.collecting import asks
from grader.lessons import find


@dataclass(frozen=True)
class Run:
    """What a hand-in's own code came to: answers by exercise, outputs by code cell, and why it ended early.

    `spared` are the code cells that did not have to run, worked examples all of them.
    """

    answers: dict[str, Any]
    outputs: dict[int, Any]
    ending: str = ""
    spared: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a lesson's hand-ins are made from: the notebook that students get, and the one with the solutions.

    `shown` are the outputs of its worked examples, by source, as they are stored with the solutions; `texts` are its
    text cells. An empty one stands for a lesson of which nothing is known: then nothing is spared.
    """

    release: tuple[Cell, ...] = ()
    solved: tuple[Cell, ...] = ()
    shown: Mapping[str, list[Any]] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()

    @functools.cached_property
    def examples(self) -> tuple[str, ...]:
        """Its worked examples: the code cells that are neither an answer nor a check."""
        return tuple(cell.source for cell in self.release if cell.given)

    def holds(self, cell: NotebookNode) -> bool:
        """Whether a cell is one of its text cells, word for word."""
        return cell.cell_type == "markdown" and cell.source in self.texts


Way = Callable[[Sequence[Cell], int, Limits, Store, Lesson], Run | None]


def lesson_of(root: Path, name: str) -> Lesson:
    """The lesson, where both of its notebooks are here; else an empty one."""
    files = [root / folder / name / f"{name}.ipynb" for folder in ("course", "solutions")]
    return _read_lesson(*((f, f.stat().st_mtime_ns) for f in files)) if all(f.exists() for f in files) else Lesson()


@functools.lru_cache
def _read_lesson(*files: tuple[Path, int]) -> Lesson:
    release, solved = (nbformat.read(file, 4) for file, _ in files)
    examples = {c.source for c in release.cells if c.cell_type == "code" and not grade_id(c)}
    shown = {c.source: list(c.outputs) for c in solved.cells if c.source in examples}
    texts = frozenset(c.source for c in release.cells if c.cell_type == "markdown")
    return Lesson(code(release, examples), code(restore(solved, release), examples), shown, texts)


def code(nb: NotebookNode, examples: Collection[str] = ()) -> tuple[Cell, ...]:
    """The code cells of a notebook whose check cells are restored."""
    return tuple(
        Cell(
            answer_expression(c.source) if checked(c) else c.source,
            checked(c),
            c.source in examples and not grade_id(c),
        )
        for c in nb.cells
        if c.cell_type == "code"
    )


@functools.lru_cache(maxsize=4)
def run_hand_in(cells: tuple[Cell, ...], seed: int, limits: Limits, store: Store, lesson: Lesson) -> Run:
    """Run a hand-in, as far as that has not been done.

    Where its own cells only define, it is run slice by slice; where they do more, without the worked examples that
    have nothing to do with them.
    """
    for way in WAYS:
        if _faithful(way, lesson, seed, limits, store) and (done := way(cells, seed, limits, store, lesson)):
            return done
    return perform(steps(cells, seed), limits, store)


@functools.lru_cache
def _faithful(way: Way, lesson: Lesson, seed: int, limits: Limits, store: Store) -> bool:
    """Whether the solved lesson answers the same this way as it does whole."""
    done = way(lesson.solved, seed, limits, store, lesson)
    return done is not None and done.answers == perform(steps(lesson.solved, seed), limits, store).answers


def _in_slices(cells: Sequence[Cell], seed: int, limits: Limits, store: Store, lesson: Lesson) -> Run | None:
    """What the slices answer of a notebook that has all worked examples, each once and in their order.

    None when it cannot be cut, or a slice has more to say than its answer.
    """
    given = tuple(cell.source for cell in cells if cell.given)
    parts = slices(cells) if given == lesson.examples and len(set(given)) == len(given) else None
    answers: dict[str, Any] = {}
    for name, sources in (parts or {}).items():
        one = perform([*({"source": source} for source in sources), check_step(name, name, seed)], limits, store)
        complaints = any(o.get("output_type") == "error" or o.get("name") == "stderr" for _, o in _said(one.outputs))
        if one.ending or name not in one.answers or complaints:
            return None
        answers |= one.answers
    return Run(answers, {}, spared=tuple(k for k, cell in enumerate(cells) if cell.given)) if parts else None


def _without_spared(cells: Sequence[Cell], seed: int, limits: Limits, store: Store, lesson: Lesson) -> Run | None:
    """A run without the examples that can be spared; None where there are none, or when something may be missing.

    That may be so when a cell of the student's own stops with an error, or any cell with a NameError.
    """
    given = [cell.source for cell in cells if cell.given]
    if len(set(given)) < len(given) or [source for source in lesson.examples if source in given] != given:
        return None
    left_out = spared(cells, [source for source in lesson.examples if source not in given])
    if not left_out:
        return None
    kept = [k for k in range(len(cells)) if k not in left_out]
    done = perform(steps([cells[k] for k in kept], seed), limits, store)
    outputs = {kept[k]: shown for k, shown in done.outputs.items()}
    stopped = {k: one.get("ename") for k, one in _said(outputs) if one.get("output_type") == "error"}
    if any(not cells[k].given or error == "NameError" for k, error in stopped.items()) and not done.ending:
        return None
    return replace(done, outputs=outputs, spared=tuple(left_out))


def _said(outputs: Mapping[int, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The outputs of all cells, one by one, each with its cell's number; a worker may have said anything."""
    return (
        (k, output)
        for k, shown in outputs.items()
        if isinstance(shown, list)
        for output in shown
        if isinstance(output, dict)
    )


WAYS: tuple[Way, ...] = (_in_slices, _without_spared)  # quicker ones than to run it whole, the quickest first


@functools.cache
def workers() -> Template:
    """The template from which this process forks its workers."""
    return Template("worker")


def steps(cells: Sequence[Cell], seed: int) -> list[dict[str, Any]]:
    """What a worker does with a notebook, code cell by code cell."""
    return [check_step(c.check, c.source, seed) if c.check else {"source": c.source} for c in cells]


def check_step(name: str, expression: str, seed: int) -> dict[str, Any]:
    return {"check": name, "expression": expression, **_asked(name, seed)}


@functools.lru_cache
def _asked(name: str, seed: int) -> dict[str, Any]:
    exercise = find(name)
    return {"form": exercise.form, "asks": to_json(asks(exercise, exercise.draw_cases(seed, thorough=True)))}


def perform(todo: list[dict[str, Any]], limits: Limits, store: Store) -> Run:
    """Do the steps in a worker, unless that is done already."""
    name = run_key(todo, limits)
    if (before := store.get("runs", name)) is None:
        before = asdict(_performed(todo, limits))
        store.put("runs", name, before)
    return Run(before["answers"], {int(k): v for k, v in before["outputs"].items()}, before["ending"])


def run_key(todo: list[dict[str, Any]], limits: Limits) -> str:
    return key(version(*shown()), todo, limits.cell_seconds, limits.seconds)


def _performed(todo: list[dict[str, Any]], limits: Limits) -> Run:
    done = Run({}, {})
    try:
        steadily(lambda: _listen(todo, limits, done))
    except Ended as why:
        return replace(done, ending=str(why))
    return done


def _listen(todo: list[dict[str, Any]], limits: Limits, done: Run) -> None:
    """Take down what a worker says while it does the steps."""
    done.answers.clear()
    done.outputs.clear()
    expected = {step["check"] for step in todo if "check" in step}
    room = REPORTED
    with workers().fork(limits) as fork:
        fork.write(json.dumps({"cell_seconds": limits.cell_seconds, "steps": todo}))
        for line in fork.lines():
            message = _read(line)
            number, name = message.get("cell"), message.get("check")
            if message.get("end") is True:
                break
            if isinstance(number, int) and 0 <= number < len(todo):
                if (room := room - len(line)) > 0:
                    done.outputs[number] = message.get("outputs")
            elif isinstance(name, str) and name in expected:
                done.answers.setdefault(name, message.get("answers"))


def _read(line: str) -> dict[str, Any]:
    """A message of the worker; what is none (students' code may have written it) says nothing."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
