"""The answers that are known of an exercise (solved, mistaken, untouched), and the verdict on one."""

import functools
import linecache
from pathlib import Path

import nbformat

from grader.classroom.course.frame import bare
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge

ROOT = Path(__file__).parents[1]


@functools.cache
def setting(lesson: str) -> str:
    """The imports and the mesh that every answer of a lesson may use: the first code cell of its source."""
    notebook = nbformat.read(ROOT / "solutions" / lesson / f"{lesson}.ipynb", 4)
    return next(cell.source for cell in bare(notebook).cells if cell.cell_type == "code")


def define(source: str, space: dict[str, object]) -> None:
    """Run a cell as a notebook does, where the text of a function can be found again."""
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), space)


@functools.cache
def answered(folder: str, lesson: str) -> dict[str, object]:
    """What the answer cells of a notebook define, by name."""
    space: dict[str, object] = {}
    define(setting(lesson), space)
    for cell in nbformat.read(ROOT / folder / lesson / f"{lesson}.ipynb", 4).cells:
        if cell.metadata.get("answer"):
            define(cell.source, space)
    return space


def asked(lesson: str) -> list[str]:
    """The names of a lesson's exercises, in the order of the notebook."""
    notebook = nbformat.read(ROOT / "solutions" / lesson / f"{lesson}.ipynb", 4)
    return [cell.metadata["answer"] for cell in notebook.cells if cell.metadata.get("answer")]


def verdict(exercise, answer, seed=7, thorough=False):
    cases = exercise.draw_cases(seed, thorough=thorough)
    return judge(exercise, cases, collect(exercise.form, asks(exercise, cases), answer))


def mistaken(exercise, mistake):
    """The answer that makes a mistake: for a table, every row that the mistake is about."""
    return exercise.mistaken(mistake)
