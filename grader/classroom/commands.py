"""The instructor's commands. Each is a few lines; the work is done in the rooms it calls."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from grader.arrays.words import one_line
from grader.classroom.grading.beginning import without_addresses
from grader.classroom.out import terminal
from grader.classroom.store import FOLDER, Unavailable, locked
from grader.classroom.walls.bubblewrap import WITHOUT, NoWalls
from grader.guide.syllabus import syllabus

if TYPE_CHECKING:
    from grader.classroom.grading.loose import Records

HELP = "Build the course, grade hand-ins, open the lab. Start with `grader grade NOTEBOOK`."
app = typer.Typer()
out, err = terminal(), terminal(stderr=True)


class Trouble(typer.TyperException):
    """Something the caller can put right; the text says what and how."""


def root_of(start: Path) -> Path:
    """The project's folder: the nearest one above `start` that holds nbgrader_config.py."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "nbgrader_config.py").exists():
            return folder
    raise Trouble(
        "This is not inside the course: no nbgrader_config.py here or in any folder above. "
        "Change into the project's folder first."
    )


@app.command()
def build(
    names: Annotated[
        list[str] | None, typer.Argument(help="Lessons, such as 07_matmul. Without: all of them.", show_default=False)
    ] = None,
    execute: Annotated[bool, typer.Option(help="Also run the solution notebooks and store outputs.")] = False,
    check: Annotated[bool, typer.Option(help="Change nothing; fail when course/ is out of date.")] = False,
) -> None:
    """Build course/ from solutions/."""
    from grader.classroom.course import build as room
    from grader.classroom.course.shape import Misshapen

    root = root_of(Path.cwd())
    known = [source.stem for source in room.lessons(root)]
    if unknown := sorted(set(names or []) - set(known)):
        raise Trouble(f"There is no lesson {', '.join(unknown)} in solutions/; there are {', '.join(known)}.")
    if check:
        if outdated := room.stale(root):
            raise Trouble("Out of date: " + ", ".join(outdated) + ". Run `make course` and commit what changes.")
        out.print("course/ is what solutions/ builds.")
        return
    try:
        if execute:
            for source in room.lessons(root, names):
                room.store_outputs(room.pair(source))
        for notebook in room.build(root, names, say=_say):
            _say(f"built {notebook.relative_to(root)}")
    except Misshapen as error:
        raise Trouble(str(error)) from None


def _say(line: str) -> None:
    out.print(escape(line), soft_wrap=True, highlight=False)


@app.command()
def book() -> None:
    """Make a website of the lessons in dist/book/, without solutions."""
    from grader.classroom.book.website import Unbuilt, build_book

    root = root_of(Path.cwd())
    target = root / "dist" / "book"
    try:
        build_book(root, target)
    except Unbuilt:
        raise Trouble("The book is not built: mend what Sphinx says above, and run `grader book` again.") from None
    _say(f"built {target.relative_to(root)}/index.html")


@app.command()
def work() -> None:
    """Bring the lessons of course/ into work/, around your answers."""
    from grader.classroom.course.work import fill

    lines = list(fill(root_of(Path.cwd())))
    for line in lines or ["work/ has all lessons, as they are in course/."]:
        _say(line)


@app.command()
def feedback() -> None:
    """Write the feedback pages anew, from what is graded."""
    from grader.classroom.grading.grade import class_root, write_feedback

    root = class_root(root_of(Path.cwd()))
    pages, problems = 0, 0
    with locked(root / FOLDER):
        for page, problem in write_feedback(root):
            pages, problems = pages + 1, problems + bool(problem)
            words = f"{one_line(page)} could not be written: {problem}" if problem else f"wrote {one_line(page)}"
            out.print(escape(words), soft_wrap=True, highlight=False)
    if not pages:
        raise Trouble("Nothing is graded yet, so there are no pages to write. Run `grader grade` first.")
    if problems:
        raise typer.Exit(1)


@app.command()
def report(
    lessons: Annotated[
        list[str] | None, typer.Argument(help="Lessons, such as 07_matmul. Without: all that are graded.")
    ] = None,
    names: Annotated[bool, typer.Option(help="Students by their names; without, they are numbered.")] = False,
    to: Annotated[Path, typer.Option(help="The file to write.")] = Path("report.html"),
) -> None:
    """Write a graded class as one page: report.html."""
    from grader.classroom.grading.grade import class_root
    from grader.classroom.report.facts import facts_of
    from grader.classroom.report.page import report_page
    from grader.classroom.report.papers import papers_of
    from grader.classroom.store import write

    root = class_root(root_of(Path.cwd()))
    papers = papers_of(root, lessons or ())
    if missing := sorted(set(lessons or ()) - set(papers)):
        raise Trouble(f"No hand-in to {', '.join(missing)} is graded. Graded are: {', '.join(papers_of(root))}.")
    if not papers:
        raise Trouble("Nothing is graded yet, so there is nothing to report. Run `grader grade` first.")
    titles = {lesson.name: lesson.title for lesson in syllabus()}
    facts = [facts_of(lesson, of_one) for lesson, of_one in papers.items()]
    write(to, report_page(facts, titles, with_names=names).encode())
    _say(f"wrote {to}")


@app.command()
def grade(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Notebooks, or folders of them. Without: the whole class, everything in submitted/."),
    ] = None,
    workers: Annotated[int, typer.Option(help="How many hand-ins at once.")] = max(1, os.cpu_count() or 1),
    again: Annotated[
        list[str] | None, typer.Option(help="A student to grade anew although nothing has changed. May be repeated.")
    ] = None,
    details: Annotated[
        bool, typer.Option(help="A line for each hand-in: as it is graded, and with its mistakes.")
    ] = False,
    scheduler: Annotated[
        str, typer.Option(help="Run hand-ins on a Dask cluster: its scheduler's address, tcp://HOST:PORT.")
    ] = "",
    without_walls: Annotated[
        bool, typer.Option(help="Grade although what a hand-in could do to this machine is not held back.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With PATHS: JSON records on standard output.")] = False,
    seed: Annotated[int, typer.Option(help="With PATHS: the cases' seed; drawn anew when negative.")] = -1,
    dry_run: Annotated[bool, typer.Option(help="Show whose marks would move and why, and write nothing.")] = False,
) -> None:
    """Grade the class; or, with PATHS, judge notebooks and print marks."""
    if without_walls:
        os.environ[WITHOUT] = "1"
    if paths:
        _grade_files(paths, as_json, secrets.randbits(128) if seed < 0 else seed)
    elif dry_run:
        _preview_class(max(1, workers))
    else:
        _grade_class(workers, again or [], details, scheduler)


def _grade_class(workers: int, again: list[str], details: bool, scheduler: str) -> None:
    from grader.classroom.grading.grade import Options, grade_class
    from grader.classroom.grading.progress import Stopped
    from grader.classroom.grading.summary import show

    try:
        rows = grade_class(root_of(Path.cwd()), out, Options(max(1, workers), again, details, scheduler))
    except Stopped as stop:
        err.print(str(stop), soft_wrap=True)
        raise typer.Exit(130) from None
    show(rows, out, details)
    if any(row.problem or row.attention for row in rows):
        raise typer.Exit(1)


def _preview_class(workers: int) -> None:
    from grader.classroom.grading.grade import Options, preview_class
    from grader.classroom.grading.summary import show_preview

    rows = preview_class(root_of(Path.cwd()), Options(workers))
    show_preview(rows, out)
    if any(row.problem for row in rows):
        raise typer.Exit(1)


@app.command()
def prune() -> None:
    """Remove kept results that no hand-in uses any more."""
    from grader.classroom.grading.grade import prune_class

    count, size = prune_class(root_of(Path.cwd()))
    _say(f"Removed {count} results that no hand-in uses any more ({size / 1e6:.1f} MB).")


def _grade_files(paths: list[Path], as_json: bool, seed: int) -> None:
    from grader.classroom.grading.loose import grade_files
    from grader.classroom.walls.templates import NotStarted

    records, problems = [], []
    try:
        for result in grade_files(paths, root_of(Path.cwd()), seed):
            if result.problem:
                problems.append(result.problem)
                continue
            records += result.records
            if not as_json:
                _print_marks(result)
    except NotStarted as error:
        problems.append(str(error))
    if as_json:
        print(json.dumps(records, indent=1))
    if problems:
        raise Trouble("\n".join(problems))


def _print_marks(result: Records) -> None:
    out.print(f"[bold]{escape(result.title)}[/bold]")
    for record in result.records:
        mistake = f"  [yellow]{record['mistake']}[/yellow]" if record["mistake"] else ""
        out.print(f"  {record['points']:g}/{record['max']:g}  {record['exercise']}{mistake}")
        if record["message"]:
            out.print(escape(record["message"]), style="dim", soft_wrap=True)


@app.command()
def collect(
    archive: Annotated[Path, typer.Argument(help="The zip that your learning platform made, or a folder.")],
    lesson: Annotated[str, typer.Argument(help="The lesson that was handed in, such as 07_matmul.")],
    replace: Annotated[bool, typer.Option(help="Also where another notebook lies already.")] = False,
    trust_names: Annotated[
        bool, typer.Option(help="Students can't change their names on this platform: a name alone identifies them.")
    ] = False,
) -> None:
    """Lay the hand-ins of a learning platform into submitted/."""
    from grader.classroom.grading.clerks import Lost, by_clerks
    from grader.classroom.handins.archive import Unreadable
    from grader.classroom.handins.platforms import unpack
    from grader.classroom.handins.roster import keep_senders, read_roster

    root = root_of(Path.cwd())
    lessons = {notebook.stem for notebook in (root / "course").glob("*/*.ipynb")}
    if lesson not in lessons:
        raise Trouble(f"There is no lesson {lesson} in course/.")
    if not archive.exists():
        raise Trouble(f"{archive}: there is no such file.")
    submitted = root / "submitted"
    try:
        with locked(root / FOLDER):
            roster = dataclasses.replace(read_roster(submitted), trust_names=trust_names)
            lay_out = partial(
                unpack, lesson=lesson, submitted=submitted, replace=replace, lessons=lessons, roster=roster
            )
            ((_, receipts),) = by_clerks(lay_out, [archive])
            if isinstance(receipts, Lost):
                raise Trouble(f"{one_line(archive.name)} could not be laid out. {receipts.why}")
            keep_senders(submitted, lesson, {one.student: one.sender for one in receipts if one.sender})
    except Unreadable as problem:
        raise Trouble(str(problem)) from None
    for receipt in receipts:
        facts = filter(None, (receipt.problem or receipt.note, receipt.doubt))
        out.print(escape(f"{receipt.student or archive.name}: {'; '.join(facts) or 'taken'}"), soft_wrap=True)
    if doubts := {receipt.student for receipt in receipts if receipt.doubt}:
        _say(
            f"Whose it is rests on a name in {len(doubts)} of these, and students may have changed theirs: compare "
            "them with the platform's list. submitted/roster.csv joins two names of one student. If students can't "
            "change their names there, use --trust-names."
        )
    if doubts or any(receipt.problem for receipt in receipts):
        raise typer.Exit(1)


@app.command()
def new(
    lesson: Annotated[str, typer.Argument(help="The lesson, such as 07_matmul; it is created if there is none.")],
    exercise: Annotated[str, typer.Argument(help="Its name, such as center: what students will define.")],
    form: Annotated[str, typer.Option(help="What an answer is: program, function, table or processes.")] = "program",
) -> None:
    """Write the files of a new exercise, which works as it is."""
    from grader.classroom.course.new import begin_exercise

    root = root_of(Path.cwd())
    try:
        files = begin_exercise(root, lesson, exercise, form)
    except ValueError as error:
        raise Trouble(str(error)) from None
    for file in files:
        _say(f"wrote {file.relative_to(root)}")
    _say(f"Replace the example in them with yours, and prove it: `grader prove {exercise}`.")


@app.command()
def prove(name: Annotated[str, typer.Argument(help="An exercise, such as case3.")]) -> None:
    """Prove an exercise: build its lesson, and run all tests that it meets."""
    from grader.classroom.course.prove import lesson_with, proof

    root = root_of(Path.cwd())
    try:
        steps = proof(lesson_with(root, name), name)
    except LookupError as error:
        raise Trouble(str(error)) from None
    for step in steps:
        command = shlex.join(Path(word).stem if word == sys.executable else word for word in step)
        _say(f"→ {command}")
        if subprocess.call(step, cwd=root):
            raise Trouble(f"{name} isn't proven: `{command}` failed. Fix what it says above, and run this again.")
    _say(f"{name} is proven. Read the files of tests/lessons/ that changed (`git status`), and commit all of it.")


@app.command()
def export(
    lesson: Annotated[str, typer.Argument(help="The lesson whose marks go back, such as 07_matmul.")],
    canvas: Annotated[Path | None, typer.Option(help="Canvas's own export of its gradebook.")] = None,
    moodle: Annotated[Path | None, typer.Option(help="Moodle's own grading worksheet of the assignment.")] = None,
    column: Annotated[str, typer.Option(help="The column for the marks, where its name does not tell.")] = "",
) -> None:
    """Fill marks into a platform's own table, and pack the feedback."""
    from grader.classroom.grading import export as room

    tables = {"canvas": canvas, "moodle": moodle}
    given = {platform: table for platform, table in tables.items() if table}
    if len(given) != 1:
        raise Trouble("Whose table is to be filled in? Give --canvas FILE or --moodle FILE, as it was exported there.")
    ((platform, table),) = given.items()
    root = root_of(Path.cwd())
    with locked(root / FOLDER):
        files, filled = room.export(root, lesson, platform, table, column)
    for file in files:
        _say(f"wrote {file.relative_to(root)}")
    for line in (f"{len(filled.students)} marks are in it.", *filled.notes, *filled.problems):
        _say(line)
    if filled.problems:
        raise typer.Exit(1)


@app.command()
def gradescope(lesson: Annotated[str, typer.Argument(help="The lesson to grade there, such as 07_matmul.")]) -> None:
    """Pack a lesson's autograder for Gradescope."""
    from grader.classroom.grading.gradescope import pack_autograder

    root = root_of(Path.cwd())
    target = root / "dist" / f"gradescope-{lesson}.zip"
    pack_autograder(root, lesson, target)
    _say(f"wrote {target.relative_to(root)}: upload it as the assignment's autograder")


@app.command()
def release(
    at: Annotated[str, typer.Option(help="The wheel's future address, or its folder's: https://…/.")],
) -> None:
    """Build the wheel, and notebooks that install from there."""
    from grader.classroom.course.release import release as room

    root = root_of(Path.cwd())
    wheel, *notebooks = room(root, at)
    _say(f"wrote {wheel.relative_to(root)}: upload it to {at}")
    _say(f"wrote {len(notebooks)} notebooks beside it: hand them out")


@app.command()
def where(
    name: Annotated[str, typer.Argument(help="An exercise, such as case3, or a lesson, such as 07_matmul.")],
) -> None:
    """List every place that has to do with an exercise or a lesson."""
    from grader.classroom.course.where import places_of

    try:
        lines = places_of(root_of(Path.cwd()), name)
    except LookupError as error:
        raise Trouble(str(error)) from None
    for line in lines:
        out.print(escape(line), soft_wrap=True, highlight=False)


@app.command()
def coverage() -> None:
    """Show which rows of the checklist are taught, and where."""
    from grader.classroom.course import coverage as room

    root, rows = root_of(Path.cwd()), room.checklist()
    out.print(room.coverage_table(rows))
    if problems := room.problems(rows, root):
        raise Trouble("The checklist is wrong: " + "; ".join(problems) + ".")


@app.command()
def lab(
    instructor: Annotated[bool, typer.Option(help="The whole checkout, with nbgrader's menus.")] = False,
) -> None:
    """Open JupyterLab on work/, your own copy of the lessons."""
    from grader.classroom.lab.session import for_instructor, for_student

    root = root_of(Path.cwd())
    work()
    session = for_instructor(root) if instructor else for_student(root)
    raise typer.Exit(subprocess.call(session.command, cwd=session.folder, env=session.environment))


def run(command: typer.Typer, arguments: Sequence[str]) -> int | None:
    """Run what was typed, and return the exit status; what an instructor can put right is Trouble."""
    without_addresses()
    try:
        return command(arguments, prog_name="grader", standalone_mode=False)
    except (Unavailable, NoWalls) as trouble:
        raise Trouble(str(trouble)) from None
