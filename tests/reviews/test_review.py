"""Questions from earlier lessons: fresh each time, three for every lesson, each with its answer and its reason."""

import numpy as np
import pytest

import grader
from grader.arrays.fresh import SEED
from grader.reviews.asking import makers
from grader.reviews.question import Question

EVERY = [
    pytest.param(maker, id=f"{lesson}-{maker.__name__}") for lesson, of_one in makers().items() for maker in of_one
]


@pytest.mark.parametrize("maker", EVERY)
def test_a_question_takes_its_own_answer_and_varies(maker):
    made = [maker(np.random.default_rng(seed)) for seed in range(20)]
    assert all(isinstance(q, Question) and q.accepts(q.answer) and q.ask and q.why for q in made)
    assert not any(q.accepts("surely not this") for q in made)
    assert len({q.ask for q in made}) > 3


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


def test_questions_need_nothing_that_is_withheld_from_hand_ins(root):
    for file in sorted((root / "grader" / "reviews").glob("*.py")):
        assert "grader.lessons" not in file.read_text() and "grader.classroom" not in file.read_text(), file.name
