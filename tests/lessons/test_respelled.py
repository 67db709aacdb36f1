"""A mistake keeps its name however it is spelled: other names, other lines, another function around it, under jit."""

import jax
import numpy as np
import pytest
from answering import verdict
from respelling import respelled, written_otherwise
from rota import in_turn, parts

from grader.exercises.forms import FunctionExercise, ProgramExercise, TimetableExercise
from grader.lessons import EXERCISES

A_DAY = 16  # mistakes; a program takes a second or two
MISTAKES = [
    (exercise, mistake)
    for exercise in EXERCISES.values()
    if isinstance(exercise, (ProgramExercise, FunctionExercise, TimetableExercise))
    for mistake in exercise.mistakes
]
EVERY = parts(len(MISTAKES), A_DAY)
TRIED = [
    pytest.param(exercise, mistake, id=f"{exercise.name}-{mistake.name}", marks=in_turn(place, EVERY))
    for place, (exercise, mistake) in enumerate(MISTAKES)
]


@pytest.mark.parametrize("exercise, mistake", TRIED)
def test_a_mistake_keeps_its_name_in_another_spelling(exercise, mistake):
    jit = isinstance(exercise, ProgramExercise)
    for wrong in mistake.spellings():
        plain = verdict(exercise, wrong)
        other = verdict(exercise, respelled(wrong, jit=jit))
        assert (other.mistake, other.points) == (plain.mistake, plain.points)
        assert plain.mistake


def test_a_respelled_function_has_other_names_and_does_the_same():
    def summed(numbers, scale=2):
        """Some numbers, summed."""
        total = 0
        for number in numbers:
            total += number * scale
        return total

    other = written_otherwise(summed)
    assert other([1, 2]) == summed([1, 2]) == 6
    assert "total_of_mine" in other.__code__.co_varnames and "numbers" in other.__code__.co_varnames
    assert other.__code__.co_filename != summed.__code__.co_filename
    under_jit = respelled(lambda a, *, by: a * by, jit=True)
    assert np.array_equal(under_jit(np.arange(3), by=2), [0, 2, 4])
    assert isinstance(under_jit(np.arange(3), by=2), jax.Array)
