"""§ 6–10, the programs: the sharded matmuls that need a collective, written with shard_map.

The notation is that of the lesson: A[I_X, J] is cut along I over mesh axis x, J is whole everywhere.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, Draw, Flops, ProgramExercise
from grader.lessons.shared import bytes_sent, device_map, to_send


def _matmul(a, b):
    return a @ b


# Case 2: A[I, J_X] · B[J, K] → C[I, K]. One operand is cut along the contracting dimension.

CASE2 = (P(None, "x"), P())


def _case2(draw: Draw, i: int, j: int, k: int, budget) -> Case:
    mesh = draw.mesh("x", "y")
    a, b = to_send(draw, i, j, spec=CASE2[0]), draw.array(j, k, spec=CASE2[1])
    return Case({"a": a, "b": b}, mesh, out=P(), limits=[BytesSent(budget(i, j, k, mesh["x"]))])


case2_gather = ProgramExercise("case2_gather", points=4, reference=_matmul)


@case2_gather.cases
def _(draw):
    i, j, k = draw.lengths(3, divisible_by=8)
    return _case2(draw, i, j, k, lambda i, j, k, n: bytes_sent("all_gather", i * j // n, n))


@case2_gather.mistake
def no_gather(a, b, *, mesh):
    """Each device multiplied the slice of A that it holds by the whole of B. The slice has only a part of
    the columns, B has all the rows: they cannot be multiplied. What must a device have before it can?"""
    return device_map(lambda a, b: a @ b, mesh, CASE2, P())(a, b)


@case2_gather.mistake
def gathered_rows(a, b, *, mesh):
    """The blocks of A were gathered along dimension 0, one under the other. Along which dimension was A cut?
    That is the one along which its blocks belong side by side."""
    return device_map(lambda a, b: lax.all_gather(a, "x", axis=0, tiled=True) @ b, mesh, CASE2, P())(a, b)


@case2_gather.mistake
def gathered_untiled(a, b, *, mesh):
    """The shape is right, but entries of different devices ended up mixed, as where stacked blocks are reshaped:
    reshape reads row by row. `tiled=True` puts the blocks side by side along the dimension you name."""

    def body(a, b):
        return lax.all_gather(a, "x").reshape(a.shape[0], -1) @ b

    return device_map(body, mesh, CASE2, P())(a, b)


@case2_gather.mistake
def gathered_then_summed(a, b, *, mesh):
    """Every entry is n times what it should be, with n devices along x. Where a device has all of A its product is
    already whole, and to add up those of all devices counts it once per device. Which collective is one too many?"""

    def body(a, b):
        return lax.psum(lax.all_gather(a, "x", axis=1, tiled=True) @ b, "x")

    return device_map(body, mesh, CASE2, P())(a, b)


@case2_gather.mistake
def left_to_in_specs(a, b, *, mesh):
    """The compiler quietly gathers A before your function begins, as it does where in_specs say that A comes whole.
    Describe the operands as they are laid out, and write the gather yourself."""
    return device_map(lambda a, b: a @ b, mesh, (P(), P()), P())(a, b)


@case2_gather.mistake
def sliced_at_the_index(a, b, *, mesh):
    """The slice of B starts at the device's number. Device 1's slice of A is the *block* number 1: where
    does that block begin, counted in rows of B?"""
    return device_map(_sliced_at_index, mesh, CASE2, P())(a, b)


def _sliced_at_index(a, b):
    rows = lax.dynamic_slice_in_dim(b, lax.axis_index("x"), a.shape[1])
    return lax.psum(a @ rows, "x")


# The other way: every device slices its rows of B and the partial products are added up. Which way is
# cheaper depends on the shapes: gathering A sends (n-1)/n·IJ, adding up C sends 2(n-1)/n·IK elements.

case2_cheapest = ProgramExercise("case2_cheapest", points=6, reference=_matmul, against_compiler=True)


@case2_cheapest.cases
def _(draw):
    def cheaper(i, j, k, n):
        return min(bytes_sent("all_gather", i * j // n, n), bytes_sent("all_reduce", i * k, n))

    (unit,) = draw.lengths(1, divisible_by=8)
    # Few columns of A; a few less than twice those of C; more than twice those of C, and on two devices so in a block,
    # too; a few more than twice. With many rows and with few, for how many there are decides nothing.
    shapes = (unit + 8, unit, 2 * unit + 8), (12 * unit, 8 * unit - 8, 4 * unit), (8, 5 * unit, unit)
    for i, j, k in (*shapes, (8, 8 * unit + 8, 4 * unit)):
        yield _case2(draw, i, j, k, cheaper)


def _gather_a(a, b):
    return lax.all_gather(a, "x", axis=1, tiled=True) @ b


def _reduce_c(a, b):
    block = a.shape[1]
    mine = lax.dynamic_slice_in_dim(b, block * lax.axis_index("x"), block)
    return lax.psum(jnp.matmul(a, mine), "x")


@case2_cheapest.mistake
def always_gathers(a, b, *, mesh):
    """Gathering A is the cheaper way only while A is small. Here A has more than twice the columns of C.
    Whole shapes are known when the function is traced, so a Python `if` may choose by them: is it J that is compared,
    or a block's part of J?"""
    return device_map(_gather_a, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def always_reduces(a, b, *, mesh):
    """Adding up C is the cheaper way only while C is small. Here gathering A sends less. Shapes are known
    when the function is traced, so a Python `if` may choose."""
    return device_map(_reduce_c, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def forgot_that_reducing_costs_twice(a, b, *, mesh):
    """Did you compare the sizes of A and C? An all-reduce is a reduce-scatter *and* an all-gather, so it sends twice
    what a gather of as many entries does. From which shapes on is the all-reduce cheaper?"""
    return device_map(_gather_a if a.shape[1] < b.shape[1] else _reduce_c, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def compared_the_local_block(a, b, *, mesh):
    """Inside shard_map `a.shape` is that of the block, a fraction of A. What travels in an all-gather is the
    whole of A but for the device's own block. Compare with the size of the gathered result."""
    small = a.shape[1] // mesh.shape["x"] < 2 * b.shape[1]
    return device_map(_gather_a if small else _reduce_c, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def put_b_on_the_bill(a, b, *, mesh):
    """Did the rows of C, or the size of B, decide? B is whole on every device and is not sent, and I is a factor of
    both A and C: what is left to be compared?"""
    i, (j, k) = a.shape[0], b.shape
    return device_map(_gather_a if i * j <= j * k + i * k else _reduce_c, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def sliced_b_at_the_index(a, b, *, mesh):
    """The slice of B starts at the device's number. Device 1's slice of A is the *block* number 1: where
    does that block begin, counted in rows of B?"""
    return device_map(_sliced_at_index, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def sliced_without_sum(a, b, *, mesh):
    """Each device has its slice of A times the rows of B that match: that is one term of the sum over J. Which
    collective adds the terms of all devices?"""

    def body(a, b):
        block = a.shape[1]
        return a @ lax.dynamic_slice_in_dim(b, block * lax.axis_index("x"), block)

    return device_map(body, mesh, CASE2, P())(a, b)


# Case 3: A[I, J_X] · B[J_X, K] → C[I, K]. Both operands are cut along the contracting dimension.

CASE3 = (P(None, "x"), P("x", None))


def _case3(draw: Draw, out: P, kind: str) -> Case:
    mesh = draw.mesh("x", "y")
    i, k, j = sorted(draw.lengths(3, divisible_by=8))  # J is longest: to gather A and B costs more than to add up C
    a, b = to_send(draw, i, j, spec=CASE3[0]), draw.array(j, k, spec=CASE3[1])
    return Case(
        {"a": a, "b": b},
        mesh,
        out,
        limits=[BytesSent(bytes_sent(kind, i * k, mesh["x"])), Flops(2 * i * j * k // mesh["x"])],
    )


case3 = ProgramExercise("case3", points=4, reference=_matmul, against_compiler=True)


@case3.cases
def _(draw):
    return _case3(draw, P(), "all_reduce")


@case3.mistake
def forgot_psum(a, b, *, mesh, check_vma=False):
    """Each device multiplied its own slice of J, and what the devices have of different slices was never added up:
    every entry of C is one part of a sum. Which collective adds the parts up, and over which axis?"""
    return device_map(jnp.matmul, mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def averaged(a, b, *, mesh, check_vma=False):
    """The result is an n-th of what it should be, with n devices along x, as where the parts are averaged. They are
    terms of one sum, not several estimates of the same number: which collective adds without dividing?"""
    return device_map(lambda a, b: lax.pmean(a @ b, "x"), mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def summed_over_the_other_axis(a, b, *, mesh, check_vma=False):
    """The sum runs over `y`, along which the devices hold the same parts. Along which axis of the mesh was J
    cut? There are the parts that differ."""
    return device_map(lambda a, b: lax.psum(a @ b, "y"), mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def summed_over_both_axes(a, b, *, mesh, check_vma=False):
    """Devices that differ only in `y` hold the same part: if the sum runs over all devices, each part counts once for
    every one of them. (With the check on, JAX refuses that.) Over which axis do the parts differ?"""
    return device_map(lambda a, b: lax.psum(a @ b, ("x", "y")), mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def summed_the_inputs(a, b, *, mesh, check_vma=False):
    """The slices of A were added to one another, and those of B, before they were multiplied. The sum over J
    is a sum of *products*: multiply first, add afterwards."""

    def body(a, b):
        return lax.psum(a, "x") @ lax.psum(b, "x")

    return device_map(body, mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def gathered_everything(a, b, *, mesh):
    """Both operands were gathered and the whole product computed on every device. The slices that a device
    already holds can be multiplied as they are; only the product needs to travel."""

    def body(a, b):
        columns = lax.all_gather(a, "x", axis=1, tiled=True)
        return columns @ lax.all_gather(b, "x", axis=0, tiled=True)

    return device_map(body, mesh, CASE3, P())(a, b)


# A layer on top: relu(A · B + bias). What is not linear, and what counts once, comes after the sum.

case3_layer = ProgramExercise("case3_layer", points=4, reference=lambda a, b, bias: (a @ b + bias).clip(0))
LAYER = (*CASE3, P())


@case3_layer.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j, k = draw.lengths(3, divisible_by=8)
    arrays = {
        "a": to_send(draw, i, j, spec=LAYER[0]),
        "b": draw.array(j, k, spec=LAYER[1]),
        "bias": draw.array(k, spec=LAYER[2]),
    }
    return Case(
        arrays,
        mesh,
        P(),
        limits=[BytesSent(bytes_sent("all_reduce", i * k, mesh["x"])), Flops(2 * i * j * k // mesh["x"])],
    )


@case3_layer.mistake
def bias_inside_the_sum(a, b, bias, *, mesh, check_vma=False):
    """The bias was added to each part before the parts were summed, so it counts once per device. Where in
    the program is C whole?"""

    def body(a, b, bias):
        return jax.nn.relu(lax.psum(a @ b + bias, "x"))

    return device_map(body, mesh, LAYER, P(), check_vma)(a, b, bias)


@case3_layer.mistake
def relu_before_the_sum(a, b, bias, *, mesh, check_vma=False):
    """relu was applied to the parts. The relu of a sum is not the sum of relus: wait until the sum is
    whole."""

    def body(a, b, bias):
        return lax.psum(jax.nn.relu(a @ b), "x") + bias

    return device_map(body, mesh, LAYER, P(), check_vma)(a, b, bias)


@case3_layer.mistake
def relu_and_bias_before_the_sum(a, b, bias, *, mesh, check_vma=False):
    """Bias and relu were applied to the parts, and the sum came last. What is not linear, and what should
    count once, belongs after the sum."""

    def body(a, b, bias):
        return lax.psum(jax.nn.relu(a @ b + bias), "x")

    return device_map(body, mesh, LAYER, P(), check_vma)(a, b, bias)


@case3_layer.mistake
def layer_without_sum(a, b, bias, *, mesh, check_vma=False):
    """Bias and relu were applied to one part of the sum over J, on each device to another. Add the parts up
    first."""

    def body(a, b, bias):
        return jax.nn.relu(a @ b + bias)

    return device_map(body, mesh, LAYER, P(), check_vma)(a, b, bias)


# The same sum, but each device keeps only its share: C[I_X, K] or C[I, K_X].

case3_scatter_rows = ProgramExercise("case3_scatter_rows", points=4, reference=_matmul)
case3_scatter_columns = ProgramExercise("case3_scatter_columns", points=4, reference=_matmul)


@case3_scatter_rows.cases
def _(draw):
    return _case3(draw, P("x", None), "reduce_scatter")


@case3_scatter_columns.cases
def _(draw):
    return _case3(draw, P(None, "x"), "reduce_scatter")


@case3_scatter_rows.mistake
def rows_sliced_after_psum(a, b, *, mesh, check_vma=False):
    """The whole of C was summed on every device, and all but a share thrown away. A reduce-scatter gives each
    device its share of the sum and sends half as much."""

    def body(a, b):
        c = lax.psum(a @ b, "x")
        rows = c.shape[0] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(c, rows * lax.axis_index("x"), rows, axis=0)

    return device_map(body, mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_rows.mistake
def rows_untiled(a, b, *, mesh, check_vma=False):
    """Without `tiled=True`, psum_scatter wants the scattered dimension to be exactly as long as the axis has
    devices, and drops it. Tiled, it cuts the dimension into equal blocks and keeps it."""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=0)

    return device_map(body, mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_rows.mistake
def rows_scattered_as_columns(a, b, *, mesh, check_vma=False):
    """The sum was scattered along dimension 1, and out_specs put the blocks one under the other. Each device
    should keep some *rows*: which dimension is that?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return device_map(body, mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_rows.mistake
def rows_stacked_from_psum(a, b, *, mesh, check_vma=False):
    """Every device holds the whole of C, and out_specs stack these copies one under the other. out_specs say
    how blocks are put together; they do not cut. Which collective adds up *and* deals out?"""
    return device_map(lambda a, b: lax.psum(a @ b, "x"), mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_rows.mistake
def rows_without_sum(a, b, *, mesh, check_vma=False):
    """Every device's part of the sum was stacked under the next one's. The parts must be added, and only
    then is there something to share out."""
    return device_map(jnp.matmul, mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_columns.mistake
def columns_sliced_after_psum(a, b, *, mesh, check_vma=False):
    """The whole of C was summed on every device, and all but some columns thrown away. A reduce-scatter gives
    each device its share of the sum and sends half as much."""

    def body(a, b):
        c = lax.psum(a @ b, "x")
        width = c.shape[1] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(c, width * lax.axis_index("x"), width, axis=1)

    return device_map(body, mesh, CASE3, P(None, "x"), check_vma)(a, b)


@case3_scatter_columns.mistake
def columns_untiled(a, b, *, mesh, check_vma=False):
    """Without `tiled=True`, psum_scatter wants dimension 1 to be exactly as long as the axis has devices, and
    drops it. Tiled, it cuts the dimension into equal blocks and keeps it."""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=1)

    return device_map(body, mesh, CASE3, P(None, "x"), check_vma)(a, b)


@case3_scatter_columns.mistake
def columns_scattered_as_rows(a, b, *, mesh, check_vma=False):
    """The sum was scattered along dimension 0 (the default), and out_specs put the blocks side by side. Each
    device should keep some *columns*: which dimension is that?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)

    return device_map(body, mesh, CASE3, P(None, "x"), check_vma)(a, b)


@case3_scatter_columns.mistake
def columns_without_sum(a, b, *, mesh, check_vma=False):
    """Every device's part of the sum was put beside the next one's. The parts must be added, and only then is
    there something to share out."""
    return device_map(jnp.matmul, mesh, CASE3, P(None, "x"), check_vma)(a, b)


# Case 4: A[I_X, J] · B[J, K_X]. The result cannot be cut over x twice, so one operand must be gathered.

CASE4 = (P("x", None), P(None, "x"))


def _case4(draw: Draw, out: P, gathered: str) -> Case:
    mesh = draw.mesh("x", "y")
    i, j, k = draw.lengths(3, divisible_by=8)
    a, b = to_send(draw, i, j, spec=CASE4[0]), to_send(draw, j, k, spec=CASE4[1])
    size = {"a": i * j, "b": j * k}[gathered]
    return Case(
        {"a": a, "b": b},
        mesh,
        out,
        limits=[BytesSent(bytes_sent("all_gather", size // mesh["x"], mesh["x"])), Flops(2 * i * j * k // mesh["x"])],
    )


case4_gather_a = ProgramExercise("case4_gather_a", points=4, reference=_matmul)
case4_gather_b = ProgramExercise("case4_gather_b", points=4, reference=_matmul)


@case4_gather_a.cases
def _(draw):
    return _case4(draw, P(None, "x"), "a")


@case4_gather_b.cases
def _(draw):
    return _case4(draw, P("x", None), "b")


def _gather_both(a, b):
    rows = lax.all_gather(a, "x", axis=0, tiled=True)
    return rows @ lax.all_gather(b, "x", axis=1, tiled=True)


@case4_gather_a.mistake
def local_blocks_side_by_side(a, b, *, mesh, check_vma=False):
    """Each device multiplied its rows of A by its columns of B: that is one block on the diagonal of C, and
    only those were put together. The blocks off the diagonal need rows that other devices hold."""
    return device_map(jnp.matmul, mesh, CASE4, P(None, "x"), check_vma)(a, b)


@case4_gather_a.mistake
def same_axis_twice_a(a, b, *, mesh, check_vma=False):
    """out_specs use the axis x for both dimensions. One axis can cut an array only once: with n devices along
    it there are n blocks to hold, not n times n. Which dimension stays whole?"""
    return device_map(jnp.matmul, mesh, CASE4, P("x", "x"), check_vma)(a, b)


@case4_gather_a.mistake
def gathered_a_along_columns(a, b, *, mesh, check_vma=False):
    """The blocks of A were gathered along dimension 1, side by side. A is cut along its rows: along which
    dimension do its blocks belong?"""

    def body(a, b):
        return lax.all_gather(a, "x", axis=1, tiled=True) @ b

    return device_map(body, mesh, CASE4, P(None, "x"), check_vma)(a, b)


@case4_gather_a.mistake
def gathered_the_other_operand_b(a, b, *, mesh, check_vma=False):
    """B was gathered, so every device has its rows of C and all columns: C[I_X, K]. What was wanted is
    C[I, K_X]. Which operand must be whole for that?"""

    def body(a, b):
        return a @ lax.all_gather(b, "x", axis=1, tiled=True)

    return device_map(body, mesh, CASE4, P("x", None), check_vma)(a, b)


@case4_gather_a.mistake
def gathered_both_then_cut_columns(a, b, *, mesh):
    """Both operands were gathered and every device computed the whole of C to keep its columns. It holds the
    columns of B that these need: what does it lack?"""

    def body(a, b):
        width = b.shape[1]
        return lax.dynamic_slice_in_dim(_gather_both(a, b), width * lax.axis_index("x"), width, axis=1)

    return device_map(body, mesh, CASE4, P(None, "x"))(a, b)


@case4_gather_a.mistake
def gathered_the_diagonal(a, b, *, mesh, check_vma=False):
    """The products were gathered, and not A. But a device has multiplied its own rows of A by its own columns of B:
    those are the blocks on the diagonal of C, and all devices now hold them. What must a device have of A *before*
    it multiplies?"""

    def body(a, b):
        return lax.all_gather(a @ b, "x", axis=0, tiled=True)

    return device_map(body, mesh, CASE4, P(None, "x"), check_vma)(a, b)


@case4_gather_b.mistake
def gathered_the_diagonal_in_a_row(a, b, *, mesh, check_vma=False):
    """The products were gathered, and not B. But a device has multiplied its own rows of A by its own columns of B:
    those are the blocks on the diagonal of C, and all devices now hold them. What must a device have of B *before*
    it multiplies?"""

    def body(a, b):
        return lax.all_gather(a @ b, "x", axis=1, tiled=True)

    return device_map(body, mesh, CASE4, P("x", None), check_vma)(a, b)


@case4_gather_b.mistake
def local_blocks_in_a_column(a, b, *, mesh, check_vma=False):
    """Each device multiplied its rows of A by its columns of B: that is one block on the diagonal of C, and
    only those were put together. The blocks off the diagonal need columns that other devices hold."""
    return device_map(jnp.matmul, mesh, CASE4, P("x", None), check_vma)(a, b)


@case4_gather_b.mistake
def same_axis_twice_b(a, b, *, mesh, check_vma=False):
    """out_specs use the axis x for both dimensions of C. One axis can cut an array only once. Which dimension
    of C stays whole here?"""
    return device_map(jnp.matmul, mesh, CASE4, P("x", "x"), check_vma)(a, b)


@case4_gather_b.mistake
def gathered_b_along_rows(a, b, *, mesh, check_vma=False):
    """The blocks of B were gathered along dimension 0, one under the other. B is cut along its columns: along
    which dimension do its blocks belong?"""

    def body(a, b):
        return a @ lax.all_gather(b, "x", axis=0, tiled=True)

    return device_map(body, mesh, CASE4, P("x", None), check_vma)(a, b)


@case4_gather_b.mistake
def gathered_the_other_operand_a(a, b, *, mesh, check_vma=False):
    """A was gathered, so every device has its columns of C and all rows: C[I, K_X]. What was wanted is
    C[I_X, K]. Which operand must be whole for that?"""

    def body(a, b):
        return lax.all_gather(a, "x", axis=0, tiled=True) @ b

    return device_map(body, mesh, CASE4, P(None, "x"), check_vma)(a, b)


@case4_gather_b.mistake
def gathered_both_then_cut_rows(a, b, *, mesh):
    """Both operands were gathered and every device computed the whole of C to keep its rows. It holds the rows
    of A that these need: what does it lack?"""

    def body(a, b):
        rows = a.shape[0]
        return lax.dynamic_slice_in_dim(_gather_both(a, b), rows * lax.axis_index("x"), rows, axis=0)

    return device_map(body, mesh, CASE4, P("x", None))(a, b)


# Two mesh axes at once: A[I_X, J_Y] · B[J_Y, K] → C[I_X, K], or C[I_X, K_Y].

TWO = (P("x", "y"), P("y", None))


def _two_axis(draw: Draw, out: P, kind: str) -> Case:
    mesh = draw.mesh("x", "y")
    i, j, k = draw.lengths(3, divisible_by=8)
    a, b = to_send(draw, i, j, spec=TWO[0]), draw.array(j, k, spec=TWO[1])
    return Case(
        {"a": a, "b": b},
        mesh,
        out,
        limits=[
            BytesSent(bytes_sent(kind, i // mesh["x"] * k, mesh["y"])),
            Flops(2 * i * j * k // (mesh["x"] * mesh["y"])),
        ],
    )


two_axis = ProgramExercise("two_axis", points=4, reference=_matmul)
two_axis_scattered = ProgramExercise("two_axis_scattered", points=4, reference=_matmul)


@two_axis.cases
def _(draw):
    return _two_axis(draw, P("x", None), "all_reduce")


@two_axis_scattered.cases
def _(draw):
    return _two_axis(draw, P("x", "y"), "reduce_scatter")


@two_axis.mistake
def two_axis_without_sum(a, b, *, mesh, check_vma=False):
    """The devices along y hold parts of the sum over J, and these were added over another axis, or not at all. Which
    collective, over which axis, makes the parts a sum?"""
    return device_map(jnp.matmul, mesh, TWO, P("x", None), check_vma)(a, b)


@two_axis.mistake
def summed_rows_too(a, b, *, mesh, check_vma=False):
    """The sum runs over both axes. Along y the devices hold parts of the same sum; along x they hold different
    rows of C, which must not be added."""
    return device_map(lambda a, b: lax.psum(a @ b, ("x", "y")), mesh, TWO, P("x", None), check_vma)(a, b)


@two_axis.mistake
def summed_over_x(a, b, *, mesh, check_vma=False):
    """The sum runs over x, along which the *rows* of C are dealt out. Along which axis is J cut?"""
    return device_map(lambda a, b: lax.psum(a @ b, "x"), mesh, TWO, P("x", None), check_vma)(a, b)


@two_axis.mistake
def two_axis_gathered(a, b, *, mesh):
    """A and B were gathered along y, and every device there computed the same rows of C. The blocks that a
    device holds already match: multiply them, and let only the product travel."""

    def body(a, b):
        whole_rows = lax.all_gather(a, "y", axis=1, tiled=True)
        return whole_rows @ lax.all_gather(b, "y", axis=0, tiled=True)

    return device_map(body, mesh, TWO, P("x", None))(a, b)


@two_axis_scattered.mistake
def scattered_rows(a, b, *, mesh, check_vma=False):
    """The sum was scattered along dimension 0: each device kept a share of its *rows*, and out_specs laid them
    out as if they were columns. K is to be cut over y: which dimension is K?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)

    return device_map(body, mesh, TWO, P("x", "y"), check_vma)(a, b)


@two_axis_scattered.mistake
def scattered_over_x(a, b, *, mesh, check_vma=False):
    """The sum runs over x, along which the devices hold different rows of C. Along which axis are the parts
    of one sum?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return device_map(body, mesh, TWO, P("x", "y"), check_vma)(a, b)


@two_axis_scattered.mistake
def two_axis_sliced_after_psum(a, b, *, mesh, check_vma=False):
    """Every device along y summed whole rows and threw all but its columns away. A reduce-scatter sends half as
    much."""

    def body(a, b):
        c = lax.psum(a @ b, "y")
        width = c.shape[1] // mesh.shape["y"]
        return lax.dynamic_slice_in_dim(c, width * lax.axis_index("y"), width, axis=1)

    return device_map(body, mesh, TWO, P("x", "y"), check_vma)(a, b)


@two_axis_scattered.mistake
def two_axis_stacked_from_psum(a, b, *, mesh, check_vma=False):
    """Every device along y holds the same whole rows of C, and out_specs put these copies side by side. out_specs
    say how blocks are put together; they do not cut."""
    return device_map(lambda a, b: lax.psum(a @ b, "y"), mesh, TWO, P("x", "y"), check_vma)(a, b)
