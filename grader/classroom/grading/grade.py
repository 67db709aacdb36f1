"""A whole class: every hand-in through nbgrader's own pipeline, several at once.

What has not changed since it was graded is not graded again, so a run that was stopped or killed goes on where it was.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from grader.classroom.course.build import build, is_registered, nbgrader
from grader.classroom.course.demo import make_class
from grader.classroom.grading.beginning import begin
from grader.classroom.grading.progress import Stopped, a_minute, progress_bar
from grader.classroom.grading.record import HandIn, Row, record
from grader.classroom.grading.summary import total, write_csv
from grader.classroom.store import Unavailable
from grader.classroom.walls import bubblewrap as walls

DEMO = "07_matmul"  # the lesson that a demo class hands in
MOST_DEATHS = 3  # how often in a row the graders' processes may die before somebody has to look


@dataclass(frozen=True)
class Options:
    """How a class is graded.

    `workers` is the number of processes; hand-ins of the students in `again` are graded anew in any case; with
    `details` there is a line for each hand-in; `scheduler` is the address of a Dask cluster, "" for none.
    """

    workers: int = max(1, os.cpu_count() or 1)
    again: Collection[str] = ()
    details: bool = False
    scheduler: str = ""


def grade_class(root: Path, console: Console, options: Options = Options()) -> list[Row]:
    """Grade everything in `submitted/` (or a demo class, if there is nothing) and write feedback and grades.csv.

    Raises Stopped on Ctrl-C, and Unavailable.
    """
    try:
        if not is_registered(root):
            console.print("Building course/ and the gradebook …")
            build(root)
        hand_ins = list(hand_ins_of(root)) or _demo(root, console)
        if options.scheduler:
            from grader.classroom.grading.cluster import run_ahead  # logs, queues and threads that a class seldom needs

            run_ahead(hand_ins, options.scheduler, console)
        rows = _graded(hand_ins, options, console)
        write_csv(rows, root / "grades.csv")
    except KeyboardInterrupt:
        raise Stopped("Stopped. What is done is kept. Run the same command again to go on.") from None
    except OSError as error:
        raise Unavailable(
            f"{error.strerror or error} ({error.filename or root}). Put that right and run the same "
            "command again: what is done is kept."
        ) from error
    return rows


def hand_ins_of(root: Path) -> Iterator[HandIn]:
    """The hand-ins under `submitted/STUDENT/LESSON/`, in order."""
    for folder in sorted((root / "submitted").glob("*/*")):
        if folder.is_dir() and not folder.name.startswith("."):
            yield HandIn(root, folder.parent.name, folder.name)


def _demo(root: Path, console: Console) -> list[HandIn]:
    console.print("There is nothing in submitted/: making a demo class of 12 students.")
    os.environ.setdefault(walls.WITHOUT, "1")  # where they cannot be built: this class is ours
    released = sorted(notebook.stem for notebook in (root / "course").glob("*/*.ipynb"))
    make_class(root, DEMO if DEMO in released else released[0], root / "submitted")
    return list(hand_ins_of(root))


def _graded(hand_ins: Sequence[HandIn], options: Options, console: Console) -> list[Row]:
    """A row for each hand-in, in their order; the progress is shown meanwhile."""
    rows: dict[HandIn, Row] = {}
    with progress_bar(console) as progress:
        bar = progress.add_task("Grading", total=len(hand_ins), rate="")
        try:
            for row in _all_rows(hand_ins, options):
                rows[row.hand_in] = row
                progress.update(bar, advance=1, rate=a_minute(progress.tasks[0].speed))
                if options.details:
                    progress.console.print(_line(row), highlight=False)
        except KeyboardInterrupt:
            raise Stopped(
                f"Stopped. {len(rows)} of {len(hand_ins)} hand-ins are graded; what is done is kept. Run "
                "the same command again to go on."
            ) from None
    return [rows[hand_in] for hand_in in hand_ins]


def _all_rows(hand_ins: Sequence[HandIn], options: Options) -> Iterator[Row]:
    """A row for each hand-in as it is ready. Processes that die are replaced, unless they die again and again."""
    waiting = dict.fromkeys(hand_ins)
    deaths = 0
    while waiting and deaths < MOST_DEATHS:
        try:
            for row in _side_by_side(list(waiting), options):
                del waiting[row.hand_in]
                deaths = 0
                yield row
        except BrokenProcessPool:
            deaths += 1
    for hand_in in waiting:
        yield Row(
            hand_in,
            problem="The process that graded it died, several times. Is there too little memory for so many --workers?",
        )


def _side_by_side(hand_ins: Sequence[HandIn], options: Options) -> Iterator[Row]:
    """Rows as they are ready, from a pool of processes."""
    count = min(options.workers, len(hand_ins))
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=begin)
    try:
        with _deaf_to_ctrl_c():
            futures: list[Future[Row]] = [pool.submit(record, h, h.student in options.again) for h in hand_ins]
        for future in as_completed(futures):
            yield future.result()
    except BaseException:
        for child in multiprocessing.active_children():
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes started in this block leave Ctrl-C to the one that started them."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _line(row: Row) -> str:
    marks = row.problem or f"{total(row.points):g} / {total(row.worth):g}"
    return escape(f"{row.hand_in.student}  {row.hand_in.lesson}  {marks}")


def write_feedback(root: Path) -> Iterator[Path]:
    """Write every graded hand-in's feedback page anew, with what a person has since added in Formgrader."""
    api = nbgrader(root)
    for hand_in in hand_ins_of(root):
        is_graded = hand_in.at("autograded").exists()
        if is_graded and api.generate_feedback(hand_in.lesson, hand_in.student, force=True)["success"]:
            yield hand_in.at("feedback", ".html").relative_to(root)
