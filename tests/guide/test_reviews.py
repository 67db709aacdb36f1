"""Questions from earlier lessons: fresh each time, three for every lesson, each with its answer and its reason."""

import importlib
import re

import nbformat
import pytest
from asking import asked
from test_rooms import PACKAGE

import grader
from grader.arrays.fresh import SEED
from grader.classroom.course.frame import bare
from grader.classroom.course.headings import exercise_heading
from grader.classroom.course.minutes import honest_minutes
from grader.guide.reviews import makers

EVERY = [pytest.param(maker, id=f"{lesson}-{maker.name}") for lesson, of_one in makers().items() for maker in of_one]


@pytest.mark.parametrize("maker", EVERY)
def test_questions_are_fair(maker):
    """They and their answers differ; each is a question, has a reason, and takes its own answer and no other."""
    questions = asked(maker)
    assert len({question.ask for question in questions}) >= 4
    assert len({repr(question.answer) for question in questions}) >= 2
    for question in questions:
        assert re.search(r"\?|:$", question.ask) and question.why.endswith(".")
        assert question.accepts(question.answer) and not question.accepts("something else")
        assert isinstance(question.answer, str) or not question.accepts(another(question.answer))


def another(answer):
    """A value of the same kind that is not the answer."""
    return answer + 1 if isinstance(answer, (int, float)) else [*answer, 1]


def test_every_lesson_begins_with_three_questions_from_before_it(root):
    lessons = sorted(p.parent.name for p in (root / "solutions").glob("*/*.md") if p.stem == p.parent.name)
    for lesson in lessons:
        assert len(grader.review(lesson, seed=1).questions) == 3
    assert all(lesson in makers() for lesson in lessons), "a lesson has no questions for later ones"


def test_questions_are_new_each_time_unless_a_seed_is_given(monkeypatch):
    monkeypatch.delenv(SEED, raising=False)
    assert len({repr(grader.review("07_matmul")) for _ in range(6)}) > 1
    assert repr(grader.review("07_matmul", seed=3)) == repr(grader.review("07_matmul", seed=3))


def test_each_answer_is_said_right_wrong_or_open():
    review = grader.review("07_matmul", seed=3)
    right = [q.answer for q in review.questions]
    assert repr(review.check(right)).count("Right.") == 3
    said = repr(review.check([..., "surely not this", right[2]])).splitlines()
    assert said[0].startswith("1. Open") and said[1].startswith("2. ✗ Not 'surely not this'") and "✓" in said[2]
    assert "2 answers" in repr(review.check([1, 2]))


def test_a_lessons_questions_are_in_the_file_of_its_topic():
    for file in PACKAGE.glob("lessons/*/review.py"):
        topic = file.parent.name
        assert importlib.import_module(f"grader.lessons.{topic}.review").LESSON.partition("_")[2] == topic


def test_a_question_is_of_the_core_where_all_that_it_asks_about_is(root):
    """An exercise is of the core where its heading says so, a part where the lesson's line of minutes counts it."""
    for lesson, of_one in makers().items():
        if not (source := root / "solutions" / lesson / f"{lesson}.ipynb").exists():
            continue
        nb = nbformat.read(source, 4)
        text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
        exercises = {
            name: one.is_core for line in text.splitlines() if (one := exercise_heading(line)) for name in one.names
        }
        parts = honest_minutes(bare(nb)).parts
        for maker in of_one:
            assert maker.places, f"{maker.name} says nothing of what it asks about"
            taught = [place in parts if isinstance(place, int) else exercises[place] for place in maker.places]
            assert maker.is_core is all(taught), f"{lesson}: {maker.name}"


def test_a_review_asks_core_questions_unless_it_is_asked_for_stretch():
    """Whoever takes the core alone is asked nothing that only stretch teaches."""
    core_asks = {q.ask for of_one in makers().values() for m in of_one if m.is_core for q in asked(m)}
    stretch_asks = {q.ask for of_one in makers().values() for m in of_one if not m.is_core for q in asked(m)}
    assert core_asks and stretch_asks and not core_asks & stretch_asks
    for lesson in [name for name in makers() if name > "02"]:
        for seed in range(12):
            drawn = grader.review(lesson, seed=seed).questions
            assert not {q.ask for q in drawn} & stretch_asks and "Stretch" not in repr(grader.review(lesson, seed=seed))
            for question in grader.review(lesson, seed=seed, stretch=True).questions:
                assert question.ask.startswith("(Stretch of ")


def test_every_lesson_has_core_questions_for_later_ones():
    assert all(sum(maker.is_core for maker in of_one) >= 2 for of_one in makers().values())
