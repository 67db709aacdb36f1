"""Any text leaves the grader harmless: into a page, onto a terminal, into a spreadsheet."""

import csv
import io

import fuzzing
import pages
from hypothesis import strategies
from rich.table import Table

from grader.arrays.words import legible
from grader.classroom.grading import filters
from grader.classroom.out import FORMULA, as_csv, terminal

SECONDS = 2.5
PARTS = strategies.sampled_from(
    [*pages.VECTORS, *"[]()<>`*_$#|&;:\"'\\/!=-+@\n\t \x00\x1b\u202e", "](", "<a href=", "$$", "\n\n"]
)
TEXTS = strategies.lists(PARTS | strategies.text(max_size=20), max_size=8).map("".join)
BYTES = TEXTS.map(lambda text: text.encode("utf-8", "replace"))


def test_any_text_becomes_html_of_allowed_parts():
    def holds(data):
        text = data.decode("utf-8", "replace")
        for html in (filters.markdown2html({"cell": {}, "resources": {}}, text), filters.clean_html({}, text)):
            assert list(pages.foreign(html)) == []

    fuzzing.fuzz("pages", BYTES, holds, SECONDS)


def test_any_output_and_any_code_becomes_html_of_allowed_parts():
    def holds(data):
        text = data.decode("utf-8", "replace")
        assert list(pages.foreign(filters.highlight_code(text))) == []
        coloured = filters.ansi2html(text)
        assert "<" not in coloured.replace("<span", "").replace("</span>", "") and "\x1b[" not in coloured

    fuzzing.fuzz("outputs", BYTES, holds, SECONDS)


def test_any_text_steers_no_terminal():
    def holds(data):
        text = data.decode("utf-8", "replace")
        console = terminal()
        with console.capture() as captured:
            table = Table("name")
            table.add_row(text.replace("[", r"\["))
            console.print(table)
            console.print(text, markup=False, soft_wrap=True)
        assert captured.get() == legible(captured.get())

    fuzzing.fuzz("terminal", BYTES, holds, SECONDS)


def test_any_row_is_read_back_from_a_spreadsheet_and_is_no_formula():
    def holds(data):
        row = data.decode("utf-8", "replace").split(";")
        (read,) = csv.reader(io.StringIO(as_csv([row]), newline=""))
        assert [cell.replace("'", "") for cell in read] == [legible(cell).replace("'", "") for cell in row]
        assert not any(cell.startswith(FORMULA) for cell in read)

    fuzzing.fuzz("spreadsheet", BYTES, holds, SECONDS)
