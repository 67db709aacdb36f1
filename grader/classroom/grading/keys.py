"""The key under which a verdict is kept: all that decides it, and no more.

Of the lessons, that is the code that declares the exercise. Comments and docstrings decide nothing: a mistake's
docstring is a sentence, which is looked up when a card is drawn.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grader.chips.compiling import libtpu_version
from grader.classroom.inside.shown import PACKAGE, common
from grader.classroom.store import key, version
from grader.classroom.verdicts.judge import DECIDES
from grader.exercises.exercise import Exercise
from grader.lessons import EXERCISES

IN_LESSONS = "grader.lessons."
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def verdict_key(exercise: Exercise, seed: int, answers: Any) -> str:
    """A verdict depends on the TPU's compiler too: an answer that nobody could compile is judged once it is here."""
    decides = (version(*common(), *DECIDES), _compiler(), declaration(exercise.name))
    return key(*decides, exercise.name, exercise.points, seed, answers)


_compiler = functools.cache(libtpu_version)  # it is looked for on the disk


@functools.cache
def declaration(name: str) -> str:
    """A key for the code that declares an exercise, with all that it imports of the lessons."""
    todo = [file for module in _declaring(name) for file in _files(module)]
    found: dict[str, str] = {}
    while todo:
        file = todo.pop()
        place = str(file.relative_to(PACKAGE))
        if place not in found:
            found[place], imported = _read(file)
            todo += [other for module in imported for other in _files(module)]
    return key(found)


@functools.cache
def _read(file: Path) -> tuple[str, tuple[str, ...]]:
    """What a file says, without comments and docstrings, and what it imports of the lessons."""
    tree = _without_docstrings(ast.parse(file.read_bytes()))
    return ast.dump(tree), tuple(_imported(tree))


def _declaring(name: str) -> list[str]:
    """The lessons' modules that have an exercise of this name: its own, and those that import it from there."""
    exercise = EXERCISES[name]
    modules = [(module, vars(sys.modules[module])) for module in sorted(sys.modules) if module.startswith(IN_LESSONS)]
    return [module for module, names in modules if any(value is exercise for value in names.values())]


def _imported(tree: ast.AST) -> Iterator[str]:
    """What a file imports of the lessons; a name that it takes from a package may be a module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(IN_LESSONS))
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(IN_LESSONS):
            yield from (str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names))


def _files(module: str) -> list[Path]:
    path = PACKAGE.parent.joinpath(*module.split("."))
    return [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree
