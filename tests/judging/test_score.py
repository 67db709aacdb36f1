"""A right program that is held against the compiler's: par, its own bytes, the compiler's; and what others are told."""

import jax
import jax.numpy as jnp
import pytest
from answering import answered, verdict
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import grader
from grader.arrays.meshes import make_mesh, put
from grader.exercises import ProgramExercise
from grader.exercises.compilers import compilers_bytes
from grader.exercises.limits import BytesSent
from grader.exercises.verdict import Score
from grader.lessons import EXERCISES

RIVALS = [one for one in EXERCISES.values() if isinstance(one, ProgramExercise) and one.against_compiler]


def by_the_report(exercise, case, fn):
    """What `grader.communication` says of a function with the layouts of a case."""
    mesh = make_mesh(case.mesh)
    compiled = jax.jit(fn, out_shardings=NamedSharding(mesh, case.out))
    return grader.communication(compiled, *(put(a.value, a.spec, mesh) for a in case.arguments.values())).bytes_sent


@pytest.mark.parametrize(
    "lesson, name, plain, star",
    [
        ("05_shard_map", "beat_the_compiler", lambda v: v + 0, True),
        ("07_matmul", "case2_cheapest", jnp.matmul, True),
        ("07_matmul", "case3", jnp.matmul, False),
    ],
)
def test_the_compilers_bytes_are_those_that_a_student_would_find(lesson, name, plain, star):
    exercise = EXERCISES[name]
    cases = exercise.draw_cases(7)
    score = verdict(exercise, answered("solutions", lesson)[name]).score
    assert score.compilers == sum(by_the_report(exercise, case, plain) for case in cases) > 0
    assert score.par == sum(limit.needed for case in cases for limit in case.limits if isinstance(limit, BytesSent))
    assert score.yours == score.par
    assert score.star is star


def test_the_compilers_own_way_is_found_out():
    """The mistake that is called the compiler's way sends what the compiler sends."""
    exercise = EXERCISES["beat_the_compiler"]
    own_way = next(m.wrong for m in exercise.mistakes if m.name == "in_pairs_then_whole_blocks")
    case = exercise.draw_cases(7)[0]
    mesh = make_mesh(case.mesh)
    operand = put(case.arguments["v"].value, P("x", "y"), mesh)
    sent = grader.communication(lambda v: own_way(v, mesh=mesh), operand).bytes_sent
    assert sent == compilers_bytes(exercise, [case]) > case.limits[0].needed


def test_only_a_right_program_has_a_score():
    exercise = EXERCISES["case3"]
    assert verdict(exercise, exercise.mistakes[0].wrong).score is None
    assert verdict(exercise, None).score is None


def test_who_does_not_ask_is_not_held_against_the_compiler():
    assert verdict(EXERCISES["partial_sums"], answered("solutions", "05_shard_map")["partial_sums"]).score is None


@pytest.mark.parametrize("exercise", RIVALS, ids=lambda exercise: exercise.name)
def test_every_case_says_what_is_enough_and_is_within_the_compilers_reach(exercise):
    """Par is no more than the compiler sends: nobody is given a par that the compiler stays below."""
    assert not exercise.by_compiler
    for case in exercise.draw_cases():
        (enough,) = [limit.needed for limit in case.limits if isinstance(limit, BytesSent)]
        assert 0 < enough <= compilers_bytes(exercise, [case])


def test_what_the_compiler_made_is_kept():
    exercise = EXERCISES["case3"]
    cases = exercise.draw_cases(11)
    with grader.compilations() as first:
        compilers_bytes(exercise, cases)
    with grader.compilations() as again:
        compilers_bytes(exercise, cases)
    assert len(first) == len(cases) and not again


@pytest.mark.parametrize("yours, star", [(255, True), (256, False), (257, False)])
def test_a_star_is_for_fewer_bytes(yours, star):
    assert Score(128, yours, 256).star is star
