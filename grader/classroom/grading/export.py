"""Marks and feedback back to a learning platform, in its own files.

Canvas and Moodle take back the table of marks that they export. So theirs is filled in, in one column, and all else
stays as it is: their numbers, names and columns, in their order. Each also takes a zip of files for the students, which
it knows by their names: those that it gave to the hand-ins, which `collect` has kept.

What they read was read from their sources: gradebook_importer.rb and generate_comments_from_files of Canvas,
assign/feedback/offline/importgradeslib.php and assign/feedback/file/importziplib.php of Moodle.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import MissingEntry

from grader.arrays.words import one_line
from grader.classroom.course.build import gradebook
from grader.classroom.course.late import terms_of
from grader.classroom.course.notebook import CHECK
from grader.classroom.course.plan import plan_of
from grader.classroom.grading.record import HandIn
from grader.classroom.handins.archive import listed
from grader.classroom.handins.roster import GIVEN, LARGEST_TABLE, Identity, Received, read_roster
from grader.classroom.store import Unavailable, write

BOM = "\ufeff"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the time of all files in a zip: the same zip from the same pages
CANVAS_COLUMN = re.compile(r"(?P<title>.*) \(\d+\)", re.DOTALL)  # an assignment, and its number
POSSIBLE = "points possible"  # begins the row of Canvas that holds the maximum of each column
PARTICIPANT = re.compile(r"\D+(\d+)\s*")  # Moodle's "Participant 123", in any language


@dataclass(frozen=True)
class LessonMark:
    """What a student has in a lesson: points after what is taken off, of how many."""

    points: float
    most: float

    def scaled(self, most: float | None) -> float:
        """The same part of another maximum."""
        return round(self.points * most / self.most if most is not None and self.most else self.points, 2)


@dataclass
class Filled:
    """A platform's table with the marks of `students` in it; what is to be known, and what is to be looked at."""

    text: str
    students: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class People:
    """Who a platform's rows are: by the numbers that `collect` kept, and by the roster."""

    roster: tuple[Identity, ...]
    received: tuple[Received, ...]

    def by_number(self, platform: str, lesson: str = "") -> dict[str, str]:
        """The platform's numbers with our ids; of one lesson, those that its hand-ins came under."""
        if lesson:
            came = [row for row in self.received if (row.platform, row.lesson) == (platform, lesson)]
            return {row.number: row.student for row in came if row.number}
        return {row.number: row.id for row in self.roster if row.platform == platform and row.number}

    def by_address(self, students: Iterable[str]) -> dict[str, str]:
        """E-mail addresses, and the ids of these students themselves, in small letters, with our ids.

        An id that came from a name which a student may have chosen is no address.
        """
        chosen = {row.id for row in self.roster if row.platform not in GIVEN}
        names = {student.casefold(): student for student in students if student not in chosen}
        return names | {row.email.casefold(): row.id for row in self.roster if row.email}


def marks_of(root: Path, lesson: str) -> dict[str, LessonMark]:
    """The marks of all who handed in a lesson, from nbgrader's gradebook. Raises Unavailable where there are none."""
    bonus = {CHECK + name for name in plan_of(root).of(lesson).bonus}
    with gradebook(root) as book:
        try:
            submissions = book.assignment_submissions(lesson)
        except MissingEntry:
            submissions = []
        marks = {}
        for one in submissions:
            grades = [grade for notebook in one.notebooks for grade in notebook.grades]
            most = sum(grade.max_score for grade in grades if grade.name not in bonus)
            marks[one.student_id] = LessonMark(max(0.0, one.score - one.late_submission_penalty), most)
    if not marks:
        raise Unavailable(f"Nothing of {lesson} is graded yet, so there is nothing to send back. Run `grader grade`.")
    return marks


def people_of(root: Path) -> People:
    roster = read_roster(root / "submitted")
    return People(roster.rows, roster.received)


# The tables


def read_table(file: Path) -> tuple[list[list[str]], Callable[[Sequence[Sequence[str]]], str]]:
    """A platform's table, and how to write it in the form that it had. Raises Unavailable."""
    try:
        if file.stat().st_size > LARGEST_TABLE:
            raise Unavailable(f"{one_line(file.name)} is larger than any class's table of marks.")
        text = file.read_bytes().decode("utf-8")
        head = text.removeprefix(BOM)
        delimiter = max(",;\t", key=head.partition("\n")[0].count)
        rows = list(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter, strict=True))
    except (OSError, UnicodeError, csv.Error) as error:
        raise Unavailable(
            f"{one_line(file.name)} cannot be read as a table: {error}. Give the CSV file as the platform exported it."
        ) from error
    if not rows or len(rows[0]) < 2:
        raise Unavailable(f"{one_line(file.name)} is no table of marks: its first row should name several columns.")

    def written(rows: Sequence[Sequence[str]]) -> str:
        box = io.StringIO(newline="")
        end = "\r\n" if "\r\n" in text else "\n"
        csv.writer(box, delimiter=delimiter, lineterminator=end).writerows(rows)
        return BOM * text.startswith(BOM) + box.getvalue()

    return rows, written


def fill_canvas(file: Path, lesson: str, marks: Mapping[str, LessonMark], people: People, column: str = "") -> Filled:
    """Canvas's gradebook export with the marks of a lesson in its assignment's column."""
    (header, *rows), written = read_table(file)
    if "ID" not in header or not {"Student", "LastName"} & {*header}:
        raise Unavailable(
            f"{one_line(file.name)} is no export of Canvas's gradebook (Gradebook, Export): it lacks the columns "
            f"Student and ID. It has {listed(header)}."
        )
    place, number = _column(header, lesson, column, CANVAS_COLUMN), header.index("ID")
    login = header.index("SIS Login ID") if "SIS Login ID" in header else number
    numbers, addresses = people.by_number("canvas"), people.by_address(marks)
    most = next((_number(_cell(row, place)) for row in rows if _cell(row, 0).strip().casefold() == POSSIBLE), None)

    def who(row: Sequence[str]) -> str:
        return numbers.get(_cell(row, number), "") or addresses.get(_cell(row, login).casefold(), "")

    filled = Filled("")
    for row in rows:
        if len(row) > place and (mark := marks.get(student := who(row))):
            row[place] = f"{mark.scaled(most):.10g}"
            filled.students.append(student)
    return _finished(filled, written([header, *rows]), marks, most, f"column {header[place]}")


def fill_moodle(file: Path, lesson: str, marks: Mapping[str, LessonMark], people: People, column: str = "") -> Filled:
    """Moodle's grading worksheet of an assignment with the marks of a lesson in it.

    Moodle passes over a grade above its maximum, so none is; and one that it says cannot be changed is left.
    """
    (header, *rows), written = read_table(file)
    if not any(PARTICIPANT.fullmatch(_cell(row, 0)) for row in rows):
        raise Unavailable(
            f"{one_line(file.name)} is no grading worksheet of Moodle (the assignment, Download grading worksheet): "
            "its first column should say Participant and a number."
        )
    place = _column(header, column or "Grade", column)
    top = header.index("Maximum Grade") if "Maximum Grade" in header else place + 1
    numbers, addresses = people.by_number("moodle", lesson), people.by_address(marks)
    mail = header.index("Email address") if "Email address" in header else 0
    changed = header.index("Grade can be changed") if "Grade can be changed" in header else None
    most = next(filter(None, (_number(_cell(row, top)) for row in rows)), None)
    filled = Filled("")
    for row in rows:
        found = PARTICIPANT.fullmatch(_cell(row, 0))
        student = (found and numbers.get(found[1])) or addresses.get(_cell(row, mail).casefold(), "")
        if len(row) > place and (mark := marks.get(student)):
            filled.students.append(student)
            if changed is not None and _cell(row, changed).strip().casefold() == "no":
                filled.problems.append(f"{one_line(student)}: Moodle says its grade cannot be changed: left.")
                continue
            grade = mark.scaled(most)
            row[place] = f"{min(grade, most) if most else grade:.10g}"
    return _finished(filled, written([header, *rows]), marks, most, f"column {header[place]}")


def _column(header: Sequence[str], lesson: str, column: str, form: re.Pattern[str] | None = None) -> int:
    """The one column that is meant: of this name, or the assignment whose title holds the lesson's name."""
    titles = {k: (form.fullmatch(name) or [name, name])[1] if form else name for k, name in enumerate(header)}
    wanted = _words(column or lesson)
    exact = [k for k, name in enumerate(header) if column and column in (name, titles[k])]
    named = [k for k, title in titles.items() if _words(title) == wanted]
    near = [k for k, name in enumerate(header) if form and form.fullmatch(name) and wanted in _words(name)]
    for found in (exact, named, near):
        if len(found) == 1:
            return found[0]
    choices = [name for name in header if not form or form.fullmatch(name)] or header
    raise Unavailable(
        f"Which column is for {one_line(column or lesson)}? Say it with --column; there are {listed(choices)}."
    )


def _words(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def _cell(row: Sequence[str], place: int) -> str:
    return row[place] if place < len(row) else ""


def _number(text: str) -> float | None:
    """A number as platforms write it, with a comma or a point for its decimals; None for what is none, or nothing."""
    try:
        return float(text.strip().replace(",", ".")) or None
    except ValueError:
        return None


def _finished(filled: Filled, text: str, marks: Mapping[str, LessonMark], most: float | None, where: str) -> Filled:
    filled.text = text
    ours = max(mark.most for mark in marks.values())
    if most is not None and most != ours:
        filled.notes.append(f"{where}: {ours:g} points here are {most:g} there; all marks are scaled.")
    if missing := sorted(set(marks) - set(filled.students)):
        filled.problems.append(
            f"Graded, but not found in that table: {listed(missing)}. Add the platform's number or the e-mail address "
            "to submitted/roster.csv."
        )
    return filled


# The feedback


def feedback_zip(root: Path, lesson: str, platform: str, received: Sequence[Received]) -> tuple[bytes, list[str]]:
    """The feedback pages of a lesson under the names by which the platform knows whose they are, and who has none."""
    missing, box = [], io.BytesIO()
    with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED) as archive:
        for row in received:
            if (row.platform, row.lesson) != (platform, lesson):
                continue
            page = HandIn(root, row.student, lesson).at("feedback", ".html")
            if page.exists():
                archive.writestr(zipfile.ZipInfo(_name(row), LONG_AGO), page.read_bytes(), zipfile.ZIP_DEFLATED)
            else:
                missing.append(row.student)
    return box.getvalue(), missing


def _name(row: Received) -> str:
    """Both platforms part a name at underscores, so a student's own has none; nor has it a way into a folder."""
    name = " ".join(re.sub(r"[^\w.@ -]|_", " ", row.name).split()).strip(".") or "student"
    if row.platform == "moodle":
        return f"{name}_{row.number}_assignfeedback_file_/{row.lesson}.html"
    return f"{name.replace(' ', '')}_{row.number}_{row.file}_{row.lesson}.html"


def export(root: Path, lesson: str, platform: str, table: Path, column: str) -> tuple[list[Path], Filled]:
    """Fill in a platform's table, and pack its feedback: the files in dist/, and what came of it."""
    fill = {"canvas": fill_canvas, "moodle": fill_moodle}[platform]
    people = people_of(root)
    filled = fill(table, lesson, marks_of(root, lesson), people, column)
    target = root / "dist" / f"{lesson}-{platform}.csv"
    if target.resolve() == table.resolve():
        raise Unavailable(f"{target.relative_to(root)} would be written over. Give the platform's export another name.")
    write(target, filled.text.encode())
    plan = plan_of(root)
    terms = {student: terms_of(root, plan, student, lesson).notes for student in filled.students}
    filled.notes += [f"{one_line(student)}: {' '.join(notes)}" for student, notes in terms.items() if notes]
    files = [target]
    if any((row.platform, row.lesson) == (platform, lesson) for row in people.received):
        pages, missing = feedback_zip(root, lesson, platform, people.received)
        files.append(target.with_name(f"{lesson}-{platform}-feedback.zip"))
        write(files[-1], pages)
        filled.problems += [f"There is no feedback page of {listed(missing)}."] if missing else []
    return files, filled
