"""A hand-in's own code, run in a worker: whole, or slice by slice; and what came of it, kept by content."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from grader.answers import asks, to_json
from grader.classroom.limits import Limits
from grader.classroom.notebook import answer_expression, checked, grade_id, restore
from grader.classroom.sandbox import Ended, Template
from grader.classroom.slices import Cell, slices
from grader.classroom.store import Store, key, version
from grader.lessons import find

# What a run's answers and outputs depend on, besides what it is given.
SIDE = ("__init__.py", "answers.py", "blocks.py", "communication.py", "devices.py", "draw.py", "notation.py",
        "program.py", "classroom/recorder.py", "classroom/worker.py", "classroom/withheld.py")


@dataclass(frozen=True)
class Run:
    """What a hand-in's own code came to: answers by exercise, outputs by code cell, and why it ended early."""

    answers: dict[str, Any]
    outputs: dict[int, list[Any]]
    ending: str = ""


@dataclass(frozen=True)
class Lesson:
    """What a lesson's hand-ins are made from: the notebook that students get, and the one with the solutions."""

    release: NotebookNode
    solved: NotebookNode
    examples: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", tuple(c.source for c in _code(self.release) if not grade_id(c)))


def lesson_of(root: Path, name: str) -> Lesson | None:
    """The lesson, where both of its notebooks are here."""
    files = [root / folder / name / f"{name}.ipynb" for folder in ("course", "solutions")]
    return _read_lesson(*((f, f.stat().st_mtime_ns) for f in files)) if all(f.exists() for f in files) else None


@functools.lru_cache
def _read_lesson(*files: tuple[Path, int]) -> Lesson:
    return Lesson(*(nbformat.read(file, 4) for file, _ in files))


def run(nb: NotebookNode, seed: int, limits: Limits, store: Store, lesson: Lesson | None = None) -> Run:
    """Run a hand-in, its check cells restored; as far as that has not been done.

    Where its own cells only define, and slices of the lesson's own solution answer as the whole does, it is
    run slice by slice, and the worked examples show what they showed to us.
    """
    parts = _parts(nb, lesson) if lesson and _faithful(lesson, seed, limits, store) else None
    sliced = _sliced(parts, seed, limits, store) if parts else None
    if sliced is None:
        return perform(steps(nb, seed), limits, store)
    shown = perform(steps(lesson.release, seed), limits, store).outputs
    examples = dict(zip(lesson.examples, (shown.get(k, []) for k, c in enumerate(_code(lesson.release))
                                          if not grade_id(c)), strict=True))
    return Run(sliced, {k: examples[c.source] for k, c in enumerate(_code(nb)) if c.source in examples})


def _code(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def _parts(nb: NotebookNode, lesson: Lesson) -> dict[str, tuple[str, ...]] | None:
    """The slices of a notebook that has all worked examples, each once and in their order."""
    sources = [c.source for c in _code(nb) if c.source in lesson.examples and not grade_id(c)]
    if sources != list(lesson.examples) or len(set(sources)) < len(sources):
        return None
    return slices([Cell(answer_expression(c.source) if checked(c) else c.source, checked(c), c.source in sources)
                   for c in _code(nb)])


def _sliced(parts: dict[str, tuple[str, ...]], seed: int, limits: Limits, store: Store) -> dict[str, Any] | None:
    """The answers of the slices; None when one of them has more to say than its answer."""
    answers = {}
    for name, sources in parts.items():
        one = perform([*({"source": source} for source in sources), check_step(name, name, seed)], limits, store)
        if one.ending or name not in one.answers or _failed(one):
            return None
        answers |= one.answers
    return answers


def _failed(one: Run) -> bool:
    return any(output.get("output_type") == "error" or output.get("name") == "stderr"
               for outputs in one.outputs.values() for output in outputs)


def _faithful(lesson: Lesson, seed: int, limits: Limits, store: Store) -> bool:
    """Whether the solved lesson answers the same slice by slice as it does whole."""
    solved = restore(lesson.solved, lesson.release)
    parts = _parts(solved, lesson)
    if not parts:
        return False
    return _sliced(parts, seed, limits, store) == perform(steps(solved, seed), limits, store).answers


@functools.cache
def workers() -> Template:
    """The template from which this process forks its workers."""
    return Template("worker")


def steps(nb: NotebookNode, seed: int) -> list[dict[str, Any]]:
    """What a worker does with a notebook, code cell by code cell."""
    return [check_step(name, answer_expression(cell.source), seed) if (name := checked(cell)) else
            {"source": cell.source} for cell in _code(nb)]


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
    return key(version(*SIDE), todo, limits.cell_seconds, limits.seconds)


def _performed(todo: list[dict[str, Any]], limits: Limits) -> Run:
    expected = {step["check"] for step in todo if "check" in step}
    answers: dict[str, Any] = {}
    outputs: dict[int, list] = {}
    try:
        with workers().fork(limits) as fork:
            fork.write(json.dumps({"cell_seconds": limits.cell_seconds, "steps": todo}))
            for message in map(_read, fork.lines()):
                number, name = message.get("cell"), message.get("check")
                if message.get("end") is True:
                    break
                if isinstance(number, int) and 0 <= number < len(todo):
                    outputs[number] = message.get("outputs")
                elif isinstance(name, str) and name in expected:
                    answers.setdefault(name, message.get("answers"))
    except Ended as why:
        return Run(answers, outputs, str(why))
    return Run(answers, outputs)


def _read(line: str) -> dict[str, Any]:
    """A message of the worker; what is none (students' code may have written it) says nothing."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
