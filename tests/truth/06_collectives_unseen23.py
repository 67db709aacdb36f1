"""Answers to lesson 06, twenty-third batch, written by a reader of the notebook only."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- psum_scatter_ref


def psum_scatter_ref__right_take(blocks, scatter_dimension):
    total = blocks[0]
    for block in blocks[1:]:
        total = total + block
    share = total.shape[scatter_dimension] // len(blocks)
    return [np.take(total, np.arange(d * share, (d + 1) * share), axis=scatter_dimension) for d in range(len(blocks))]


# This student thinks that "deal out" is as with cards: device d gets the entries d, d + n, d + 2n, ...
def psum_scatter_ref__wrong_cards(blocks, scatter_dimension):
    n = len(blocks)
    total = np.moveaxis(np.sum(blocks, axis=0), scatter_dimension, 0)
    return [np.moveaxis(total[d::n], 0, scatter_dimension) for d in range(n)]


# This student sums over the scattered dimension of the stack of blocks, as if `axis` of np.sum were scatter_dimension.
def psum_scatter_ref__wrong_sumaxis(blocks, scatter_dimension):
    total = np.sum(np.stack(blocks), axis=scatter_dimension)
    return np.split(total, len(blocks), axis=0)


# This student has the parts travel to their devices, but joins them there in place of adding them (an all_to_all).
def psum_scatter_ref__wrong_joined(blocks, scatter_dimension):
    n = len(blocks)
    pieces = [np.split(block, n, axis=scatter_dimension) for block in blocks]
    return [np.concatenate([own[d] for own in pieces], axis=scatter_dimension) for d in range(n)]


# This student writes the untiled form: part d is the entry number d, and the scattered dimension is gone.
def psum_scatter_ref__wrong_untiled(blocks, scatter_dimension):
    total = np.sum(blocks, axis=0)
    return [np.take(total, d, axis=scatter_dimension) for d in range(len(blocks))]


# ---------------------------------------------------------------- global_argmax


def global_argmax__right_champions(v, *, mesh):
    def on_device(block):
        own = jnp.argmax(block)  # the first of equals in this block
        best = block[own]
        place = jax.lax.axis_index("x") * block.shape[0] + own
        top = jax.lax.pmax(best, "x")
        return jax.lax.pmin(jnp.where(best == top, place, v.shape[0]), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# This student marks devices without the maximum by -1 and takes the largest place: the last of several devices with equals.
def global_argmax__wrong_lastone(v, *, mesh):
    def on_device(block):
        own = jnp.argmax(block)
        best = block[own]
        place = jax.lax.axis_index("x") * block.shape[0] + own
        top = jax.lax.pmax(best, "x")
        return jax.lax.pmax(jnp.where(best == top, place, -1), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# This student takes block.shape[0] for the length of the vector, so "larger than any place" is only larger than device 0's.
def global_argmax__wrong_bound(v, *, mesh):
    def on_device(block):
        n = block.shape[0]
        top = jax.lax.pmax(block.max(), "x")
        places = jax.lax.axis_index("x") * n + jnp.arange(n)
        return jax.lax.pmin(jnp.where(block == top, places, n).min(), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# This student steps from block to block by the number of devices in place of the length of a block (a 16-vector on 4 is right).
def global_argmax__wrong_stride(v, *, mesh):
    def on_device(block):
        own = jnp.argmax(block)
        place = jax.lax.axis_index("x") * mesh.shape["x"] + own
        top = jax.lax.pmax(block[own], "x")
        return jax.lax.pmin(jnp.where(block[own] == top, place, v.shape[0]), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# This student brings the vector together on every device and asks NumPy's question there: right, but the vector was sent.
def global_argmax__wrong_gathered(v, *, mesh):
    def on_device(block):
        whole = all_gather(block, "x", axis=0, tiled=True, to="invarying")
        return jnp.argmax(whole)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# ---------------------------------------------------------------- after_collective

after_collective__right_sums = {
    "all_gather": [3, 9, 5, 2] + [6, 6, 3, 5] + [8, 1, 4, 6] + [5, 4, 2, 3],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [14],
}

# This student counts devices from 1, so that device 2 gets the second sum.
after_collective__wrong_fromone = {
    "all_gather": [3, 9, 5, 2, 6, 6, 3, 5, 8, 1, 4, 6, 5, 4, 2, 3],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [20],
}

# This student thinks that a device's own block comes first after a gather, and the others in the order in which they arrive.
after_collective__wrong_ownfirst = {
    "all_gather": [8, 1, 4, 6, 5, 4, 2, 3, 3, 9, 5, 2, 6, 6, 3, 5],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [14],
}

# This student thinks that a psum adds up all numbers of all devices to one.
after_collective__wrong_onenumber = {
    "all_gather": [3, 9, 5, 2, 6, 6, 3, 5, 8, 1, 4, 6, 5, 4, 2, 3],
    "psum": [72],
    "psum_scatter": [14],
}

# This student takes all_gather for "everybody's third number", and lets psum_scatter add up the device's own four.
after_collective__wrong_mixture = {
    "all_gather": [5, 3, 4, 2],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [19],
}
