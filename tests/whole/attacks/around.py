"""Attacks around the walls: what a student, a colleague, or a worker puts before the instructor's own commands.

Each acts in a fresh copy of the small course, and says what it left as a trace ("" if it was not executed) and what it
won. Stock nbgrader has no such commands, so these are tried on this grader alone.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import mini
from handins import CELL, packed, text

PLACE, TABLES, STORE = "another's place", "tables of a colleague", "in the store"
LATER = "02_mini"  # a second lesson, as far as `collect` is concerned
ALICE, MALLORY = (text(cells=[{**CELL, "source": f"owner {name}"}]) for name in ("alice", "mallory"))


@dataclass(frozen=True)
class Around:
    """One attack: it is given a course, and returns its trace and what it won."""

    name: str
    aim: str
    act: Callable[[Path], tuple[str, str]]


def command(course: Path, *words: object) -> tuple[int, str]:
    """The status and the words of one of the instructor's commands."""
    done = subprocess.run(
        [sys.executable, "-m", "grader.cli", *map(str, words)], cwd=course, capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


def collected(course: Path, lesson: str, files: dict[str, str | bytes]) -> tuple[int, str]:
    shutil.copytree(course / "course" / mini.LESSON, course / "course" / LATER, dirs_exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        (course / "course" / LATER / f"{mini.LESSON}.ipynb").rename(course / "course" / LATER / f"{LATER}.ipynb")
    (course / "class.zip").write_bytes(packed(files))
    return command(course, "collect", "class.zip", lesson)


def owners(course: Path) -> Iterator[tuple[str, str]]:
    """Each student's folder, with whose notebook lies in it."""
    for file in course.glob("submitted/*/*/*.ipynb"):
        yield file.parts[-3], file.read_text().partition("owner ")[2].partition('"')[0]


def taking(alice: str, mallory: str, together: bool = False) -> Callable[[Path], tuple[str, str]]:
    """Alice hands in one lesson; Mallory, under a name of her choice, the next, with Alice or without."""

    def act(course: Path) -> tuple[str, str]:
        collected(course, mini.LESSON, {alice.format(1) + "x.ipynb": ALICE})
        files = {mallory.format(2) + f"{LATER}.ipynb": MALLORY}
        status, said = collected(course, LATER, files | ({alice.format(2) + "y.ipynb": ALICE} if together else {}))
        homes: dict[str, set[str]] = {}
        for folder, owner in owners(course):
            homes.setdefault(folder, set()).add(owner)
        shared = [folder for folder, whose in homes.items() if len(whose) > 1]
        return said, f"{shared[0]} is of two, and nothing is said" if shared and status == 0 else ""

    return act


MOODLE, CANVAS = "{name}_{{0}}{key}_assignsubmission_file_/", "{name}_{key}_9{{0}}{key}_"
BRIGHTSPACE, GOOGLE = "{{0}}{key}-5 - {name} - Jan 1, 2024 1000 AM/", "{name} - "
NAMES = {
    "the same name": ("Alice A", False),
    "a platform's words": ("Alice A_277_assignsubmission_file_", False),
    "a number": ("Alice A_77_977", False),
    "a semicolon": ("Alice;A", False),
    "a tab": ("Alice\tA", False),
    "a mark that turns writing round": ("\u202eAlice A", False),
    "full width": ("Ａlice A", False),
    "a date": ("Alice A - Jan 1, 2024 1000 AM", True),
}
PLACES = tuple(
    Around(
        f"{why}, on {platform}",
        PLACE,
        taking(layout.format(name="Alice A", key=77), layout.format(name=name, key=78), together),
    )
    for platform, layout in {"Moodle": MOODLE, "Canvas": CANVAS, "Brightspace": BRIGHTSPACE, "Google": GOOGLE}.items()
    for why, (name, together) in NAMES.items()
)


# Tables and settings from a colleague.


def refused(file: str, content: str | bytes, *words: str) -> Callable[[Path], tuple[str, str]]:
    """A command that reads this file says what is wrong with it, and writes nothing outside."""

    def act(course: Path) -> tuple[str, str]:
        (course / file).parent.mkdir(exist_ok=True)
        (course / file).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        (course / "class.zip").write_bytes(packed({"ada/x.ipynb": ALICE}))
        status, said = command(course, *words)
        won = "a traceback" if "Traceback" in said else f"status {status}" if status != 2 else ""
        return said, won or ("it steers the terminal" if "\x1b" in said else "")

    return act


ROSTER, COLLECT = "submitted/roster.csv", ("collect", "class.zip", mini.LESSON)
HEADER = "id,platform,number,name,email\n"
COLLEAGUES = (
    Around("an id on two lines", TABLES, refused(ROSTER, f'{HEADER}"a\nb",canvas,1,a,\n', *COLLECT)),
    Around("an id that leads outside", TABLES, refused(ROSTER, f"{HEADER}../../x,canvas,1,a,\n", *COLLECT)),
    Around("an id that steers a terminal", TABLES, refused(ROSTER, f"{HEADER}\x1b[2Ja,canvas,1,a,\n", *COLLECT)),
    Around("a cell of a megabyte", TABLES, refused(ROSTER, f"{HEADER}a,canvas,1,{'x' * 1_000_000},\n", *COLLECT)),
    Around("bytes that are no text", TABLES, refused(ROSTER, b"\xff\xfe\x00", *COLLECT)),
    Around("a table of how things came, of others", TABLES, refused("submitted/received.csv", "a,b\n1,2\n", *COLLECT)),
    Around("a course.toml that is no TOML", TABLES, refused("course.toml", "\x1b[2J = [", "build")),
    Around("a lesson that leads outside", TABLES, refused("course.toml", '[lessons."../../etc"]\n', "build")),
    Around(
        "points without an end", TABLES, refused("course.toml", f"[lessons.{mini.LESSON}]\nweight = inf\n", "build")
    ),
    Around(
        "points that are no number", TABLES, refused("course.toml", f"[lessons.{mini.LESSON}]\nweight = nan\n", "build")
    ),
    Around(
        "a share with a million digits", TABLES, refused("course.toml", f'late = "{"9" * 999_999} % a day"\n', "build")
    ),
    Around("nested a thousand times", TABLES, refused("course.toml", f"name = {'[' * 5000}{']' * 5000}\n", "build")),
)


# The store, by somebody who may write there.


def graded(course: Path) -> tuple[dict[str, str], str]:
    """The table of marks after grading two students, by row."""
    for student, nb in {"ada": mini.solved(course), "bob": mini.released(course)}.items():
        target = course / "submitted" / student / mini.LESSON / f"{mini.LESSON}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(nb))
    _, said = command(course, "grade", "--workers", "1")
    table = course / "grades.csv"
    rows = table.read_text().splitlines()[1:] if table.exists() else []
    return {row.partition(",")[0]: row for row in rows}, said


def spoiling(spoil: Callable[[Path], object], is_named: str = "") -> Callable[[Path], tuple[str, str]]:
    """Marks are the same after somebody has been at the store; or what is wrong there is named."""

    def act(course: Path) -> tuple[str, str]:
        before, _ = graded(course)
        spoil(course / ".grading")
        (course / "gradebook.db").unlink()
        after, said = graded(course)
        if "Traceback" in said:
            return said, "a traceback"
        if is_named:
            return said, "" if is_named in said else f"{is_named} is not named"
        return said, "" if before and after == before else f"other marks: {after}"

    return act


def moved(store: Path) -> None:
    """Every verdict is another's."""
    files = sorted(store.glob("verdicts/*/*"))
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, contents[1:] + contents[:1], strict=True):
        file.write_bytes(content)


def runs_moved(store: Path) -> None:
    files = sorted(store.glob("runs/*/*"))
    for file in files[1:]:
        file.write_bytes(files[0].read_bytes())


def nested(store: Path) -> None:
    for file in store.glob("verdicts/*/*"):
        file.write_bytes(gzip.compress(b"[" * 200_000))


def cut(store: Path) -> None:
    for file in store.glob("*/*/*.gz"):
        file.write_bytes(file.read_bytes()[:20])


STORED = (
    Around("verdicts under others' keys", STORE, spoiling(moved)),
    Around("runs under others' keys", STORE, spoiling(runs_moved)),
    Around("verdicts nested without an end", STORE, spoiling(nested)),
    Around("files that are cut off", STORE, spoiling(cut)),
    Around(
        "a garbled secret",
        STORE,
        spoiling(lambda store: [f.write_text("seed") for f in store.glob("seeds/*")], f"seeds/{mini.LESSON}"),
    ),
)
AROUND = (*PLACES, *COLLEAGUES, *STORED)
