"""A learning platform's zip of a lesson's hand-ins, laid into submitted/STUDENT/LESSON/.

nbgrader's own `zip_collect` is not used: it unpacks every file in the archive to disk without limits, needs a regular
expression for each platform from the instructor, uses a part of a file's name as a path, and stops altogether at one
duplicate without a time. The result is the same as its own: STUDENT/LESSON/LESSON.ipynb.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath

from grader.arrays.words import one_line
from grader.classroom.handins.archive import LARGEST, TOTAL, Archive, Unreadable, listed, megabytes
from grader.classroom.store import write

# How platforms name a file: the student's name, a key that tells namesakes apart, the time, and the student's own name
# for the file.
MOODLE = re.compile(r"(?:[^/]+/)?(?P<name>[^/]+?)_(?P<key>\d+)_assignsubmission_[a-z]+_?/?(?P<file>.+)")
BRIGHTSPACE = re.compile(
    r"(?:[^/]+/)?(?P<key>\d+)-\d+ - (?P<name>.+?) - "
    r"(?P<when>\w{3} \d{1,2}, \d{4} \d{1,4} [AP]M)(?:/| - )(?P<file>.+)"
)
BLACKBOARD = re.compile(r"(?P<key>[^/]*_(?P<name>[^_/]+))_attempt_(?P<when>[\d-]+)(?:_(?P<file>[^/]+)|(?P<slip>\.txt))")
CANVAS = re.compile(r"(?P<name>[^_/]+)_(?:LATE_)?(?P<key>\d+)_\d+_(?P<file>[^/]+)")
SUFFIXES = (".ipynb", ".zip")
COPY = re.compile(r"(.+)-(\d+)$")  # Canvas: a file handed in again under the same name


@dataclass(frozen=True)
class Receipt:
    """What became of one hand-in: its file, or the problem with it; and what an instructor should know about it."""

    student: str
    file: Path | None = None
    problem: str = ""
    note: str = ""


@dataclass(frozen=True)
class Destination:
    """Where a lesson's hand-ins go, and whether another file that lies there is replaced."""

    submitted: Path
    lesson: str
    replace: bool = False

    def folder(self, student: str) -> Path:
        """The student's folder for the lesson, made where there is none."""
        folder = self.submitted / student / self.lesson
        for place in (folder.parent, folder):
            if place.is_symlink():
                raise Unreadable(f"{place} is a link to another folder; nothing was written. Remove the link.")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write(self, data: bytes, target: Path) -> str:
        """Put a file in its place, whole or not at all; returns what was there before, "" for nothing."""
        exists = target.is_symlink() or target.exists()
        if exists and target.is_file() and not target.is_symlink() and target.read_bytes() == data:
            return "was there already, the same"
        if exists and not self.replace:
            raise Unreadable(
                f"{target} is there already and differs from the archive's: it was left as it is. Take the "
                "archive's with --replace."
            )
        write(target, data)
        target.chmod(0o644)  # a new file is its owner's alone
        return "replaced what was there" if exists else ""


@dataclass(frozen=True)
class Piece:
    """One file in the archive, with the student it belongs to."""

    name: str
    key: str
    when: str  # sorts as time does; "" where the platform does not say
    path: PurePosixPath  # as the student named it
    copy: int = 0  # of files handed in again under one name, the greatest is the newest
    load: Callable[[], bytes] = bytes

    @property
    def is_notebook(self) -> bool:
        return self.path.suffix.lower() == ".ipynb"


def unpack(archive: Path, lesson: str, submitted: Path, replace: bool = False) -> list[Receipt]:
    """Lay each student's newest notebook for a lesson out of a platform's zip into `submitted`.

    Another notebook that lies there is left as it is, unless it is to be replaced. Raises Unreadable when the zip
    itself cannot be read.
    """
    packed = _opened(archive)
    receipts = [Receipt("", problem=problem) for problem in packed.problems]
    students: dict[tuple[str, str], list[Piece]] = defaultdict(list)
    for entry, piece in zip(packed.entries, _pieces([e.path for e in packed.entries], lesson), strict=True):
        if piece is None and entry.path.suffix.lower() in SUFFIXES:
            problem = f"Whose is {one_line(entry.path)}? Put it in a folder of the student's name."
            receipts.append(Receipt("", problem=problem))
        elif piece and piece.path.name:
            students[piece.name, piece.key].append(dataclasses.replace(piece, load=partial(packed.read, entry)))
    if not students and not receipts:
        raise Unreadable(f"There are no files in {packed.name}. Fetch the hand-ins again.")
    names = _ids(list(students))
    for student, pieces in sorted(students.items(), key=lambda item: names[item[0]]):
        receipts += _deliver(names[student], pieces, Destination(submitted, lesson, replace))
    return receipts


def _opened(archive: Path) -> Archive:
    packed = Archive(archive, one_line(archive.name))
    total = sum(e.info.file_size for e in packed.entries if e.path.suffix.lower() in SUFFIXES)
    if total > TOTAL:
        raise Unreadable(
            f"{packed.name} holds {megabytes(total)} of notebooks and zips; at most "
            f"{megabytes(TOTAL)} are taken at once. Pack the hand-ins of half the class."
        )
    return packed


def _pieces(paths: list[PurePosixPath], lesson: str) -> list[Piece | None]:
    """Each file with its student: by the platform's way of naming files, else by the folder that it lies in."""
    flat = len({path.parts[0] for path in paths}) == 1 and all(len(path.parts) == 2 for path in paths)
    handed_in = [path.parts for path in paths if path.suffix.lower() in SUFFIXES]
    by_lesson = {parts.index(lesson, 1) - 1 for parts in handed_in if lesson in parts[1:-1]}
    top, under = {parts[0] for parts in handed_in}, {parts[1:2] for parts in handed_in}
    packed = len(top) == 1 and all(len(parts) > 2 for parts in handed_in) and (top == {lesson} or len(under) > 1)
    depth = min(by_lesson, default=int(packed))
    return [
        _by_platform(str(path))
        or (_by_platform(path.name) if flat else None)
        or _by_folder(path.parts[depth:], lesson if by_lesson else "")
        for path in paths
    ]


def _by_platform(path: str) -> Piece | None:
    """By the first pattern that fits: those with words of their own go before CANVAS, which is names and numbers."""
    for layout in (MOODLE, BRIGHTSPACE, BLACKBOARD, CANVAS):
        if match := layout.fullmatch(path):
            part = match.groupdict()
            file = PurePosixPath(part["file"] or "")
            again = COPY.fullmatch(file.stem) if layout is CANVAS else None
            if again:
                file = file.with_name(again[1] + file.suffix)
            return Piece(part["name"], part["key"], _time(part.get("when") or ""), file, int(again[2]) if again else 0)
    return None


def _by_folder(parts: tuple[str, ...], lesson: str) -> Piece | None:
    """STUDENT/ANY.ipynb; or STUDENT/LESSON/ANY.ipynb, where a file of another lesson has no name, and is left out."""
    if len(parts) < 2:
        return None
    other = lesson and len(parts) > 2 and parts[1] != lesson
    return Piece(parts[0], parts[0], "", PurePosixPath() if other else PurePosixPath(*parts[1:]))


def _time(text: str) -> str:
    """Brightspace's "Jan 1, 2024 930 AM" in a form that sorts; Blackboard's does already."""
    if match := re.fullmatch(r"(\w+ \d+, \d+) (\d+) ([AP]M)", text):
        try:
            return datetime.strptime(f"{match[1]} {match[2]:0>4} {match[3]}", "%b %d, %Y %I%M %p").isoformat(" ")
        except ValueError:
            return ""
    return text


def _ids(people: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A folder name for each: the student's name, and the platform's key where two would share it."""
    plain = [safe(name).casefold() for name, _ in people]
    ids: dict[tuple[str, str], str] = {}
    used: set[str] = set()
    for (name, key), short in sorted(zip(people, plain, strict=True)):
        folder = safe(name) if plain.count(short) == 1 else f"{safe(name)}_{safe(key)}"
        while folder.casefold() in used:
            folder += "_2"
        used.add(folder.casefold())
        ids[name, key] = folder
    return ids


def safe(name: str) -> str:
    """A student's name as the name of a folder that nbgrader's patterns and every file system take."""
    text = re.sub(r"[^\w@.-]+", "_", unicodedata.normalize("NFC", name)).strip("._-")
    return text.encode()[:100].decode(errors="ignore") or "student"


def _deliver(student: str, pieces: list[Piece], destination: Destination) -> Iterator[Receipt]:
    """Write the notebook of the newest attempt, or say why there is none."""
    lesson = destination.lesson
    try:
        folder = destination.folder(student)  # even for nothing: then grading has a line for the student
        notebooks, note = _newest(pieces, lesson)
        for k, piece in enumerate(notebooks, 1):
            target = folder / (f"{lesson}.ipynb" if len(notebooks) == 1 else f"{k}_{safe(piece.path.stem)}.ipynb")
            before = destination.write(piece.load(), target)
            yield Receipt(student, target, note="; ".join(filter(None, [note, before])))
        if len(notebooks) > 1:
            raise Unreadable(
                f"Each of these could be the hand-in: {listed(p.path for p in notebooks)}. All are in "
                f"{folder} now: keep one."
            )
    except Unreadable as error:
        yield Receipt(student, problem=str(error))
    except OSError as error:
        yield Receipt(student, problem=f"{destination.submitted / student} cannot be written: {error.strerror}.")


def _newest(pieces: list[Piece], lesson: str) -> tuple[list[Piece], str]:
    """The newest attempt's notebook for this lesson, or all that could be it; and a note on the older ones."""
    attempts = sorted({piece.when for piece in pieces if piece.path.suffix.lower() in SUFFIXES})
    last = [piece for piece in pieces if piece.when in attempts[-1:]]
    notebooks = [piece for piece in last if piece.is_notebook] or [
        n for piece in last if piece.path.suffix.lower() == ".zip" for n in _inside(piece)
    ]
    if not notebooks:
        raise Unreadable(f"There is no notebook among what was handed in: {listed(p.path for p in last or pieces)}.")
    named = (
        [p for p in notebooks if p.path.stem == lesson]
        or [p for p in notebooks if lesson in p.path.parts[:-1]]
        or notebooks
    )
    newest = {piece.path: piece for piece in sorted(named, key=lambda p: p.copy)}
    notes = [
        f"the newest of {len(attempts)} attempts ({attempts[-1]})" if len(attempts) > 1 else "",
        f"the newest of {len(named)} files of this name" if len(newest) < len(named) else "",
    ]
    return list(newest.values()), "; ".join(filter(None, notes))


def _inside(packed: Piece) -> Iterator[Piece]:
    """The notebooks in a student's own zip, which is opened again to read one, so that none stays in memory."""
    name = one_line(packed.path.name)
    inner = Archive(packed.load(), name)
    notebooks = [entry for entry in inner.entries if entry.path.suffix.lower() == ".ipynb"]
    if (total := sum(entry.info.file_size for entry in notebooks)) > LARGEST:
        raise Unreadable(
            f"{name} holds {megabytes(total)} of notebooks; at most {megabytes(LARGEST)} are read. Ask "
            "for the one notebook, with its outputs cleared."
        )
    for k, entry in enumerate(inner.entries):
        if entry in notebooks:
            yield Piece(packed.name, packed.key, packed.when, entry.path, packed.copy, partial(_nth, packed, k))


def _nth(packed: Piece, k: int) -> bytes:
    inner = Archive(packed.load(), one_line(packed.path.name))
    return inner.read(inner.entries[k])
