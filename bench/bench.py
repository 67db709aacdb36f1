"""This grader against stock nbgrader: the same hand-ins, the same marks, seconds and ratios in one table.

Stock means nbgrader's own pipeline with its own Execute, which runs the student's code and the checks in one
kernel, one notebook after the other; it grades a sample of each class. Ours runs the code behind walls and judges
outside them, on more meshes than the notebook's check. Both write the gradebook; ours also writes the feedback pages
(which with stock is another command, timed with it).

Each row is kept in .cache/bench as soon as it is there: run the same command again, and it goes on behind the last one;
what is left out by the options is not measured. What another version of the grader has measured does not count.

On two quiet cores all of it takes an hour and a half; these rows take twenty minutes:

    python bench/bench.py --alike 200 --unlike 200 1000 --stock 4 --parts 30
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil
from hand_ins import hand_ins
from nbgrader.api import Gradebook
from rich.console import Console
from rich.table import Table

from grader.classroom.course.build import build, nbgrader
from grader.classroom.grading import execute, record
from grader.classroom.grading.grade import Options, grade_class
from grader.classroom.inside.shown import PACKAGE
from grader.classroom.runs import run as running
from grader.classroom.store import key, version, write
from grader.classroom.verdicts.judge import Judge, shared_judge

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from stock import configuration as nbgraders_own  # noqa: E402

GiB = 1 << 30
LOOK_SECONDS = 3.0  # to look at all processes takes a while
SIZES = (50, 200, 1000)
FIRST = 10  # hand-ins, for which much is done that is kept for all others
KINDS = {"alike": "in three spellings", "unlike": "no two alike"}


@dataclass(frozen=True)
class Measure:
    """One way of grading a class: seconds, peak memory in bytes, each student's points; where that is asked, seconds
    by what they are spent on, of the FIRST hand-ins and of all others."""

    count: int
    seconds: float
    peak: int
    marks: Mapping[str, float] = field(default_factory=dict)
    spent: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def each(self) -> float:
        """Seconds a hand-in."""
        return self.seconds / self.count


class Measures:
    """What is measured, in a file: only what this version of the grader has measured is read."""

    def __init__(self, file: Path, version: str, console: Console):
        self.file, self.version, self.console = file, version, console
        known = json.loads(file.read_text()) if file.exists() else {}
        self.all = {name: Measure(**one) for name, one in known.get(version, {}).items()}

    def take(self, name: str, measure: Callable[[], Measure]) -> Measure:
        if name not in self.all:
            self.console.print(f"{name} …", highlight=False)
            self.all[name] = measure()
            write(self.file, json.dumps({self.version: {n: asdict(one) for n, one in self.all.items()}}).encode())
        one = self.all[name]
        self.console.print(f"{name}: {one.count} hand-ins in {one.seconds:.1f} s", highlight=False)
        return one


def a_class(folder: Path, lesson: str, kind: str, count: int) -> Path:
    """A copy of the course with so many hand-ins, made anew where it is not whole."""
    whole = folder / "whole"
    if not whole.exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(ROOT / "solutions" / lesson, folder / "solutions" / lesson)
        for name in ("nbgrader_config.py", "pyproject.toml"):
            shutil.copy(ROOT / name, folder)
        build(folder)
        for number, nb in enumerate(hand_ins(ROOT, lesson, count, alike=kind == "alike")):
            target = folder / "submitted" / f"student-{number:04}" / lesson / f"{lesson}.ipynb"
            target.parent.mkdir(parents=True)
            nbformat.write(nb, target)
        whole.touch()
    return folder


def students_of(folder: Path) -> list[str]:
    return sorted(place.name for place in (folder / "submitted").iterdir())


@contextlib.contextmanager
def watched() -> Iterator[Callable[[], tuple[float, int]]]:
    """Time a block, and look every LOOK_SECONDS at the memory that this process and its children share or have."""
    over, peak = threading.Event(), [0]

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            peak[0] = max(peak[0], sum(map(_proportional, _family())))

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    started, ended = time.perf_counter(), [0.0]
    try:
        yield lambda: (ended[0] - started, peak[0])
    finally:
        ended[0] = time.perf_counter()
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


def stock(folder: Path, lesson: str, count: int, console: Console) -> Measure:
    """nbgrader's autograde of the first hand-ins, one after the other."""
    api, students = _stock_api(folder), students_of(folder)[:count]
    _forget(folder)
    with watched() as measured:
        for number, student in enumerate(students, 1):
            api.autograde(lesson, student, force=True)
            console.print(f"  stock: {number} of {count}", highlight=False)
    with Gradebook(api.coursedir.db_url) as book:
        marks = {student: book.find_submission(lesson, student).score for student in students}
    return Measure(count, *measured(), marks)


def stock_pages(folder: Path, lesson: str, count: int) -> Measure:
    """nbgrader's generate_feedback for what `stock` has graded."""
    api = _stock_api(folder)
    with watched() as measured:
        for student in students_of(folder)[:count]:
            api.generate_feedback(lesson, student, force=True)
    return Measure(count, *measured())


def _stock_api(folder: Path) -> Any:
    api = nbgrader(folder)
    api.update_config(nbgraders_own(seconds=120))
    return api


def ours(folder: Path, workers: int, console: Console, anew: bool = True) -> Measure:
    """`grader grade`, with a cold start of every process; `anew`: from nothing."""
    if anew:
        _forget(folder)
    with watched() as measured:
        rows = grade_class(folder, console, Options(workers=workers))
    marks = {row.hand_in.student: round(sum(row.points.values()), 2) for row in rows}
    return Measure(len(rows), *measured(), marks)


def _forget(folder: Path) -> None:
    """No result kept, no gradebook rows, no pages."""
    for kept in (".grading", "autograded", "feedback"):
        shutil.rmtree(folder / kept, ignore_errors=True)
    (folder / "gradebook.db").unlink(missing_ok=True)
    build(folder)


def where_time_goes(folder: Path, lesson: str, count: int) -> Measure:
    """What seconds are spent on, for the first hand-ins of a class, graded from nothing, one after the other, here."""
    _forget(folder)
    spent: dict[str, list[float]] = {}
    done: list[str] = []

    def timed(label: Callable[..., str], call: Callable) -> Callable:
        def wrapped(*args, **kwargs):
            started, before = time.perf_counter(), sum(map(sum, spent.values()))
            try:
                return call(*args, **kwargs)
            finally:
                inside, name = sum(map(sum, spent.values())) - before, label(*args)
                spent.setdefault(name, [0.0, 0.0])[len(done) >= FIRST] += time.perf_counter() - started - inside

        return wrapped

    def of_a_run(todo: list[dict[str, Any]], *_: object) -> str:
        return "replays, in workers" if any("watch" in step for step in todo) else "students' code, in workers"

    api = record._api(folder)
    plans: list[tuple[Any, str, Callable[..., str]]] = [
        (running, "_run_steps", of_a_run),
        (Judge, "__call__", lambda *_: "judging, with evaluators"),
        *((room, "grade_notebook", lambda *_: "slices and results that are kept") for room in (record, execute)),
        (api, "autograde", lambda *_: "nbgrader: gradebook"),
        (api, "generate_feedback", lambda *_: "nbgrader: feedback pages"),
    ]
    before = [getattr(owner, name) for owner, name, _ in plans]
    for (owner, name, label), call in zip(plans, before, strict=True):
        setattr(owner, name, timed(label, call))
    try:
        with watched() as measured:
            for student in students_of(folder)[:count]:
                record.record(record.HandIn(folder, student, lesson))
                done.append(student)
    finally:
        for (owner, name, _), call in zip(plans, before, strict=True):
            setattr(owner, name, call)
        shared_judge().close()
    return Measure(len(done), *measured(), spent=spent)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind, spelled in KINDS.items():
        words = f"sizes of classes {spelled}, the smallest first"
        options.add_argument(f"--{kind}", type=int, nargs="+", default=SIZES, metavar="N", help=words)
    options.add_argument("--stock", type=int, default=10, help="let stock grade so many of a class of each kind")
    options.add_argument("--parts", type=int, default=50, help="hand-ins by which is shown where time goes")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--lesson", default="07_matmul")
    chosen = options.parse_args()
    warnings.filterwarnings("ignore")
    console, lesson, folder = Console(), chosen.lesson, ROOT / ".cache" / "bench"
    asked = key(version(PACKAGE), lesson, chosen.workers)
    measures = Measures(folder / "measures.json", asked, console)
    rows: list[tuple[str, str, Measure]] = []
    differing: list[str] = []

    def place(kind: str, count: int) -> Path:
        return a_class(folder / f"{lesson}-{kind}-{count}", lesson, kind, count)

    def compare(kind: str, spelled: str, sizes: Sequence[int]) -> None:
        smallest, largest, sample = sizes[0], sizes[-1], min(chosen.stock, sizes[0])

        def take(row: str, name: str, measure: Callable[[], Measure]) -> Measure:
            one = measures.take(f"{name}, {spelled}", measure)
            rows.append((row, spelled, one))
            return one

        def stocks() -> Measure:
            return stock(place(kind, smallest), lesson, sample, console)

        def stocks_pages() -> Measure:
            return stock_pages(place(kind, smallest), lesson, sample)

        def of_ours(size: int, anew: bool = True) -> Measure:
            return ours(place(kind, size), chosen.workers, console, anew)

        graded = take("stock nbgrader autograde, a sample", f"stock, {sample}", stocks)
        take("  its generate_feedback", f"stock, {sample}, pages", stocks_pages)
        for size in sizes:
            one = take(f"ours, {chosen.workers} workers", f"ours, {size}", functools.partial(of_ours, size))
            differing.extend(differences(graded.marks, one.marks))
        again = functools.partial(of_ours, largest, anew=False)
        take("  the same again, nothing changed", f"ours again, {largest}", again)

    for kind, spelled in KINDS.items():
        compare(kind, spelled, getattr(chosen, kind))
    count = min(chosen.parts, chosen.unlike[0])
    parts = measures.take(
        f"where time goes, {count}", lambda: where_time_goes(place("unlike", chosen.unlike[0]), lesson, count)
    )
    show(rows, console)
    show_parts(parts, console)
    if differing:
        console.print("Marks differ: " + "; ".join(differing))
        sys.exit(1)
    console.print("Marks of the students whom stock has graded are the same in each class of ours.")


def differences(stocks: Mapping[str, float], ours: Mapping[str, float]) -> list[str]:
    """Whose marks differ: the first hand-ins are the same in a class of any size."""
    return [
        f"{student}: stock {mark:g}, ours {ours.get(student)}"
        for student, mark in stocks.items()
        if student not in ours or abs(ours[student] - mark) > 0.01
    ]


def show(rows: list[tuple[str, str, Measure]], console: Console) -> None:
    """One table. Ours writes the pages, too: how much quicker that is than stock's two commands is the last ratio."""
    table = Table("", "spelled", title="One run")
    for name in ("hand-ins", "seconds", "a hand-in", "times stock", "with its pages", "peak memory"):
        table.add_column(name, justify="right")
    each = {(name.strip().split()[0], spelled): one.each for name, spelled, one in rows}
    for name, spelled, one in rows:
        autograde, pages = each["stock", spelled], each["its", spelled]
        ratios = ("", "") if "its" in name else (f"{whole / one.each:.1f}" for whole in (autograde, autograde + pages))
        table.add_row(
            name, spelled, str(one.count), f"{one.seconds:.1f}", f"{one.each:.2f}", *ratios, f"{one.peak / GiB:.1f} GiB"
        )
    console.print(table)


def show_parts(parts: Measure, console: Console) -> None:
    table = Table("", title=f"Where time goes: {parts.count} hand-ins, no two alike, one after the other")
    for name in (f"the first {FIRST}, s a hand-in", "the others, s a hand-in", "of theirs"):
        table.add_column(name, justify="right")
    first, others = min(FIRST, parts.count), max(1, parts.count - FIRST)
    whole = sum(later for _, later in parts.spent.values()) or 1.0
    for name, (early, later) in sorted(parts.spent.items(), key=lambda item: -item[1][1]):
        table.add_row(name, f"{early / first:.2f}", f"{later / others:.2f}", f"{later / whole:.0%}")
    table.add_row("together", f"{sum(e for e, _ in parts.spent.values()) / first:.2f}", f"{whole / others:.2f}", "")
    console.print(table)


if __name__ == "__main__":
    main()
