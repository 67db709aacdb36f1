"""The checklist names only what exists, and says what is taught."""

from dataclasses import replace

import pytest

from grader.classroom.course.coverage import ChecklistRow, checklist, problems

MATMUL = ChecklistRow("C34", "07_matmul", ("case3", "§ Case 3"), "psum")


def test_every_row_names_what_exists(root):
    rows = checklist()
    assert len(rows) == 200
    assert not problems(rows, root)


def test_every_row_is_taught_somewhere():
    assert [row.row for row in checklist() if not row.lesson] == []


def test_a_right_row_has_no_problem(root):
    assert problems([MATMUL], root) == []


@pytest.mark.parametrize(
    "wrong, says",
    [
        (replace(MATMUL, lesson="77_nothing"), "does not exist"),
        (replace(MATMUL, where=("case33",)), "there is no 'case33' in 07_matmul"),
        (replace(MATMUL, where=("§ No such heading",)), "No such heading"),
        (replace(MATMUL, where=()), "not where"),
        (replace(MATMUL, lesson=""), "no lesson"),
    ],
)
def test_what_does_not_exist_is_named(root, wrong, says):
    (problem,) = problems([wrong], root)
    assert problem.startswith("C34") and says in problem


def test_a_row_twice_is_named(root):
    assert problems([MATMUL, MATMUL], root) == ["C34 stands there twice"]
