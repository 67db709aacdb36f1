"""Results, kept by content, so that nothing is computed twice and nothing is lost.

A result's key is made of all that it depends on; whoever changes any of that asks for another key. Files are written
whole or not at all, so a run may be killed at any moment, and several may write at once.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.metadata
import json
import os
import secrets
import tempfile
import zlib
from pathlib import Path
from typing import Any

from grader.classroom.inside.shown import PACKAGE, files

FOLDER = ".grading"
SECRET = 128  # bits of a seed: too many to find it from the cases that a worker sees


class Unavailable(Exception):
    """Something that grading needs is missing; the text says what, and what to do."""


def key(*parts: Any) -> str:
    """A name of 64 characters for the content of JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def version(*places: Path) -> str:
    """A key for all files in these places of the grader, and for the versions of the libraries that they use."""
    contents = [
        [str(file.relative_to(PACKAGE)), hashlib.sha256(file.read_bytes()).hexdigest()] for file in files(*places)
    ]
    libraries = [importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy")]
    return key(contents, libraries)


class Store:
    """A folder of results: `kind/key.json.gz`. Without a folder it keeps them in memory, for one run.

    With `anew` it does not read what was there before.
    """

    def __init__(self, folder: Path | None, anew: bool = False):
        self.folder, self.anew = folder, anew
        self.memory: dict[tuple[str, str], Any] = {}

    def get(self, kind: str, name: str) -> Any:
        """The result of this key, or None. A damaged file counts as none."""
        if self.folder is None or self.anew:
            return self.memory.get((kind, name))
        try:
            return json.loads(gzip.decompress(_file(self.folder, kind, name).read_bytes()))
        except (OSError, EOFError, ValueError, zlib.error):
            return None

    def put(self, kind: str, name: str, result: Any) -> None:
        if self.folder is None or self.anew:
            self.memory[kind, name] = result
        if self.folder is not None:
            write(_file(self.folder, kind, name), gzip.compress(json.dumps(result).encode(), 1, mtime=0))

    def seed(self, lesson: str) -> int:
        """The secret from which a lesson's cases are drawn: drawn once, and kept, so that marks stay comparable."""
        if self.folder is None:
            return self.memory.setdefault(("seeds", lesson), secrets.randbits(SECRET))
        file = self.folder / "seeds" / lesson
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            fresh = _written(file.parent, str(secrets.randbits(SECRET)).encode())
            try:
                os.link(fresh, file)  # of several that write at once, the first decides
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return int(file.read_text())


def _file(folder: Path, kind: str, name: str) -> Path:
    return folder / kind / name[:2] / f"{name}.json.gz"


@functools.cache
def kept_in(folder: Path) -> Store:
    """The store in this folder: one for all who ask."""
    return Store(folder)


def write(target: Path, content: bytes) -> None:
    """Write a file whole, or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = _written(target.parent, content)
    try:
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _written(folder: Path, content: bytes) -> Path:
    """A new file beside the target, on the disk before it gets its name."""
    descriptor, name = tempfile.mkstemp(prefix=".new-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)
