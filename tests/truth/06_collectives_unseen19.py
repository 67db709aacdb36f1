"""Answers to lesson 06, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---- psum_by_two


def psum_by_two__right_untiled_scatter(parts, w, *, mesh):
    n = mesh.shape["x"]

    def on_device(parts, w):
        own = parts.sum(axis=0)
        own = own.reshape(n, own.shape[0] // n, own.shape[1])
        mine = jax.lax.psum_scatter(own, "x", scatter_dimension=0)
        return all_gather(jnp.dot(mine, w), "x", axis=0, tiled=True, to="invarying")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# Thought: the sum has fewer columns than the product, so gather the sum and multiply last; forgets that every device then multiplies all rows.
def psum_by_two__wrong_gather_first(parts, w, *, mesh):
    def on_device(parts, w):
        share = jax.lax.psum_scatter(parts[0], "x", scatter_dimension=0, tiled=True)
        total = all_gather(share, "x", axis=0, tiled=True, to="invarying")
        return total @ w

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None, None), P()), out_specs=P())(parts, w)


# Thought: deals out columns of the sum (J), as in a case 3 product, so that the products have to be added up a second time: one psum of [I, K] too dear.
def psum_by_two__wrong_columns(parts, w, *, mesh):
    def on_device(parts, w):
        share = jax.lax.psum_scatter(parts[0], "x", scatter_dimension=1, tiled=True)
        length = share.shape[1]
        rows = jax.lax.dynamic_slice_in_dim(w, jax.lax.axis_index("x") * length, length, axis=0)
        return jax.lax.psum(share @ rows, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None, None), P()), out_specs=P())(parts, w)


# Thought: all eight devices should take part, so scatters and gathers over both axes, and adds every summand once for each device along y.
def psum_by_two__wrong_both_axes(parts, w, *, mesh):
    def on_device(parts, w):
        share = jax.lax.psum_scatter(parts[0], ("x", "y"), scatter_dimension=0, tiled=True)
        return all_gather(share @ w, ("x", "y"), axis=0, tiled=True, to="invarying")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None, None), P()), out_specs=P())(parts, w)


# Thought: rows were scattered, so the products belong side by side (axis=1, as in gather_columns).
def psum_by_two__wrong_side_by_side(parts, w, *, mesh):
    def on_device(parts, w):
        share = jax.lax.psum_scatter(parts[0], "x", scatter_dimension=0, tiled=True)
        return all_gather(share @ w, "x", axis=1, tiled=True, to="invarying")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None, None), P()), out_specs=P())(parts, w)


# ---- reshard_rows_to_cols


def reshard_rows_to_cols__right_untiled(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(rows):
        height, width = rows.shape
        pieces = rows.reshape(height, n, width // n)
        came = jax.lax.all_to_all(pieces, "x", split_axis=1, concat_axis=0)  # (n, height, width / n)
        return came.reshape(n * height, width // n)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P(None, "x"))(x)


# Thought: turned the specs of the example round and x for y, and left split_axis and concat_axis as they stood there.
def reshard_rows_to_cols__wrong_copied_axes(x, *, mesh):
    def on_device(rows):
        return jax.lax.all_to_all(rows, "x", split_axis=0, concat_axis=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# Thought: out_specs say how the result is cut, so JAX will recut it; the body has nothing to do.
def reshard_rows_to_cols__wrong_specs_only(x, *, mesh):
    return jax.shard_map(lambda rows: rows, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# Thought: get everything, then keep my columns; the right array, but whole blocks are sent to everybody.
def reshard_rows_to_cols__wrong_gather_and_slice(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(rows):
        everything = jax.lax.all_gather(rows, "x", axis=0, tiled=True)
        width = everything.shape[1] // n
        return jax.lax.dynamic_slice_in_dim(everything, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# Thought: reshapes what came, with the sender's number behind the row: the right shape, the rows of the senders interleaved.
def reshard_rows_to_cols__wrong_interleaved(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(rows):
        height, width = rows.shape
        pieces = rows.reshape(height, n, width // n)
        came = jax.lax.all_to_all(pieces, "x", split_axis=1, concat_axis=1)  # (height, n, width / n)
        return came.reshape(n * height, width // n)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# ---- psum_ref


def psum_ref__right_loop(blocks):
    total = np.zeros_like(blocks[0])
    for block in blocks:
        total = total + block
    return [total.copy() for _ in blocks]


# Thought: psum is the sum of everything, one number (forgets that it adds place by place).
def psum_ref__wrong_everything(blocks):
    return [np.sum(blocks)] * len(blocks)


# Thought: all devices hold the same, so giving it back once is enough (no list with one block for each device).
def psum_ref__wrong_only_once(blocks):
    return np.sum(blocks, axis=0)


# Thought: the sum grows as it goes along the devices, and each device has it as far as it came.
def psum_ref__wrong_running(blocks):
    return list(np.cumsum(np.stack(blocks), axis=0))


# Thought: "the shape stays", so keepdims=True; that keeps the dimension of the devices instead.
def psum_ref__wrong_keepdims(blocks):
    return [np.sum(blocks, axis=0, keepdims=True)] * len(blocks)
