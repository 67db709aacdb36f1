"""Hand-ins by the hundred, for the benchmark: every answer one of those that students give, in words of their own."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grader.arrays.devices import eight_devices
from grader.classroom.course.demo import all_alternatives, mistake_source
from grader.classroom.course.notebook import checked
from grader.classroom.course.spelling import Renamed
from grader.exercises.exercise import Exercise
from grader.lessons import find

SPELLINGS = 3  # of the same answer, in a class where some think alike
SCRATCH = (
    "print('let me see:', [n * n for n in range({})])",
    "def squares(count):\n    return [n * n for n in range(count)]\n\nprint('let me see:', squares({}))",
)


def hand_ins(root: Path, lesson: str, count: int, seed: int = 0, *, alike: bool = True) -> Iterator[NotebookNode]:
    """Solved, half solved and mistaken notebooks. With `alike`, several students spell an answer in the same words;
    else each has a line in every function that no other student has, for names alone make no two programs of one.

    Of ten answers five are right, two of them in another way, three are mistakes and two are left open. One
    notebook in eight has a cell in which something was tried out; half of these call a function of their own there,
    and so have to be run whole.
    """
    eight_devices()  # the questions' wrong answers come from experiments
    solved, release = (nbformat.read(root / where / lesson / f"{lesson}.ipynb", 4) for where in ("solutions", "course"))
    known = _answers(solved, root / "solutions" / lesson / "alternatives.py")
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        nb = nbformat.from_dict(release)
        for cell in nb.cells:
            if name := cell.metadata.get("answer"):
                spelling = f"{rng.randrange(SPELLINGS)}" if alike else f"{number}"
                chosen = _chosen(rng, known[name], cell.source, spelling)
                cell.source = chosen if alike or chosen == cell.source else with_own_line(chosen, number)
        if rng.random() < 1 / 8:
            nb.cells.insert(2, nbformat.v4.new_code_cell(rng.choice(SCRATCH).format(number)))
        yield nb


def _answers(solved: NotebookNode, alternatives: Path) -> dict[str, dict[str, list[str]]]:
    """For each exercise its right answers, the other right ones, and the mistakes, as sources."""
    others = all_alternatives(alternatives)
    right = {cell.metadata["answer"]: cell.source for cell in solved.cells if cell.metadata.get("answer")}
    names = [name for name in map(checked, solved.cells) if name]
    return {
        name: {"right": [right[name]], "other": others.get(name, [right[name]]), "mistake": _mistakes(find(name))}
        for name in names
    }


def _mistakes(exercise: Exercise) -> list[str]:
    return [mistake_source(exercise, mistake) for mistake in exercise.mistakes]


def _chosen(rng: random.Random, known: dict[str, list[str]], starter: str, spelling: str) -> str:
    kind = rng.choices(["right", "other", "mistake", "open"], [3, 2, 3, 2])[0]
    return starter if kind == "open" else respelled(rng.choice(known[kind]), spelling)


def respelled(source: str, spelling: str) -> str:
    """The same answer with other names for what it defines inside its functions."""
    tree = ast.parse(source)
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        Renamed({name: f"{name}_{spelling}" for name in _locals(function)}).visit(function)
    return ast.unparse(tree)


def with_own_line(source: str, number: int) -> str:
    """The same answer; its functions begin with a line that does nothing, and that only this student has."""
    tree = ast.parse(source)
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        after = 0 if ast.get_docstring(function) is None else 1
        function.body[after:after] = ast.parse(f"own_{number} = {number}").body
    return ast.unparse(tree)


def _locals(function: ast.FunctionDef) -> set[str]:
    """What a function and those inside it assign and define, but for names that one of them also takes as an argument,
    or has from outside by `nonlocal`: these stand in places that no `Name` fills."""
    inner = [node for statement in function.body for node in ast.walk(statement)]
    assigned = {node.id for node in inner if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined = {node.name for node in inner if isinstance(node, ast.FunctionDef)}
    taken = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    return (assigned | defined) - taken.union(*(node.names for node in inner if isinstance(node, ast.Nonlocal)))
