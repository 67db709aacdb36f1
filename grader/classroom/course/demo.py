"""A class of twelve, made of the exercises' own mistakes and alternative solutions.

For trying the grader before there are hand-ins, for the benchmark, and for the tests.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grader.arrays.devices import eight_devices
from grader.classroom.course.notebook import checked
from grader.exercises.exercise import Exercise, Mistake
from grader.exercises.plain import plain
from grader.lessons import find

DEMO_FOLDER = "demo"
Edit = Callable[[NotebookNode], None]
IMPORTS = """from __future__ import annotations
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P"""


def make_class(root: Path, lesson: str, folder: Path) -> list[Path]:
    """Write the hand-ins of twelve students for a lesson into `folder/STUDENT/LESSON/LESSON.ipynb`."""
    eight_devices()  # the questions' wrong answers come from experiments
    solved = root / "solutions" / lesson / f"{lesson}.ipynb"
    released = root / "course" / lesson / f"{lesson}.ipynb"
    others = alternatives(solved.with_name("alternatives.py"))
    students: dict[str, tuple[Path, Edit]] = {
        "ada": (solved, lambda nb: None),
        "barbara": (solved, lambda nb: _answer_with(nb, others)),
        "charles": (released, lambda nb: None),
        "dorothy": (solved, _delete_a_check),
        "edsger": (solved, _copy_a_check),
        "frances": (released, _forge),
        **{
            name: (solved, functools.partial(_mistake, turn=k))
            for k, name in enumerate(("grace", "hedy", "ivan", "john", "katherine", "leslie"))
        },
    }
    return [
        _hand_in(source, edit, folder / student / lesson / f"{lesson}.ipynb")
        for student, (source, edit) in students.items()
    ]


def _hand_in(source: Path, edit: Edit, target: Path) -> Path:
    nb = nbformat.read(source, 4)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    edit(nb)
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, target)
    return target


def _mistake(nb: NotebookNode, turn: int) -> None:
    _answer_with(nb, mistakes(nb, turn))


def _answer_with(nb: NotebookNode, answers: dict[str, str]) -> None:
    for cell in nb.cells:
        cell.source = answers.get(cell.metadata.get("answer"), cell.source)


def mistakes(nb: NotebookNode, turn: int) -> dict[str, str]:
    """For every third exercise, its mistake number `turn`, as the source of an answer cell."""
    exercises = [find(name) for name in map(checked, nb.cells) if name]
    return {e.name: mistake_source(e, e.mistakes[turn % len(e.mistakes)]) for e in exercises[turn % 3 :: 3]}


def mistake_source(exercise: Exercise, mistake: Mistake) -> str:
    """An answer cell that makes this mistake."""
    answer = exercise.mistaken(mistake)
    if not callable(answer):
        return f"{exercise.name} = {plain(answer)!r}"
    return "\n\n".join([IMPORTS, *_needed(answer), _renamed(answer, exercise.name)])


def _needed(function: Callable) -> Iterator[str]:
    """The source of what a function uses of the lessons' modules, as a student would write it above.

    A student cannot import it: behind the walls there are no lessons.
    """
    module = sys.modules[function.__module__]
    for name in sorted(_names(function.__code__) & vars(module).keys()):
        value = vars(module)[name]
        if inspect.isfunction(value) and value.__module__.startswith("grader.lessons."):
            yield from (*_needed(value), inspect.getsource(value).rstrip())
        elif inspect.isfunction(value):
            yield f"from {value.__module__} import {name}"
        elif not inspect.ismodule(value) and getattr(value, "__module__", "") != "builtins" and not callable(value):
            yield f"{name} = {value!r}"


def _names(code: types.CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, types.CodeType)))


def _renamed(function: Callable, name: str) -> str:
    source = textwrap.dedent(inspect.getsource(function))
    source = source[source.index("def ") :]
    return re.sub(r"def \w+\(", f"def {name}(", source, count=1)


def alternatives(file: Path) -> dict[str, str]:
    """Other right answers: for each exercise the source of an answer cell."""
    return {name: sources[0] for name, sources in all_alternatives(file).items()}


def all_alternatives(file: Path) -> dict[str, list[str]]:
    """Every `EXERCISE__variant` of an alternatives file, as sources of answer cells, by exercise; none without it."""
    sources: dict[str, list[str]] = {}
    if not file.exists():
        return sources
    prelude = re.split(r"\n\n\ndef \w+__", file.read_text().split('"""', 2)[2], maxsplit=1)[0]
    for name, function in vars(load(file)).items():
        exercise, _, variant = name.partition("__")
        if exercise and variant and inspect.isfunction(function):
            sources.setdefault(exercise, []).append(f"{prelude}\n\n{_renamed(function, exercise)}")
    return sources


def load(file: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"alternatives_{file.parent.name}", file)
    assert spec is not None and spec.loader is not None  # it is a .py file
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _first_check(nb: NotebookNode, name: str) -> int:
    return next(k for k, cell in enumerate(nb.cells) if checked(cell) == name)


def _delete_a_check(nb: NotebookNode) -> None:
    del nb.cells[_first_check(nb, "case3")]


def _copy_a_check(nb: NotebookNode) -> None:
    position = _first_check(nb, "case3")
    nb.cells.insert(position, nbformat.from_dict({**nb.cells[position], "id": "copied"}))


def _forge(nb: NotebookNode) -> None:
    nb.cells.insert(1, nbformat.v4.new_code_cell("import grader\ngrader.check = lambda *a: 4.0\ncheck = grader.check"))
