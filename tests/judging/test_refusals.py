"""Programs that do not run, and answers that are none."""

import jax
import jax.numpy as jnp
import pytest
from answering import verdict
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises.answers import Problem
from grader.explaining.explained import explained
from grader.findings.problems import ErrorMeaning, Refusal, WouldDeadlock
from grader.judging.refusals import meaning_of_refusal
from grader.lessons import find


def mapped(body, **options):
    options = {"in_specs": (P(None, "x"), P("x", None)), "out_specs": P(), "check_vma": False} | options
    return lambda a, b, *, mesh: jax.shard_map(body, mesh=mesh, **options)(a, b)


def sometimes(a, b):
    return lax.cond(lax.axis_index("x") == 0, lambda c: lax.psum(c, "x"), lambda c: c, a @ b)


def one_of_two(a, b):
    return lax.cond(lax.axis_index("x") == 0, lambda c: lax.psum(c, "x"), lambda c: lax.psum(2 * c, "x"), a @ b)


def until_small(a, b):
    return lax.while_loop(lambda c: jnp.sum(c) > 1, lambda c: lax.pmean(c, "x") / 2, a @ b)


def factored(a, b):
    return jnp.linalg.qr(lax.psum(a @ b, "x"))[0]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (..., Refusal("starter", ("case3",))),
        (lambda a, b, *, mesh: ..., Refusal("starter", ("case3",))),
        (lambda a, b, *, mesh: None, Refusal("returns nothing")),
        (42, Refusal("no function", ("int",))),
        (mapped(sometimes), WouldDeadlock("all_reduce", ("x",), (0, 2), (1, 0))),
        (mapped(one_of_two), WouldDeadlock("all_reduce", ("x",), (2, 0), (1, 0), alike=2)),
        (mapped(until_small), WouldDeadlock("all_reduce", ("x",))),
    ],
)
def test_why_it_is_not_run(answer, why):
    found = verdict(find("case3"), answer)
    assert found.points == 0 and found.failure.findings[0] == why


def test_code_outside_of_the_devices_is_not_run():
    found = verdict(find("case3"), mapped(factored)).failure.findings[0]
    assert isinstance(found, Refusal) and found.reason == "calls outside" and "lapack" in found.names[0]


def test_an_answer_that_is_missing_or_no_program():
    exercise = find("case3")
    cases = exercise.draw_cases(0)
    for problem, why in [
        (Problem("missing"), Refusal("missing", ("case3",))),
        (Problem("refused"), Refusal("unknown")),
    ]:
        assert explained(exercise, cases, [problem] * len(cases)).failure.findings == (why,)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [(Problem("error", "TypeError", "unhashable type"), ErrorMeaning("unhashable")), (Problem("refused"), None)],
)
def test_what_it_means(error, meaning):
    assert meaning_of_refusal(error) == meaning
