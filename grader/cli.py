"""The command `grader`: what a student is promised works with the student's install; the rest is the classroom's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

ELSEWHERE = (
    "`grader launch SCRIPT`, `grader progress`, `grader certificate NAME`, `grader chips` work everywhere; all "
    "other commands are an instructor's, and need a clone of the course's repository and what `make grade` installs "
    "there"
)


def main() -> None:
    """The console script: what goes wrong is one clear text and exit status 2, never a traceback."""
    if sys.argv[1:2] == ["launch"]:
        sys.exit(_launch(sys.argv[2:]))
    if sys.argv[1:2] == ["progress"]:
        sys.exit(_progress(sys.argv[2:]))
    if sys.argv[1:2] == ["certificate"]:
        sys.exit(_certificate(sys.argv[2:]))
    if sys.argv[1:2] == ["chips"]:
        sys.exit(_chips(sys.argv[2:]))
    try:
        from grader.classroom import commands

        commands.main()
    except ModuleNotFoundError as error:
        if str(error.name).startswith("grader.") and error.name != "grader.classroom":
            raise  # our own fault
        print(f"grader: {ELSEWHERE} (there is no {error.name} here).", file=sys.stderr)
        sys.exit(2)


def _launch(arguments: Sequence[str]) -> int:
    """Run a script in several processes at once, and return the exit status."""
    from grader.processes.launch import NoProcesses
    from grader.processes.launch import launch as start

    options = _launch_options().parse_args(arguments)
    lines = Lines(options.processes)
    try:
        outcome = start(**vars(options), say=lines.hear)
    except (ValueError, NoProcesses) as error:
        print(f"grader: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    lines.rest()
    print(outcome.headline, file=sys.stdout if outcome.went_well else sys.stderr)
    return 0 if outcome.went_well else 1


def _progress(arguments: Sequence[str]) -> int:
    """Print a student's points so far, and what comes next; return the exit status."""
    from grader.guide.progress import progress

    argparse.ArgumentParser("grader progress", description="Your points so far, and what comes next.").parse_args(
        arguments
    )
    print(progress())
    return 0


def _certificate(arguments: Sequence[str]) -> int:
    """Write the page of one who has passed the capstone; return the exit status: 1 where gates are open."""
    from grader.certificate import Certificate, own_points

    options = _certificate_options().parse_args(arguments)
    if not options.name.strip():
        print("grader: Whose certificate? Give the name that is to stand on it.", file=sys.stderr)
        return 2
    try:
        points = own_points() if options.student is None else _graded_points(options.student)
    except LookupError as error:
        print(f"grader: {error.args[0]}", file=sys.stderr)
        return 2
    certificate = Certificate(options.name.strip(), f"{date.today():%Y-%m-%d}", points, options.student is not None)
    if certificate.open_gates:
        print(f"Not yet: open are the gates {', '.join(certificate.open_gates)} of the capstone, lesson 22.")
        return 1
    try:
        options.to.write_text(certificate.page(), encoding="utf-8")
    except OSError as error:
        print(f"grader: {options.to} cannot be written: {error.strerror}. Name another with --to.", file=sys.stderr)
        return 2
    print(f"wrote {options.to}")
    return 0


def _certificate_options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "grader certificate",
        description="One page, all in one file, for who has passed the capstone: from your own record of checks, or, "
        "for an instructor, from the gradebook of the class.",
    )
    parser.add_argument("name", metavar="NAME", help="the name that is to stand on it")
    parser.add_argument("--student", metavar="ID", help="a student of the class whose gradebook is here")
    parser.add_argument("--to", type=Path, default=Path("certificate.html"), help="the file to write")
    return parser


def _graded_points(student: str) -> Mapping[str, tuple[float, float]]:
    """What the gradebook of the class says of a student. Raises LookupError where it says nothing, or is not here."""
    try:
        from grader.classroom.commands import Trouble, root_of
        from grader.classroom.report.papers import papers_of
    except ModuleNotFoundError as error:
        raise LookupError(f"{ELSEWHERE} (there is no {error.name} here).") from None
    try:
        papers = papers_of(root_of(Path.cwd()))
    except Trouble as trouble:
        raise LookupError(str(trouble)) from None
    own = [paper for of_lesson in papers.values() for paper in of_lesson if paper.student == student]
    if not own:
        known = sorted({paper.student for of_lesson in papers.values() for paper in of_lesson})
        raise LookupError(f"Nothing of {student!r} is graded here. Graded are: {', '.join(known) or 'none'}.")
    return {name: (points, paper.worth[name]) for paper in own for name, points in paper.points.items()}


def _chips(arguments: Sequence[str]) -> int:
    """Print the pods that programs can be compiled for, and whether the compiler is here; return the exit status."""
    from grader.chips.compiling import how_to_get, libtpu_version
    from grader.chips.topologies import usual_pods

    argparse.ArgumentParser(
        "grader chips", description="The pods that `grader.communication(…, on=POD)` compiles for, without their chips."
    ).parse_args(arguments)
    version = libtpu_version()
    print(usual_pods())
    print(f"The TPU's compiler is here: libtpu {version}." if version else how_to_get())
    return 0


def _launch_options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "grader launch",
        description="Run a script in several processes at once, as on several hosts; it finds its number and theirs "
        "in sys.argv.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("program", metavar="SCRIPT", type=Path, help="a script that calls jax.distributed.initialize")
    parser.add_argument("--processes", type=int, default=4, help="how many processes")
    parser.add_argument("--devices", type=int, default=2, help="how many devices each of them has")
    parser.add_argument("--seconds", type=float, default=60.0, help="after how long all are killed")
    parser.add_argument("--grace", type=float, default=0.0, help="how long the others may go on when one has failed")
    return parser


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
