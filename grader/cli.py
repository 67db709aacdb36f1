"""The command `grader`: what a student is promised works with the student's install; the rest is the classroom's."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from grader.arrays.words import legible, one_line

ELSEWHERE = (
    "`grader launch SCRIPT`, `grader progress`, `grader certificate NAME`, `grader chips` work everywhere; all "
    "other commands are an instructor's, and need a clone of the course's repository and what `make grade` installs "
    "there"
)
_commands = partial(typer.Typer, add_completion=False, pretty_exceptions_enable=False)
students = _commands(help="Run scripts in several processes, see your points.", epilog=f"{ELSEWHERE}.")


def main() -> None:
    """The console script: what goes wrong is one clear text and exit status 2, never a traceback."""
    arguments = sys.argv[1:] or ["--help"]
    try:
        sys.exit(_run(arguments))
    except typer.TyperException as error:
        typer.echo(f"{typer.style('grader:', fg='red')} {legible(error.format_message())}", err=True)
        sys.exit(2)


def _run(arguments: list[str]) -> int | None:
    """Run a command of a student's, or one of the classroom's; return the exit status."""
    if arguments[0] in [command.callback.__name__ for command in students.registered_commands if command.callback]:
        return students(arguments, prog_name="grader", standalone_mode=False)
    try:
        from grader.classroom import commands

        whole = _commands(help=commands.HELP)
        for part in (commands.app, students):
            whole.add_typer(part)
        return commands.run(whole, arguments)
    except ModuleNotFoundError as error:
        if str(error.name).startswith("grader.") and error.name != "grader.classroom":
            raise  # our own fault
        if arguments == ["--help"]:
            return students(arguments, prog_name="grader", standalone_mode=False)
        raise _elsewhere(error) from None


def _elsewhere(error: ModuleNotFoundError) -> typer.TyperException:
    return typer.TyperException(f"{ELSEWHERE} (there is no {error.name} here).")


@students.command()
def launch(
    program: Annotated[Path, typer.Argument(metavar="SCRIPT", help="A script that calls jax.distributed.initialize.")],
    processes: Annotated[int, typer.Option(help="How many processes.")] = 4,
    devices: Annotated[int, typer.Option(help="How many devices each of them has.")] = 2,
    seconds: Annotated[float, typer.Option(help="After how long all are killed.")] = 60.0,
    grace: Annotated[float, typer.Option(help="How long the others may go on when one has failed.")] = 0.0,
) -> None:
    """Run a script in several processes at once, as on several hosts.

    It finds its number and theirs in sys.argv.
    """
    from grader.processes.launch import launch as start
    from grader.processes.servers import NoProcesses

    lines = Lines(processes)
    try:
        outcome = start(program, processes=processes, devices=devices, seconds=seconds, grace=grace, say=lines.hear)
    except (ValueError, NoProcesses) as error:
        raise typer.TyperException(str(error)) from None
    lines.rest()
    print(outcome.headline, file=sys.stdout if outcome.went_well else sys.stderr)
    raise typer.Exit(0 if outcome.went_well else 1)


@students.command()
def progress() -> None:
    """Show your points so far, and what comes next."""
    from grader.guide.progress import progress as journey

    print(journey())


@students.command()
def certificate(
    name: Annotated[str, typer.Argument(help="The name that is to stand on it.")],
    student: Annotated[str, typer.Option(metavar="ID", help="A student of the class whose gradebook is here.")] = "",
    to: Annotated[Path, typer.Option(help="The file to write.")] = Path("certificate.html"),
) -> None:
    """Write the page of one who has passed the capstone.

    It is one file, made from your own record of checks; or, for an instructor, from the gradebook of the class.
    """
    from grader.certificate import Certificate, own_points

    if not (name := one_line(name.strip())):
        raise typer.TyperException("Whose certificate? Give the name that is to stand on it.")
    points = _graded_points(student) if student else own_points()
    page = Certificate(name, f"{date.today():%Y-%m-%d}", points, bool(student))
    if page.open_gates:
        print(f"Not yet: open are the gates {', '.join(page.open_gates)} of the capstone, lesson 22.")
        raise typer.Exit(1)
    try:
        to.write_text(page.page(), encoding="utf-8")
    except OSError as error:
        raise typer.TyperException(f"{to} cannot be written: {error.strerror}. Name another with --to.") from None
    print(f"wrote {one_line(to)}")


def _graded_points(student: str) -> Mapping[str, tuple[float, float]]:
    """What the gradebook of the class says of a student."""
    try:
        from grader.classroom.commands import root_of
        from grader.classroom.report.papers import papers_of
    except ModuleNotFoundError as error:
        raise _elsewhere(error) from None
    papers = papers_of(root_of(Path.cwd()))
    own = [paper for of_lesson in papers.values() for paper in of_lesson if paper.student == student]
    if not own:
        known = sorted({paper.student for of_lesson in papers.values() for paper in of_lesson})
        raise typer.TyperException(f"Nothing of {student!r} is graded here. Graded are: {', '.join(known) or 'none'}.")
    return {name: (points, paper.worth[name]) for paper in own for name, points in paper.points.items()}


@students.command()
def chips() -> None:
    """List the TPU pods that programs are compiled for without them."""
    from grader.chips.compiling import how_to_get, libtpu_version
    from grader.chips.topologies import usual_pods

    version = libtpu_version()
    print(usual_pods())
    print(f"The TPU's compiler is here: libtpu {version}." if version else how_to_get())


class Lines:
    """What processes print, line by line as it comes, each with its process's number before it."""

    def __init__(self, processes: int):
        self.open = [""] * max(0, processes)

    def hear(self, number: int, text: str) -> None:
        *whole, self.open[number] = (self.open[number] + text).split("\n")
        for line in whole:
            print(f"{number} │ {line}", flush=True)

    def rest(self) -> None:
        for number, line in enumerate(self.open):
            if line:
                self.hear(number, "\n")


if __name__ == "__main__":
    main()
