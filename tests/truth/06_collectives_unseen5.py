"""Answers to lesson 06, fifth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- global_argmax


def global_argmax__right_candidates(v, *, mesh):
    def on_device(block):
        here = jnp.argmax(block)  # the first one in this block
        best = jax.lax.pmax(block[here], "x")
        place = here + jax.lax.axis_index("x") * len(block)
        return jax.lax.pmin(jnp.where(block[here] == best, place, jnp.iinfo(place.dtype).max), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# Thought that the place in the block is the place: forgot the blocks before it.
def global_argmax__wrong_local(v, *, mesh):
    def on_device(block):
        best = jax.lax.pmax(block.max(), "x")
        place = jnp.where(block == best, jnp.arange(len(block)), len(block))
        return jax.lax.pmin(place.min(), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# Filled up with -1 and took the largest place: the last of several that are equally large.
def global_argmax__wrong_last(v, *, mesh):
    def on_device(block):
        best = jax.lax.pmax(block.max(), "x")
        places = jax.lax.axis_index("x") * len(block) + jnp.arange(len(block))
        return jax.lax.pmax(jnp.where(block == best, places, -1).max(), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# Took the number of devices for the length of a block when counting the places.
def global_argmax__wrong_stride(v, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        best = jax.lax.pmax(block.max(), "x")
        places = jax.lax.axis_index("x") * n + jnp.arange(len(block))
        return jax.lax.pmin(jnp.where(block == best, places, n * len(block)).min(), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# Brought the whole vector to every device by way of in_specs, and thought that this is not sending.
def global_argmax__wrong_sendsall(v, *, mesh):
    return jax.shard_map(jnp.argmax, mesh=mesh, in_specs=P(), out_specs=P())(v)


# ---- block_bytes_sent

block_bytes_sent__right_table = {
    "all_gather": 3 * 32,
    "psum": 2 * 3 * 8,
    "psum_scatter": 3 * 8,
    "all_to_all": 3 * 8,
    "ppermute +1": 32,
    "axis_index": 0,
}

# Counted the bytes that a device holds afterwards, its own block among them.
block_bytes_sent__wrong_holds = {
    "all_gather": 128,
    "psum": 48,
    "psum_scatter": 24,
    "all_to_all": 24,
    "ppermute +1": 32,
    "axis_index": 0,
}

# Thought that a psum goes round the ring once.
block_bytes_sent__wrong_onceround = {
    "all_gather": 96,
    "psum": 24,
    "psum_scatter": 24,
    "all_to_all": 24,
    "ppermute +1": 32,
    "axis_index": 0,
}

# Thought that in scatter and exchange the whole block leaves, the own piece too.
block_bytes_sent__wrong_ownpiece = {
    "all_gather": 96,
    "psum": 48,
    "psum_scatter": 32,
    "all_to_all": 32,
    "ppermute +1": 32,
    "axis_index": 0,
}

# Took the 32 bytes for the whole array in the gather and in the permute, so that a block is a quarter of it.
block_bytes_sent__wrong_wholeorblock = {
    "all_gather": 24,
    "psum": 48,
    "psum_scatter": 24,
    "all_to_all": 24,
    "ppermute +1": 8,
    "axis_index": 0,
}


# ---- global_logsumexp


def global_logsumexp__right_twice(x, *, mesh):
    def on_device(block):
        own = jax.nn.logsumexp(block, axis=1)  # then once more, over devices
        largest = jax.lax.pmax(own, "x")
        return largest + jnp.log(jax.lax.psum(jnp.exp(own - largest), "x"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


# Thought that each device may subtract its own largest entry, and that the largest of all is added back at the end.
def global_logsumexp__wrong_ownscale(x, *, mesh):
    def on_device(block):
        own = block.max(axis=1)
        total = jax.lax.psum(jnp.exp(block - own[:, None]).sum(axis=1), "x")
        return jax.lax.pmax(own, "x") + jnp.log(total)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


# Thought that the log of a sum is the sum of the logs.
def global_logsumexp__wrong_sumoflogs(x, *, mesh):
    def on_device(block):
        return jax.lax.psum(jax.nn.logsumexp(block, axis=1), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


# Subtracted one largest entry for all rows: rows far below it come out as minus infinity.
def global_logsumexp__wrong_onelargest(x, *, mesh):
    def on_device(block):
        largest = jax.lax.pmax(block.max(), "x")
        return largest + jnp.log(jax.lax.psum(jnp.exp(block - largest).sum(axis=1), "x"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


# Subtracted the largest of the row and forgot to add it back.
def global_logsumexp__wrong_notback(x, *, mesh):
    def on_device(block):
        largest = jax.lax.pmax(block.max(axis=1, keepdims=True), "x")
        return jnp.log(jax.lax.psum(jnp.exp(block - largest).sum(axis=1), "x"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)
