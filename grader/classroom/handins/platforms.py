"""A learning platform's zip of a lesson's hand-ins, laid into submitted/STUDENT/LESSON/.

nbgrader's own `zip_collect` is not used: it unpacks every file in the archive to disk without limits, needs a regular
expression for each platform from the instructor, uses a part of a file's name as a path, and stops altogether at one
duplicate without a time. The result is the same as its own: STUDENT/LESSON/LESSON.ipynb.

Time is bounded, whatever is in the archive: one student's part takes some two seconds, and the worst archive that there
can be (20,000 students, a zip of 2,000 entries from each) a quarter of an hour.
"""

from __future__ import annotations

import dataclasses
import os
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
from grader.classroom.handins.archive import Archive, Entry, Folder, Unreadable, handed_in, listed, megabytes
from grader.classroom.handins.roster import GIVEN, WITH_NUMBERS, Match, Roster, Sender, as_name
from grader.classroom.store import write

# How platforms name a file: the student's name, a key that tells namesakes apart, the time, and the student's own name
# for the file. A student chooses the last, on some platforms also the first, and may put there what looks like the rest
# of another's. So a name can be read in two ways, and is then nobody's: see `_reading`.
SHAPES = {
    "moodle": r"(?P<name>{any})_(?P<key>[0-9]+)_assignsubmission_[a-z]+_?/?(?P<file>.+)",
    "brightspace": r"(?P<key>[0-9]+)-[0-9]+ - (?P<name>{any}) - (?P<when>\w{{3}} [0-9]{{1,2}}, [0-9]{{4}} [0-9]{{1,4}} "
    r"[AP]M)(?:/| - )(?P<file>.+)",
    "blackboard": r"(?P<key>(?P<name>{any}))_attempt_(?P<when>[0-9]{{4}}(?:-[0-9][0-9]){{5}})"
    r"(?:_(?P<file>.+)|(?P<slip>\.txt))",
    "canvas": r"(?P<name>{any})_(?P<late>LATE_)?(?P<key>[0-9]+)_(?P<upload>[0-9]+)_(?P<file>.+)",
    "google": r"(?P<key>(?P<name>{any})) - (?P<file>[^/]+)",  # from Drive
}
SHORTEST_READING = {name: re.compile(shape.format(any="[^/]+?"), re.DOTALL) for name, shape in SHAPES.items()}
LONGEST_READING = {name: re.compile(shape.format(any=".+"), re.DOTALL) for name, shape in SHAPES.items()}
WORDED = ("moodle", "brightspace", "blackboard")  # with words of their own, which no student writes by chance
CLONES = "-submissions"  # ends the name of the folder into which `gh classroom clone` lays a class's repositories
COPY = re.compile(r"(.+)-(\d{1,4})$", re.DOTALL)  # Canvas: a file handed in again under the same name
MOST_CANDIDATES = 20  # of one student
UNCHANGED = "was there already, the same"
SHARE = 200_000_000  # bytes that are read for one student, and as many again from zips


@dataclass(frozen=True)
class Receipt:
    """What became of one hand-in: its file, or the problem with it; and what an instructor should know about it.

    A doubt about whose it is is for a person to look at, although the file was taken.
    """

    student: str
    file: Path | None = None
    problem: str = ""
    note: str = ""
    sender: Sender | None = None
    doubt: str = ""


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
        if piece is None and handed_in(entry.path):
            problem = f"Whose is {one_line(entry.path)}? Put it in a folder of the student's name."
            receipts.append(Receipt("", problem=problem))
        elif piece and piece.path.name:
            students[piece.name, piece.key].append(piece)
    if not students and not receipts:
        raise Unreadable(f"There are no files in {packed.name}. Fetch the hand-ins again.")
    people = {person: pieces[0].sender for person, pieces in students.items()}
    found = _ids(people, roster, lesson, {path.name for path in submitted.glob("*/")})
    for person, pieces in sorted(students.items(), key=lambda item: found[item[0]].id):
        delivered = _deliver(found[person].id, pieces, Destination(submitted, lesson, replace))
        receipts += [dataclasses.replace(receipt, doubt=found[person].doubt) for receipt in delivered]
    return receipts


def _ownership(packed: Archive | Folder, lesson: str, others: Collection[str]) -> Callable[[Entry], Piece | None]:
    """Who says whose a file is: one and the same for the whole archive, as most of its outermost names would have it.

    So no name that a student can choose, which lies further in, is ever asked.
    """
    everything = [entry.path for entry in packed.entries]
    paths = [path.parts for path in everything if handed_in(path)] or [path.parts for path in everything]
    depth = 0
    lessons = {lesson, *others}
    while _is_around_all(paths, depth, ("submitted", lesson), lessons):
        depth += 1
    if platform := _platform(paths, depth, lessons):
        start = _assignment(paths, depth) if platform == "blackboard" else 0
        return partial(_by_platform, packed, platform, depth, start, lessons)
    under = {parts[depth + 1 : depth + 2] for parts in paths}
    if (
        len({parts[depth] for parts in paths}) == 1
        and len(under) > 1
        and not any(name in (lesson, *others) for name, *_ in filter(None, under))
        and (all(len(parts) > depth + 2 for parts in paths) or _platform(paths, depth + 1, lessons))
    ):
        around = one_line(paths[0][depth])
        raise Unreadable(
            f"All hand-ins in {packed.name} lie in one folder, {around}. If that is the class and not a student, "
            f"give it the name {lesson}, and pack it again."
        )
    clones = isinstance(packed, Folder) and packed.name.endswith(CLONES)
    return partial(_by_folder, packed, others, depth, f"{packed.name.removesuffix(CLONES)}-" if clones else "")


def _is_around_all(paths: list[tuple[str, ...]], depth: int, names: Collection[str], lessons: Collection[str]) -> bool:
    """Whether everything lies in one folder of such a name, and in folders or under platforms' names in that."""
    tops = {name for parts in paths for name in parts[depth : depth + 1]}
    inner = all(len(parts) > depth + 2 for parts in paths) or _platform(paths, depth + 1, lessons) is not None
    return len(tops) == 1 and tops <= {*names} and inner


def _platform(paths: list[tuple[str, ...]], depth: int, lessons: Collection[str]) -> str | None:
    """The platform that named most of what lies at this depth; None where that is no platform, or could be two."""
    names = {parts[depth]: "/".join(parts[depth:]) for parts in paths if len(parts) > depth}
    fits = {platform: [n for n in names.values() if SHORTEST_READING[platform].fullmatch(n)] for platform in SHAPES}
    most = max(map(len, fits.values()))
    best = [platform for platform, fitting in fits.items() if len(fitting) == most]
    if len(best) > 1:
        best = [one for one in best if any(_reading(one, name, lessons) for name in fits[one])]
    return best[0] if len(best) == 1 and 2 * most > len(names) else None


def _is_worded(text: str) -> bool:
    """Whether a platform named it, or somebody who knows its words."""
    return any(SHORTEST_READING[platform].fullmatch(text) for platform in WORDED)


def _assignment(paths: list[tuple[str, ...]], depth: int) -> int:
    """Where a login begins in Blackboard's names: behind the assignment's, which is the same in all of them."""
    matches = (SHORTEST_READING["blackboard"].fullmatch("/".join(parts[depth:])) for parts in paths)
    return os.path.commonprefix([match["key"] for match in matches if match]).rfind("_") + 1


def _reading(platform: str, text: str, lessons: Collection[str]) -> re.Match[str] | None:
    """A platform's name for a file, taken apart; None where it is no such name, or could be read in another way.

    Canvas's numbers may be followed by that of a lesson, which is no other way.
    """
    plain = re.sub(f"(?<=_)({'|'.join(map(re.escape, lessons))})", "", text) if platform == "canvas" else text
    short, long = SHORTEST_READING[platform].fullmatch(plain), LONGEST_READING[platform].fullmatch(plain)
    if short is None or long is None or short.span("file") != long.span("file"):
        return None
    return SHORTEST_READING[platform].fullmatch(text)


def _by_platform(
    packed: Archive | Folder, platform: str, depth: int, start: int, lessons: Collection[str], entry: Entry
) -> Piece | None:
    match = _reading(platform, "/".join(entry.path.parts[depth:]), lessons)
    if match is None:
        return None
    part = match.groupdict()
    file = PurePosixPath((part["file"] or "").strip("/"))
    again = COPY.fullmatch(file.stem) if platform == "canvas" else None
    if again:
        file = file.with_name(again[1] + file.suffix)
    when = _time(part.get("when") or "")
    number = part["key"] if part["key"].isdigit() and platform in WITH_NUMBERS else ""
    name = part["name"][start:]
    sender = Sender(platform, number, name, part.get("upload") or "", when, bool(part.get("late")))
    return Piece(name, part["key"], when, file, packed, entry, sender, int(again[2]) if again else 0)


def _by_folder(
    packed: Archive | Folder, others: Collection[str], depth: int, prefix: str, entry: Entry
) -> Piece | None:
    """STUDENT/ANY.ipynb; or STUDENT/LESSON/ANY.ipynb, where a file of another lesson has no name, and is left out."""
    student, *rest = entry.path.parts[depth:] or ("",)
    if not rest or not student.startswith(prefix) or _is_worded("/".join((student, *rest))):
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


def _ids(
    people: Mapping[tuple[str, str], Sender], roster: Roster, lesson: str, folders: Collection[str]
) -> dict[tuple[str, str], Match]:
    """A folder name for each: the roster's id; else the student's name, and the platform's key where two share it."""
    found = roster.matches(people, lesson)
    new = sorted(set(people) - set(found))
    shared = Counter(_as_on_disk(safe(name)) for name, _ in new)
    used: Counter[str] = Counter(_as_on_disk(one) for one in roster.taken)
    names = {_as_on_disk(safe(row.name)): row.id for row in roster.rows}
    names |= {_as_on_disk(one): one for one in (*folders, *roster.taken)}
    for name, key in new:
        plain = _as_on_disk(safe(name))
        folder = safe(name) if shared[plain] == 1 and not used[plain] else f"{safe(name)}_{safe(key)}"
        while used[_as_on_disk(folder)]:
            used[_as_on_disk(folder)] += 1
            folder = f"{folder}_{used[_as_on_disk(folder)]}"
        used[_as_on_disk(folder)] = 1
        alike = names.get(plain) or names.get(_as_on_disk(safe(as_name(name))), "")
        is_given = people[name, key].platform in GIVEN and folder == alike
        doubt = f"perhaps the student of submitted/{alike}: the roster doesn't say" if alike and not is_given else ""
        found[name, key] = Match(folder, doubt)
    return found


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
    attempts = sorted({piece.when for piece in pieces if handed_in(piece.path)})
    last = [piece for piece in pieces if piece.when in attempts[-1:]]
    notebooks = [piece for piece in last if piece.has(".ipynb")] or _unzipped([p for p in last if p.has(".zip")])
    if not notebooks:
        raise Unreadable(f"There is no notebook among what was handed in: {listed(p.path for p in last or pieces)}.")
    if pieces[0].sender.platform == "google" and len(pieces) > 1:
        raise Unreadable(
            f"Each of these could be the hand-in, of one student or of namesakes: {listed(p.path for p in pieces)}. "
            "Nothing was taken: put each in its place by hand."
        )
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
            f"{names} {'hold' if len(pieces) > 1 else 'says that it holds'} {megabytes(total)}; at most "
            f"{megabytes(SHARE)} are read of one student's. Ask for the one notebook, with its outputs cleared."
        )
    for piece in pieces:
        inner = ("/".join(piece.path.parts[k:]) for k in range(len(piece.path.parts)))
        if any(map(_is_worded, inner)):
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
