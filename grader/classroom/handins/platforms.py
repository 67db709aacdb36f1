"""A learning platform's zip of a lesson's hand-ins, laid into submitted/STUDENT/LESSON/.

nbgrader's own `zip_collect` is not used: it unpacks every file in the archive to disk without limits, needs a regular
expression for each platform from the instructor, uses a part of a file's name as a path, and stops altogether at one
duplicate without a time. The result is the same as its own: STUDENT/LESSON/LESSON.ipynb.

Time is bounded, whatever is in the archive: one student's part takes some two seconds, and the worst archive that there
can be (20,000 students, a zip of 2,000 entries from each) a quarter of an hour.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath

from grader.arrays.words import one_line
from grader.classroom.course.late import TIME
from grader.classroom.handins.archive import Archive, Entry, Folder, Unreadable, listed, megabytes
from grader.classroom.handins.roster import Roster, Sender
from grader.classroom.store import write

# How platforms name a file: the student's name, a key that tells namesakes apart, the time, and the student's own name
# for the file. A student chooses all of the last, and may put there what looks like the rest of another's: so each
# expression begins at the beginning, and takes as little as it can.
MOODLE = re.compile(r"(?P<name>[^/]+?)_(?P<key>\d+)_assignsubmission_[a-z]+_?/?(?P<file>.+)", re.DOTALL)
BRIGHTSPACE = re.compile(
    r"(?P<key>\d+)-\d+ - (?P<name>[^/]+?) - (?P<when>\w{3} \d{1,2}, \d{4} \d{1,4} [AP]M)(?:/| - )(?P<file>.+)",
    re.DOTALL,
)
BLACKBOARD = re.compile(
    r"(?P<key>[^/]*?_(?P<name>[^_/]+))_attempt_(?P<when>\d{4}(?:-\d\d){5})(?:_(?P<file>.+)|(?P<slip>\.txt))", re.DOTALL
)
CANVAS = re.compile(r"(?P<name>[^_/]+)_(?P<late>LATE_)?(?P<key>\d+)_(?P<upload>\d+)_(?P<file>.+)", re.DOTALL)
CLASSROOM = re.compile(r"(?!\d+-\d+ - )(?P<key>(?P<name>[^/]+?)) - (?P<file>[^/]+)", re.DOTALL)  # Google's, from Drive
WORDED = (MOODLE, BRIGHTSPACE, BLACKBOARD)  # with words of their own, which no student writes by chance
PLATFORMS = {
    MOODLE: "moodle",
    BRIGHTSPACE: "brightspace",
    BLACKBOARD: "blackboard",
    CANVAS: "canvas",
    CLASSROOM: "google",
}
CLONES = "-submissions"  # ends the name of the folder into which `gh classroom clone` lays a class's repositories
SUFFIXES = (".ipynb", ".zip")
COPY = re.compile(r"(.+)-(\d{1,4})$", re.DOTALL)  # Canvas: a file handed in again under the same name
MOST_CANDIDATES = 20  # of one student
UNCHANGED = "was there already, the same"
SHARE = 200_000_000  # bytes that are read for one student, and as many again from zips


@dataclass(frozen=True)
class Receipt:
    """What became of one hand-in: its file, or the problem with it; and what an instructor should know about it."""

    student: str
    file: Path | None = None
    problem: str = ""
    note: str = ""
    sender: Sender | None = None


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
            return UNCHANGED
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
    archive: Archive | Folder
    entry: Entry
    sender: Sender
    copy: int = 0  # of files handed in again under one name, the greatest is the newest

    @property
    def size(self) -> int:
        return self.entry.size

    def load(self) -> bytes:
        return self.archive.read(self.entry)

    def has(self, suffix: str) -> bool:
        return self.path.suffix.lower() == suffix


def unpack(
    archive: Path,
    lesson: str,
    submitted: Path,
    replace: bool = False,
    lessons: Collection[str] = (),
    roster: Roster = Roster(),
) -> list[Receipt]:
    """Lay each student's newest notebook for a lesson out of a platform's zip, or a folder, into `submitted`.

    Another notebook that lies there is left as it is, unless it is to be replaced. Folders of the other `lessons` are
    left out. Who is in the roster gets the id that it says. Raises Unreadable when the zip itself cannot be read.
    """
    name = one_line(archive.name)
    packed = Folder(archive, name) if archive.is_dir() else Archive(archive, name)
    receipts = [Receipt("", problem=problem) for problem in packed.problems]
    students: dict[tuple[str, str], list[Piece]] = defaultdict(list)
    whose = _ownership(packed, lesson, {*lessons} - {lesson})
    for entry in packed.entries:
        piece = whose(entry)
        if piece is None and _handed_in(entry.path):
            problem = f"Whose is {one_line(entry.path)}? Put it in a folder of the student's name."
            receipts.append(Receipt("", problem=problem))
        elif piece and piece.path.name:
            students[piece.name, piece.key].append(piece)
    if not students and not receipts:
        raise Unreadable(f"There are no files in {packed.name}. Fetch the hand-ins again.")
    names = _ids({person: pieces[0].sender for person, pieces in students.items()}, roster)
    for student, pieces in sorted(students.items(), key=lambda item: names[item[0]]):
        receipts += _deliver(names[student], pieces, Destination(submitted, lesson, replace))
    return receipts


def _handed_in(path: PurePosixPath) -> bool:
    return path.suffix.lower() in SUFFIXES


def _ownership(packed: Archive | Folder, lesson: str, others: Collection[str]) -> Callable[[Entry], Piece | None]:
    """Who says whose a file is: one and the same for the whole archive, as most of its outermost names would have it.

    So no name that a student can choose, which lies further in, is ever asked.
    """
    everything = [entry.path for entry in packed.entries]
    paths = [path.parts for path in everything if _handed_in(path)] or [path.parts for path in everything]
    depth = 0
    while _is_around_all(paths, depth, ("submitted", lesson)):
        depth += 1
    if platform := _platform(paths, depth):
        return partial(_by_platform, packed, platform, depth)
    under = {parts[depth + 1 : depth + 2] for parts in paths}
    if (
        len({parts[depth] for parts in paths}) == 1
        and len(under) > 1
        and not any(name in (lesson, *others) for name, *_ in filter(None, under))
        and (all(len(parts) > depth + 2 for parts in paths) or _platform(paths, depth + 1))
    ):
        around = one_line(paths[0][depth])
        raise Unreadable(
            f"All hand-ins in {packed.name} lie in one folder, {around}. If that is the class and not a student, "
            f"give it the name {lesson}, and pack it again."
        )
    clones = isinstance(packed, Folder) and packed.name.endswith(CLONES)
    return partial(_by_folder, packed, others, depth, f"{packed.name.removesuffix(CLONES)}-" if clones else "")


def _is_around_all(paths: list[tuple[str, ...]], depth: int, names: Collection[str]) -> bool:
    """Whether everything lies in one folder of such a name, and in folders or under platforms' names in that."""
    tops = {name for parts in paths for name in parts[depth : depth + 1]}
    inner = all(len(parts) > depth + 2 for parts in paths) or _platform(paths, depth + 1) is not None
    return len(tops) == 1 and tops <= {*names} and inner


def _platform(paths: list[tuple[str, ...]], depth: int) -> re.Pattern[str] | None:
    """The platform that named most of what lies at this depth; None where that is no platform.

    Where two would do, the true one leaves more of a name to the student.
    """
    tops = {parts[depth] for parts in paths if len(parts) > depth}
    fits: dict[re.Pattern[str], dict[str, int]] = {}
    for platform in PLATFORMS:
        matches = ((parts[depth], platform.fullmatch("/".join(parts[depth:]))) for parts in paths if len(parts) > depth)
        fits[platform] = {top: match.start("file") for top, match in matches if match}
    best = max(fits, key=lambda platform: (len(fits[platform]), -sum(fits[platform].values())))
    return best if 2 * len(fits[best]) > len(tops) else None


def _by_platform(packed: Archive | Folder, platform: re.Pattern[str], depth: int, entry: Entry) -> Piece | None:
    match = platform.fullmatch("/".join(entry.path.parts[depth:]))
    if match is None:
        return None
    part = match.groupdict()
    file = PurePosixPath((part["file"] or "").strip("/"))
    again = COPY.fullmatch(file.stem) if platform is CANVAS else None
    if again:
        file = file.with_name(again[1] + file.suffix)
    when = _time(part.get("when") or "")
    number = part["key"] if part["key"].isdigit() else ""
    sender = Sender(PLATFORMS[platform], number, part["name"], part.get("upload") or "", when, bool(part.get("late")))
    return Piece(part["name"], part["key"], when, file, packed, entry, sender, int(again[2]) if again else 0)


def _by_folder(
    packed: Archive | Folder, others: Collection[str], depth: int, prefix: str, entry: Entry
) -> Piece | None:
    """STUDENT/ANY.ipynb; or STUDENT/LESSON/ANY.ipynb, where a file of another lesson has no name, and is left out."""
    student, *rest = entry.path.parts[depth:] or ("",)
    if not rest:
        return None
    student = student.removeprefix(prefix)
    is_other = len(rest) > 1 and rest[0] in others
    file = PurePosixPath() if is_other else PurePosixPath(*rest)
    return Piece(student, student, "", file, packed, entry, Sender("github" if prefix else "folder", "", student))


def _time(text: str) -> str:
    """Brightspace's "Jan 1, 2024 930 AM" in a form that sorts; Blackboard's does already."""
    if match := re.fullmatch(r"(\w+ \d+, \d+) (\d+) ([AP]M)", text):
        try:
            return datetime.strptime(f"{match[1]} {match[2]:0>4} {match[3]}", "%b %d, %Y %I%M %p").isoformat(" ")
        except ValueError:
            return ""
    return text


def _ids(people: Mapping[tuple[str, str], Sender], roster: Roster) -> dict[tuple[str, str], str]:
    """A folder name for each: the roster's id; else the student's name, and the platform's key where two share it."""
    ids = roster.ids(people)
    new = sorted(set(people) - set(ids))
    shared = Counter(_as_on_disk(safe(name)) for name, _ in new)
    used: Counter[str] = Counter(_as_on_disk(one) for one in roster.taken)
    for name, key in new:
        alone = shared[_as_on_disk(safe(name))] == 1 and not used[_as_on_disk(safe(name))]
        folder = safe(name) if alone else f"{safe(name)}_{safe(key)}"
        while used[_as_on_disk(folder)]:
            used[_as_on_disk(folder)] += 1
            folder = f"{folder}_{used[_as_on_disk(folder)]}"
        used[_as_on_disk(folder)] = 1
        ids[name, key] = folder
    return ids


def _as_on_disk(name: str) -> str:
    """The same for all names that some file system takes for one."""
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())


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
            time = _keep_time(folder / TIME, piece.sender, before)
            late = "late, as the platform says" if piece.sender.late else ""
            notes = filter(None, [note, late, before, time])
            yield Receipt(student, target, note="; ".join(notes), sender=piece.sender)
        if len(notebooks) > 1:
            raise Unreadable(
                f"Each of these could be the hand-in: {listed(p.path for p in notebooks)}. All are in "
                f"{folder} now: keep one."
            )
    except Unreadable as error:
        yield Receipt(student, problem=str(error))
    except OSError as error:
        yield Receipt(student, problem=f"{destination.submitted / student} cannot be written: {error.strerror}.")


def _keep_time(file: Path, sender: Sender, before: str) -> str:
    """When it was handed in, where nbgrader looks for it. What stands there stays with the notebook that it is about: a
    person may have written it. Returns what became of that of another notebook, "" for nothing."""
    stood = one_line(file.read_text(errors="replace")) if file.is_file() and not file.is_symlink() else ""
    if before == UNCHANGED and stood:
        return ""
    if sender.time:
        write(file, sender.time.encode())
    elif stood and before:
        file.unlink()
        return f"{TIME} said {stood}, of the notebook before it: removed; write one for this"
    return ""


def _newest(pieces: list[Piece], lesson: str) -> tuple[list[Piece], str]:
    """The newest attempt's notebook for this lesson, or all that could be it; and a note on the older ones."""
    attempts = sorted({piece.when for piece in pieces if _handed_in(piece.path)})
    last = [piece for piece in pieces if piece.when in attempts[-1:]]
    notebooks = [piece for piece in last if piece.has(".ipynb")] or _unzipped([p for p in last if p.has(".zip")])
    if not notebooks:
        raise Unreadable(f"There is no notebook among what was handed in: {listed(p.path for p in last or pieces)}.")
    named = (
        [p for p in notebooks if p.path.stem == lesson]
        or [p for p in notebooks if lesson in p.path.parts[:-1]]
        or notebooks
    )
    copies = {p.path: p.copy for p in sorted(named, key=lambda p: p.copy)}
    newest = [p for p in named if p.copy == copies[p.path]]
    _check(newest)
    notes = [
        f"the newest of {len(attempts)} attempts ({attempts[-1]})" if len(attempts) > 1 else "",
        f"the newest of {len(named)} files of this name" if len(newest) < len(named) else "",
    ]
    return newest, "; ".join(filter(None, notes))


def _check(pieces: list[Piece]) -> None:
    """That these are few and small enough to be read, and no hand-ins of others that somebody packed with them."""
    names = listed(piece.path for piece in pieces)
    if len(pieces) > MOST_CANDIDATES:
        raise Unreadable(
            f"Each of {len(pieces):,} files could be the hand-in: {names}. At most {MOST_CANDIDATES} are looked at: "
            "ask for the one notebook."
        )
    if (total := sum(piece.size for piece in pieces)) > SHARE:
        raise Unreadable(
            f"{names} hold {megabytes(total)}; at most {megabytes(SHARE)} are read of one student's. Ask for the one "
            "notebook, with its outputs cleared."
        )
    for piece in pieces:
        inner = ("/".join(piece.path.parts[k:]) for k in range(len(piece.path.parts)))
        if any(platform.fullmatch(text) for text in inner for platform in WORDED):
            raise Unreadable(
                f"{one_line(piece.path)} is named as a platform names hand-ins, but is in this student's. Whose is "
                "it? Put it in its place by hand."
            )


def _unzipped(zips: list[Piece]) -> list[Piece]:
    """The notebooks in a student's own zips, each of which is opened once."""
    _check(zips)
    return [
        dataclasses.replace(packed, path=entry.path, archive=inner, entry=entry)
        for packed in zips
        for inner in [Archive(packed.load(), one_line(packed.path.name), packed.archive.allowance)]
        for entry in inner.entries
        if entry.path.suffix.lower() == ".ipynb"
    ]
