"""A lesson as a course takes it: nothing leads to what is left out, and what is graded is what was asked."""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import datetime

import classes
import mini
import nbformat
import pytest
from nbgrader.api import Gradebook

from grader.classroom.book.lesson import page
from grader.classroom.course.build import build, lessons
from grader.classroom.course.frame import bare
from grader.classroom.course.headings import exercise_heading
from grader.classroom.course.index import start_page
from grader.classroom.course.notebook import checks, grade_id
from grader.classroom.course.plan import PLAN, LessonPlan, Plan, exercises_of, plan_of
from grader.classroom.course.taken import NEXT, STAYS, cut, taken
from grader.classroom.grading import page as feedback_page
from grader.classroom.grading import record as recording
from grader.classroom.grading.grade import hand_ins_of
from grader.classroom.grading.record import HandIn, record
from grader.classroom.grading.summary import write_csv, write_totals
from grader.classroom.report import papers as papers_module
from grader.classroom.report.papers import papers_of
from grader.classroom.store import Unavailable
from grader.guide.reviews import makers, review
from grader.lessons import given


@pytest.fixture(scope="module")
def all_lessons(root):
    return {source.stem: source for source in lessons(root)}


def plan(all_lessons, *names, **changes):
    others = frozenset(all_lessons) - {*names}
    return Plan("", {**dict.fromkeys(names, LessonPlan()), **changes}, others, own=True)


def released(root, name):
    return nbformat.read(root / "course" / name / f"{name}.ipynb", 4)


def text_of(nb):
    return "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def test_without_course_toml_a_lesson_is_itself(root):
    nb = released(root, "07_matmul")
    assert taken(nb, "07_matmul", plan_of(root), root) is nb


def test_what_is_left_out_of_any_lesson_leaves_nothing_that_leads_to_it(root, all_lessons):
    """Its stretch exercises and every other lesson: no heading, no cell with marks, no link, no question."""
    names = list(all_lessons)[::2]
    stretch = {n: {one for one, core in exercises_of(all_lessons[n]).items() if not core} for n in names}
    assert sum(map(len, stretch.values())) > 50
    ours = plan(all_lessons, **{n: LessonPlan(left_out=frozenset(stretch[n])) for n in names})
    for name in names:
        nb = taken(released(root, name), name, ours, root)
        assert checks(nb) == [one for one in exercises_of(all_lessons[name]) if one not in stretch[name]]
        headings = [h for line in text_of(nb).splitlines() if (h := exercise_heading(line))]
        assert all(heading.is_core for heading in headings)
        assert not stretch[name] & {grade_id(cell).partition("_")[2] for cell in nb.cells}
        assert set(re.findall(r"\.\./(\d\d_\w+)/", text_of(nb))) <= set(names)
        code = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")
        asked = [json.loads(found) for found in re.findall(r"review\(.*, of=(\[.*\])\)", code)]
        assert all(set(of) <= {*names, "00_numpy_warm_up"} for of in asked) and (asked or name <= "02")
        spoken = [one for one in ours.left_out if f"`{one}`" in text_of(bare(nb))]
        assert all(f"`{one}`" in nb.cells[0].source for one in spoken)
        assert len({cell.id for cell in nb.cells}) == len(nb.cells)
        assert NEXT not in text_of(nb) or name == max(all_lessons), "every second lesson is taken"
        again = taken(nb, name, ours, root)
        assert again == nb, "what is framed already is framed no other way"


def test_a_name_that_is_used_below_stays_as_an_open_starter(root):
    nb = cut(bare(released(root, "08_rings")), {"ring_all_gather", "ring_reduce_scatter"})
    stay = [cell for cell in nb.cells if cell.source.startswith(STAYS)]
    assert [re.search(r"def (\w+)", cell.source)[1] for cell in stay] == ["ring_all_gather", "ring_reduce_scatter"]
    assert not any(map(grade_id, stay)) and all("..." in cell.source for cell in stay)


def test_exercises_under_one_heading_stay_together(root):
    nb = bare(released(root, "06_collectives"))
    with pytest.raises(Unavailable, match="psum_ref and all_gather_ref stand under one heading"):
        cut(nb, {"psum_ref"})
    assert len(checks(nb)) - len(checks(cut(nb, {"psum_ref", "all_gather_ref"}))) == 2


def test_points_stand_in_the_heading_and_on_the_check(root, all_lessons):
    ours = plan(all_lessons, **{"07_matmul": LessonPlan(points={"case3": 6.5, "two_axis": 1.0})})
    nb = taken(released(root, "07_matmul"), "07_matmul", ours, root)
    points = {grade_id(cell): cell.metadata.nbgrader.get("points") for cell in nb.cells if grade_id(cell)}
    assert points["check_case3"] == 6.5 and points["check_two_axis"] == 1 and points["check_two_axis_scattered"] == 4
    assert "### Exercise `case3` · core · 6.5 points · 4 minutes" in text_of(nb)
    assert "### Exercises `two_axis`, `two_axis_scattered` · stretch · 1 + 4 points · 10 minutes" in text_of(nb)


def test_a_review_asks_about_the_lessons_it_is_given_alone():
    assert len(makers()["01_devices_and_meshes"]) >= 3
    for seed in range(20):
        asked = review("09_cost", seed=seed, of=["01_devices_and_meshes", "11_gradients"]).questions
        assert len(asked) == 3
    assert review("09_cost", of=[]).questions == ()


OWN = """
name = "Blocks alone"
late = "50 % a day"

[lessons.01_mini]
due = 2027-03-01T12:00:00+01:00
exercises = ["case3"]
points = { case3 = 6 }
weight = 3
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The small course, of which one exercise of two is taken."""
    root = mini.make_course(tmp_path_factory.mktemp("own"))
    other = root / "solutions" / "02_other" / "02_other.md"
    other.parent.mkdir()
    other.write_text((root / "solutions" / mini.LESSON / f"{mini.LESSON}.md").read_text())
    build(root)
    assert (root / "course" / "02_other").exists()
    (root / PLAN).write_text(OWN)
    said = []
    build(root, say=said.append)
    assert said == []
    return root


def test_a_course_is_built_by_it_the_same_every_time(own):
    before = {file: file.read_bytes() for file in (own / "course").rglob("*") if file.is_file()}
    build(own)
    assert {file: file.read_bytes() for file in (own / "course").rglob("*") if file.is_file()} == before
    assert [place.name for place in sorted((own / "course").iterdir()) if place.is_dir()] == [mini.LESSON]
    assert checks(mini.released(own)) == ["case3"] and "block_matmul" not in text_of(mini.released(own))
    assert start_page(own).cells[0].source.startswith("# Blocks alone")
    assert "due 1 March 2027, 12:00 (UTC+01:00)" in text_of(start_page(own))
    with Gradebook(f"sqlite:///{own}/gradebook.db") as book:
        (assignment,) = book.assignments
        assert assignment.max_score == 6 and assignment.duedate == datetime(2027, 3, 1, 11)


def test_a_class_is_graded_by_what_it_was_given_and_late_is_taken_off(own):
    """In time, a second late, and a day and a second; the whole lesson handed in, one of its two exercises asked."""
    times = {"ada": "11:00:00", "ben": "11:00:01", "cleo": "10:59:59"}
    for student, time in times.items():
        nb = classes.answered(own, classes.FORGOT) if student == "cleo" else mini.solved(own)
        file = classes.submit(own, student, nb)
        (file.parent / "timestamp.txt").write_text(f"2027-03-01 {time} UTC")
    rows = {hand_in.student: record(hand_in) for hand_in in hand_ins_of(own)}
    assert {name: (row.mark, row.most, row.late) for name, row in rows.items()} == {
        "ada": (6, 6, 0),
        "ben": (3, 6, 3),
        "cleo": (0, 6, 0),
    }
    write_csv(list(rows.values()), own / "grades.csv")
    lines = (own / "grades.csv").read_text().splitlines()
    assert lines[0] == "student,lesson,points,max,core,core max,late,case3,problem"
    assert lines[2].startswith("ben,01_mini,3.0,6.0,") and lines[2].endswith(",3.0,6.0,")
    write_totals(list(rows.values()), plan_of(own), own / "totals.csv")
    assert (own / "totals.csv").read_text().splitlines() == [
        "student,total %,01_mini",
        "ada,0.0,100.0",
        "ben,0.0,50.0",
        "cleo,0.0,0.0",
    ]
    pages = {name: HandIn(own, name, mini.LESSON).at("feedback", ".html").read_text() for name in rows}
    assert "6 of 6 points" in pages["ada"] and "handed in late" not in pages["ada"]
    assert "3 of 6 points" in pages["ben"] and "handed in late: -3<" in pages["ben"]
    (papers,) = papers_of(own).values()
    assert {paper.student: paper.share for paper in papers} == {"ada": 1, "ben": 0.5, "cleo": 0}


def test_another_due_date_moves_what_is_late_and_what_was_asked_stays(own):
    (own / PLAN).write_text(OWN.replace("2027-03-01T12", "2027-03-01T13"))
    build(own)
    row = record(HandIn(own, "ben", mini.LESSON))
    assert row.late == 0 and row.mark == 6
    (own / PLAN).write_text(OWN.replace('exercises = ["case3"]\n', ""))
    with pytest.raises(Unavailable, match="01_mini cannot be released anew: hand-ins are graded"):
        build(own)


def test_what_becomes_a_bonus_is_one_on_the_page_and_in_the_report(own, monkeypatch):
    """As the plan has it when the page is written: none of the small course's exercises is of the stretch."""
    hand_in, taken = HandIn(own, "ada", mini.LESSON), plan_of(own)
    lesson = dataclasses.replace(taken.lessons[mini.LESSON], bonus=frozenset({"case3"}))
    more = dataclasses.replace(taken, lessons={**taken.lessons, mini.LESSON: lesson})
    for module in (feedback_page, recording, papers_module):
        monkeypatch.setattr(module, "plan_of", lambda root: more)
    row = record(hand_in)
    assert (row.mark, row.most) == (6, 0)
    written = hand_in.at("feedback", ".html").read_text()
    assert "6 of 0 points" in written and "6 of 6 · a bonus" in written
    (papers,) = papers_of(own).values()
    assert papers[0].bonus == {"case3"}


def test_a_bonus_adds_points_and_nothing_to_the_maximum(own, tmp_path):
    row = record(HandIn(own, "ada", mini.LESSON))
    more = dataclasses.replace(row, points={"a": 4, "b": 2}, worth={"a": 4, "b": 3}, bonus=frozenset({"b"}), late=1)
    assert (more.mark, more.most) == (5, 4)


def test_the_weights_make_the_total_and_what_is_not_handed_in_is_nothing(own, tmp_path):
    row = record(HandIn(own, "ada", mini.LESSON))
    ours = Plan("", {"01_a": LessonPlan(weight=3), "02_b": LessonPlan(), "03_c": LessonPlan()}, own=True)
    rows = [
        dataclasses.replace(row, hand_in=HandIn(own, student, lesson), points={"x": points}, worth={"x": 10}, late=0)
        for student, lesson, points in [("ada", "01_a", 10), ("ada", "02_b", 6), ("=ben", "02_b", 4)]
    ]
    write_totals(rows, ours, tmp_path / "totals.csv")
    assert (tmp_path / "totals.csv").read_text().splitlines() == [
        "student,total %,01_a,02_b",
        "ada,90.0,100.0,60.0",
        "'=ben,10.0,0.0,40.0",
    ]


def test_points_of_a_course_reach_the_students_own_checks(monkeypatch):
    import grader.lessons

    monkeypatch.setattr(grader.lessons, "_points", lambda: {"case3": 6})
    assert given("case3").points == 6 and given("case3").mistakes and given("block_matmul").points == 2
    assert grader.check("case3", ...) == 0


def test_what_is_wrong_in_course_toml_is_status_2(own, monkeypatch, capsys):
    from grader import cli

    (own / PLAN).write_text("late = 3")
    monkeypatch.chdir(own)
    monkeypatch.setattr("sys.argv", ["grader", "build"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2 and "course.toml, line 1: late should be a text; it is 3." in capsys.readouterr().err


def test_the_book_shows_what_is_taken_and_no_solution_of_what_is_not(root, all_lessons):
    left_out = frozenset({"ring_all_gather", "ring_reduce_scatter"})
    ours = plan(all_lessons, **{"08_rings": LessonPlan(left_out=left_out)})
    solved = nbformat.read(root / "solutions" / "08_rings" / "08_rings.ipynb", 4)
    release = taken(released(root, "08_rings"), "08_rings", ours, root)
    shown = page(bare(taken(solved, "08_rings", ours, root)), release, {})
    code = [cell for cell in shown.cells if cell.cell_type == "code"]
    assert not any("SOLUTION" in cell.source for cell in code) and any(cell.outputs for cell in code)
    assert [len(cell.outputs) for cell in code if cell.source.startswith(STAYS)] == [0, 0]
    assert "Exercise `ring_all_gather`" not in text_of(shown)


def test_a_hint_to_what_is_left_out_says_so(monkeypatch):
    from grader.guide import syllabus

    monkeypatch.setattr(syllabus, "syllabus", lambda: ())
    with pytest.raises(LookupError, match="'case3' is not part of this course"):
        syllabus.exercise_text("case3")
