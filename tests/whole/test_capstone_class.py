"""A class hands the capstone in: behind walls, within limits, with its marks, its pages and its certificates."""

from __future__ import annotations

import shutil
from pathlib import Path

import answering
import nbformat
import pytest
from rich.console import Console

from grader.certificate import CAPSTONE, GATES, Certificate
from grader.classroom.course.build import build
from grader.classroom.grading.grade import Options, grade_class
from grader.classroom.report.papers import papers_of
from grader.lessons import EXERCISES, find

pytestmark = [pytest.mark.needs("walls"), pytest.mark.slow, pytest.mark.timeout(1800)]  # four whole capstones
ROOT = Path(__file__).parents[2]
WORTH = {name: EXERCISES[name].points for name in answering.asked(CAPSTONE)}
FORGETS = 'state, seed = saved["state"], saved["seed"]'
KILLING = "    losses = []\n    import os, signal\n\n    os.kill(-1, signal.SIGKILL)\n"
EDITS = {  # of one answer: what stands there, and what stands there instead
    "ada": ("specs", "", ""),
    "ben": ("step", ", donate_argnums=0)(state", ")(state"),
    "cleo": ("resume", 'state, seed, position = saved["state"], saved["seed"], saved["position"]', FORGETS),
    "emil": ("resume", "    losses = []\n", KILLING),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course of this lesson alone, with four hand-ins: one right, one that keeps two states, one that forgets where
    it was in the data, and one that kills whatever it can."""
    root = tmp_path_factory.mktemp("graded") / "course"
    shutil.copytree(ROOT / "solutions" / CAPSTONE, root / "solutions" / CAPSTONE)
    for name in ("nbgrader_config.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    build(root)
    for student, edit in EDITS.items():
        file = root / "submitted" / student / CAPSTONE / f"{CAPSTONE}.ipynb"
        file.parent.mkdir(parents=True)
        nbformat.write(hand_in(*edit), file)
    grade_class(root, Console(quiet=True), Options(workers=1))
    return root


def hand_in(exercise, before, after):
    """The solved lesson with another answer to an exercise."""
    nb = answering.notebook("solutions", CAPSTONE)
    for cell in nb.cells:
        if cell.metadata.get("answer") == exercise:
            assert before in cell.source
            cell.source = cell.source.replace(before, after)
    return nb


@pytest.fixture(scope="module")
def papers(graded):
    return {paper.student: paper for paper in papers_of(graded)[CAPSTONE]}


@pytest.mark.parametrize(
    "student, lost", [("ada", {}), ("ben", {"step": 2}), ("cleo", {"resume": 8}), ("emil", {"resume": 8})]
)
def test_everybody_has_the_marks_that_are_due(papers, student, lost):
    assert papers[student].points == {name: worth - lost.get(name, 0) for name, worth in WORTH.items()}


@pytest.mark.parametrize(
    "student, exercise, mistake",
    [("ben", "step", "second_state_kept"), ("cleo", "resume", "place_in_the_data_left_out")],
)
def test_a_mistake_is_named_on_the_page(graded, student, exercise, mistake):
    page = (graded / "feedback" / student / CAPSTONE / f"{CAPSTONE}.html").read_text()
    words = next(m.words for m in find(exercise).mistakes if m.name == mistake)
    assert words.split(". ")[0].split(":")[0].split("`")[0] in " ".join(page.split())


def test_who_has_all_nine_gates_has_a_certificate_from_the_gradebook(papers):
    points = {
        student: {name: (paper.points[name], paper.worth[name]) for name in GATES} for student, paper in papers.items()
    }
    still_open = {student: Certificate(student, "", own, True).open_gates for student, own in points.items()}
    assert still_open == {"ada": [], "ben": ["step"], "cleo": ["resume"], "emil": ["resume"]}
