"""§ 11: collectives written inside shard_map, judged by values, layout and bytes."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, Flops, ProgramExercise, Written
from grader.lessons.shared import bytes_sent, device_map, to_send

ROWS, COLUMNS = P("x", None), P(None, "x")


# A[I, J_X] → A[I, J]: the columns of all devices, on every device.

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
    """The blocks were gathered along dimension 0, one under the other. A was cut along its columns: along which
    dimension do the blocks belong next to each other?"""
    return device_map(lambda a: lax.all_gather(a, "x", axis=0, tiled=True), mesh, COLUMNS, P())(a)


@gather_columns.mistake
def left_untiled(a, *, mesh):
    """Without `tiled=True` an all_gather stacks the blocks along a *new* dimension, so the result has one
    dimension too many. What does tiled do with the dimension that you name?"""
    return device_map(lambda a: lax.all_gather(a, "x", axis=1), mesh, COLUMNS, P())(a)


@gather_columns.mistake
def stacked_and_reshaped(a, *, mesh):
    """The shape is right, the order is not: one whole block was read after the other, as a reshape reads blocks that
    are stacked. With one column on each device that is exactly the transpose. Which argument of all_gather puts blocks
    side by side?"""

    def body(a):
        return lax.all_gather(a, "x").reshape(a.shape[0], -1)

    return device_map(body, mesh, COLUMNS, P())(a)


@gather_columns.mistake
def promised_without_proof(a, *, mesh):
    """shard_map's check refuses this: an all_gather's result counts as *varying* unless you say that all devices get
    the same. Which argument of all_gather says so, and what can you do on a JAX that does not have it?"""
    body = device_map(lambda a: lax.all_gather(a, "x", axis=1, tiled=True), mesh, COLUMNS, P(), check_vma=True)
    return body(a)


@gather_columns.mistake
def stacked_the_copies(a, *, mesh):
    """Every device gathered the whole of A, and out_specs then put these equal copies one under the other.
    out_specs describe how the blocks make up the result. Which spec says that each device holds all of it?"""
    return device_map(lambda a: lax.all_gather(a, "x", axis=1, tiled=True), mesh, COLUMNS, ROWS)(a)


@gather_columns.mistake
def padded_and_summed(a, *, mesh):
    """The values are right: the columns of each device, among zeros, add up to A. But an all-reduce also sends all
    those zeros, twice as much as is needed. Which collective only collects?"""

    def body(block):
        width = block.shape[1]
        whole = jnp.zeros((block.shape[0], width * mesh.shape["x"]), block.dtype)
        return lax.psum(lax.dynamic_update_slice_in_dim(whole, block, lax.axis_index("x") * width, 1), "x")

    return device_map(body, mesh, COLUMNS, P())(a)


@gather_columns.mistake
def gathered_by_in_specs(a, *, mesh):
    """The compiler quietly gathers A before your function begins, as it does where in_specs say that A comes whole.
    Describe A as it is laid out, and write the gather yourself."""
    return device_map(lambda a: a, mesh, P(), P())(a)


# parts[N_X, I, J] → their sum, its rows shared out. Each device holds one summand.

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
    """Without `tiled=True`, psum_scatter wants the scattered dimension to be exactly as long as the axis has
    devices, and then drops it: each share loses a dimension. What does `tiled=True` do instead?"""
    return device_map(lambda p: lax.psum_scatter(p[0], "x"), mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def split_untiled_and_put_back(parts, *, mesh):
    """With one row for each device this works: the untiled psum_scatter drops the rows' dimension, and it can be put
    back. With more rows than devices it stops. Which argument cuts a dimension of any length into equal shares?"""
    return device_map(lambda p: lax.psum_scatter(p[0], "x")[None], mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def split_columns(parts, *, mesh):
    """The sum was scattered along dimension 1, and out_specs put the shares one under the other. Each device
    should keep some *rows*: which dimension is that?"""

    def body(p):
        return lax.psum_scatter(p[0], "x", scatter_dimension=1, tiled=True)

    return device_map(body, mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def summed_twice(parts, *, mesh):
    """Every entry is n times what it should be, with n devices along x. After a psum all devices hold the same sum, and
    a psum_scatter would add these equal copies up again. Is one of the two one too many?"""

    def body(p):
        return lax.psum_scatter(lax.psum(p[0], "x"), "x", tiled=True)

    return device_map(body, mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def promised_copies(parts, *, mesh, check_vma=False):
    """After a psum_scatter each device holds a share of its own, and `out_specs=P()` promises that all hold the
    same. Which spec says that the shares are rows of the result, cut over x?"""

    def body(p):
        return lax.psum_scatter(p[0], "x", tiled=True)

    return device_map(body, mesh, PARTS, P(), check_vma)(parts)


@sum_and_split.mistake
def summed_all_and_sliced(parts, *, mesh):
    """The values are right. But every device received the whole sum and threw away all but its share. Which
    collective stops half-way, and sends half as much?"""

    def body(p):
        whole = lax.psum(p[0], "x")
        rows = whole.shape[0] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * rows, rows)

    return device_map(body, mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def kept_its_own_rows(parts, *, mesh):
    """Each device has its rows of its *own* part, and nothing was added. The result needs these rows of every device's
    part. Which collective adds across devices while it deals out?"""

    def body(p):
        rows = p.shape[1] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(p[0], lax.axis_index("x") * rows, rows)

    return device_map(body, mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def kept_the_whole_sum(parts, *, mesh):
    """Every device holds the whole sum, and out_specs stack these copies one under the other. out_specs put
    blocks together; they do not cut. Which collective adds up *and* deals out?"""
    return device_map(lambda p: lax.psum(p[0], "x"), mesh, PARTS, ROWS)(parts)


@sum_and_split.mistake
def gave_everybody_the_sum(parts, *, mesh):
    """The values are right, but `psum` with `out_specs=P()` gives everybody the whole sum, at twice the bytes. Wanted
    are shares: its rows, cut over x. Which one collective adds up and deals out?"""
    return device_map(lambda p: lax.psum(p[0], "x"), mesh, PARTS, P())(parts)


# x[I_X, J] → x[I, J_X]: from rows to columns, by one exchange.

reshard_rows_to_cols = ProgramExercise("reshard_rows_to_cols", points=4, reference=lambda x: x, against_compiler=True)


@reshard_rows_to_cols.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    x = to_send(draw, i, j, spec=ROWS)
    enough = BytesSent(bytes_sent("all_to_all", i * j // mesh["x"], mesh["x"]))
    return Case({"x": x}, mesh, COLUMNS, limits=[enough, Written({"all_to_all": 1})])


def _exchange(split, concat, tiled=True):
    return lambda x: lax.all_to_all(x, "x", split, concat, tiled=tiled)


@reshard_rows_to_cols.mistake
def split_and_concat_swapped(x, *, mesh):
    """The two axes of the all_to_all are swapped. A device holds some rows and gives *columns* of them away: along
    which dimension does it split? What arrives are other rows: along which dimension do they belong together?"""
    return device_map(_exchange(0, 1), mesh, ROWS, COLUMNS)(x)


@reshard_rows_to_cols.mistake
def columns_called_rows(x, *, mesh):
    """The exchange is right, and every device holds whole columns. But out_specs call its block rows, and stack
    the blocks one under the other. Which dimension is cut now?"""
    return device_map(_exchange(1, 0), mesh, ROWS, ROWS)(x)


@reshard_rows_to_cols.mistake
def gathered_and_sliced(x, *, mesh):
    """The values are right. But every device received the whole array and kept only its columns. A device needs
    one piece from each of the others, no more: which collective sends just these?"""

    def body(rows):
        whole = lax.all_gather(rows, "x", axis=0, tiled=True)
        width = rows.shape[1] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * width, width, 1)

    return device_map(body, mesh, ROWS, COLUMNS)(x)


@reshard_rows_to_cols.mistake
def exchanged_untiled(x, *, mesh):
    """Without `tiled=True`, all_to_all wants the split dimension to be exactly as long as the axis has devices,
    and makes a new dimension for the pieces. Tiled, it cuts any multiple into equal pieces and joins them."""
    return device_map(_exchange(1, 0, tiled=False), mesh, ROWS, COLUMNS)(x)


@reshard_rows_to_cols.mistake
def only_said_columns(x, *, mesh):
    """Nothing was sent: out_specs call the rows columns and put the blocks side by side, which makes an array of
    another shape. out_specs describe what the devices hold; they move nothing."""
    return device_map(lambda x: x, mesh, ROWS, COLUMNS)(x)


@reshard_rows_to_cols.mistake
def exchanged_by_in_specs(x, *, mesh):
    """The compiler quietly exchanges the pieces before your function begins, as it does where in_specs say that x comes
    cut by columns. Describe x as it is laid out, and write the exchange yourself."""
    return device_map(lambda x: x, mesh, COLUMNS, COLUMNS)(x)


# x[I_X, J] → x.T[J_X, I]: an exchange of blocks, and a transposition within them.

distributed_transpose = ProgramExercise("distributed_transpose", points=4, reference=lambda x: x.T)


@distributed_transpose.cases
def _(draw):
    mesh = draw.mesh("x", "y")
    i, j = draw.lengths(2, divisible_by=8)
    x = to_send(draw, i, j, spec=ROWS)
    return Case({"x": x}, mesh, ROWS, limits=[BytesSent(bytes_sent("all_to_all", i * j // mesh["x"], mesh["x"]))])


@distributed_transpose.mistake
def turned_in_place(x, *, mesh):
    """The values are right, and nothing was sent: rows of x are columns of its transpose, so the result is cut by
    columns. Here it is wanted cut by rows. What remains is the exercise before this one, the other way round."""
    return device_map(lambda x: x.T, mesh, ROWS, COLUMNS)(x)


@distributed_transpose.mistake
def turned_and_stacked(x, *, mesh):
    """Each device transposed its own rows, and out_specs put the blocks one under the other. A row of the
    transpose has entries from every device: which collective brings them together?"""
    return device_map(lambda x: x.T, mesh, ROWS, ROWS)(x)


@distributed_transpose.mistake
def blocks_moved_not_turned(x, *, mesh):
    """The blocks went to the right places, but inside each one rows are still rows: in the transpose of a matrix
    of blocks, every block is transposed too. What is left for each device to do with what it received?"""
    return device_map(_exchange(1, 1), mesh, ROWS, ROWS)(x)


@distributed_transpose.mistake
def turned_but_not_moved(x, *, mesh):
    """Each block was transposed where it was. In the transpose of a matrix of blocks, the blocks also change
    places: what device 1 holds of device 0's columns must go there. Which collective exchanges pieces?"""

    def body(x):
        pieces = jnp.split(x, mesh.shape["x"], axis=1)
        return jnp.concatenate([piece.T for piece in pieces], axis=1)

    return device_map(body, mesh, ROWS, ROWS)(x)


@distributed_transpose.mistake
def exchanged_not_turned(x, *, mesh):
    """Every device holds whole columns of x. A column of x is a row of its transpose: what turns the one into the
    other, on each device alone?"""
    return device_map(_exchange(1, 0), mesh, ROWS, ROWS)(x)


@distributed_transpose.mistake
def gathered_and_turned(x, *, mesh):
    """The values are right. But every device received the whole array to keep a few columns of it. A device needs
    one piece from each of the others, no more: which collective sends just these?"""

    def body(rows):
        whole = lax.all_gather(rows, "x", axis=0, tiled=True)
        width = rows.shape[1] // mesh.shape["x"]
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * width, width, 1).T

    return device_map(body, mesh, ROWS, ROWS)(x)


# sum of parts[N_X, I, J], times w[J, K], whole on every device: the work belongs between the halves of a psum.

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
    """The values are right. But after the whole psum every device multiplies all rows of the sum, and all devices
    do the same work. What does each device hold between the two halves of a psum, and what may it do there?"""
    return device_map(lambda p, w: lax.psum(p[0], "x") @ w, mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def worked_before_psum(parts, w, *, mesh):
    """The values are right, since a matrix product may change places with a sum. But every device multiplies all
    rows of its part. Where in the program does a device hold only its share of the rows?"""
    return device_map(lambda p, w: lax.psum(p[0] @ w, "x"), mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def scattered_the_products(parts, w, *, mesh):
    """The values are right. But every device multiplied all rows of its part first, and the products, no narrower than
    the parts, were added up and dealt out. What is there to be dealt out before the multiplication?"""

    def body(p, w):
        return lax.all_gather(lax.psum_scatter(p[0] @ w, "x", tiled=True), "x", tiled=True)

    return device_map(body, mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def cut_out_rows_after_psum(parts, w, *, mesh):
    """The values are right, and each row is multiplied once. But the whole sum went to every device, to have its own
    rows cut out there: which collective adds up and leaves each device its rows only?"""

    def body(p, w):
        rows = p.shape[1] // mesh.shape["x"]
        mine = lax.dynamic_slice_in_dim(lax.psum(p[0], "x"), rows * lax.axis_index("x"), rows)
        return lax.all_gather(mine @ w, "x", tiled=True)

    return device_map(body, mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def gathered_other_way(parts, w, *, mesh):
    """The shares were rows, and they were gathered as columns. The second half must undo what the first half did:
    along which dimension was the sum dealt out?"""
    return device_map(_halves(0, 1), mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def gathered_untiled(parts, w, *, mesh):
    """The gather has no `tiled=True`, so the shares are stacked along a new dimension, and the result has one too
    many. What joins them along the dimension that they were dealt out along?"""
    return device_map(_halves(0, 0, (True, False)), mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def scattered_untiled(parts, w, *, mesh):
    """The psum_scatter has no `tiled=True`: it then wants as many rows as there are devices, and drops their
    dimension. What cuts any number of rows into equal shares?"""
    return device_map(_halves(0, 0, (False, True)), mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def gathered_first(parts, w, *, mesh):
    """The gather came first: every device then holds all parts one under the other, the same everywhere, and the
    psum_scatter adds equal things up, N times each. Which half must come first, while the parts still differ?"""

    def body(p, w):
        everyone = lax.all_gather(p[0], "x", axis=0, tiled=True)
        return lax.psum_scatter(everyone, "x", tiled=True) @ w

    return device_map(body, mesh, BETWEEN, P())(parts, w)


@psum_by_two.mistake
def forgot_the_second_half(parts, w, *, mesh):
    """Every device holds its own rows of the result, and out_specs claim that these are the whole. Wanted is the
    whole everywhere: which collective is the other half of a psum?"""

    def body(p, w):
        return lax.psum_scatter(p[0], "x", tiled=True) @ w

    return device_map(body, mesh, BETWEEN, P())(parts, w)
