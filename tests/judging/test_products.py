"""Of which blocks a wrong product is made, and which rows of an argument were picked."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.exercises import Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge

ROWS = P("x", None)


def heard(reference, arrays, out, answer):
    exercise = ProgramExercise("products_in_a_test", points=1, reference=reference, mesh_shapes=((4,),))

    @exercise.cases
    def _(draw):
        return Case(arrays(draw), draw.mesh("x"), out)

    cases = exercise.draw_cases(0)
    return judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words


def ring(block_of):
    """A product whose second factor goes round; `block_of(me, step)` numbers the columns that it meets."""

    def answer(a, b, *, mesh):
        def on_device(a, b):
            me, width, total = lax.axis_index("x"), b.shape[0], 0
            for step in range(4):
                total += lax.dynamic_slice_in_dim(a, block_of(me, step) % 4 * width, width, axis=1) @ b
                b = lax.ppermute(b, "x", [(d, (d + 1) % 4) for d in range(4)])
            return total

        return jax.shard_map(on_device, mesh=mesh, in_specs=(ROWS, ROWS), out_specs=ROWS)(a, b)

    return answer


def of_rows(draw):
    return {"a": draw.array(16, 16, spec=ROWS), "b": draw.array(16, 12, spec=ROWS)}


@pytest.mark.parametrize(
    ("block_of", "words"),
    [
        (lambda me, step: me - 2 * step, "rows [4:8] of `b` are multiplied with columns [8:12] of `a`, and 1 more"),
        (lambda me, step: 3 * step, "rows [4:8] of `b` are multiplied with columns [12:16] of `a`"),
    ],
)
def test_what_is_multiplied_with_what_is_told(block_of, words):
    said = heard(lambda a, b: a @ b, of_rows, ROWS, ring(block_of))
    assert ("In the result on device" in said) == bool(words) and "are multiplied with columns" in said


def test_for_whose_rows_is_worked_is_told():
    def answer(a, b, *, mesh):
        def on_device(a, b):
            height = a.shape[0] // 4
            total = 0
            for step in range(4):
                block = (lax.axis_index("x") - 2 * step) % 4
                part = lax.dynamic_slice_in_dim(a, block * height, height, axis=0) @ b
                total = lax.ppermute(total + part, "x", [(d, (d - 1) % 4) for d in range(4)])
            return total

        return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), ROWS), out_specs=ROWS)(a, b)

    def of_columns(draw):
        return {"a": draw.array(16, 16, spec=P(None, "x")), "b": draw.array(16, 12, spec=ROWS)}

    said = heard(lambda a, b: a @ b, of_columns, ROWS, answer)
    assert "which is rows [0:4], what comes of columns" in said and "For whose rows does each device work" in said


@pytest.mark.parametrize(
    ("pick", "words"),
    [
        (lambda ids, n: ids * ids % n, "What says which row is picked?"),
        (lambda ids, n: ids // 2, "a row of `table`, but not always the one due."),
    ],
)
def test_rows_that_are_picked_wrongly_are_told(pick, words):
    def arrays(draw):
        ids = np.arange(8, dtype=np.int32) * 3 % 16
        return {"table": draw.array(16, 5, spec=P()), "ids": Array(ids, P("x"))}

    said = heard(lambda table, ids: table[ids], arrays, ROWS, lambda table, ids, *, mesh: table[pick(ids, 16)])
    assert words in said


def test_of_a_product_that_is_off_by_what_is_no_product_nothing_is_said():
    said = heard(
        lambda a, b: a @ b,
        of_rows,
        ROWS,
        lambda a, b, *, mesh: jnp.sin(a) @ b,
    )
    assert "are multiplied with columns" not in said and "is a row of" not in said
