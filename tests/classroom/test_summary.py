"""The first screen of a grading: a line for each student, the mistakes made most often, and what a person should do."""

import io

import pytest

from grader.classroom.grading.digest import Digest
from grader.classroom.grading.progress import EachMinute
from grader.classroom.grading.record import HandIn, Row
from grader.classroom.grading.summary import show
from grader.classroom.out import terminal

MATMUL, RINGS = "07_matmul", "08_rings"


def row(root, student, lesson, points, *digests, **more):
    return Row(HandIn(root, student, lesson), points, dict.fromkeys(points, 4.0), digests=digests, **more)


@pytest.fixture
def rows(tmp_path):
    forgot = Digest("case3", "wrong", check="values", mistake="forgot_psum")
    left = Digest("two_axis", "open", check="values")
    return [
        row(tmp_path, "ada", MATMUL, {"case3": 4.0, "two_axis": 0.0}, Digest("case3", "right"), left),
        row(tmp_path, "ada", RINGS, {"ring": 1.5}, Digest("ring", "partly", check="bytes")),
        row(tmp_path, "ben", MATMUL, {"case3": 0.0, "two_axis": 0.0}, forgot, left),
        row(tmp_path, "cleo", MATMUL, {"case3": 0.0, "two_axis": 0.0}, forgot, left, attention=("it is odd",)),
        Row(HandIn(tmp_path, "dora", MATMUL), problem="This is no notebook."),
    ]


def shown(rows, **options):
    console = terminal()
    console.file, console.width = io.StringIO(), 80
    show(rows, console, **options)
    return console.file.getvalue()


def cells(text, name):
    """The cells of the first row in a table that begins with this name."""
    return next(
        [cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith(f"│ {name}")
    )


def test_a_student_has_one_line_for_all_lessons(rows):
    text = shown(rows)
    assert cells(text, "ada") == ["ada", "5.5 / 12", "1", "1", "", "1"]
    assert cells(text, "ben") == ["ben", "0 / 8", "", "", "1", "1"]
    assert cells(text, "dora") == ["dora", "—", "", "", "", ""]
    assert "Marks: 07_matmul, 08_rings" in text and max(map(len, text.splitlines()[:10])) <= 80
    assert sum(line.startswith("│") for line in text.splitlines()) == 4


def test_the_mistake_that_most_made_is_told_as_they_hear_it_and_hand_ins_to_look_at_with_their_reason(rows):
    text = shown(rows)
    assert "2 × case3, forgot_psum: Every element of C was a partial sum" in text
    assert "A person should look at cleo, 07_matmul: it is odd." in text
    assert "A person should look at dora, 07_matmul: This is no notebook." in text


def test_the_long_table_comes_with_details(rows):
    assert "case3: forgot_psum" not in shown(rows)
    long = shown(rows, details=True)
    assert cells(long, "ada")[1:3] == [MATMUL, "4 / 8"] and "ring: bytes" in long and "two_axis: no answer" in long


def test_without_a_terminal_there_is_a_line_a_minute():
    times = iter([0.0, 20.0, 59.0, 61.0, 90.0, 125.0])
    console = terminal()
    console.file = io.StringIO()
    line = EachMinute(console, "Grading", 200, clock=lambda: next(times))
    for _ in range(5):
        line.step()
    assert console.file.getvalue().splitlines() == [
        "Grading: 3 of 200, 3 a minute",
        "Grading: 5 of 200, 2 a minute",
    ]
