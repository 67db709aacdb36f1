"""Where each collective of a program was written; what travels beside the program, and changes nothing of it."""

import functools

import pytest
from answering import define
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh
from grader.jax_versions import Spot
from grader.programs.collectives import OF_PRIMITIVE
from grader.programs.origins import LONGEST_LINE, MOST_ORIGINS, line_of_a_cell
from grader.programs.program import trace, with_gradient
from grader.programs.walk import structure
from grader.replays.collectives import RULES

SIZES = {"x": 4, "y": 2}
CELL = """
import jax
from jax.sharding import PartitionSpec as P


def answer(a, b, *, mesh):
    def body(a, b):
        part = a @ b

        def step(carry, _):
            return jax.lax.ppermute(carry, "x", [(i, (i + 1) % 4) for i in range(4)]), None

        moved, _ = jax.lax.scan(step, part, None, length=3)
        both = jax.lax.psum({"u": moved, "v": part}, "x")
        é = jax.lax.all_gather(both["u"], "y", tiled=True); s = jax.lax.psum_scatter(é, "y", tiled=True)
        return jax.lax.pmean(
            both["v"] + s, "y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(), check_vma=False)(a, b)
"""
MEANT = [
    (11, 'jax.lax.ppermute(carry, "x", [(i, (i + 1) % 4) for i in range(4)])'),
    (14, 'jax.lax.psum({"u": moved, "v": part}, "x")'),
    (14, 'jax.lax.psum({"u": moved, "v": part}, "x")'),
    (15, 'jax.lax.all_gather(both["u"], "y", tiled=True)'),
    (15, 'jax.lax.psum_scatter(é, "y", tiled=True)'),
    (16, "jax.lax.pmean("),
]


def traced(cell, gradient=False):
    space = {}
    define(cell, space)
    mesh = make_mesh(SIZES)
    work = functools.partial(space["answer"], mesh=mesh)
    arrays = [aval((8, 8), "float32", spec, mesh) for spec in (P(None, "x"), P("x"), P())]
    return trace(with_gradient(work, 2), *arrays) if gradient else trace(work, *arrays[:2])


@pytest.mark.parametrize("gradient", [False, True])
def test_each_collective_has_the_line_that_it_was_written_in(gradient):
    program = traced(CELL, gradient)
    collectives = [one for one in program.origins if not one.divides]
    assert [one.kind for one in collectives] == [c.kind for c in structure(program).authored]
    forward = collectives[: len(MEANT)]
    assert [(o.line.number, o.line.text[o.line.start : o.line.end]) for o in forward] == MEANT
    assert [one.line.backward for one in forward] == [False] * len(MEANT)
    back = collectives[len(MEANT) :]
    assert len(back) == (len(MEANT) + 2 if gradient else 0) and all(one.line.backward for one in back)


def test_what_divides_arrays_has_its_line():
    (one,) = (origin for origin in traced(CELL).origins if origin.divides)
    assert one.kind == "shard_map" and one.line.number == 19
    assert one.line.text[one.line.start : one.line.end].startswith("jax.shard_map(body")


def test_programs_are_equal_wherever_they_were_written():
    one, other = traced(CELL), traced("\n# a note\n" + CELL)
    assert one == other and hash(one) == hash(other) and one.artefact == other.artefact
    assert one.origins != other.origins and one.origins[0].line.number + 2 == other.origins[0].line.number


def test_a_loop_that_is_written_out_too_long_has_no_lines():
    rounds = "for _ in range({}):\n            both = jax.lax.psum(both, 'x')"
    long, short = (CELL.replace("é =", rounds.format(n) + "\n        é =") for n in (MOST_ORIGINS, 3))
    collectives = [one for one in traced(short).origins if not one.divides]
    assert traced(long).origins == () and len(collectives) == len(MEANT) + 6


def test_the_collectives_are_those_that_a_replay_knows():
    assert {name: RULES[name].kind for name in OF_PRIMITIVE} == OF_PRIMITIVE


@pytest.mark.parametrize(
    "source, columns, text, meant",
    [
        ("  é = f(a)", (7, 11), "é = f(a)", "f(a)"),
        ("f(a)", (0, 0), "f(a)", ""),
        ("f(a,", (0, 2), "f(a,", "f("),
        (f"x = {'a' * 200}; f(a)", (206, 210), "f(a)", "f(a)"),
        (f"f({'a' * 200})", (0, 203), f"f({'a' * (LONGEST_LINE - 2)}", f"f({'a' * (LONGEST_LINE - 2)}"),
    ],
)
def test_columns_are_those_of_the_text_that_is_shown(source, columns, text, meant):
    cell = f"_ = '''\n{source}\n'''"
    define(cell, {})
    start, end = columns
    line = line_of_a_cell([Spot(__file__, "f", 1, 0, 1, 3), Spot(f"<cell {hash(cell)}>", "f", 2, start, 2, end)])
    assert (line.number, line.text, line.text[line.start : line.end]) == (2, text, meant)


def test_what_an_answer_calls_in_another_cell_is_shown_where_it_is_called():
    cells = "def g(a):\n    return a.x\n", "def f(a):\n    return g(a)\n", "f(1) if 0 else 0\n"
    space = {}
    for cell in cells:
        define(cell, space)
    inside, outside, first = (f"<cell {hash(cell)}>" for cell in cells)
    inside_out = [Spot(inside, "g", 2, 11, 2, 14), Spot(outside, "f", 2, 11, 2, 15), Spot(__file__, "c", 1, 0, 1, 1)]
    told = line_of_a_cell(inside_out)
    assert (told.function, told.number, told.text[told.start : told.end]) == ("f", 2, "g(a)")
    assert line_of_a_cell([*inside_out, Spot(first, "<module>", 1, 0, 1, 4)]) == told  # traced there before the grader


def test_what_lies_in_a_file_is_no_cell():
    assert line_of_a_cell([Spot(__file__, "f", 1, 0, 1, 3), Spot("<nowhere>", "f", 1, 0, 1, 3)]) is None
