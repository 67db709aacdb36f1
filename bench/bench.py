"""This grader against stock nbgrader, in one run: the same hand-ins, the same checks, ratios printed.

Stock means nbgrader's own pipeline with its own Execute, which runs the students' code and the check in one
kernel. Ours runs the code in a worker and judges outside it, on more meshes than the notebook's check.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from nbgrader.api import Gradebook
from rich.console import Console
from rich.progress import track
from rich.table import Table
from traitlets.config import Config

from grader.classroom.build import build, nbgrader
from grader.classroom.demo import make_class
from grader.classroom.judging import shared_judge

ROOT = Path(__file__).parents[1]
STOCK = ["Execute", "IgnorePattern", "ClearMetadataPreprocessor", "LimitOutput", "SaveAutoGrades",
         "AssignLatePenalties", "CheckCellMetadata"]


def course(folder: Path, lesson: str) -> Path:
    """A copy of the course with a demo class in it."""
    shutil.copytree(ROOT / "solutions" / lesson, folder / "solutions" / lesson)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    build(folder)
    make_class(folder, lesson, folder / "submitted")
    return folder


def stock_configuration() -> Config:
    """What nbgrader does out of the box, but for a longer time limit a cell."""
    from nbconvert.preprocessors import ClearMetadataPreprocessor
    from nbgrader import preprocessors

    steps = [getattr(preprocessors, name, ClearMetadataPreprocessor) for name in STOCK]
    config = Config()
    config.Autograde.autograde_preprocessors = steps
    config.Autograde.sanitize_preprocessors = [getattr(preprocessors, n) for n in (
        "ClearOutput", "DeduplicateIds", "OverwriteKernelspec", "OverwriteCells", "CheckCellMetadata")]
    config.OverwriteCells.add_missing_cells = True
    config.Execute.timeout = 120
    return config


def grade(folder: Path, lesson: str, students: list[str], config: Config | None, label: str,
          console: Console) -> tuple[float, dict[str, float]]:
    """Seconds for the class, and each student's points."""
    api = nbgrader(folder)
    if config is not None:
        api.update_config(config)
    started = time.perf_counter()
    for student in track(students, label, console=console, transient=True, disable=not console.is_terminal):
        api.autograde(lesson, student, force=True)
    seconds = time.perf_counter() - started
    with Gradebook(api.coursedir.db_url) as book:
        return seconds, {s: book.find_submission(lesson, s).score for s in students}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-n", type=int, default=12, help="how many hand-ins (at most 12)")
    options.add_argument("--lesson", default="07_matmul")
    chosen = options.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory() as scratch:
        folder = course(Path(scratch), chosen.lesson)
        students = sorted(p.name for p in (folder / "submitted").iterdir())[: chosen.n]
        stock, theirs = grade(folder, chosen.lesson, students, stock_configuration(), "stock nbgrader", console)
        ours, marks = grade(folder, chosen.lesson, students, None, "this grader", console)
        shared_judge().close()
    table = Table("", "seconds", "per hand-in", "ratio", title=f"{len(students)} hand-ins of {chosen.lesson}, one run")
    table.add_row("stock nbgrader autograde", f"{stock:.1f}", f"{stock / len(students):.2f}", "1.00")
    table.add_row("this grader", f"{ours:.1f}", f"{ours / len(students):.2f}", f"{stock / ours:.2f}")
    console.print(table)
    differ = {s: (theirs[s], marks[s]) for s in students if abs(theirs[s] - marks[s]) > 0.05}
    console.print("Marks: identical." if not differ else "Marks that differ (stock, ours): " + ", ".join(
        f"{s} {a:g} → {b:g}" for s, (a, b) in differ.items()))


if __name__ == "__main__":
    main()
