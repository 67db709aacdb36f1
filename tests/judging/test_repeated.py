"""Work that is done again and again, where counting it is hard: it is found, or it earns nothing for the work."""

import jax
import jax.numpy as jnp
import pytest
from answering import verdict
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.findings.costs import WrongAmount, WrongForm
from grader.lessons import EXERCISES

TURNS = 1000
UNKNOWN = WrongForm("unknown work")


def once(x):
    """A small matmul whose result is as its operand was."""
    return jnp.eye(8) @ x


def known(square):
    return lax.fori_loop(0, TURNS, lambda _, x: once(x), square)


def unknown(square):
    """How often it goes round depends on data."""
    end = TURNS + (square[0, 0] > 1e30).astype(int)
    return lax.while_loop(lambda c: c[0] < end, lambda c: (c[0] + 1, once(c[1])), (0, square))[1]


def in_a_branch(square):
    """It is known how often the branch is come by, and not whether it is taken."""
    return lax.fori_loop(0, TURNS, lambda _, x: lax.cond(x[0, 0] < 1e30, once, lambda y: y, x), square)


def case3(waste, outside):
    """The right program for a contracted dimension that is sharded, with work that nobody needs."""

    def answer(a, b, *, mesh):
        def body(a, b):
            extra = 0 if outside else waste(jnp.ones((8, 8)))[0, 0] - 1
            return lax.psum(a @ b, "x") + extra

        extra = waste(jnp.ones((8, 8)))[0, 0] - 1 if outside else 0
        return (
            jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(), check_vma=False)(a, b)
            + extra
        )

    return answer


@pytest.mark.parametrize("outside", [False, True], ids=["inside", "outside"])
@pytest.mark.parametrize("waste", [known, unknown, in_a_branch])
def test_repeated_matmuls_cost_the_points_for_work(waste, outside):
    found = verdict(EXERCISES["case3"], case3(waste, outside))
    assert found.points == 3
    (finding,) = [f for one in found.outcomes for f in one.findings if isinstance(f, WrongAmount | WrongForm)]
    assert finding == UNKNOWN if waste is unknown else finding.what == "flops"
