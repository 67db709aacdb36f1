"""The report on a class: what it counts, what it says of Monday, and that nothing of a student's runs on its page."""

import html
import math
import re

import labs
import pages
import pytest

from grader.classroom.grading.digest import Digest
from grader.classroom.report.facts import facts_of, telling_line
from grader.classroom.report.likeness import at_least
from grader.classroom.report.monday import heard, monday
from grader.classroom.report.page import report_page
from grader.classroom.report.papers import Paper
from grader.findings.verdicts import CannotCheck

LESSON = "07_matmul"
WORTH = {"case3": 4.0, "two_axis": 4.0, "local_shapes": 2.0}
RIGHT = "def case3(a, b, *, mesh):\n    whole = a @ b\n    return jax.lax.psum(whole, 'x')"
FORGOT = 'def case3(a, b, *, mesh):\n    """Multiply."""\n    whole = a @ b\n    return whole  # and nothing else'


def paper(student, case3, two_axis, shapes, **more):
    """A paper with these digests; what is right earns all, what is partly right half."""
    found = {one.exercise: one for one in (case3, two_axis, shapes)}
    part = {"right": 1.0, "partly": 0.5}
    points = {name: worth * part.get(found[name].state, 0.0) for name, worth in WORTH.items()}
    return Paper(student, points, WORTH, found, **more)


def right(exercise, **more):
    return Digest(exercise, "right", **more)


@pytest.fixture
def papers():
    """Ten students: the first five have `case3` right, three forgot the sum, one is odd, one left all open."""
    forgot = Digest("case3", "wrong", "values", "forgot_psum")
    odd = Digest("case3", "wrong", "values", "", (CannotCheck("Device 0 is gone."), CannotCheck("More.")))
    left, shapes = Digest("two_axis", "open", "values"), right("local_shapes")
    best = [
        paper(
            f"best{k}",
            right("case3", sent=128 * (1 + k % 2), par=128),
            right("two_axis"),
            shapes,
            sources={"case3": RIGHT},
        )
        for k in range(5)
    ]
    others = [paper(f"other{k}", forgot, left, shapes, sources={"case3": FORGOT}) for k in range(3)]
    last = paper("odd", odd, left, shapes, moved={"case3": (4.0, 0.0)})
    return [
        *others,
        *best,
        last,
        paper("none", Digest("case3", "open", "runs"), left, Digest("local_shapes", "open", "a")),
    ]


def test_an_exercise_has_counts_difficulty_discrimination_and_bytes(papers):
    facts = facts_of(LESSON, papers)
    case3, two_axis, shapes = facts.exercises
    assert case3.counts == {"right": 5, "partly": 0, "wrong": 4, "open": 1} and case3.share == 0.5
    assert case3.lost == 20 and case3.over_par == 1 and case3.at_par == 3
    assert case3.discrimination == 1  # of three at either end, which is 27 % of ten
    assert shapes.discrimination == pytest.approx(1 / 3) and two_axis.over_par is None
    assert facts.distribution == [1, 0, 4, 0, 0, 0, 0, 0, 0, 5] and facts.median == pytest.approx(0.6)
    assert [one.student for one in facts.papers][-1] == "none"


def test_a_bonus_adds_points_and_nothing_to_the_maximum_and_what_is_late_is_taken_off():
    three = [right("case3"), Digest("two_axis", "open", "runs"), right("local_shapes")]
    plain, bonus, late = (
        paper("a", *three, bonus=bonus, late=late)
        for bonus, late in (((), 0), (frozenset({"two_axis"}), 0), (frozenset({"two_axis"}), 3.0))
    )
    assert [plain.share, bonus.share, late.share] == [0.6, 1.0, 0.5]
    more = paper("b", right("case3"), right("two_axis"), right("local_shapes"), bonus=frozenset({"two_axis"}))
    facts = facts_of(LESSON, [late, more])
    assert more.share == pytest.approx(10 / 6) and facts.distribution == [0, 0, 0, 0, 0, 1, 0, 0, 0, 1]
    assert {one.name: one.lost for one in facts.exercises} == {"case3": 0, "two_axis": 0, "local_shapes": 0}
    assert not any("Most points were lost" in sentence for sentence in monday(facts))


def test_a_small_class_discriminates_nothing(papers):
    assert {one.discrimination for one in facts_of(LESSON, papers[:7]).exercises} == {None}


def test_mistakes_come_by_name_with_a_line_that_tells_them_and_others_by_their_check(papers):
    facts = facts_of(LESSON, papers)
    (forgot,), (odd,) = facts.mistakes, facts.unnamed
    assert (forgot.exercise, forgot.what, len(forgot.students)) == ("case3", "forgot_psum", 3)
    assert forgot.line == "return whole" and "Which collective does that" in heard(forgot)
    assert (odd.what, odd.students, heard(odd)) == ("values", ("odd",), "This can't be checked. Device 0 is gone.")


@pytest.mark.parametrize(
    ("made", "others", "line"),
    [
        (["x = 1\ny = 2"], ["x = 1"], "y = 2"),
        (["x = 1"], ["x = 1"], ""),
        (
            ["def f():\n  '''No\n  step.'''\n  return 0", "def f():\n  a = 1\n  return 0"],
            ["def f():\n  return 1"],
            "return 0",
        ),
        ([""], [], ""),
    ],
)
def test_the_line_that_tells_is_of_code_and_not_of_all(made, others, line):
    assert telling_line(made, others) == line


def test_monday_is_about_points_then_a_mistake_then_what_is_left(papers):
    first, second, third = monday(facts_of(LESSON, papers))
    assert first.startswith("Most points were lost on `case3` (20 of 40): 5 of 10 have it right, 1 left it open")
    assert second.startswith(
        "3 of 10 made the same mistake in `case3`, `forgot_psum`: Every element of C was a partial sum"
    )
    assert third == "5 of 10 left `two_axis` open: too late in the lesson, or too large a step?"
    (only,) = monday(facts_of(LESSON, papers[3:8]))
    assert only.startswith("Everybody has everything right")


def test_the_chance_of_at_least_so_many_of_independent_events():
    assert at_least(0, [0.3, 0.5]) == pytest.approx(1)
    assert at_least(1, [0.3, 0.5]) == pytest.approx(1 - 0.7 * 0.5)
    assert at_least(2, [0.5] * 4) == pytest.approx(sum(math.comb(4, k) for k in (2, 3, 4)) / 16)


def test_two_who_have_the_same_unusual_programs_are_a_hint_and_those_who_have_the_usual_one_are_none():
    usual = {"case3": "a", "two_axis": "b", "local_shapes": ""}

    def with_programs(student, programs):
        return paper(student, *(right(name, program=program) for name, program in programs.items()))

    odd = {**usual, "case3": "c", "two_axis": "d"}
    others = [with_programs(f"other{k}", usual) for k in range(8)]
    (pair,) = facts_of(LESSON, [*others, with_programs("ada", odd), with_programs("ben", odd)]).alike
    assert pair.students == ("ada", "ben") and pair.exercises == ("case3", "two_axis")
    assert pair.expected == pytest.approx(45 * (1 / 45) ** 2)
    assert facts_of(LESSON, others).alike == ()


def test_names_are_shown_only_where_they_are_asked_for(papers):
    facts = [facts_of(LESSON, papers)]
    page = report_page(facts, {LESSON: "Four matmuls"})
    assert not re.search(r"best\d|other\d", page) and "student 1<" in page and "Four matmuls" in page
    assert "student 6: <code>case3</code> 4 → 0" in " ".join(page.split())
    named = report_page(facts, {}, with_names=True)
    assert "best0" in named and "other0, other1, other2" in named and "student 1<" not in named


def nasty():
    """A class whose names, lines and words are attacks."""
    return [
        paper(
            vector,
            Digest("case3", "wrong", vector, "", (CannotCheck(f"{vector} `{vector}`"),)),
            Digest("two_axis", "wrong", "values", vector),
            right("local_shapes"),
            sources={"case3": vector, "two_axis": f"x = {vector}"},
            moved={"case3": (1.0, 2.0)},
        )
        for vector in pages.VECTORS
    ]


@pytest.mark.needs("browser")
def test_nothing_of_a_students_runs_and_the_page_fits_any_screen(papers, tmp_path):
    file = tmp_path / "report.html"
    facts = [facts_of(LESSON, nasty()), facts_of("08_rings", papers)]
    open_page = re.sub(r"<meta http-equiv=[^>]*>", "", report_page(facts, {}, with_names=True))  # its policy taken away
    file.write_text(open_page)
    asked, hits, told = [], [], []
    with labs.chromium() as browser:
        for scheme, width in (("light", 1280), ("dark", 390)):
            page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}).new_page()
            page.on("request", lambda request: asked.append(request.url))
            page.on("console", lambda message: told.append(message.text))
            page.add_init_script("window.hits = []; window.hit = x => hits.push(x); alert = print = hit")
            page.goto(file.as_uri())
            page.evaluate(
                "() => document.querySelectorAll('*').forEach(one => one.dispatchEvent(new Event('mouseover')))"
            )
            page.wait_for_timeout(200)
            hits += page.evaluate("hits")
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert (
                page.evaluate(
                    "document.scripts.length + document.querySelectorAll('main a, iframe, img, object').length"
                )
                == 0
            )
    assert set(asked) == {file.as_uri()} and (hits, told) == ([], [])


def test_the_page_says_that_it_may_do_nothing(papers):
    page = html.unescape(report_page([facts_of(LESSON, papers)], {}))
    assert "default-src 'none'; style-src 'unsafe-inline'" in page and "<script" not in page
