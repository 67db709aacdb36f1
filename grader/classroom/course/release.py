"""A release that needs no GitHub: the student's package as a wheel, and notebooks that install it from an address."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat

from grader.classroom.course.frame import fetching_cell, is_first
from grader.classroom.course.published import published
from grader.classroom.store import Unavailable

RELEASE = Path("dist", "release")
ADDRESSES = ("https://", "http://")


def release(root: Path, url: str) -> Iterator[Path]:
    """Write the wheel and the notebooks into dist/release/. The wheel is found at `url`, or in that folder."""
    if not url.startswith(ADDRESSES):
        raise Unavailable(f"--at should be an address that begins with https://; it is {url!r}.")
    target = root / RELEASE
    shutil.rmtree(target, ignore_errors=True)
    wheel = _wheel(root, target)
    yield wheel
    address = f"{url}{wheel.name}" if url.endswith("/") else url
    sha256, version = hashlib.sha256(wheel.read_bytes()).hexdigest(), published(root).tag.removeprefix("v")
    for file in sorted((root / "course").rglob("*.ipynb")):
        nb = nbformat.read(file, 4)
        nb.cells = [
            fetching_cell(cell, address, wheel.name, sha256, version) if is_first(cell.source) else cell
            for cell in nb.cells
        ]
        place = target / file.relative_to(root / "course")
        place.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(nb, place)
        yield place


def _wheel(root: Path, target: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"The wheel could not be built: {done.stderr.strip()[-500:]}")
    (wheel,) = target.glob("*.whl")
    return wheel
