"""What came of each check, kept where it survives the kernel: one line of JSON for each, in a folder of the student's.

Nothing of it leaves the machine, but for a Drive that the student has mounted in Colab.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from grader.arrays.fresh import SEED
from grader.exercises.verdict import Verdict
from grader.lessons import OLD_NAMES

CHOSEN = "MANY_DEVICES_HOME"  # the folder, where somebody has chosen one
DRIVE = Path("/content/drive/MyDrive")  # in Colab, once it is mounted
NO_STUDENT = ("CI", "PYTEST_VERSION", SEED)  # who sets one of these is a test, or builds a lesson
FILE = "checks.jsonl"
_right_here: set[str] = set()  # exercises that were right in this process, whether attempts are kept or not


@dataclass(frozen=True)
class Attempt:
    """What came of one check. `state` is right, partly, wrong or open; `time` is in seconds since 1970.

    Of a right program that is held against the compiler's, `sent` are the bytes that it sends, where `par` are enough.
    """

    exercise: str
    points: float
    worth: float
    state: str
    time: float
    sent: int | None = None
    par: int | None = None


def folder() -> Path | None:
    """Where attempts are kept; None where there is no student, or no home."""
    if chosen := os.environ.get(CHOSEN):
        return Path(chosen).expanduser()
    if any(map(os.environ.get, NO_STUDENT)):
        return None
    try:
        return DRIVE / "many-devices-jax" if DRIVE.is_dir() else Path.home() / ".many-devices-jax"
    except RuntimeError:  # no home
        return None


def keep(verdict: Verdict) -> None:
    """Add a check that was made in a notebook. Nothing here stops a check: what cannot be written, `trouble` says."""
    if verdict.state == "right":
        _right_here.add(verdict.exercise)
    if not verdict.worth or this_notebook() is None:
        return
    with contextlib.suppress(OSError):
        _append(json.dumps(asdict(_attempt(verdict))))


def this_notebook() -> Any:
    """IPython's shell, which runs this notebook or terminal; None where there is none."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _attempt(verdict: Verdict) -> Attempt:
    score = {"sent": verdict.score.yours, "par": verdict.score.par} if verdict.score else {}
    return Attempt(verdict.exercise, verdict.points, verdict.worth, verdict.state, round(time.time(), 3), **score)


def _append(line: str) -> None:
    """One write to the end of the file: kernels that write at once do not mix their lines.

    A line begins with its end of line, so that one that was cut short spoils no other.
    """
    if (where := folder()) is None:
        return
    where.mkdir(parents=True, exist_ok=True)
    file = os.open(where / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"\n{line}".encode())
    finally:
        os.close(file)


def trouble() -> str:
    """Why attempts cannot be kept here, and what to do; "" when they can."""
    if (where := folder()) is None:
        return "Checks are not kept here."
    try:
        _append("")
    except OSError as error:
        return (
            f"Checks cannot be kept in {where} ({error.strerror}). Make room or make it writable, or name another "
            f"folder: set {CHOSEN} before the kernel starts."
        )
    if "google.colab" in sys.modules and not DRIVE.is_dir():
        return (
            "Colab forgets your checks with this runtime. To keep them, mount your Drive before you go on: "
            "`from google.colab import drive; drive.mount('/content/drive')`."
        )
    return ""


def attempts() -> list[Attempt]:
    """All attempts that can be read, the earliest first."""
    where = folder()
    try:
        lines = (where / FILE).read_text(errors="replace").splitlines() if where else []
    except OSError:
        return []
    return sorted((one for line in lines for one in _read(line)), key=lambda one: one.time)


def is_right_here(exercise: str) -> bool:
    """Whether a check of this exercise was right in this process, so with what its notebook has now."""
    return exercise in _right_here


def was_right(exercise: str) -> bool:
    """Whether a check of this exercise was ever right: here, or in another notebook of the student's."""
    return is_right_here(exercise) or any(a.exercise == exercise and a.state == "right" for a in attempts())


def _read(line: str) -> Iterator[Attempt]:
    """The attempt that a line holds; nothing for a line that somebody, or a full disk, has spoilt."""
    try:
        found = Attempt(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return
    numbers = (found.points, found.worth, found.time, found.sent or 0, found.par or 0)
    if isinstance(found.exercise, str) and all(type(n) in (int, float) and abs(n) < 1e12 for n in numbers):
        yield replace(found, exercise=OLD_NAMES.get(found.exercise, found.exercise))
