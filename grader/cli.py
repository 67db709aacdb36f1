"""The commands. Each is a few lines; the work is done in the rooms it calls."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help="Build the course, grade hand-ins, open the lab. Start with `grader grade NOTEBOOK`.")
out, err = Console(), Console(stderr=True)


class Trouble(Exception):
    """Something the caller can put right; the text says what and how."""


def root_of(start: Path) -> Path:
    """The project's folder: the nearest one above `start` that holds nbgrader_config.py."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "nbgrader_config.py").exists():
            return folder
    raise Trouble("This is not inside the course: no nbgrader_config.py here or in any folder above. "
                  "Change into the project's folder first.")


@app.command()
def build(execute: Annotated[bool, typer.Option(help="Also run the solution notebooks and store outputs.")] = False,
          check: Annotated[bool, typer.Option(help="Change nothing; fail when course/ is out of date.")] = False,
          ) -> None:
    """Build course/ from solutions/."""
    from grader.classroom import build as room

    root = root_of(Path.cwd())
    if check:
        if outdated := room.stale(root):
            raise Trouble("Out of date: " + ", ".join(outdated) + ". Run `make course` and commit what changes.")
        out.print("course/ is what solutions/ builds.")
        return
    if execute:
        for source in room.lessons(root):
            room.execute(room.pair(source))
    for notebook in room.build(root):
        out.print(f"built {notebook.relative_to(root)}")


@app.command("class")
def class_() -> None:
    """Grade everything in submitted/: gradebook, grades.csv, feedback."""
    from grader.classroom.grade import grade_class, show

    rows = grade_class(root_of(Path.cwd()), out)
    show(rows, out)
    if any(row.problem for row in rows):
        raise typer.Exit(1)


@app.command()
def feedback() -> None:
    """Write the feedback pages anew, from what is graded."""
    from grader.classroom.grade import write_feedback

    for page in write_feedback(root_of(Path.cwd())):
        out.print(f"wrote {page}")


@app.command()
def grade(paths: Annotated[list[Path], typer.Argument(help="Notebooks, or folders of hand-ins.")],
          as_json: Annotated[bool, typer.Option("--json", help="Write JSON records to standard output.")] = False,
          seed: Annotated[int, typer.Option(help="Seed of the cases; drawn anew when negative.")] = -1) -> None:
    """Judge notebooks without a gradebook; print marks and messages."""
    from grader.classroom.loose import grade_files

    seed = secrets.randbits(32) if seed < 0 else seed
    records, problems = [], []
    for result in grade_files(paths, root_of(Path.cwd()), seed):
        if result.problem:
            problems.append(result.problem)
            continue
        records += result.records
        if not as_json:
            out.print(f"[bold]{escape(result.title)}[/bold]")
            for record in result.records:
                out.print(f"  {record['points']:g}/{record['max']:g}  {record['exercise']}"
                          + (f"  [yellow]{record['mistake']}[/yellow]" if record["mistake"] else ""))
                if record["message"]:
                    out.print(escape(record["message"]), style="dim", soft_wrap=True)
    if as_json:
        print(json.dumps(records, indent=1))
    if problems:
        raise Trouble("\n".join(problems))


@app.command()
def lab() -> None:
    """Open JupyterLab on course/, with 8 devices and nbgrader ready."""
    from grader.devices import POOL

    root = root_of(Path.cwd())
    environment = {**os.environ, "NPROC": str(POOL), "JUPYTER_CONFIG_PATH": str(root),
                   "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])}
    raise typer.Exit(subprocess.call([sys.executable, "-m", "jupyterlab", "--LabApp.default_url=/lab/tree/course",
                                      *os.environ.get("LAB_ARGS", "").split()], cwd=root, env=environment))


def main() -> None:
    """The console script: what goes wrong is one clear text and exit status 2, never a traceback."""
    try:
        app()
    except Trouble as trouble:
        err.print(f"[red]grader:[/red] {escape(str(trouble))}", soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
