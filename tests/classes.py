"""A small class for the small course, what came of grading it, and the command that does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import mini
import nbformat
from sqlalchemy import create_engine, text

from grader.classroom.course.build import build, is_registered
from grader.classroom.grading.grade import hand_ins_of
from grader.classroom.grading.record import Row, record
from grader.classroom.grading.summary import write_csv

FORGOT = """def case3(a, b, *, mesh):
    return jax.shard_map(lambda p, q: p @ q, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(),
                         check_vma=False)(a, b)"""
GATHERED = """def case3(a, b, *, mesh):
    def go(p, q):
        whole = jax.lax.all_gather(p, "x", axis=1, tiled=True) @ jax.lax.all_gather(q, "x", axis=0, tiled=True)
        return whole
    return jax.shard_map(go, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(), check_vma=False)(a, b)"""
WHOSE = """from submitted_notebook n join submitted_assignment a on n.assignment_id = a.id
           join {0} on {0}.notebook_id = n.id join base_cell on {0}.cell_id = base_cell.id"""
GRADES = (
    "select a.student_id, base_cell.name, grade.auto_score, grade.manual_score, grade.needs_manual_grade "
    + WHOSE.format("grade")
)
COMMENTS = "select a.student_id, base_cell.name, comment.auto_comment, comment.manual_comment " + WHOSE.format(
    "comment"
)


def submit(root: Path, student: str, nb: nbformat.NotebookNode) -> Path:
    file = root / "submitted" / student / mini.LESSON / f"{mini.LESSON}.ipynb"
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, file)
    return file


def answered(root: Path, source: str) -> nbformat.NotebookNode:
    """The solved lesson with another answer to case3."""
    return mini.edited(mini.solved(root), "answer_case3", lambda cell: cell.update(source=source))


def fill(root: Path, leave_out: Collection[str] = ()) -> None:
    """Eight hand-ins, each another; most take a while to run."""
    at_case3 = mini.position(mini.solved(root), "answer_case3")
    wait = "import time; time.sleep(0.6)"
    hand_ins = {
        "ada": mini.with_cell(mini.solved(root), wait),
        "ben": mini.released(root),
        "cleo": mini.with_cell(answered(root, FORGOT), "raise ValueError('one cell fails')"),
        "dora": mini.with_cell(answered(root, GATHERED), wait),
        "emil": mini.with_cell(mini.solved(root), "import os; os._exit(3)", at=at_case3),
        "finn": mini.with_cell(mini.solved(root), "while True: pass"),
        "gina": mini.with_cell(answered(root, FORGOT), "print('hello')"),
        "hugo": mini.with_cell(mini.solved(root), wait + "\nprint('x' * 100_000)"),
    }
    for student, nb in hand_ins.items():
        if student not in leave_out:
            submit(root, student, nb)


def results(root: Path) -> dict[str, Any]:
    """All that grading left: the gradebook cell by cell, the executed notebooks, the pages and the table."""
    left = marks(f"sqlite:///{root}/gradebook.db")
    for pattern in ("autograded/*/*/*.ipynb", "feedback/*/*/*"):
        left |= {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.glob(pattern))}
    return {**left, "grades.csv": (root / "grades.csv").read_text()}


def marks(url: str) -> dict[str, Any]:
    """Every grade and every comment in a gradebook, and its version."""
    engine = create_engine(url)
    with engine.connect() as book:
        found = {
            query: sorted(map(tuple, book.execute(text(query))), key=lambda row: row[:2])
            for query in (GRADES, COMMENTS, "select id, email from student", "select * from alembic_version")
        }
    engine.dispose()
    return found


def start(root: Path, *options: Any) -> subprocess.Popen[str]:
    """`grader grade` in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "grader.cli", "grade", *map(str, options)],
        cwd=root,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def finish(command: subprocess.Popen[str], seconds: float = 120) -> str:
    """What it said, when it has ended by itself."""
    try:
        return command.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(command.pid, signal.SIGKILL)
        raise


def grade_here(root: Path) -> list[Row]:
    """The same in this process, one hand-in after the other."""
    if not is_registered(root):
        build(root)
    rows = list(map(record, hand_ins_of(root)))
    write_csv(rows, root / "grades.csv")
    return rows


def grade(root: Path, *options: Any) -> str:
    command = start(root, *options)
    said = finish(command)
    assert "Traceback" not in said, said
    return said
