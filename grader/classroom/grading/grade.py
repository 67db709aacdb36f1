"""A whole class: every hand-in through nbgrader's own pipeline, several at once.

What has not changed since it was graded is not graded again, so a run that was stopped or killed goes on where it was.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import json
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from grader.arrays.words import one_line
from grader.classroom.course.build import build, configuration, gradebook, is_registered, lessons, outdated
from grader.classroom.course.demo import DEMO_FOLDER, make_class
from grader.classroom.course.plan import PLAN, Plan, plan_of
from grader.classroom.grading.clerks import HAND_IN_SECONDS, Lost, by_clerks
from grader.classroom.grading.groups import share_in_groups
from grader.classroom.grading.preview import previews, prune
from grader.classroom.grading.progress import EachMinute, Stopped, a_minute, progress_bar
from grader.classroom.grading.record import HandIn, Row, record, write_page
from grader.classroom.grading.summary import write_csv, write_totals
from grader.classroom.handins.handin import one_release
from grader.classroom.handins.roster import enter_people, read_roster
from grader.classroom.store import FOLDER, Unavailable, locked, write
from grader.classroom.walls import bubblewrap as walls

MOVED = f"{FOLDER}/moved.json"
DEMO = "07_matmul"  # the lesson that a demo class hands in


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
        with locked(root / FOLDER):
            return _whole_class(root, console, options)
    except KeyboardInterrupt:
        raise Stopped("Stopped. What is done is kept. Run the same command again to go on.") from None
    except OSError as error:
        raise Unavailable(
            f"{error.strerror or error} ({error.filename or root}). Put that right and run the same "
            "command again: what is done is kept."
        ) from error


def _whole_class(root: Path, console: Console, options: Options) -> list[Row]:
    if not any(hand_ins_of(root)):
        return _demo(root, console, options)
    if not is_registered(root):
        console.print("Building course/ and the gradebook …")
        build(root)
    plan = plan_of(root)
    for line in (*share_in_groups(root, plan), *_unknown_names(root, plan), *outdated(root, plan)):
        console.print(escape(line), soft_wrap=True, highlight=False)
    hand_ins = list(hand_ins_of(root))
    with gradebook(root) as book:
        enter_people(book, read_roster(root / "submitted"))
    _refuse_strangers(options.again, hand_ins)
    if options.scheduler:
        from grader.classroom.grading.cluster import run_ahead  # logs, queues and threads that a class seldom needs

        run_ahead(hand_ins, options.scheduler, console)
    rows = _graded(hand_ins, options, console, seconds_of(root))
    write_csv(rows, root / "grades.csv")
    _keep_moves(rows, root / MOVED)
    if plan.own:
        write_totals(rows, plan, root / "totals.csv")
    return rows


def _unknown_names(root: Path, plan: Plan) -> Iterator[str]:
    """A line for each student of course.toml whose name nobody in submitted/ has."""
    known = {folder.name for folder in (root / "submitted").glob("*/")}
    named = {*plan.extensions, *(one for members in plan.groups.values() for one in members)}
    for name in sorted(named - known):
        near = difflib.get_close_matches(name, known)
        meant = f" Is it {' or '.join(map(one_line, near))}?" if near else ""
        yield f"{PLAN} names {one_line(name)}, of whom there is no folder in submitted/.{meant}"


def preview_class(root: Path, options: Options = Options()) -> list[Row]:
    """Every hand-in as it would be graded, with its points before; writes nothing. Raises Unavailable."""
    return [one.row for one in previews(_graded_before(root), options.workers, seconds_of(root))]


def prune_class(root: Path, workers: int = Options.workers) -> tuple[int, int]:
    """Remove the runs, verdicts and pictures that no hand-in in submitted/ uses: how many files and bytes."""
    with locked(root / FOLDER):
        return prune(root, _graded_before(root), workers, seconds_of(root))


def _graded_before(root: Path) -> list[HandIn]:
    if not any((root / FOLDER / "recorded").glob("*/*")):
        raise Unavailable("Nothing is graded yet. Run `grader grade` first.")
    return list(hand_ins_of(root))


def _keep_moves(rows: Sequence[Row], file: Path) -> None:
    """Keep, for the report, whose points moved, by exercise before and now; until points move again."""
    moved = [
        [row.hand_in.student, row.hand_in.lesson, [[name, *points] for name, points in row.moved.items()]]
        for row in rows
        if row.moved
    ]
    if moved:
        write(file, json.dumps(moved).encode())


def seconds_of(root: Path) -> float:
    """How long grading one hand-in may take, by nbgrader_config.py."""
    return float(configuration(root).JudgedExecute.get("hand_in_seconds", HAND_IN_SECONDS))


def _refuse_strangers(again: Collection[str], hand_ins: Sequence[HandIn]) -> None:
    """Raise Unavailable where somebody who handed in nothing is to be graded again."""
    students = {hand_in.student for hand_in in hand_ins}
    for name in sorted(set(again) - students):
        near = difflib.get_close_matches(name, students) or sorted(students)[:5]
        names = ", ".join(one_line(student) for student in near)
        raise Unavailable(f"There is no hand-in of {one_line(name)} to grade again. Is it one of these: {names}?")


def hand_ins_of(root: Path) -> Iterator[HandIn]:
    """The hand-ins under `submitted/STUDENT/LESSON/`, in order."""
    for folder in sorted((root / "submitted").glob("*/*")):
        if folder.is_dir() and not folder.name.startswith("."):
            yield HandIn(root, folder.parent.name, folder.name)


def class_root(root: Path) -> Path:
    """The folder of the class: this one, or that of the demo class as long as nothing is handed in here."""
    demo = root / DEMO_FOLDER
    return demo if demo.exists() and not any(hand_ins_of(root)) else root


def _demo(root: Path, console: Console, options: Options) -> list[Row]:
    """Grade a demo class, which is a course of its own: it never meets a real one."""
    console.print(f"There is nothing in submitted/: a demo class of 12 students is in {DEMO_FOLDER}/.")
    os.environ.setdefault(walls.WITHOUT, "1")  # where they cannot be built: this class is ours
    demo, sources = root / DEMO_FOLDER, [source.stem for source in lessons(root)]
    lesson = DEMO if DEMO in sources else sources[0]
    if not any(hand_ins_of(demo)):
        shutil.copytree(root / "solutions" / lesson, demo / "solutions" / lesson, dirs_exist_ok=True)
        for name in ("nbgrader_config.py", "pyproject.toml"):
            shutil.copy(root / name, demo)
        build(demo)
        make_class(demo, lesson, demo / "submitted")
    return _whole_class(demo, console, options)


def _graded(hand_ins: Sequence[HandIn], options: Options, console: Console, seconds: float) -> list[Row]:
    """A row for each hand-in, in their order; the progress is shown meanwhile."""
    rows: dict[HandIn, Row] = {}
    line = EachMinute(console, "Grading", len(hand_ins))
    with progress_bar(console) as progress:
        bar = progress.add_task("Grading", total=len(hand_ins), rate="")
        try:
            for row in _all_rows(hand_ins, options, seconds):
                rows[row.hand_in] = row
                progress.update(bar, advance=1, rate=a_minute(progress.tasks[0].speed))
                line.step()
                if options.details:
                    progress.console.print(_line(row), highlight=False)
        except KeyboardInterrupt:
            raise Stopped(
                f"Stopped. {len(rows)} of {len(hand_ins)} hand-ins are graded; what is done is kept. Run "
                "the same command again to go on."
            ) from None
    return [rows[hand_in] for hand_in in hand_ins]


def _all_rows(hand_ins: Sequence[HandIn], options: Options, seconds: float) -> Iterator[Row]:
    """A row for each hand-in as it is ready."""
    work = functools.partial(_recorded_by, frozenset(options.again))
    for hand_in, row in by_clerks(work, hand_ins, options.workers, seconds):
        yield Row(hand_in, problem=row.why) if isinstance(row, Lost) else row


def _recorded_by(again: Collection[str], hand_in: HandIn) -> Row:
    _with_one_release()
    return record(hand_in, hand_in.student in again)


@functools.cache
def _with_one_release() -> contextlib.ExitStack:
    """For a clerk, in whose life no lesson is released anew."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(one_release())
        return stack.pop_all()


def _line(row: Row) -> str:
    marks = row.problem or f"{row.mark:g} / {row.most:g}"
    return escape(f"{row.hand_in.student}  {row.hand_in.lesson}  {marks}")


def write_feedback(root: Path) -> Iterator[tuple[Path, str]]:
    """Write every graded hand-in's feedback page anew, with what a person has since added in Formgrader.

    Each comes with the reason why it could not be written, "" where it was.
    """
    graded = [hand_in for hand_in in hand_ins_of(root) if hand_in.at("autograded").exists()]
    for hand_in, problem in by_clerks(write_page, graded, Options.workers, seconds_of(root)):
        yield hand_in.at("feedback", ".html").relative_to(root), problem.why if isinstance(problem, Lost) else problem
