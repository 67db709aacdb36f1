"""course.toml: what it may say, and what is said where it is wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from grader.classroom.course.plan import PLAN, Late, in_utc, plan_of
from grader.classroom.store import Unavailable

SOURCE = """# {name}

### Exercise `{topic}_one` · core · 4 points · 8 minutes · ●●○

:answer: {topic}_one

### Exercises `{topic}_two`, `{topic}_three` · stretch · 1 + 2 points · 8 minutes · ●●○

:answer: {topic}_two

:answer: {topic}_three
"""


@pytest.fixture
def read(tmp_path):
    """The plan of a course of three lessons, by this text."""
    for name in ("01_a", "02_b", "03_c"):
        (tmp_path / "solutions" / name).mkdir(parents=True)
        source = SOURCE.format(name=name, topic=name[3:])
        (tmp_path / "solutions" / name / f"{name}.md").write_text(source)

    def of(text):
        (tmp_path / PLAN).write_text(text)
        return plan_of(tmp_path)

    return of


def test_without_the_file_all_is_taken(read, tmp_path):
    plan = read("")
    assert plan.own and list(plan.lessons) == ["01_a", "02_b", "03_c"] and not plan.left_out
    (tmp_path / PLAN).unlink()
    plan = plan_of(tmp_path)
    assert not plan.own and list(plan.lessons) == ["01_a", "02_b", "03_c"] and not plan.others


def test_all_that_it_may_say(read):
    plan = read(
        """
        name = "Ours"
        stretch = "left out"
        late = "10 % a day, at most 50 %"
        [lessons.03_c]
        due = 2027-03-01T23:59:00+01:00
        weight = 2
        points = { c_one = 6.5 }
        [lessons.01_a]
        stretch = "bonus"
        """
    )
    assert plan.name == "Ours" and list(plan.lessons) == ["01_a", "03_c"] and plan.others == {"02_b"}
    assert plan.late == Late(0.1, 86_400, 0.5) and str(plan.late) == "10 % a day, at most 50 %"
    c = plan.of("03_c")
    assert c.left_out == {"c_two", "c_three"} == plan.left_out and c.points == {"c_one": 6.5} and c.weight == 2
    assert c.due and in_utc(c.due) == datetime(2027, 3, 1, 22, 59, tzinfo=UTC).replace(tzinfo=None)
    assert plan.of("01_a").bonus == {"a_two", "a_three"} and not plan.of("01_a").left_out


def test_exercises_that_are_named_are_what_is_taken(read):
    plan = read('stretch = "left out"\n[lessons.01_a]\nexercises = ["a_two", "a_three"]')
    assert plan.left_out == {"a_one"} and not plan.of("01_a").bonus


def test_who_has_more_time_who_hands_in_together_and_where_to_ask(read):
    plan = read(
        """
        help = "Ask in our forum."
        free_days = 3
        [lessons.01_a]
        due = 2027-03-01T12:00:00Z
        [lessons.02_b]
        [extensions]
        ada = { 01_a = 2027-03-04T12:00:00Z }
        [groups]
        team = ["ada", "ben"]
        """
    )
    assert plan.help == "Ask in our forum." and plan.free_days == 3
    assert plan.members("ben") == ("ada", "ben") and plan.members("cleo") == ("cleo",)
    assert [plan.due(one, "01_a").day for one in ("ada", "ben", "cleo")] == [4, 4, 1], "a group has its latest date"
    assert plan.due("ada", "02_b") is None


@pytest.mark.parametrize(
    ("late", "seconds", "penalty"),
    [
        (Late(0.1, 86_400), 1, 1.0),
        (Late(0.1, 86_400), 86_400, 1.0),
        (Late(0.1, 86_400), 86_401, 2.0),
        (Late(0.1, 86_400, 0.15), 10**7, 1.5),
        (Late(0.02, 3_600), 7_200, 0.4),
        (Late(0.5, 3_600), 10**9, 10.0),
    ],
)
def test_what_is_late_loses_a_share_for_each_period_that_has_begun(late, seconds, penalty):
    assert late.penalty(10.0, seconds) == penalty


WRONG = {
    "[lessons.01_a\n": "course.toml is no TOML: Expected ']'",
    "nome = 1": "course.toml, line 1: nome is not known here. Is it one of these: name?",
    "# name\nname = 3": "line 2: name should be a text; it is 3",
    '\nstretch = "core"': 'line 2: stretch is one of "counted", "bonus", "left out"; it is \'core\'',
    'late = "10%"': 'line 1: late should read as "10 % a day"',
    'late = "300 % a day"': "line 1: late should read",
    "lessons = 3": "line 1: lessons should be a table for each lesson",
    "[lessons]\n01_a = 3": "line 2: lessons.01_a should be a table",
    "[lessons.01_b]": "line 1: lessons.01_b is not known here. Is it one of these: 02_b, 01_a",
    "[lessons.01_a]\nweight = 2\n[lessons.02_b]\nweight = -1": "line 4: lessons.02_b.weight should be a number, 0 or",
    "[lessons.01_a]\nweight = nan": "line 2: lessons.01_a.weight should be a number",
    "[lessons.01_a]\nweight = true": "line 2: lessons.01_a.weight should be a number",
    "[lessons.01_a]\ndue = 2027-03-01": "line 2: lessons.01_a.due should be a date and a time with its distance from",
    "[lessons.01_a]\ndue = 2027-03-01T10:00:00": "line 2: lessons.01_a.due should be a date and a time",
    "[lessons.01_a]\nexercises = []": "line 2: lessons.01_a.exercises is empty",
    '[lessons.01_a]\nexercises = [\n  "a_one",\n  "a_four",\n]': "line 4: lessons.01_a.exercises.a_four is not known",
    "[lessons.01_a]\npoints = { b_one = 3 }": "line 2: lessons.01_a.points.b_one is not known here",
    "[lessons.01_a]\npoints = { a_one = 0 }": "line 2: lessons.01_a.points.a_one should be a number, 0.5 or more",
    '[lessons.01_a]\npoints = { a_one = "3" }': "line 2: lessons.01_a.points.a_one should be a number",
    '[lessons.01_a]\nstretch = "left out"\npoints = { a_two = 3 }': "line 3: lessons.01_a.points.a_two is not known",
    "free_days = 1.5": "line 1: free_days should be a whole number of days; it is 1.5",
    "[extensions]\nada = 3": "line 2: extensions.ada should be a table for each student, such as",
    "[extensions]\nada = { 09_z = 2027-03-01T10:00:00Z }": "line 2: extensions.ada.09_z is not known here",
    "[extensions]\nada = { 01_a = 2027-03-01T10:00:00Z }": "line 2: extensions.ada.01_a extends nothing: give [less",
    "[groups]\na = 'ada'": "line 2: groups.a should be a list of students",
    "[groups]\na = ['ada']\nb = ['ada']": "line 3: groups.b.ada is in the group a already",
    "name = 1\nname = 2": "no TOML: Cannot overwrite a value",
}


@pytest.mark.parametrize(("text", "words"), WRONG.items(), ids=range(len(WRONG)))
def test_what_is_wrong_is_said_with_its_line_and_its_key(read, text, words):
    with pytest.raises(Unavailable) as why:
        read(text)
    assert words in str(why.value) and "\n" not in str(why.value)


def test_bytes_that_are_no_text(read, tmp_path):
    (tmp_path / PLAN).write_bytes(b"name = '\xff'")
    with pytest.raises(Unavailable, match="no TOML"):
        plan_of(tmp_path)
