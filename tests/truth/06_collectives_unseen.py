"""Answers to lesson 06, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- psum_scatter_ref
def psum_scatter_ref__right_split(blocks, scatter_dimension):
    return np.split(np.sum(blocks, axis=0), len(blocks), axis=scatter_dimension)


def psum_scatter_ref__right_pieces(blocks, scatter_dimension):
    n = len(blocks)
    pieces = [np.split(block, n, axis=scatter_dimension) for block in blocks]
    return [sum(pieces[s][d] for s in range(n)) for d in range(n)]


def psum_scatter_ref__wrong_axis0(blocks, scatter_dimension):
    # always along dimension 0
    return np.split(np.sum(blocks, axis=0), len(blocks))


def psum_scatter_ref__wrong_no_split(blocks, scatter_dimension):
    # that is psum: everybody keeps everything
    return [np.sum(blocks, axis=0)] * len(blocks)


def psum_scatter_ref__wrong_no_sum(blocks, scatter_dimension):
    # each keeps its own share of its own block
    return [np.split(block, len(blocks), axis=scatter_dimension)[d] for d, block in enumerate(blocks)]


def psum_scatter_ref__wrong_mean(blocks, scatter_dimension):
    # the mean in place of the sum
    return np.split(np.mean(blocks, axis=0), len(blocks), axis=scatter_dimension)


def psum_scatter_ref__wrong_reversed(blocks, scatter_dimension):
    # part i goes to the wrong device
    return np.split(np.sum(blocks, axis=0), len(blocks), axis=scatter_dimension)[::-1]


# --- all_to_all_ref
def all_to_all_ref__right_zip(blocks, split_axis, concat_axis):
    pieces = [np.split(block, len(blocks), axis=split_axis) for block in blocks]
    return [np.concatenate(column, axis=concat_axis) for column in zip(*pieces)]


def all_to_all_ref__right_loops(blocks, split_axis, concat_axis):
    n, result = len(blocks), []
    for receiver in range(n):
        arrived = []
        for block in blocks:
            length = block.shape[split_axis] // n
            arrived.append(np.take(block, range(receiver * length, (receiver + 1) * length), axis=split_axis))
        result.append(np.concatenate(arrived, axis=concat_axis))
    return result


def all_to_all_ref__wrong_same_axis(blocks, split_axis, concat_axis):
    # joined along the dimension that was split
    pieces = [np.split(block, len(blocks), axis=split_axis) for block in blocks]
    return [np.concatenate(column, axis=split_axis) for column in zip(*pieces)]


def all_to_all_ref__wrong_swapped(blocks, split_axis, concat_axis):
    # the two axes exchanged
    pieces = [np.split(block, len(blocks), axis=concat_axis) for block in blocks]
    return [np.concatenate(column, axis=split_axis) for column in zip(*pieces)]


def all_to_all_ref__wrong_own(blocks, split_axis, concat_axis):
    # the table is not turned round: each puts its own pieces together
    pieces = [np.split(block, len(blocks), axis=split_axis) for block in blocks]
    return [np.concatenate(row, axis=concat_axis) for row in pieces]


def all_to_all_ref__wrong_stacked(blocks, split_axis, concat_axis):
    # stacked along a new dimension: not the tiled form
    pieces = [np.split(block, len(blocks), axis=split_axis) for block in blocks]
    return [np.stack(column, axis=concat_axis) for column in zip(*pieces)]


def all_to_all_ref__wrong_order(blocks, split_axis, concat_axis):
    # the pieces arrive in the wrong order: the last sender first
    pieces = [np.split(block, len(blocks), axis=split_axis) for block in blocks][::-1]
    return [np.concatenate(column, axis=concat_axis) for column in zip(*pieces)]


# --- ppermute_ref
def ppermute_ref__right_zeros(blocks, perm):
    after = [np.zeros_like(block) for block in blocks]
    for source, destination in perm:
        after[destination] = blocks[source]
    return after


def ppermute_ref__right_lookup(blocks, perm):
    sender = {destination: source for source, destination in perm}
    return [blocks[sender[d]] if d in sender else 0 * blocks[d] for d in range(len(blocks))]


def ppermute_ref__wrong_kept(blocks, perm):
    # who receives nothing keeps what it had
    after = list(blocks)
    for source, destination in perm:
        after[destination] = blocks[source]
    return after


def ppermute_ref__wrong_backwards(blocks, perm):
    # source and destination exchanged
    after = [np.zeros_like(block) for block in blocks]
    for source, destination in perm:
        after[source] = blocks[destination]
    return after


def ppermute_ref__wrong_in_place(blocks, perm):
    # overwrites while it reads: a block may travel several times
    after = list(blocks)
    for source, destination in perm:
        after[destination] = after[source]
    receivers = {d for _, d in perm}
    return [b if d in receivers else np.zeros_like(b) for d, b in enumerate(after)]


def ppermute_ref__wrong_scalar(blocks, perm):
    # a single 0, or None, where nobody sends
    sender = {d: s for s, d in perm}
    return [blocks[sender[d]] if d in sender else None for d in range(len(blocks))]


# --- gather_columns
def gather_columns__right_hint(a, *, mesh):
    def body(columns):
        return all_gather(columns, "x", axis=1, tiled=True, to="invarying")

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(a)


def gather_columns__right_stacked(a, *, mesh):
    def body(columns):
        stacked = all_gather(columns, "x", axis=0, tiled=False, to="invarying")
        return jnp.concatenate(list(stacked), axis=1)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, None))(a)


def gather_columns__wrong_axis0(a, *, mesh):
    # joined one below the other
    def body(columns):
        return all_gather(columns, "x", axis=0, tiled=True, to="invarying")

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(a)


def gather_columns__wrong_reshape(a, *, mesh):
    # stacked, then reshaped: all numbers are there, in the wrong order
    def body(columns):
        return all_gather(columns, "x", to="invarying").reshape(columns.shape[0], -1)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(a)


def gather_columns__wrong_y(a, *, mesh):
    # the example's axis y
    def body(columns):
        return all_gather(columns, "y", axis=1, tiled=True, to="invarying")

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "y"), out_specs=P())(a)


def gather_columns__wrong_still_cut(a, *, mesh):
    # nothing gathered: columns go in and come out
    return jax.shard_map(lambda columns: columns, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(a)


def gather_columns__wrong_named(a, *, mesh):
    # gathered, but out_specs name x: the array comes n times side by side
    def body(columns):
        return jax.lax.all_gather(columns, "x", axis=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(a)


# --- sum_and_split
def sum_and_split__right_first(parts, *, mesh):
    def body(parts):
        return jax.lax.psum_scatter(parts[0], "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(parts)


def sum_and_split__right_second_dimension(parts, *, mesh):
    def body(parts):
        return jnp.squeeze(jax.lax.psum_scatter(parts, "x", scatter_dimension=1, tiled=True), 0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None, None), out_specs=P("x", None))(parts)


def sum_and_split__wrong_columns(parts, *, mesh):
    # scatters the columns, and calls them rows
    def body(parts):
        return jax.lax.psum_scatter(parts[0], "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(None, "x"))(parts)


def sum_and_split__wrong_whole(parts, *, mesh):
    # psum: the whole sum on every device
    return jax.shard_map(lambda parts: jax.lax.psum(parts[0], "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(parts)


def sum_and_split__wrong_too_much(parts, *, mesh):
    # a psum, and then its own rows: right, with twice the bytes
    def body(parts):
        total = jax.lax.psum(parts[0], "x")
        length = total.shape[0] // jax.lax.axis_size("x")
        return jax.lax.dynamic_slice_in_dim(total, jax.lax.axis_index("x") * length, length)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(parts)


def sum_and_split__wrong_untouched(parts, *, mesh):
    # nothing is added over devices: each sums its own block over N, of length 1
    return jax.shard_map(lambda parts: parts.sum(0), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(parts)


def sum_and_split__wrong_mean(parts, *, mesh):
    # divided by the number of summands
    def body(parts):
        return jax.lax.psum_scatter(parts[0], "x", scatter_dimension=0, tiled=True) / mesh.shape["x"]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(parts)


# --- partners
_PARTNERS = {
    "psum over x": [1, 3, 5, 7],
    "psum over y": [4, 5],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [3],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}
partners__right_grid = dict(_PARTNERS)
partners__wrong_sends = {**_PARTNERS, "ppermute +1 over x": [7]}  # to whom it sends, not from whom it receives
partners__wrong_axes = {**_PARTNERS, "psum over x": [4, 5], "psum over y": [1, 3, 5, 7]}  # rows and columns exchanged
partners__wrong_without_self = {**_PARTNERS, "psum over x": [1, 3, 7], "psum over y": [4]}  # its own number left out
partners__wrong_index = {**_PARTNERS, "axis_index over x": [5]}  # axis_index depends on no block
