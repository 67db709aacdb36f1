"""The demo class makes the exercises' own mistakes, with nothing but what a student has."""

import pytest
from answering import asked, define, setting

from grader.classroom.course.demo import mistake_source
from grader.classroom.grading.grade import DEMO
from grader.exercises.answers import Problem
from grader.exercises.collecting import asks, collect
from grader.lessons import EXERCISES


@pytest.mark.parametrize("name", asked(DEMO))
def test_a_mistake_is_written_out_in_full(name):
    """Behind the walls there are no lessons to import from."""
    exercise = EXERCISES[name]
    asked = asks(exercise, exercise.draw_cases()[:1])
    for mistake in exercise.mistakes:
        source, space = mistake_source(exercise, mistake), {}
        assert "grader.lessons" not in source, mistake.name
        define(setting(DEMO), space)
        define(source, space)
        (answer,) = collect(exercise.form, asked, space[name])
        assert not isinstance(answer, Problem) or answer.error != "NameError", (mistake.name, answer.message)
