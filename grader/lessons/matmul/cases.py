"""§ 4–10, the programs: the sharded matmuls that need a collective, written with shard_map.

The notation is that of the lesson: in A[I_X, J], I is sharded over mesh axis x, and every device has all of J.
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


# Case 2: A[I, J_X] · B[J, K] → C[I, K]. One operand is sharded along the contracted dimension.

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
    """Each device multiplied its columns of A by all of B. It has only some of the columns of A, but all of the rows of
    B, so they can't be multiplied. What does a device need before it multiplies?"""
    return device_map(lambda a, b: a @ b, mesh, CASE2, P())(a, b)


@case2_gather.mistake
def gathered_rows(a, b, *, mesh):
    """The blocks of A were gathered along dimension 0, one below the other. But A is sharded by columns. Along which
    dimension are its blocks joined?"""
    return device_map(lambda a, b: lax.all_gather(a, "x", axis=0, tiled=True) @ b, mesh, CASE2, P())(a, b)


@case2_gather.mistake
def gathered_untiled(a, b, *, mesh):
    """The shape is correct, but elements from different devices are mixed. That happens when stacked blocks are
    reshaped, because `reshape` reads row by row. Which argument of `all_gather` concatenates the blocks?"""

    def body(a, b):
        return lax.all_gather(a, "x").reshape(a.shape[0], -1) @ b

    return device_map(body, mesh, CASE2, P())(a, b)


@case2_gather.mistake
def gathered_without_to(a, b, *, mesh):
    """A was gathered correctly, but JAX couldn't tell that the result is the same on all devices, as `out_specs`
    declared. Which argument of `all_gather` says so?"""
    return device_map(lambda a, b: lax.all_gather(a, "x", axis=1, tiled=True) @ b, mesh, CASE2, P(), True)(a, b)


@case2_gather.mistake
def gathered_over_y(a, b, *, mesh):
    """A was gathered over `y`, along which all devices hold the same columns. Over which axis is J sharded?"""
    return device_map(lambda a, b: lax.all_gather(a, "y", axis=1, tiled=True) @ b, mesh, CASE2, P())(a, b)


@case2_gather.mistake
def gathered_the_replicated_operand(a, b, *, mesh):
    """B was gathered, but every device already had all of B. Which operand has only part of J on each device?"""
    return device_map(lambda a, b: a @ lax.all_gather(b, "x", axis=0, tiled=True), mesh, CASE2, P())(a, b)


@case2_gather.mistake
def gathered_then_summed(a, b, *, mesh):
    """Every element is n times too large, with n devices along x. Once a device has all of A, its matmul is complete,
    and summing over devices counts it once per device. Which collective is redundant?"""

    def body(a, b):
        return lax.psum(lax.all_gather(a, "x", axis=1, tiled=True) @ b, "x")

    return device_map(body, mesh, CASE2, P())(a, b)


@case2_gather.mistake
def left_to_in_specs(a, b, *, mesh):
    """The `in_specs` declared that A is replicated, so the compiler silently gathered A before your function began.
    Which `in_specs` describe the shardings with which A and B arrive?"""
    return device_map(lambda a, b: a @ b, mesh, (P(), P()), P())(a, b)


@case2_gather.mistake
def sliced_at_the_index(a, b, *, mesh):
    """The slice of B started at the device's index. Device 1 has *block* number 1 of the columns of A. At which row of
    B does the matching block begin?"""
    return device_map(_sliced_at_index, mesh, CASE2, P())(a, b)


def _sliced_at_index(a, b):
    rows = lax.dynamic_slice_in_dim(b, lax.axis_index("x"), a.shape[1])
    return lax.psum(a @ rows, "x")


# The other way: every device slices its rows of B, and the partial sums are summed over devices. Which way is
# cheaper depends on the shapes: gathering A sends (n-1)/n·IJ elements, and summing C sends 2(n-1)/n·IK.

case2_cheapest = ProgramExercise("case2_cheapest", points=6, reference=_matmul, against_compiler=True)


@case2_cheapest.cases
def _(draw):
    def cheaper(i, j, k, n):
        return min(bytes_sent("all_gather", i * j // n, n), bytes_sent("all_reduce", i * k, n))

    (unit,) = draw.lengths(1, divisible_by=8)
    # Few columns of A; slightly fewer than twice those of C; more than twice those of C, and on two devices also in a
    # block; slightly more than twice. With many rows where summing C is cheaper, and with few, for rows decide nothing.
    shapes = (unit + 8, unit, 2 * unit + 8), (12 * unit, 8 * unit - 8, 4 * unit), (12 * unit, 5 * unit, unit)
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
    """The program gathered A although summing C sends less here, because A has more than twice as many columns as C.
    Which two lengths does your program compare, and are they those of the full arrays or of blocks?"""
    return device_map(_gather_a, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def always_reduces(a, b, *, mesh):
    """The program summed C although gathering A sends less here. Full shapes are known when the function is traced.
    Which Python `if` chooses between the two ways?"""
    return device_map(_reduce_c, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def forgot_that_reducing_costs_twice(a, b, *, mesh):
    """The program chose as if summing C sent no more than gathering an array of that size. In fact it sends twice as
    much, because an all-reduce is a reduce-scatter and then an all-gather. From which shapes on is it cheaper?"""
    return device_map(_gather_a if a.shape[1] < b.shape[1] else _reduce_c, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def compared_the_local_block(a, b, *, mesh):
    """The program chose by the shape of a block. Inside `shard_map`, `a.shape` is one device's block, but an all-gather
    sends all blocks except one. What is the size of the gathered A?"""
    small = a.shape[1] // mesh.shape["x"] < 2 * b.shape[1]
    return device_map(_gather_a if small else _reduce_c, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def put_b_on_the_bill(a, b, *, mesh):
    """The rows of C or the size of B decided which way was chosen. B is on every device and isn't sent, and I is a
    factor of both A and C. Which two lengths are left to compare?"""
    i, (j, k) = a.shape[0], b.shape
    return device_map(_gather_a if i * j <= j * k + i * k else _reduce_c, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def sliced_b_at_the_index(a, b, *, mesh):
    """The slice of B started at the device's index. Device 1 has *block* number 1 of the columns of A. At which row of
    B does the matching block begin?"""
    return device_map(_sliced_at_index, mesh, CASE2, P())(a, b)


@case2_cheapest.mistake
def sliced_without_sum(a, b, *, mesh):
    """Each device multiplied its columns of A by the matching rows of B. That is one partial sum over J. Which
    collective completes it?"""

    def body(a, b):
        block = a.shape[1]
        return a @ lax.dynamic_slice_in_dim(b, block * lax.axis_index("x"), block)

    return device_map(body, mesh, CASE2, P())(a, b)


# Case 3: A[I, J_X] · B[J_X, K] → C[I, K]. Both operands are sharded along the contracted dimension.

CASE3 = (P(None, "x"), P("x", None))


def _case3(draw: Draw, out: P, kind: str) -> Case:
    mesh = draw.mesh("x", "y")
    i, k, j = sorted(draw.lengths(3, divisible_by=8))  # J is longest: gathering A and B sends more than summing C
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
    """Every element of C was a partial sum: each device multiplied its own part of J, and the results were never summed
    over devices. Which collective does that, and over which axis?"""
    return device_map(jnp.matmul, mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def averaged(a, b, *, mesh, check_vma=False):
    """The result was n times too small, with n devices along x. That happens when partial sums are averaged. They are
    terms of one sum, not estimates of the same number. Which collective sums without dividing?"""
    return device_map(lambda a, b: lax.pmean(a @ b, "x"), mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def summed_over_the_other_axis(a, b, *, mesh, check_vma=False):
    """The sum ran over `y`. Along `y`, all devices hold the same partial sum. Over which axis is J sharded?"""
    return device_map(lambda a, b: lax.psum(a @ b, "y"), mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def summed_over_both_axes(a, b, *, mesh, check_vma=False):
    """The sum ran over both axes, so each partial sum was counted once for every device along `y`. (With
    `check_vma=True`, JAX refuses that.) Along which axis do the partial sums differ?"""
    return device_map(lambda a, b: lax.psum(a @ b, ("x", "y")), mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def summed_the_inputs(a, b, *, mesh, check_vma=False):
    """The blocks of A were summed over devices, and those of B, too, before they were multiplied. But the sum over J is
    a sum of *products*. Which operation comes first?"""

    def body(a, b):
        return lax.psum(a, "x") @ lax.psum(b, "x")

    return device_map(body, mesh, CASE3, P(), check_vma)(a, b)


@case3.mistake
def gathered_everything(a, b, *, mesh):
    """Both operands were gathered, and every device computed the full matmul. The blocks that a device already has
    match along J. What is the smallest array that you can send instead?"""

    def body(a, b):
        columns = lax.all_gather(a, "x", axis=1, tiled=True)
        return columns @ lax.all_gather(b, "x", axis=0, tiled=True)

    return device_map(body, mesh, CASE3, P())(a, b)


# A layer on top: relu(A · B + bias). The nonlinear function, and the bias, come after the sum.

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
    """The bias was added to each partial sum, so it counted once per device. At which point of the program is C
    complete?"""

    def body(a, b, bias):
        return jax.nn.relu(lax.psum(a @ b + bias, "x"))

    return device_map(body, mesh, LAYER, P(), check_vma)(a, b, bias)


@case3_layer.mistake
def relu_before_the_sum(a, b, bias, *, mesh, check_vma=False):
    """relu was applied to the partial sums. The relu of a sum isn't the sum of the relus. At which point of the program
    is the sum complete?"""

    def body(a, b, bias):
        return lax.psum(jax.nn.relu(a @ b), "x") + bias

    return device_map(body, mesh, LAYER, P(), check_vma)(a, b, bias)


@case3_layer.mistake
def relu_and_bias_before_the_sum(a, b, bias, *, mesh, check_vma=False):
    """The bias and relu were applied to the partial sums, and the sum came last. A nonlinear function needs the
    complete sum, and a bias should count only once. What has to come first?"""

    def body(a, b, bias):
        return lax.psum(jax.nn.relu(a @ b + bias), "x")

    return device_map(body, mesh, LAYER, P(), check_vma)(a, b, bias)


@case3_layer.mistake
def layer_without_sum(a, b, bias, *, mesh, check_vma=False):
    """The bias and relu were applied to a partial sum, a different one on each device along x. Which collective
    completes the sum?"""

    def body(a, b, bias):
        return jax.nn.relu(a @ b + bias)

    return device_map(body, mesh, LAYER, P(), check_vma)(a, b, bias)


# The same sum, but each device keeps only its shard: C[I_X, K] or C[I, K_X].

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
    """Every device received all of C and threw away all but its shard. An all-reduce sends twice as much as needed for
    that. Which collective leaves each device only its shard of the sum?"""

    def body(a, b):
        c = lax.psum(a @ b, "x")
        rows = c.shape[0] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(c, rows * lax.axis_index("x"), rows, axis=0)

    return device_map(body, mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_rows.mistake
def rows_untiled(a, b, *, mesh, check_vma=False):
    """`psum_scatter` was called without `tiled=True`. Then the scattered dimension must be exactly as long as the axis,
    and it disappears. Which form splits the dimension into equal blocks and keeps it?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=0)

    return device_map(body, mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_rows.mistake
def rows_scattered_as_columns(a, b, *, mesh, check_vma=False):
    """The sum was scattered along dimension 1, and `out_specs` put the blocks one below the other. Each device should
    keep some *rows*. Which dimension is that?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return device_map(body, mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_rows.mistake
def rows_stacked_from_psum(a, b, *, mesh, check_vma=False):
    """Every device had all of C, and `out_specs` stacked these replicas one below the other. `out_specs` say how blocks
    are joined, and don't split anything. Which collective sums *and* scatters?"""
    return device_map(lambda a, b: lax.psum(a @ b, "x"), mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_rows.mistake
def rows_without_sum(a, b, *, mesh, check_vma=False):
    """The partial sums of the devices were stacked one below the other, and never summed. Which collective sums them
    and leaves each device its rows?"""
    return device_map(jnp.matmul, mesh, CASE3, P("x", None), check_vma)(a, b)


@case3_scatter_columns.mistake
def columns_sliced_after_psum(a, b, *, mesh, check_vma=False):
    """Every device received all of C and threw away all but its columns. An all-reduce sends twice as much as needed
    for that. Which collective leaves each device only its shard of the sum?"""

    def body(a, b):
        c = lax.psum(a @ b, "x")
        width = c.shape[1] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(c, width * lax.axis_index("x"), width, axis=1)

    return device_map(body, mesh, CASE3, P(None, "x"), check_vma)(a, b)


@case3_scatter_columns.mistake
def columns_untiled(a, b, *, mesh, check_vma=False):
    """`psum_scatter` was called without `tiled=True`. Then dimension 1 must be exactly as long as the axis, and it
    disappears. Which form splits the dimension into equal blocks and keeps it?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=1)

    return device_map(body, mesh, CASE3, P(None, "x"), check_vma)(a, b)


@case3_scatter_columns.mistake
def columns_scattered_as_rows(a, b, *, mesh, check_vma=False):
    """The sum was scattered along dimension 0 (the default), and `out_specs` put the blocks next to each other. Each
    device should keep some *columns*. Which dimension is that?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)

    return device_map(body, mesh, CASE3, P(None, "x"), check_vma)(a, b)


@case3_scatter_columns.mistake
def columns_without_sum(a, b, *, mesh, check_vma=False):
    """The partial sums of the devices were put next to each other, and never summed. Which collective sums them and
    leaves each device its columns?"""
    return device_map(jnp.matmul, mesh, CASE3, P(None, "x"), check_vma)(a, b)


# Case 4: A[I_X, J] · B[J, K_X]. The result can't be sharded over x twice, so one operand has to be gathered.

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
    """Each device multiplied its own rows of A by its own columns of B. That gives one block on the diagonal of C, and
    only those blocks were put together. Which rows of A does a device need for the blocks off the diagonal?"""
    return device_map(jnp.matmul, mesh, CASE4, P(None, "x"), check_vma)(a, b)


@case4_gather_a.mistake
def same_axis_twice_a(a, b, *, mesh, check_vma=False):
    """`out_specs` used the axis `x` for both dimensions of C. An axis can shard only one dimension of an array. Which
    dimension of C stays complete on every device?"""
    return device_map(jnp.matmul, mesh, CASE4, P("x", "x"), check_vma)(a, b)


@case4_gather_a.mistake
def gathered_a_along_columns(a, b, *, mesh, check_vma=False):
    """The blocks of A were gathered along dimension 1, next to each other. But A is sharded by rows. Along which
    dimension are its blocks joined?"""

    def body(a, b):
        return lax.all_gather(a, "x", axis=1, tiled=True) @ b

    return device_map(body, mesh, CASE4, P(None, "x"), check_vma)(a, b)


@case4_gather_a.mistake
def gathered_a_untiled(a, b, *, mesh, check_vma=False):
    """The blocks of A were stacked along a new dimension, so the result has three dimensions. Which argument of
    `all_gather` concatenates them?"""
    return device_map(lambda a, b: lax.all_gather(a, "x") @ b, mesh, CASE4, P(None, "x"), check_vma)(a, b)


@case4_gather_a.mistake
def gathered_the_other_operand_b(a, b, *, mesh, check_vma=False):
    """B was gathered, so every device computed its own rows of C, with all columns: C[I_X, K]. The exercise asks for
    C[I, K_X]. Which operand must be complete for that?"""

    def body(a, b):
        return a @ lax.all_gather(b, "x", axis=1, tiled=True)

    return device_map(body, mesh, CASE4, P("x", None), check_vma)(a, b)


@case4_gather_a.mistake
def gathered_both_then_cut_columns(a, b, *, mesh):
    """Both operands were gathered, and every device computed all of C to keep only its columns. It already has the
    columns of B for these. What is missing?"""

    def body(a, b):
        width = b.shape[1]
        return lax.dynamic_slice_in_dim(_gather_both(a, b), width * lax.axis_index("x"), width, axis=1)

    return device_map(body, mesh, CASE4, P(None, "x"))(a, b)


@case4_gather_a.mistake
def gathered_the_diagonal(a, b, *, mesh, check_vma=False):
    """The products were gathered instead of A. A device had multiplied only its own rows of A by its own columns of B,
    so all devices now have the blocks on the diagonal of C. What does a device need of A *before* it multiplies?"""

    def body(a, b):
        return lax.all_gather(a @ b, "x", axis=0, tiled=True)

    return device_map(body, mesh, CASE4, P(None, "x"), check_vma)(a, b)


@case4_gather_b.mistake
def gathered_the_diagonal_in_a_row(a, b, *, mesh, check_vma=False):
    """The products were gathered instead of B. A device had multiplied only its own rows of A by its own columns of B,
    so all devices now have the blocks on the diagonal of C. What does a device need of B *before* it multiplies?"""

    def body(a, b):
        return lax.all_gather(a @ b, "x", axis=1, tiled=True)

    return device_map(body, mesh, CASE4, P("x", None), check_vma)(a, b)


@case4_gather_b.mistake
def local_blocks_in_a_column(a, b, *, mesh, check_vma=False):
    """Each device multiplied its own rows of A by its own columns of B. That gives one block on the diagonal of C, and
    only those blocks were put together. Which columns of B does a device need for the blocks off the diagonal?"""
    return device_map(jnp.matmul, mesh, CASE4, P("x", None), check_vma)(a, b)


@case4_gather_b.mistake
def same_axis_twice_b(a, b, *, mesh, check_vma=False):
    """`out_specs` used the axis `x` for both dimensions of C. An axis can shard only one dimension of an array. Which
    dimension of C is complete on every device here?"""
    return device_map(jnp.matmul, mesh, CASE4, P("x", "x"), check_vma)(a, b)


@case4_gather_b.mistake
def gathered_b_along_rows(a, b, *, mesh, check_vma=False):
    """The blocks of B were gathered along dimension 0, one below the other. But B is sharded by columns. Along which
    dimension are its blocks joined?"""

    def body(a, b):
        return a @ lax.all_gather(b, "x", axis=0, tiled=True)

    return device_map(body, mesh, CASE4, P("x", None), check_vma)(a, b)


@case4_gather_b.mistake
def gathered_the_other_operand_a(a, b, *, mesh, check_vma=False):
    """A was gathered, so every device computed its own columns of C, with all rows: C[I, K_X]. The exercise asks for
    C[I_X, K]. Which operand must be complete for that?"""

    def body(a, b):
        return lax.all_gather(a, "x", axis=0, tiled=True) @ b

    return device_map(body, mesh, CASE4, P(None, "x"), check_vma)(a, b)


@case4_gather_b.mistake
def gathered_both_then_cut_rows(a, b, *, mesh):
    """Both operands were gathered, and every device computed all of C to keep only its rows. It already has the rows of
    A for these. What is missing?"""

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
    """The devices along `y` hold partial sums over J. These were never summed, or over another axis. Which collective,
    over which axis, completes them?"""
    return device_map(jnp.matmul, mesh, TWO, P("x", None), check_vma)(a, b)


@two_axis.mistake
def summed_rows_too(a, b, *, mesh, check_vma=False):
    """The sum ran over both axes. Along `y`, devices hold partial sums of the same elements. Along `x`, they hold
    different rows of C. Over which of the two should the program sum?"""
    return device_map(lambda a, b: lax.psum(a @ b, ("x", "y")), mesh, TWO, P("x", None), check_vma)(a, b)


@two_axis.mistake
def summed_over_x(a, b, *, mesh, check_vma=False):
    """The sum ran over `x`, along which devices hold different *rows* of C. Over which axis is J sharded?"""
    return device_map(lambda a, b: lax.psum(a @ b, "x"), mesh, TWO, P("x", None), check_vma)(a, b)


@two_axis.mistake
def two_axis_gathered(a, b, *, mesh):
    """A and B were gathered along `y`, and all devices along `y` computed the same rows of C. The blocks that a device
    already has match along J. What is the smallest array that you can send instead?"""

    def body(a, b):
        whole_rows = lax.all_gather(a, "y", axis=1, tiled=True)
        return whole_rows @ lax.all_gather(b, "y", axis=0, tiled=True)

    return device_map(body, mesh, TWO, P("x", None))(a, b)


@two_axis_scattered.mistake
def scattered_rows(a, b, *, mesh, check_vma=False):
    """The sum was scattered along dimension 0, so each device kept some of its *rows*, and `out_specs` joined them as
    if they were columns. K should be sharded over `y`. Which dimension of C is K?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)

    return device_map(body, mesh, TWO, P("x", "y"), check_vma)(a, b)


@two_axis_scattered.mistake
def scattered_over_x(a, b, *, mesh, check_vma=False):
    """The sum ran over `x`, along which devices hold different rows of C. Along which axis do they hold partial sums of
    the same elements?"""

    def body(a, b):
        return lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return device_map(body, mesh, TWO, P("x", "y"), check_vma)(a, b)


@two_axis_scattered.mistake
def two_axis_sliced_after_psum(a, b, *, mesh, check_vma=False):
    """Every device along `y` received complete rows and threw away all but its columns. An all-reduce sends twice as
    much as needed for that. Which collective leaves each device only its shard of the sum?"""

    def body(a, b):
        c = lax.psum(a @ b, "y")
        width = c.shape[1] // mesh.shape["y"]
        return lax.dynamic_slice_in_dim(c, width * lax.axis_index("y"), width, axis=1)

    return device_map(body, mesh, TWO, P("x", "y"), check_vma)(a, b)


@two_axis_scattered.mistake
def two_axis_stacked_from_psum(a, b, *, mesh, check_vma=False):
    """Every device along `y` had the same complete rows of C, and `out_specs` put these replicas next to each other.
    `out_specs` say how blocks are joined, and don't split anything. Which collective sums *and* scatters?"""
    return device_map(lambda a, b: lax.psum(a @ b, "y"), mesh, TWO, P("x", "y"), check_vma)(a, b)
