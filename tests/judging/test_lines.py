"""A miss says which line of the student's own cell it is about, where that is sure; and equal answers stay equal."""

import dataclasses

import pytest
from answering import define

from grader.checking import verdict_on
from grader.exercises.collecting import asks, collect
from grader.exercises.verdict import Blamed, with_lines
from grader.explaining.explained import explained
from grader.feedback import plain_card
from grader.lessons import find
from grader.programs.origins import Line, Origin

HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax.sharding import PartitionSpec as P\n\n\n"
SUM = """def case3(a, b, *, mesh):
    def go(p, q):
        {body}
    return jax.shard_map(go, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(), check_vma=False)(a, b)
"""
TWICE = 'return jax.lax.psum(p @ q, "x") + 0 * jax.lax.all_gather(q, "x").sum()'


def answer(body):
    space = {}
    define(HEAD + SUM.format(body=body), space)
    return space["case3"]


IN_TURNS = """return (
            jax.lax.psum(p[:, 0:1] @ q[0:1], "x") + jax.lax.psum(p[:, 1:2] @ q[1:2], "x")
            + jax.lax.psum(p[:, 2:3] @ q[2:3], "x")
            + jax.lax.psum(p[:, 3:4] @ q[3:4], "x")
            + jax.lax.psum(p[:, 4:5] @ q[4:5], "x"))"""
CONSTRAINED = """from jax.sharding import NamedSharding
def constrain_replicated(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("x")))
"""
DIVIDED = 'jax.shard_map(go, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(), check_vma=False)(a, b)'


@pytest.mark.parametrize(
    "body, check, lead, meant",
    [
        (
            'return jax.lax.psum(jnp.sin(p @ q), "x")',
            "values",
            "Your program communicates in `go`, line 8",
            'jax.lax.psum(jnp.sin(p @ q), "x")',
        ),
        ("return p @ q", "values", "Your arrays are sharded in `case3`, line 9", DIVIDED),
    ],
)
def test_what_is_exchanged_or_divided_is_told_where_no_line_is_known_to_be_wrong(body, check, lead, meant):
    found = verdict_on("case3", answer(body))
    assert found.failure.check == check and found.blamed.why == "all"
    assert [line.text[line.start : line.end] for line in found.lines] == [meant]
    assert lead in plain_card(found)


def test_many_lines_tell_nothing():
    found = verdict_on("case3", answer(IN_TURNS))
    assert found.failure.check == "values" and len(found.blamed.numbers) == 5 and found.lines == ()


def test_a_layout_is_asked_for_in_a_line():
    space = {}
    define(HEAD + CONSTRAINED, space)
    (line,) = verdict_on("constrain_replicated", space["constrain_replicated"]).lines
    assert line.text[line.start : line.end].startswith("jax.lax.with_sharding_constraint")


@pytest.mark.parametrize(
    "body, check, meant",
    [
        ('return jax.lax.psum(p @ q, "z")', "runs", 'jax.lax.psum(p @ q, "z")'),
        ("return (p @ q).nothing", "runs", "(p @ q).nothing"),
        ('return jax.lax.psum(p @ q, ("x", "y"))', "values", 'jax.lax.psum(p @ q, ("x", "y"))'),  # a named mistake
        ('return jax.lax.pmean(p @ q, "x")', "values", 'jax.lax.pmean(p @ q, "x")'),  # another
        (TWICE, "communication", 'jax.lax.all_gather(q, "x")'),  # too much
    ],
)
def test_the_line_is_told(body, check, meant):
    found = verdict_on("case3", answer(body))
    assert found.failure.check == check
    lines = [(line.number, line.text[line.start : line.end]) for line in found.lines]
    assert lines == ([(8, meant)] if meant else [])


def test_lines_are_no_part_of_what_is_judged():
    exercise = find("case3")
    cases = exercise.draw_cases(0)
    verdicts = []
    for body in ('return jax.lax.pmean(p @ q, "x")', 'pass\n        return jax.lax.pmean(p @ q, "x")'):
        answers = collect(exercise.form, asks(exercise, cases), answer(body))
        verdicts.append(explained(exercise, cases, answers))
    assert verdicts[0].blamed == verdicts[1].blamed == Blamed(0, (0,), ("all_reduce",), "all")
    assert verdicts[0].outcomes == verdicts[1].outcomes and verdicts[0].lines == verdicts[1].lines == ()


def test_origins_of_another_program_show_nothing():
    line = Line(3, "f(a)", 0, 4)
    blamed = Blamed(0, (1,), ("all_reduce",) * 2)
    missed = dataclasses.replace(verdict_on("case3", answer("return p @ q")), blamed=blamed, lines=())
    same, other = [Origin("all_reduce", line)] * 2, [Origin("all_reduce", line), Origin("all_gather", line)]
    assert with_lines(missed, [same]).lines == (line,)
    for origins in ([], [other], [same[:1]], [same * 2]):
        assert with_lines(missed, origins).lines == ()
    assert with_lines(dataclasses.replace(missed, blamed=dataclasses.replace(blamed, numbers=(5,))), [same]).lines == ()
