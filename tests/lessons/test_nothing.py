"""Doing nothing earns nothing: not the first argument as it came, not zeros, not the formula with nothing said."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from answering import verdict
from rota import in_turn, parts

from grader.arrays.laid import holds_arrays
from grader.exercises.forms import FunctionExercise, ProgramExercise, TimetableExercise
from grader.findings.programs import NothingDone
from grader.lessons import EXERCISES
from grader.programs.traceable import in_jax

ABOUT = [e for e in EXERCISES.values() if isinstance(e, (ProgramExercise, FunctionExercise, TimetableExercise))]
A_DAY = 6  # of these answers; programs take a while to compile
# Where what is asked for is the formula, and the compiler's own choice the right one.
ENOUGH = {"clip_by_global_norm", "same_on_every_mesh"}


def returned(exercise):
    """The first argument, as it was given."""

    def work(*arrays, **given):
        return next(iter([*arrays, *(value for name, value in given.items() if name != "mesh")]))

    return work


def zeros(exercise):
    """Zeros in the form of the result."""

    def of(leaf):
        return type(leaf)(0) if isinstance(leaf, (bool, int, float)) else np.zeros_like(np.asarray(leaf))

    def work(*arrays, **given):
        if isinstance(exercise, ProgramExercise):
            return jax.tree.map(jnp.zeros_like, formula(exercise)(*arrays, **given))
        return jax.tree.map(of, exercise.reference(*arrays, **given))

    return work


def formula(exercise):
    """What the text asks for, computed with no thought of devices."""
    (case, *_) = exercise.draw_cases()
    holding = [name for name, argument in case.arguments.items() if holds_arrays(argument)]

    def work(*arrays, mesh, **fixed):
        given = {**dict(zip(holding, arrays, strict=True)), **fixed}
        return in_jax(exercise.reference)(*(given[name] for name in case.arguments))

    return work


IDLE = {"returned": returned, "zeros": zeros, "formula": formula}
ANSWERS = list(itertools.product(ABOUT, IDLE.items()))
TRIED = [
    pytest.param(exercise, make, id=f"{exercise.name}-{name}", marks=in_turn(place, parts(len(ANSWERS), A_DAY)))
    for place, (exercise, (name, make)) in enumerate(ANSWERS)
    if name != "formula" or isinstance(exercise, ProgramExercise) and exercise.name not in ENOUGH
]


@pytest.mark.parametrize("exercise, make", TRIED)
def test_doing_nothing_earns_nothing(exercise, make):
    found = verdict(exercise, make(exercise), seed=0)
    assert found.points == 0 and found.worth == exercise.points


def test_an_empty_table_and_a_forgotten_answer_earn_nothing():
    for exercise in EXERCISES.values():
        nothing = verdict(exercise, {} if exercise.form == "table" else None)
        assert nothing.points == 0 and nothing.worth == exercise.points, exercise.name


def test_the_untouched_formula_is_told_that_it_earns_nothing_yet_and_a_step_from_it_earns_its_share():
    """`constrain`: the right values in whatever layout are the formula's; with another layout somebody has begun."""
    exercise = EXERCISES["constrain"]
    assert NothingDone() in verdict(exercise, lambda v, *, mesh: v + 1).failure.findings
    begun = verdict(
        exercise,
        lambda v, *, mesh: jax.lax.with_sharding_constraint(
            v + 1, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        ),
    )
    assert 0 < begun.points < exercise.points and NothingDone() not in begun.failure.findings
