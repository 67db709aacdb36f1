"""Who is who on which platform, and how each hand-in came: `submitted/roster.csv` and `submitted/received.csv`.

A person has a row in the roster for each name under which a platform knows them. `collect` adds the rows; to join two
names of one person, give their rows the same id. Names come from platforms, where students write their own: they are
data, and no cell of either file is a formula.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from nbgrader.api import Gradebook

from grader.arrays.words import one_line
from grader.classroom.out import FORMULA, as_csv
from grader.classroom.store import Unavailable, write

ROSTER = "roster.csv"
RECEIVED = "received.csv"
NUMBERED = ("canvas",)  # where a person has one number in all lessons
WITH_NUMBERS = (*NUMBERED, "moodle", "brightspace")  # where a person has one number in a lesson
GIVEN = ("folder", "github")  # where students do not choose the names by which they are known
_LONGEST_NAME = 200  # characters of a name in a table; of a longer one, a part stands there, and a digest of all
LONGEST_FACT = 128  # characters that nbgrader's gradebook has for each
LARGEST_TABLE = 20_000_000  # bytes


@dataclass(frozen=True)
class Sender:
    """Who handed in, as the platform says: a number there, a name, the number of the file, when, and whether late."""

    platform: str
    number: str
    name: str
    file: str = ""
    when: str = ""  # in this machine's time zone; "" where the platform does not say
    late: bool = False

    @property
    def time(self) -> str:
        """When, as nbgrader's timestamp.txt has it; "" where nobody says."""
        for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d-%H-%M-%S"):
            try:
                return f"{datetime.strptime(self.when, form).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
            except (ValueError, OverflowError, OSError):  # the last two: years far away
                continue
        return ""


@dataclass(frozen=True)
class Identity:
    """One row of the roster: a student's id here, and a name and number of theirs on a platform."""

    id: str
    platform: str
    number: str
    name: str
    email: str = ""


@dataclass(frozen=True)
class Received:
    """One row about a hand-in: what a platform must be told to know it again, and when it came."""

    student: str
    lesson: str
    platform: str
    number: str
    name: str
    file: str
    time: str
    late: str


@dataclass(frozen=True)
class Match:
    """The student for whom a sender is taken, and why a person should look at that; "" where no one need."""

    id: str
    doubt: str = ""


@dataclass(frozen=True)
class Roster:
    """All rows, in order, and how hand-ins came."""

    rows: tuple[Identity, ...] = ()
    received: tuple[Received, ...] = ()
    trust_names: bool = False  # students cannot change their names: a match by name is no doubt

    @property
    def taken(self) -> set[str]:
        """The ids that stand for somebody."""
        return {row.id for row in self.rows}

    def matches(self, people: Mapping[tuple[str, str], Sender], lesson: str) -> dict[tuple[str, str], Match]:
        """Those of these people of one archive who are known; nobody is taken for another.

        A number decides where there is one; else a name that one person alone has, in the roster and here.
        """
        numbers = self._numbers(lesson)
        sure = {one: numbers[who.platform, who.number] for one, who in people.items() if _number(who) in numbers}
        named = {one: id for one, id in self._by_name(people).items() if one not in sure}
        came = {(row.platform, row.student) for row in self.received if row.lesson == lesson and row.number}
        found = sure | {one: id for one, id in named.items() if (people[one].platform, id) not in came}
        twice = Counter(found.values())
        return {
            one: Match(id, "" if one in sure or self.trust_names or people[one].platform in GIVEN else BY_NAME)
            for one, id in found.items()
            if twice[id] == 1
        }

    def _numbers(self, lesson: str) -> dict[tuple[str, str], str]:
        """Whose a platform's number is: in all lessons, or in this one because a hand-in came under it."""
        came = {(row.platform, row.number): row.student for row in self.received if row.lesson == lesson}
        return came | {(row.platform, row.number): row.id for row in self.rows if row.platform in NUMBERED}

    def _by_name(self, people: Mapping[tuple[str, str], Sender]) -> dict[tuple[str, str], str]:
        ids: dict[tuple[str, str], set[str]] = {}
        for row in self.rows:
            ids.setdefault((row.platform, row.name), set()).add(row.id)
        names = {one: (who.platform, as_name(who.name)) for one, who in people.items()}
        here = Counter(names.values())
        return {
            one: next(iter(ids[name]))
            for one, name in names.items()
            if name[0] not in NUMBERED and here[name] == 1 and len(ids.get(name, ())) == 1
        }

    def with_senders(self, senders: Mapping[str, Sender]) -> Roster:
        """The roster with a row for each of these, by student's id, who has none there yet."""
        known = {(row.id, row.platform, row.number if row.platform in NUMBERED else row.name) for row in self.rows}
        new = [
            Identity(student, who.platform, who.number if who.platform in NUMBERED else "", as_name(who.name))
            for student, who in senders.items()
            if (student, *_key(who)) not in known
        ]
        return replace(self, rows=(*self.rows, *new))


BY_NAME = "known by the name alone"


def _number(who: Sender) -> tuple[str, str] | None:
    return (who.platform, who.number) if who.number else None


def _key(who: Sender) -> tuple[str, str]:
    return (who.platform, who.number if who.platform in NUMBERED else as_name(who.name))


def as_name(text: str) -> str:
    """A stranger's name as it stands in a table: on one line, without what parts cells somewhere.

    No two names become one. So what cannot stand there is written by its number, as is what begins such a number.
    """
    if len(text) > _LONGEST_NAME:
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        return rf"{as_name(text[: _LONGEST_NAME // 4])}\{{…}}{digest}"
    shown = (c if c.isprintable() and c not in ";\\" else f"\\{{{ord(c):x}}}" for c in text)
    return re.sub(r"^'", r"\\{27}", "".join(shown))  # an apostrophe at the beginning is ours: see `as_csv`


def read_roster(submitted: Path) -> Roster:
    """The roster; an empty one where there is none. Raises Unavailable where a file cannot be read."""
    rows = _read(submitted / ROSTER, Identity)
    for number, row in enumerate(rows, 2):
        if not row.id.strip() or not row.id.isprintable() or "/" in row.id or row.id in (".", ".."):
            raise Unavailable(
                f"{ROSTER}, row {number}: “{one_line(row.id)}” is no id of a student. An id is the name of a folder: "
                "letters and digits on one line, without a slash."
            )
    return Roster(tuple(rows), tuple(read_received(submitted)))


def read_received(submitted: Path) -> list[Received]:
    """How each hand-in came. Raises Unavailable where the file cannot be read."""
    return _read(submitted / RECEIVED, Received)


def keep_senders(submitted: Path, lesson: str, senders: Mapping[str, Sender]) -> None:
    """Keep who handed in this lesson, by student's id, and how."""
    if not senders:
        return
    _write(submitted / ROSTER, read_roster(submitted).with_senders(senders).rows, Identity)
    rows = {(row.student, row.lesson): row for row in read_received(submitted)}
    for student, who in senders.items():
        facts = (who.platform, who.number, as_name(who.name), who.file, who.time, "late" if who.late else "")
        rows[student, lesson] = Received(student, lesson, *facts)
    _write(submitted / RECEIVED, [rows[place] for place in sorted(rows)], Received)


_Row = TypeVar("_Row", Identity, Received)


def _read(file: Path, kind: type[_Row]) -> list[_Row]:
    if not file.exists():
        return []
    names = [one.name for one in fields(kind)]
    try:
        if file.stat().st_size > LARGEST_TABLE:
            raise Unavailable(f"{file.name} is larger than any class's. Is it this file that you mean?")
        rows = list(csv.DictReader(io.StringIO(file.read_text("utf-8-sig"))))
    except (OSError, UnicodeError, csv.Error) as error:
        raise Unavailable(f"{file.name} cannot be read as a table (CSV in UTF-8): {error}.") from error
    if rows and (missing := [name for name in names if name not in rows[0]]):
        raise Unavailable(
            f"{file.name} has no column {', '.join(missing)}. Its first row should be {','.join(names)}; is it "
            "parted by commas?"
        )
    return [kind(**{name: _plain(row[name] or "") for name in names}) for row in rows]


def _plain(cell: str) -> str:
    """What stands in a cell: `as_csv` puts an apostrophe before what looks like a formula."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def _write(file: Path, rows: Sequence[Identity] | Sequence[Received], kind: type[Identity] | type[Received]) -> None:
    header = [one.name for one in fields(kind)]
    write(file, as_csv([header, *map(astuple, rows)]).encode("utf-8", "replace"))


def enter_people(book: Gradebook, roster: Roster) -> None:
    """Enter names and addresses of the roster's students into nbgrader's gradebook, which Formgrader then shows.

    It writes names into its pages as they are, so they come without what HTML is made of.
    """
    for student in sorted(roster.taken):
        rows = [row for row in roster.rows if row.id == student]
        name = max((_harmless(row.name) for row in rows if " " in row.name.strip()), key=len, default="")
        first, last = _first_and_last(name)
        facts = {
            "first_name": first,
            "last_name": last,
            "email": next((_harmless(row.email) for row in rows if row.email), ""),
            "lms_user_id": next((_harmless(row.number) for row in rows if row.number), ""),
        }
        book.update_or_create_student(student, **{key: fact for key, fact in facts.items() if fact})


def _harmless(text: str) -> str:
    return " ".join(re.sub(r"[^\w .,@+()’-]", "", text).split())[:LONGEST_FACT]


def _first_and_last(name: str) -> tuple[str, str]:
    """The two parts of "Ada Lovelace", or of "Lovelace, Ada"."""
    last, comma, first = (part.strip() for part in name.partition(","))
    if comma:
        return first, last
    first, _, last = name.rpartition(" ")
    return first, last
