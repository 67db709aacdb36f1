"""A zip from a stranger, read without harm.

Nothing is ever unpacked: an entry is read into memory when it is needed, within limits, and nothing is written under
its path. So a path that leads outside, a link, or a bomb comes to no more than a sentence for the instructor.
"""

from __future__ import annotations

import io
import os
import re
import stat
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grader.arrays.words import one_line

LARGEST = 50_000_000  # bytes of one file, packed or not: as text it may take four times as much memory
TOTAL = 4_000_000_000  # bytes of all that is taken from one archive, and from the zips in it
MOST_ENTRIES = 20_000
MOST_INSIDE = 2_000  # entries of a zip that a student packed, or of a student's folder
PACKED_BY = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others take memory as the zip likes
ENTRY = b"PK\x01\x02"  # begins each entry's line in the directory at the end of a zip


SUFFIXES = (".ipynb", ".zip")
OF_A_SYSTEM = re.compile(r"__MACOSX|\.(git|ipynb_checkpoints|DS_Store|Trash)")  # begins what no student is called


class Unreadable(Exception):
    """A hand-in that cannot be read; the text says what is wrong with it and what to do."""


@dataclass(frozen=True)
class Entry:
    """One file in an archive, or in a folder that stands for one."""

    path: PurePosixPath
    size: int
    place: zipfile.ZipInfo | Path


@dataclass
class Allowance:
    """The bytes that may still be unpacked."""

    left: int

    def spend(self, size: int, name: str) -> None:
        if size > self.left:
            raise Unreadable(f"There is more in {name} than is unpacked at once. Collect it in two halves.")
        self.left -= size


class Archive:
    """The files in a zip, without a system's own, and the problems with those that are refused.

    A path is a class's archive; bytes are a zip that a student packed. What is read is paid for from the allowance.
    """

    def __init__(self, source: Path | bytes, name: str, allowance: Allowance | None = None) -> None:
        self.name = name
        self.allowance = allowance or Allowance(TOTAL)
        most = MOST_INSIDE if isinstance(source, bytes) else MOST_ENTRIES
        if isinstance(source, bytes) and source.count(ENTRY) > most:  # before Python makes an object of each
            raise Unreadable(_too_many(name, source.count(ENTRY), most))
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source)
            infos = self._zip.infolist()
        except Exception as error:  # zipfile raises of all sorts for what is damaged
            raise Unreadable(
                f"{name} is no zip, or a damaged one ({_reason(error)}). Fetch or ask for it again, as a zip."
            ) from error
        if len(infos) > most:
            ((top, count),) = Counter(_name(info).split("/")[0] for info in infos).most_common(1)
            where = f" {count:,} of them lie in {one_line(top)}." if count > 1 else ""
            raise Unreadable(_too_many(name, len(infos), most) + where)
        self.entries: list[Entry] = []
        self.problems: list[str] = []
        for info in infos:
            self._sort(info)

    def _sort(self, info: zipfile.ZipInfo) -> None:
        name = _name(info).replace("\\", "/")  # zips made on Windows
        path = PurePosixPath(name)
        if name.endswith("/") or not path.parts:
            return
        if "\0" in info.orig_filename:  # zipfile's name ends there
            self.problems.append(f"{one_line(info.orig_filename)} in {self.name} has no possible name: left out.")
        elif path.is_absolute() or ".." in path.parts or ":" in path.parts[0][1:2]:
            self.problems.append(f"{one_line(name)} in {self.name} leads outside the archive: left out.")
        elif stat.S_ISLNK(info.external_attr >> 16):
            self.problems.append(f"{one_line(name)} in {self.name} is a link, not a file: left out.")
        elif not hidden(path):
            self.entries.append(Entry(path, info.file_size, info))
        elif may_be_a_name(path):
            self.problems.append(f"{one_line(name)} in {self.name} is a hidden file: left out. Whose is it?")

    def read(self, entry: Entry) -> bytes:
        """The bytes of an entry. Raises Unreadable when there are too many, or when they cannot be read."""
        where = f"{one_line(entry.path.name)} in {self.name}"
        assert isinstance(entry.place, zipfile.ZipInfo)
        if entry.place.flag_bits & 1:
            raise Unreadable(f"{where} is encrypted. Ask for it without a password.")
        if entry.place.compress_type not in PACKED_BY:
            raise Unreadable(f"{where} is packed in an unusual way. Ask for it as an ordinary zip.")
        if entry.size > LARGEST:
            raise Unreadable(
                f"{where} is {megabytes(entry.size)} unpacked; at most {megabytes(LARGEST)} "
                "are read. Ask for the notebook with its outputs cleared."
            )
        self.allowance.spend(entry.size, self.name)
        try:
            with self._zip.open(entry.place) as file:
                return file.read(LARGEST)
        except Exception as error:  # zipfile and its decompressors raise of all sorts, too
            raise Unreadable(f"{where} is damaged ({_reason(error)}). Fetch or ask for it again.") from error


class Folder:
    """The files in a folder of hand-ins (clones of a class's repositories, say), as those of an archive.

    Links are refused, and what a system or git keeps for itself is not looked at.
    """

    def __init__(self, source: Path, name: str) -> None:
        self.name = name
        self.allowance = Allowance(TOTAL)
        self.entries: list[Entry] = []
        self.problems: list[str] = []
        for folder, folders, files in os.walk(source):
            top = Path(folder) == source  # where somebody may be called so: then what is in it has a line
            shown = (f for f in folders if not hidden(PurePosixPath(f)) or (top and not OF_A_SYSTEM.match(f)))
            folders[:] = sorted(shown)
            for file in [*(one for one in folders if (Path(folder) / one).is_symlink()), *sorted(files)]:
                self._sort(Path(folder, file), PurePosixPath(Path(folder, file).relative_to(source)))
            if len(self.entries) > MOST_ENTRIES:
                raise Unreadable(_too_many(name, len(self.entries), MOST_ENTRIES))

    def _sort(self, file: Path, path: PurePosixPath) -> None:
        if hidden(path):
            if may_be_a_name(path):
                self.problems.append(f"{one_line(path)} in {self.name} is a hidden file: left out. Whose is it?")
            return
        if file.is_symlink():
            self.problems.append(f"{one_line(path)} in {self.name} is a link, not a file: left out.")
        elif file.is_file():
            self.entries.append(Entry(path, file.stat().st_size, file))

    def read(self, entry: Entry) -> bytes:
        """The bytes of a file. Raises Unreadable as an archive does."""
        where = f"{one_line(entry.path.name)} in {self.name}"
        assert isinstance(entry.place, Path)
        if entry.size > LARGEST:
            raise Unreadable(f"{where} is {megabytes(entry.size)}; at most {megabytes(LARGEST)} are read.")
        self.allowance.spend(entry.size, self.name)
        try:
            with os.fdopen(os.open(entry.place, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                return file.read(LARGEST)
        except OSError as error:
            raise Unreadable(f"{where} cannot be read: {error.strerror}.") from error


def lone_notebook(data: bytes, name: str) -> tuple[str, bytes]:
    """The name and the bytes of the one notebook in a zip that was handed in in place of a notebook."""
    archive = Archive(data, name)
    notebooks = [entry for entry in archive.entries if entry.path.suffix.lower() == ".ipynb"]
    if len(notebooks) > 1:
        raise Unreadable(
            f"Which of these in {name} is the hand-in? {listed(e.path for e in notebooks)}. "
            "Put that one beside it, under the lesson's name."
        )
    if not notebooks:
        reason = archive.problems[0] if archive.problems else f"Found: {listed(e.path for e in archive.entries)}."
        raise Unreadable(f"There is no notebook in {name}. {reason} Ask for the .ipynb file.")
    return f"{one_line(notebooks[0].path.name)} in {name}", archive.read(notebooks[0])


def hidden(path: PurePosixPath) -> bool:
    """Whether a file is a system's own (.ipynb_checkpoints, ._name, __MACOSX) and not a student's."""
    return any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def may_be_a_name(path: PurePosixPath) -> bool:
    """Whether a hidden file may be a hand-in: of somebody whose name begins with a dot."""
    return hidden(PurePosixPath(path.parts[0])) and not OF_A_SYSTEM.match(path.parts[0]) and handed_in(path)


def handed_in(path: PurePosixPath) -> bool:
    return path.suffix.lower() in SUFFIXES


def listed(names: Iterable[object]) -> str:
    """Some names, and how many more there are."""
    lines = sorted(one_line(name) for name in names)
    return ", ".join(lines[:5]) + (f" and {len(lines) - 5} more" if len(lines) > 5 else "") or "nothing"


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def _name(info: zipfile.ZipInfo) -> str:
    """An entry's name. Many programs write UTF-8 without saying so; zipfile then reads it as a DOS code page."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _too_many(name: str, count: int, most: int) -> str:
    return f"{name} holds {count:,} files; at most {most:,} are looked at. Pack the hand-ins alone."


def _reason(error: Exception) -> str:
    return one_line(str(error).splitlines()[0] if str(error) else type(error).__name__)
