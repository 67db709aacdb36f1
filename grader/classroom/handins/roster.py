"""Who is who on which platform, and how each hand-in came: `submitted/roster.csv` and `submitted/received.csv`.

A person has a row in the roster for each name under which a platform knows them. `collect` adds the rows; to join two
names of one person, give their rows the same id. Names come from platforms, where students write their own: they are
data, and no cell of either file is a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from nbgrader.api import Gradebook

from grader.arrays.words import legible, one_line
from grader.classroom.out import FORMULA, as_csv
from grader.classroom.store import Unavailable, write

ROSTER = "roster.csv"
RECEIVED = "received.csv"
NUMBERED = ("canvas",)  # where a person has one number in all lessons (Moodle's is another in each)
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
class Roster:
    """All rows, in order."""

    rows: tuple[Identity, ...] = ()

    @property
    def taken(self) -> set[str]:
        """The ids that stand for somebody."""
        return {row.id for row in self.rows}

    def ids(self, people: Mapping[tuple[str, str], Sender]) -> dict[tuple[str, str], str]:
        """The id of each of these people of one archive who is known; nobody has that of another.

        A number decides where the platform keeps it; else a name that one person alone has, in the roster and here.
        """
        numbers = {(row.platform, row.number): row.id for row in self.rows if row.number and row.platform in NUMBERED}
        found = {one: numbers[who.platform, who.number] for one, who in people.items() if _key(who) in numbers}
        named: dict[tuple[str, str], set[str]] = {}
        for row in self.rows:
            named.setdefault((row.platform, row.name), set()).add(row.id)
        here = Counter((who.platform, as_name(who.name)) for who in people.values())
        for one, who in people.items():
            name = (who.platform, as_name(who.name))
            if one not in found and who.platform not in NUMBERED and here[name] == 1 and len(named.get(name, ())) == 1:
                (found[one],) = named[name]
        twice = Counter(found.values())
        return {one: student for one, student in found.items() if twice[student] == 1}

    def with_senders(self, senders: Mapping[str, Sender]) -> Roster:
        """The roster with a row for each of these, by student's id, who has none there yet."""
        known = {(row.id, row.platform, row.number if row.platform in NUMBERED else row.name) for row in self.rows}
        new = [
            Identity(student, who.platform, who.number if who.platform in NUMBERED else "", as_name(who.name))
            for student, who in senders.items()
            if (student, *_key(who)) not in known
        ]
        return Roster((*self.rows, *new))


def _key(who: Sender) -> tuple[str, str]:
    return (who.platform, who.number if who.platform in NUMBERED else as_name(who.name))


def as_name(text: str) -> str:
    """A stranger's name as it stands in a table: on one line, and without what parts cells somewhere."""
    return _plain(re.sub(r"[;\t\n\r]", " ", legible(text)))


def read_roster(submitted: Path) -> Roster:
    """The roster; an empty one where there is none. Raises Unavailable where the file cannot be read."""
    rows = _read(submitted / ROSTER, Identity)
    for number, row in enumerate(rows, 2):
        if not row.id.strip() or "/" in row.id or row.id in (".", ".."):
            raise Unavailable(f"{ROSTER}, row {number}: “{one_line(row.id)}” is no id of a student: it names a folder.")
    return Roster(tuple(rows))


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
