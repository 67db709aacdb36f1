"""§ 3, 8: collectives written inside shard_map, checked by values, sharding, and bytes."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, Flops, ProgramExercise, Written
from grader.lessons.shared import bytes_sent, device_map, to_send

ROWS, COLUMNS = P("x", None), P(None, "x")


# a[I, J_X] → a[I, J]: the columns of all devices, on every device.

gather_columns = ProgramExercise("gather_columns", points=4, reference=lambda a: a)


@gather_columns.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    n = mesh["x"]
    rows, columns = (n, n) if draw.square else draw.lengths(2, divisible_by=8)
    return Case(
        {"a": to_send(draw, rows, columns, spec=COLUMNS)},
        mesh,
        P(),
        limits=[BytesSent(bytes_sent("all_gather", rows * columns // n, n))],
    )


@gather_columns.mistake
def stacked_rows(a, *, mesh):
    """The blocks were gathered along dimension 0, below each other. `a` is sharded by columns. Along which dimension
    do its blocks belong next to each other?"""
    return device_map(lambda a: lax.all_gather(a, "x", axis=0, tiled=True), mesh, COLUMNS, P())(a)


@gather_columns.mistake
def left_untiled(a, *, mesh):
    """Without `tiled=True`, an all_gather stacks the blocks along a *new* dimension, so the result has one dimension
    too many. What does `tiled=True` do with the dimension that you name?"""
    return device_map(lambda a: lax.all_gather(a, "x", axis=1), mesh, COLUMNS, P())(a)


@gather_columns.mistake
def stacked_and_reshaped(a, *, mesh):
    """The shape is correct, but the order isn't: one full block follows the other, as if stacked blocks were reshaped.
    With one column per device, that is exactly the transpose. Which argument of all_gather puts blocks side by
    side?"""

    def body(a):
        return lax.all_gather(a, "x").reshape(a.shape[0], -1)

    return device_map(body, mesh, COLUMNS, P())(a)


@gather_columns.mistake
def promised_without_proof(a, *, mesh):
    """The check of shard_map refuses this: the result of an all_gather counts as *varying* unless you declare that all
    devices get the same. Which argument of all_gather declares it?"""
    body = device_map(lambda a: lax.all_gather(a, "x", axis=1, tiled=True), mesh, COLUMNS, P(), check_vma=True)
    return body(a)


@gather_columns.mistake
def stacked_the_copies(a, *, mesh):
    """Every device gathered all of `a`, and out_specs concatenated these equal replicas. Which spec says that each
    device holds all of it?"""
    return device_map(lambda a: lax.all_gather(a, "x", axis=1, tiled=True), mesh, COLUMNS, ROWS)(a)


@gather_columns.mistake
def padded_and_summed(a, *, mesh):
    """The values are correct: the columns of each device, among zeros, sum to `a`. But the all-reduce also sends the
    zeros, which is twice as much as needed. Which collective only gathers?"""

    def body(block):
        width = block.shape[1]
        whole = jnp.zeros((block.shape[0], width * mesh.shape["x"]), block.dtype)
        return lax.psum(lax.dynamic_update_slice_in_dim(whole, block, lax.axis_index("x") * width, 1), "x")

    return device_map(body, mesh, COLUMNS, P())(a)


@gather_columns.mistake
def gathered_by_in_specs(a, *, mesh):
    """The compiler gathered `a` before your function started, because in_specs ask for the full array. Which in_specs
    describe `a` as it is sharded?"""
    return device_map(lambda a: a, mesh, P(), P())(a)


# parts[N_X, I, J] → their sum, its rows sharded. Each device holds one term.

PARTS = P("x", None, None)

sum_and_split = ProgramExercise("sum_and_split", points=4, reference=lambda parts: parts.sum(0))


@sum_and_split.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    n = mesh["x"]
    rows, columns = draw.lengths(2, divisible_by=8)
    i = n if draw.square else rows  # with one row for each device, untiled runs too
    parts = to_send(draw, n, i, columns, spec=PARTS)
    return Case({"parts": parts}, mesh, ROWS, limits=[BytesSent(bytes_sent("reduce_scatter", i * columns, n))])


@sum_and_split.mistake
def split_untiled(parts, *, mesh):
    """Without `tiled=True`, psum_scatter expects the scattered dimension to be exactly as long as the axis has
    devices, and drops it. What does `tiled=True` do instead?"""
    return device_map(lambda p: lax.psum_scatter(p[0], "x"), mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def split_untiled_and_put_back(parts, *, mesh):
    """This works with one row per device: the untiled psum_scatter drops the dimension of the rows, and the program
    puts it back. With more rows than devices, it stops. Which argument splits a dimension of any length into equal
    parts?"""
    return device_map(lambda p: lax.psum_scatter(p[0], "x")[None], mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def split_columns(parts, *, mesh):
    """The sum was scattered along dimension 1, and out_specs concatenated the parts as rows. Which dimension are the
    rows that a device should keep?"""

    def body(p):
        return lax.psum_scatter(p[0], "x", scatter_dimension=1, tiled=True)

    return device_map(body, mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def summed_twice(parts, *, mesh):
    """Every element is n times what it should be, with n devices along x. It looks as if all devices held the same sum
    already, for example after a psum, and a psum_scatter summed these equal replicas again. What does each device hold
    before the last collective?"""

    def body(p):
        return lax.psum_scatter(lax.psum(p[0], "x"), "x", tiled=True)

    return device_map(body, mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def promised_copies(parts, *, mesh, check_vma=False):
    """After a psum_scatter each device holds its own part, but `out_specs=P()` promises that all devices hold the
    same. Which spec says that the parts are rows of the result?"""

    def body(p):
        return lax.psum_scatter(p[0], "x", tiled=True)

    return device_map(body, mesh, PARTS, P(), check_vma)(parts)


@sum_and_split.mistake
def summed_all_and_sliced(parts, *, mesh):
    """The values are correct, but every device received the full sum and discarded all but its part. Which collective
    sends half as much?"""

    def body(p):
        whole = lax.psum(p[0], "x")
        rows = whole.shape[0] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * rows, rows)

    return device_map(body, mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def kept_its_own_rows(parts, *, mesh):
    """Each device has the right rows of its *own* term, and nothing was summed across devices. Which collective sums
    and scatters?"""

    def body(p):
        rows = p.shape[1] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(p[0], lax.axis_index("x") * rows, rows)

    return device_map(body, mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def kept_the_whole_sum(parts, *, mesh):
    """Every device holds the full sum, and out_specs concatenated these replicas. out_specs assemble blocks and never
    split them. Which collective sums *and* scatters?"""
    return device_map(lambda p: lax.psum(p[0], "x"), mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def gave_everybody_the_sum(parts, *, mesh):
    """The values are correct, but a psum with `out_specs=P()` gives every device the full sum, for twice the bytes.
    The result should have its rows sharded along x. Which collective sums and scatters?"""
    return device_map(lambda p: lax.psum(p[0], "x"), mesh, PARTS, P())(parts)


# a[I_X, J] → a[I, J_X]: from rows to columns, by one all-to-all.

reshard_rows_to_cols = ProgramExercise("reshard_rows_to_cols", points=4, reference=lambda a: a, against_compiler=True)


@reshard_rows_to_cols.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    a = to_send(draw, i, j, spec=ROWS)
    enough = BytesSent(bytes_sent("all_to_all", i * j // mesh["x"], mesh["x"]))
    return Case({"a": a}, mesh, COLUMNS, limits=[enough, Written({"all_to_all": 1})])


def _exchange(split, concat, tiled=True):
    return lambda a: lax.all_to_all(a, "x", split, concat, tiled=tiled)


@reshard_rows_to_cols.mistake
def split_and_concat_swapped(a, *, mesh):
    """The two axes of the all_to_all are swapped. A device holds some rows and sends *columns* of them away, so which
    dimension does it split, and along which do the received rows belong together?"""
    return device_map(_exchange(0, 1), mesh, ROWS, COLUMNS)(a)


@reshard_rows_to_cols.mistake
def columns_called_rows(a, *, mesh):
    """The exchange is correct, and every device holds full columns. But out_specs call its block rows, and concatenate
    the blocks below each other. Which dimension is split now?"""
    return device_map(_exchange(1, 0), mesh, ROWS, ROWS)(a)


@reshard_rows_to_cols.mistake
def gathered_and_sliced(a, *, mesh):
    """The values are correct, but every device received the full array and kept only its columns. It needs one piece
    from each of the others. Which collective sends just these?"""

    def body(rows):
        whole = lax.all_gather(rows, "x", axis=0, tiled=True)
        width = rows.shape[1] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * width, width, 1)

    return device_map(body, mesh, ROWS, COLUMNS)(a)


@reshard_rows_to_cols.mistake
def exchanged_untiled(a, *, mesh):
    """Without `tiled=True`, all_to_all expects the split dimension to be exactly as long as the axis has devices, and
    makes a new dimension for the pieces. What does `tiled=True` do instead?"""
    return device_map(_exchange(1, 0, tiled=False), mesh, ROWS, COLUMNS)(a)


@reshard_rows_to_cols.mistake
def only_said_columns(a, *, mesh):
    """Nothing was sent. out_specs describe what the devices hold, and here they put rows side by side, which makes an
    array of another shape. Which collective gives each device its columns?"""
    return device_map(lambda a: a, mesh, ROWS, COLUMNS)(a)


@reshard_rows_to_cols.mistake
def exchanged_by_in_specs(a, *, mesh):
    """The compiler exchanged the pieces before your function started, because in_specs ask for columns. Which in_specs
    describe `a` as it is sharded?"""
    return device_map(lambda a: a, mesh, COLUMNS, COLUMNS)(a)


# a[I_X, J] → a.T[J_X, I]: an all-to-all, and a transpose within the blocks.

distributed_transpose = ProgramExercise("distributed_transpose", points=4, reference=lambda a: a.T)


@distributed_transpose.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    a = to_send(draw, i, j, spec=ROWS)
    return Case({"a": a}, mesh, ROWS, limits=[BytesSent(bytes_sent("all_to_all", i * j // mesh["x"], mesh["x"]))])


@distributed_transpose.mistake
def turned_in_place(a, *, mesh):
    """The values are correct, and nothing was sent: rows of `a` are columns of its transpose, so the result is sharded
    by columns. It should be sharded by rows. What does the exercise before this one do for that?"""
    return device_map(lambda a: a.T, mesh, ROWS, COLUMNS)(a)


@distributed_transpose.mistake
def turned_and_stacked(a, *, mesh):
    """Each device transposed its own rows, and out_specs concatenated the blocks. A row of the transpose has elements
    from every device. Which collective exchanges pieces?"""
    return device_map(lambda a: a.T, mesh, ROWS, ROWS)(a)


@distributed_transpose.mistake
def blocks_moved_not_turned(a, *, mesh):
    """The blocks are on the right devices, but none of them is transposed. In the transpose of a grid of blocks, every
    block is transposed, too. What is left for each device to do with what it received?"""
    return device_map(_exchange(1, 1), mesh, ROWS, ROWS)(a)


@distributed_transpose.mistake
def turned_but_not_moved(a, *, mesh):
    """Each block was transposed where it was. In the transpose of a grid of blocks, the blocks also change places.
    Which collective exchanges pieces?"""

    def body(a):
        pieces = jnp.split(a, mesh.shape["x"], axis=1)
        return jnp.concatenate([piece.T for piece in pieces], axis=1)

    return device_map(body, mesh, ROWS, ROWS)(a)


@distributed_transpose.mistake
def exchanged_not_turned(a, *, mesh):
    """Every device holds full columns of `a`. A column of `a` is a row of its transpose. What does each device still
    have to do alone?"""
    return device_map(_exchange(1, 0), mesh, ROWS, ROWS)(a)


@distributed_transpose.mistake
def gathered_and_turned(a, *, mesh):
    """The values are correct, but every device received the full array to keep a few columns of it. It needs one piece
    from each of the others. Which collective sends just these?"""

    def body(rows):
        whole = lax.all_gather(rows, "x", axis=0, tiled=True)
        width = rows.shape[1] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * width, width, 1).T

    return device_map(body, mesh, ROWS, ROWS)(a)


# sum of parts[N_X, I, J], times w[J, K], on every device: the work belongs between the halves of a psum.

BETWEEN = PARTS, P(None, None)

psum_by_two = ProgramExercise("psum_by_two", points=4, reference=lambda parts, w: parts.sum(0) @ w)


@psum_by_two.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    n = mesh["x"]
    i, j, k = draw.lengths(3, divisible_by=8)
    j, k = sorted((j, k))  # then a psum of the products sends more than the two halves, and one of the parts does not
    arrays = {"parts": to_send(draw, n, i, j, spec=BETWEEN[0]), "w": draw.array(j, k, spec=BETWEEN[1])}
    least = bytes_sent("reduce_scatter", i * j, n) + bytes_sent("all_gather", i * k // n, n)
    return Case(arrays, mesh, P(), limits=[BytesSent(least), Flops(2 * i * j * k // n)])


def _halves(dimension, back, tiled=(True, True)):
    def body(parts, w):
        share = lax.psum_scatter(parts[0], "x", scatter_dimension=dimension, tiled=tiled[0])
        return lax.all_gather(share @ w, "x", axis=back, tiled=tiled[1])

    return body


@psum_by_two.mistake
def worked_after_psum(parts, w, *, mesh):
    """The values are correct. But after the full psum every device multiplies all rows of the sum, so all devices do
    the same work. What does each device hold between the two halves of a psum?"""
    return device_map(lambda p, w: lax.psum(p[0], "x") @ w, mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def worked_before_psum(parts, w, *, mesh):
    """The values are correct, because a matmul and a sum can change places. But every device multiplies all rows of
    its term. Where in the program does a device hold only its part of the rows?"""
    return device_map(lambda p, w: lax.psum(p[0] @ w, "x"), mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def scattered_the_products(parts, w, *, mesh):
    """The values are correct. But every device multiplied all rows of its term first, and then the products were
    summed and scattered. What can be scattered before the matmul?"""

    def body(p, w):
        return lax.all_gather(lax.psum_scatter(p[0] @ w, "x", tiled=True), "x", tiled=True)

    return device_map(body, mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def cut_out_rows_after_psum(parts, w, *, mesh):
    """The values are correct, and each row is multiplied once. But the full sum went to every device, which then took
    its own rows. Which collective sums and leaves each device only its rows?"""

    def body(p, w):
        rows = p.shape[1] // mesh.shape["x"]
        mine = lax.dynamic_slice_in_dim(lax.psum(p[0], "x"), rows * lax.axis_index("x"), rows)
        return lax.all_gather(mine @ w, "x", tiled=True)

    return device_map(body, mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def gathered_other_way(parts, w, *, mesh):
    """The parts were rows, and they were gathered as columns. The gather has to undo the scatter. Along which
    dimension was the sum scattered?"""
    return device_map(_halves(0, 1), mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def gathered_untiled(parts, w, *, mesh):
    """The all_gather has no `tiled=True`, so the parts are stacked along a new dimension. What concatenates them along
    the dimension that was scattered?"""
    return device_map(_halves(0, 0, (True, False)), mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def scattered_untiled(parts, w, *, mesh):
    """The psum_scatter has no `tiled=True`, so it expects as many rows as there are devices, and drops their
    dimension. What splits any number of rows into equal parts?"""
    return device_map(_halves(0, 0, (False, True)), mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def gathered_first(parts, w, *, mesh):
    """The gather came first. Then every device holds all terms, the same on all devices, and the psum_scatter sums
    equal things, N times each. Which half has to come first, while the terms still differ?"""

    def body(p, w):
        everyone = lax.all_gather(p[0], "x", axis=0, tiled=True)
        return lax.psum_scatter(everyone, "x", tiled=True) @ w

    return device_map(body, mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def forgot_the_second_half(parts, w, *, mesh):
    """Every device holds its own rows of the result, and out_specs claim that these are the full result. Which
    collective is the other half of a psum?"""

    def body(p, w):
        return lax.psum_scatter(p[0], "x", tiled=True) @ w

    return device_map(body, mesh, BETWEEN, P())(parts, w)
