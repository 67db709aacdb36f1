"""This grader against stock nbgrader, in one run: the same hand-ins, the same marks, seconds and ratios printed.

Stock means nbgrader's own pipeline with its own Execute, which runs the student's code and the checks in one
kernel, one notebook after the other. Ours runs the code behind walls and judges outside them, on more meshes
than the notebook's check. Both write the gradebook; ours also writes the feedback pages (which with stock is
another command, timed with it).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
from hand_ins import hand_ins
from nbgrader.api import Gradebook
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from grader.classroom.course.build import build, nbgrader
from grader.classroom.course.notebook import restore
from grader.classroom.grading import execute, record
from grader.classroom.grading.grade import Options, grade_class
from grader.classroom.inside.limits import Limits
from grader.classroom.runs import run as running
from grader.classroom.verdicts.judge import Judge, shared_judge

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from stock import configuration as nbgraders_own  # noqa: E402

GiB = 1 << 30


@dataclass
class Timed:
    """One way of grading a class: seconds, peak memory in bytes, and each student's points."""

    name: str
    count: int
    seconds: float = 0.0
    peak: int = 0
    marks: dict[str, float] | None = None


def course(folder: Path, lesson: str, notebooks: Iterator[nbformat.NotebookNode]) -> Path:
    """A copy of the course with these hand-ins."""
    shutil.copytree(ROOT / "solutions" / lesson, folder / "solutions" / lesson)
    for name in ("nbgrader_config.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    build(folder)
    for number, nb in enumerate(notebooks):
        target = folder / "submitted" / f"student-{number:03}" / lesson / f"{lesson}.ipynb"
        target.parent.mkdir(parents=True)
        nbformat.write(nb, target)
    return folder


@contextlib.contextmanager
def watched(result: Timed) -> Iterator[None]:
    """Time a block, and look every second at the memory that this process and its children share or have."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(1.0):
            result.peak = max(result.peak, sum(map(_proportional, _family())))

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    started = time.perf_counter()
    try:
        yield
    finally:
        result.seconds = time.perf_counter() - started
        over.set()
        watch.join()


def _family() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def _proportional(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0


def said(result: Timed, console: Console) -> None:
    """A line as soon as there is something to say: a whole run takes long."""
    console.print(f"{result.name}: {result.count} hand-ins in {result.seconds:.1f} s")


def stock(folder: Path, lesson: str, students: list[str], console: Console) -> tuple[Timed, Timed]:
    """nbgrader's autograde, one student after the other; and then its generate_feedback."""
    api = nbgrader(folder)
    api.update_config(nbgraders_own(seconds=120))
    graded, pages = Timed("stock nbgrader autograde", len(students)), Timed("  its generate_feedback", len(students))
    for result, step in ((graded, api.autograde), (pages, api.generate_feedback)):
        with watched(result), Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            for student in progress.track(students, description=result.name):
                step(lesson, student, force=True)
        said(result, console)
    with Gradebook(api.coursedir.db_url) as book:
        graded.marks = {student: book.find_submission(lesson, student).score for student in students}
    return graded, pages


def ours(name: str, folder: Path, workers: int, console: Console) -> Timed:
    """`grader grade`, from nothing, with a cold start of every process."""
    _forget(folder)
    result = Timed(name, len(list((folder / "submitted").iterdir())))
    with watched(result):
        rows = grade_class(folder, Console(quiet=True), Options(workers=workers))
    said(result, console)
    result.marks = {row.hand_in.student: round(sum(row.points.values()), 2) for row in rows}
    return result


def _forget(folder: Path) -> None:
    """No result kept, no gradebook rows, no pages."""
    for kept in (".grading", "autograded", "feedback"):
        shutil.rmtree(folder / kept, ignore_errors=True)
    (folder / "gradebook.db").unlink()
    build(folder)


def bare(folder: Path, lesson: str, students: list[str]) -> float:
    """Seconds a hand-in when its notebook is only run, whole, in a warm fork: no judging, no gradebook."""
    release = nbformat.read(folder / "course" / lesson / f"{lesson}.ipynb", 4)
    todo = [
        running.steps(
            running.code(
                restore(nbformat.read(folder / "submitted" / student / lesson / f"{lesson}.ipynb", 4), release)
            ),
            0,
        )
        for student in students
    ]
    running._run_steps(todo[0], Limits(), running.Clock(Limits.seconds))
    started = time.perf_counter()
    for steps in todo:
        running._run_steps(steps, Limits(), running.Clock(Limits.seconds))
    return (time.perf_counter() - started) / len(todo)


def where_time_goes(folder: Path, lesson: str, students: list[str]) -> dict[str, float]:
    """Seconds by what they are spent on, for a class graded from nothing, one after the other, in this process."""
    _forget(folder)
    spent: dict[str, float] = {}

    def timed(name: str, call: Callable) -> Callable:
        def wrapped(*args, **kwargs):
            started, before = time.perf_counter(), sum(spent.values())
            try:
                return call(*args, **kwargs)
            finally:
                inside = sum(spent.values()) - before
                spent[name] = spent.get(name, 0.0) + time.perf_counter() - started - inside

        return wrapped

    api = record._api(folder)
    plans = [
        (running, "_run_steps", "students' code, in workers"),
        (Judge, "__call__", "judging, with evaluators"),
        *((room, "grade_notebook", "slices and results that are kept") for room in (record, execute)),
        (api, "autograde", "nbgrader: gradebook"),
        (api, "generate_feedback", "nbgrader: feedback pages"),
    ]
    before = [getattr(owner, name) for owner, name, _ in plans]
    for (owner, name, label), call in zip(plans, before, strict=True):
        setattr(owner, name, timed(label, call))
    try:
        for student in students:
            record.record(record.HandIn(folder, student, lesson))
    finally:
        for (owner, name, _), call in zip(plans, before, strict=True):
            setattr(owner, name, call)
    return spent


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-n", type=int, default=200, help="how many hand-ins")
    options.add_argument("--stock", type=int, default=None, help="let stock grade only so many, and say so")
    options.add_argument("--growth", type=int, nargs=2, default=(50, 400), help="two sizes of class to compare")
    options.add_argument("--lesson", default="07_matmul")
    chosen = options.parse_args()
    warnings.filterwarnings("ignore")
    console, lesson = Console(), chosen.lesson
    with tempfile.TemporaryDirectory() as scratch:
        folder = course(Path(scratch, "class"), lesson, hand_ins(ROOT, lesson, chosen.n))
        students = sorted(p.name for p in (folder / "submitted").iterdir())
        graded, pages = stock(folder, lesson, students[: chosen.stock], console)
        rows = [graded, pages, ours("ours, 1 worker", folder, 1, console), ours("ours, 2 workers", folder, 2, console)]
        rows.append(_again("  the same, nothing changed", folder))
        each = bare(folder, lesson, students[:10])
        spent = where_time_goes(folder, lesson, students)
        other = course(Path(scratch, "unlike"), lesson, hand_ins(ROOT, lesson, chosen.n, alike=False))
        rows.append(ours("ours, 2 workers, no two spelled alike", other, 2, console))
        rows += [
            ours(
                f"ours, 2 workers, {count}",
                course(Path(scratch, str(count)), lesson, hand_ins(ROOT, lesson, count, seed=1)),
                2,
                console,
            )
            for count in chosen.growth
        ]
        shared_judge().close()
    show(rows, each, spent, console)
    check(graded, rows, console)


def _again(name: str, folder: Path) -> Timed:
    result = Timed(name, len(list((folder / "submitted").iterdir())))
    with watched(result):
        grade_class(folder, Console(quiet=True), Options(workers=2))
    return result


def show(rows: list[Timed], each: float, spent: dict[str, float], console: Console) -> None:
    first, pages, *_, small, large = rows
    table = Table("", "hand-ins", "seconds", "a hand-in", "times stock", "peak memory", title="One run")
    for row in rows:
        a_hand_in, stock_one = row.seconds / row.count, first.seconds / first.count
        ratio = "" if row is pages else f"{stock_one / a_hand_in:.1f}"
        table.add_row(
            row.name, str(row.count), f"{row.seconds:.1f}", f"{a_hand_in:.2f}", ratio, f"{row.peak / GiB:.1f} GiB"
        )
    table.add_row(
        "bare: each notebook run whole, unjudged",
        "10",
        f"{10 * each:.1f}",
        f"{each:.2f}",
        f"{first.seconds / first.count / each:.1f}",
        "",
    )
    console.print(table)
    whole = sum(spent.values())
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        console.print(f"  {seconds / whole:4.0%}  {name}")
    more, longer = large.count / small.count, large.seconds / small.seconds
    console.print(f"{more:g} times the hand-ins took {longer:.1f} times the time.")


def check(graded: Timed, rows: list[Timed], console: Console) -> None:
    """Assert that everybody has the same marks from everyone."""
    wrong = {}
    for row, student in itertools.product(rows, graded.marks):
        if row.marks and row.count >= len(graded.marks) and not row.name.endswith(("alike", str(row.count))):
            mark, theirs = row.marks.get(student), graded.marks[student]
            if mark is None or abs(mark - theirs) > 0.01:
                wrong[student] = (row.name, theirs, mark)
    if wrong:
        differ = (f"{student}: stock {mark:g}, {name} {other}" for student, (name, mark, other) in wrong.items())
        console.print("Marks differ: " + "; ".join(differ))
        sys.exit(1)
    console.print(f"Marks of {len(graded.marks)} students: identical.")


if __name__ == "__main__":
    main()
