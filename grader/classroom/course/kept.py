"""What the build has written into course/, and what it must not overwrite.

`course/.written` has a digest of each file that the build wrote. Whatever is not as it says was changed by somebody:
before a lesson is built again it goes to `.kept/`.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from grader.classroom.store import write

WRITTEN = ".written"
KEPT = ".kept"
MADE_BY_TOOLS = {".ipynb_checkpoints", "__pycache__"}


def set_aside(root: Path, name: str) -> Iterator[str]:
    """Move the files of a lesson, or the one file of this name, that are not as the build has written them; yields a
    line about each."""
    ours = _ours(root)
    for file in _files_of(root, name):
        if ours.get(_path(root, file)) != _digest(file):
            kept = root / KEPT / f"{datetime.now():%Y-%m-%d_%H%M%S}" / file.relative_to(root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            file.replace(kept)
            yield f"{file.relative_to(root)} was not as the build left it; it is kept as {kept.relative_to(root)}."


def enter(root: Path, name: str) -> None:
    """Enter a lesson's files, or the one file of this name, among those that the build has written."""
    others = {path: digest for path, digest in _ours(root).items() if path.partition("/")[0] != name}
    entries = {**others, **{_path(root, file): _digest(file) for file in _files_of(root, name)}}
    text = "".join(f"{digest}  {path}\n" for path, digest in sorted(entries.items()))
    write(root / "course" / WRITTEN, text.encode())


def remove(root: Path, name: str) -> Iterator[str]:
    """Remove a lesson from `course/`; what is not as the build has written it is kept, with a line about it."""
    if (root / "course" / name).is_dir():
        yield from set_aside(root, name)
        shutil.rmtree(root / "course" / name)
        enter(root, name)


def _files_of(root: Path, name: str) -> list[Path]:
    """The files of a lesson in `course/`, without those that Jupyter and Python make by themselves; or the file."""
    place = root / "course" / name
    return [p for p in [place, *sorted(place.rglob("*"))] if p.is_file() and not MADE_BY_TOOLS & set(p.parts)]


def _ours(root: Path) -> dict[str, str]:
    """The digest of each file that the build has written; the file has the form of sha256sum."""
    file = root / "course" / WRITTEN
    lines = file.read_text().splitlines() if file.exists() else []
    return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}


def _path(root: Path, file: Path) -> str:
    return file.relative_to(root / "course").as_posix()


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
