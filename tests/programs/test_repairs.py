"""Repairs: a program whose collectives are left out, run elsewhere or put in, against one that was written so."""

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.arrays.meshes import aval, make_mesh
from grader.programs.execution import execute, results_with
from grader.programs.program import trace
from grader.programs.repairs import Repair, repairs_of
from grader.programs.walk import structure

MESH = {"x": 4, "y": 2}
A = Array(np.arange(1, 33, dtype=np.float32).reshape(8, 4) / 7, P("x", "y"))
B = Array(np.arange(5, 29, dtype=np.float32).reshape(4, 6) / 3, P("y"))


def product(*, bring=lambda part: part, end=lambda total: total, first=lambda block: block):
    """A product of matrices with what is done to the blocks, to the partial sums, and at the end."""

    def body(a, b):
        return end(bring(first(a) @ b))

    def fn(a, b):
        return jax.shard_map(body, mesh=make_mesh(MESH), in_specs=(A.spec, B.spec), out_specs=P("x"), check_vma=False)(
            a, b
        )

    mesh = make_mesh(MESH)
    return trace(fn, *(aval(a.value.shape, a.value.dtype, a.spec, mesh) for a in (A, B)))


def around(block, step):
    return lax.ppermute(block, "x", [(d, (d + step) % 4) for d in range(4)])


def three_times(block):
    return lax.fori_loop(0, 3, lambda _, block: around(block, 1), block)


def along(*axes):
    return lambda part: lax.psum(part, axes)


PAIRS = [
    (
        product(bring=along("y"), end=along("x")),
        product(bring=along("y")),
        Repair("all_reduce", 1, "leave out", ("x",)),
    ),
    (product(bring=along("x")), product(bring=along("y")), Repair("all_reduce", 0, "run along", ("x",), ("y",))),
    (product(), product(bring=along("y")), Repair("product", 0, "sum", (), ("y",))),
    (
        product(end=jax.nn.relu),
        product(end=lambda p: lax.pmean(jax.nn.relu(p), "y")),
        Repair("result", 0, "mean", (), ("y",)),
    ),
    (product(bring=along("y")), product(bring=lambda p: lax.pmean(p, "y")), Repair("all_reduce", 0, "average", ("y",))),
    (product(bring=lambda p: lax.pmean(p, "y")), product(bring=along("y")), Repair("all_reduce", 0, "add up", ("y",))),
    (
        product(first=lambda a: around(a, 1)),
        product(first=lambda a: around(a, -1)),
        Repair("collective_permute", 0, "turn round", ("x",)),
    ),
    (
        product(first=three_times),
        product(first=lambda a: lax.fori_loop(0, 3, lambda _, a: around(a, -1), a)),
        Repair("collective_permute", 0, "turn round", ("x",)),
    ),
    (
        product(bring=lambda p: lax.all_gather(p, ("x", "y"))[3]),
        product(bring=lambda p: lax.all_gather(p, ("y", "x"))[3]),
        Repair("all_gather", 0, "run along", ("x", "y"), ("y", "x")),
    ),
]


def blocks(results):
    return [block for result in results for block in result.blocks.values]


@pytest.mark.parametrize("program, other, repair", PAIRS, ids=[f"{e.way} {e.kind}" for _, _, e in PAIRS])
def test_an_edited_program_does_what_one_does_that_was_written_so(program, other, repair):
    assert repair in repairs_of(program)
    found = blocks(results_with(repair, program, MESH, [A, B], [P("x")]))
    due = blocks(execute(other, MESH, [A, B], [P("x")], structure(other)).results)
    before = blocks(execute(program, MESH, [A, B], [P("x")], structure(program)).results)
    assert all(np.allclose(one, other, rtol=1e-5) for one, other in zip(found, due, strict=True))
    assert not all(np.allclose(one, other, rtol=1e-5) for one, other in zip(before, due, strict=True))


def test_the_likeliest_comes_first_and_a_long_program_has_none():
    changes = [repair.way for repair in repairs_of(product(bring=along("y")))]
    assert changes[0] == "leave out" and changes.index("run along") < changes.index("average") < changes.index("sum")

    def often(part):
        for _ in range(25):
            part = lax.psum(part, "y")
        return part

    assert repairs_of(product(bring=often)) == ()
