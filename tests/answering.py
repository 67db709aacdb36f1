"""The answers that are known of an exercise (solved, mistaken, untouched), and the verdict on one."""

import ast
import contextlib
import functools
import linecache
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from grader.classroom.course.frame import bare
from grader.classroom.course.where import sections
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.jax_versions import one_mlir_context
from grader.judging.judge import judgment_of
from grader.lessons import EXERCISES

ROOT = Path(__file__).parents[1]
LESSONS = [path.stem for path in sorted(ROOT.glob("solutions/*/*.md")) if path.stem == path.parent.name]


def notebook(folder: str, lesson: str) -> NotebookNode:
    """A lesson's notebook in this folder; a test fails where it is not built yet."""
    file = ROOT / folder / lesson / f"{lesson}.ipynb"
    if not file.exists():
        pytest.fail(f"{lesson} is not built yet: run `grader build {lesson}` first", pytrace=False)
    return nbformat.read(file, 4)


@functools.cache
def setting(lesson: str) -> str:
    """The imports and the mesh that every answer of a lesson may use: the first code cell of its source."""
    return next(cell.source for cell in bare(notebook("solutions", lesson)).cells if cell.cell_type == "code")


def define(source: str, space: dict[str, object]) -> None:
    """Run a cell as a notebook does, where the text of a function can be found again."""
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), space)


@functools.cache
def answered(folder: str, lesson: str) -> dict[str, object]:
    """What the answer cells of a notebook define, by name; other cells only give them names that they use."""
    space: dict[str, object] = {}
    define(setting(lesson), space)
    for cell in notebook(folder, lesson).cells:
        if cell.metadata.get("answer"):
            define(cell.source, space)
        elif cell.cell_type == "code":
            for source in definitions(cell.source):
                with contextlib.suppress(NameError):  # it is made of what an example made
                    define(source, space)
    return space


def given(lesson: str) -> dict[str, object]:
    """What a lesson gives to those who write its answers: all that its other cells define, as it is defined first."""
    space: dict[str, object] = {}
    define(setting(lesson), space)
    for cell in notebook("solutions", lesson).cells:
        if cell.cell_type == "code" and not cell.metadata.get("answer"):
            for source in definitions(cell.source):
                new = dict(space)
                with contextlib.suppress(NameError):  # it is made of what an example made
                    define(source, new)
                space.update((name, value) for name, value in new.items() if name not in space)
    return space


def definitions(source: str) -> list[str]:
    """What a cell defines, piece by piece: its imports, functions, and constants, whose names are in capitals."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # a command of IPython's
        return []
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    return [ast.unparse(node) for node in statements if isinstance(node, kinds) or _is_constant(node)]


def _is_constant(node: ast.stmt) -> bool:
    """A name in capitals, or an empty dict in which functions note something."""
    if not isinstance(node, ast.Assign) or not all(isinstance(target, ast.Name) for target in node.targets):
        return False
    return ast.unparse(node.value) == "{}" or all(target.id.isupper() for target in node.targets)


def asked(lesson: str) -> list[str]:
    """The names of a lesson's exercises, in the order of its text."""
    return list(sections(ROOT / "solutions" / lesson / f"{lesson}.md"))


def verdict(exercise, answer, seed=7, thorough=False):
    cases = exercise.draw_cases(seed, thorough=thorough)
    return explained(exercise, cases, collect(exercise.form, asks(exercise, cases), answer))


def is_accepted(lesson: str, name: str, source: str) -> bool:
    """Whether the answer that a cell defines misses no check, in the notebook and in grading."""
    space = dict(answered("solutions", lesson))
    define(source, space)
    return all(_misses_none(EXERCISES[name], space[name], *drawn) for drawn in ((0, False), (7, True)))


def _misses_none(exercise, answer, seed, thorough):
    cases = exercise.draw_cases(seed, thorough=thorough)
    with one_mlir_context():
        answers = collect(exercise.form, asks(exercise, cases), answer)
        return judgment_of(exercise, cases, answers).first_miss is None


def mistaken(exercise, mistake):
    """The answer that makes a mistake: for a table, every row that the mistake is about."""
    return exercise.mistaken(mistake)
