"""Groups that hand in together: before grading, the latest notebook of a group is laid into everybody's place.

What somebody handed in alone is kept beside it, out of sight.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from grader.classroom.course.late import TIME, handed_in_at
from grader.classroom.course.plan import Plan
from grader.classroom.handins.archive import Unreadable
from grader.classroom.handins.handin import find_notebook

HANDED_IN_ALONE = ".own"  # where a member's own notebook goes: hidden files are no hand-ins


def share_in_groups(root: Path, plan: Plan) -> Iterator[str]:
    """Lay each group's latest hand-in to each lesson into the places of all; returns a line for each that is laid."""
    for name, members in plan.groups.items():
        for lesson in plan.lessons:
            folders = {one: root / "submitted" / one / lesson for one in members}
            found = {one: file for one, folder in folders.items() if (file := _notebook(folder, lesson))}
            latest = max(found, key=lambda one: _when(found[one]), default="")
            for one in members if latest else ():
                if one not in found or found[one].read_bytes() != found[latest].read_bytes():
                    _lay(found[latest], folders[one])
                    yield f"{one}, {lesson}: gets the hand-in of {latest}, the latest of the group {name}."


def _notebook(folder: Path, lesson: str) -> Path | None:
    try:
        return find_notebook(folder, lesson) if folder.is_dir() else None
    except Unreadable:  # which grading says of it
        return None


def _when(notebook: Path) -> datetime:
    """When it was handed in; where nobody says, when it was laid here."""
    laid = datetime.fromtimestamp(notebook.stat().st_mtime, UTC).replace(tzinfo=None)
    return handed_in_at(notebook.parent) or laid


def _lay(source: Path, folder: Path) -> None:
    """Put a notebook and its time into a member's folder, and what lies there away."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in [file for file in folder.iterdir() if not file.name.startswith(".")]:
        away = folder / HANDED_IN_ALONE / f"{datetime.now(UTC):%Y-%m-%d-%H-%M-%S}-{file.name}"
        away.parent.mkdir(exist_ok=True)
        file.rename(away)
    for file in (source, source.parent / TIME):
        if file.exists():
            shutil.copy2(file, folder)
