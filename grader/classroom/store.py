"""Results, kept by content, so that nothing is computed twice and nothing is lost.

A result's key is made of all that it depends on; whoever changes any of that asks for another key. Files are written
whole or not at all, so a run may be killed at any moment, and several may write at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gzip
import hashlib
import importlib.metadata
import json
import os
import secrets
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grader.classroom.inside.shown import PACKAGE, files

FOLDER = ".grading"
DOUBTED = "doubted"
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
        self.asked: set[tuple[str, str]] = set()

    def get(self, kind: str, name: str) -> Any:
        """The result of this key, or None. A damaged file, or that of another key, counts as none."""
        if self.folder is None or self.anew or (kind, name) in self.memory:
            return self.memory.get((kind, name))
        return self._read(self.folder, kind, name)

    def has(self, kind: str, name: str) -> bool:
        """Whether there is a result of this key, damaged or not."""
        if self.folder is None or self.anew or (kind, name) in self.memory:
            return (kind, name) in self.memory
        return _file(self.folder, kind, name).exists()

    def first_time(self, kind: str, name: str) -> bool:
        """Whether nobody has asked this before of this key, in this process."""
        known = (kind, name) in self.asked
        self.asked.add((kind, name))
        return not known

    def _read(self, folder: Path, kind: str, name: str) -> Any:
        try:
            owner, result = json.loads(gzip.decompress(_file(folder, kind, name).read_bytes()))
        except (OSError, EOFError, ValueError, TypeError, zlib.error, RecursionError):
            return None
        return result if owner == [kind, name] else None  # a file under another's name says nothing

    def put(self, kind: str, name: str, result: Any) -> None:
        if self.folder is None or self.anew:
            self.memory[kind, name] = result
        if self.folder is not None:
            write(_file(self.folder, kind, name), _packed([kind, name], result))

    def doubt(self, kind: str, name: str, result: Any, sign: str) -> None:
        """Keep a result that may be the machine's fault: in this process, and beyond it when it is seen again.

        An honest program must not pay for a busy machine for ever. Seen again is what another process finds with the
        same sign, at another hand-in or in another run of the grader.
        """
        self.memory[kind, name] = result
        if self.folder is None:
            return
        if self._read(self.folder, DOUBTED, key(kind, name)) == sign:
            self.put(kind, name, result)
        else:
            write(_file(self.folder, DOUBTED, key(kind, name)), _packed([DOUBTED, key(kind, name)], sign))

    def attempt(self, lesson: str, student: str, content: Any) -> int:
        """Which attempt of a student at a lesson this content is: 0 for the first that is graded, 1 for the next.

        The same content has the same number, whenever it is graded.
        """
        name = key(lesson, student)
        before: list[str] = self.get("attempts", name) or []
        if (mark := key(content)) not in before:
            before = [*before, mark]
            self.put("attempts", name, before)
        return before.index(mark)

    def seed(self, lesson: str, attempt: int = 0) -> int:
        """The secret from which a lesson's cases are drawn: drawn once, and kept, so that marks stay comparable.

        Feedback may tell a hidden case. So whoever hands in something else after that is judged on the cases of a
        further secret. This does not keep a class-mate who hands in for the first time, late, from being told
        those of the first.
        """
        place = f"{lesson}.{attempt}" if attempt else lesson
        if self.folder is None:
            return self.memory.setdefault(("seeds", place), secrets.randbits(SECRET))
        file = self.folder / "seeds" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            fresh = _written(file.parent, str(secrets.randbits(SECRET)).encode())
            try:
                os.link(fresh, file)  # of several that write at once, the first decides
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        if not (text := file.read_text("ascii", "replace").strip()).isdigit() or len(text) > SECRET:
            raise Unavailable(
                f"{file} should hold a number, and doesn't, so {lesson} can't be graded. Restore the file from a "
                "backup. Without one, delete it: then a new secret is drawn, and points can change."
            )
        return int(text)


def _packed(owner: list[str], result: Any) -> bytes:
    """A result, with the kind and the key that it is kept under."""
    return gzip.compress(json.dumps([owner, result]).encode(), 1, mtime=0)


def _file(folder: Path, kind: str, name: str) -> Path:
    return folder / kind / name[:2] / f"{name}.json.gz"


@functools.cache
def kept_in(folder: Path) -> Store:
    """The store in this folder: one for all who ask."""
    return Store(folder)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep everybody else from grading here meanwhile. Raises Unavailable where somebody does. Death releases it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Unavailable(
                f"Somebody is grading here already (process {file.read(20).strip() or 'unknown'}). Wait until that has "
                "ended, or end it; then run this command again."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


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
