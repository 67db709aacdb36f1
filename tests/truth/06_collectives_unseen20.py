"""Answers to lesson 06, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ------------------------------------------------------------- all_gather_ref


def all_gather_ref__right_stack_then_merge(blocks, axis, tiled):
    """What every device holds after an all_gather: stacked at `axis`; tiled merges the new dimension with the one behind it."""
    blocks = [np.asarray(block) for block in blocks]
    shape = list(blocks[0].shape)
    if tiled:
        axis %= len(shape)
    together = np.stack(blocks, axis=axis)
    if tiled:
        shape[axis] *= len(blocks)
        together = together.reshape(shape)
    return [together.copy() for _ in blocks]


# All devices hold the same afterwards, so it is enough to give that one array back.
def all_gather_ref__wrong_one_array_only(blocks, axis, tiled):
    join = np.concatenate if tiled else np.stack
    return join(blocks, axis=axis)


# Tiled is the stacked form, reshaped so that the dimension `axis` is n times as long (the order inside is then wrong for axis > 0).
def all_gather_ref__wrong_stack_and_reshape(blocks, axis, tiled):
    n = len(blocks)
    if not tiled:
        return [np.stack(blocks, axis=axis)] * n
    shape = list(np.shape(blocks[0]))
    shape[axis] = shape[axis] * n
    return [np.stack(blocks).reshape(shape)] * n


# The new dimension of the untiled form stands in front; `axis` only says along which one tiled joins.
def all_gather_ref__wrong_new_dimension_in_front(blocks, axis, tiled):
    if tiled:
        everything = np.concatenate(blocks, axis=axis)
    else:
        everything = np.stack(blocks)
    return [everything for _ in range(len(blocks))]


# A device begins with its own block, and then come the others' as they go round the ring.
def all_gather_ref__wrong_own_block_first(blocks, axis, tiled):
    def seen_from(device):
        return list(blocks[device:]) + list(blocks[:device])

    together = []
    for device in range(len(blocks)):
        own_order = seen_from(device)
        if tiled:
            together.append(np.concatenate(own_order, axis=axis))
        else:
            together.append(np.stack(own_order, axis=axis))
    return together


# --------------------------------------------------------- logsumexp_gradient


def logsumexp_gradient__right_summed_inside(x, *, mesh):
    """The rows are added up inside the body, so shard_map itself is a function to a scalar."""

    def total(block):
        still = jax.lax.stop_gradient(block)
        largest = jax.lax.pmax(still.max(axis=1, keepdims=True), "x")
        sums = jax.lax.psum(jnp.exp(block - largest).sum(axis=1, keepdims=True), "x")
        return (largest + jnp.log(sums)).sum()

    of_all = jax.shard_map(total, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(of_all)(x)


# The maximum has no influence on the gradient, so each device may take its own, and need not add it again.
def logsumexp_gradient__wrong_own_maximum(x, *, mesh):
    def shifted(block):
        largest = jax.lax.stop_gradient(block.max(axis=1, keepdims=True))
        terms = jnp.exp(block - largest).sum(axis=1)
        return jnp.log(jax.lax.psum(terms, "x"))

    def loss(x):
        rows = jax.shard_map(shifted, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)
        return rows.sum()

    return jax.grad(loss)(x)


# Each device may differentiate for its own block inside the body; the check is off, as the types only stand in the way (n times too large).
def logsumexp_gradient__wrong_inside_unchecked(x, *, mesh):
    def rows(block):
        largest = jax.lax.pmax(jax.lax.stop_gradient(block.max(axis=1)), "x")
        return largest + jnp.log(jax.lax.psum(jnp.exp(block - largest[:, None]).sum(axis=1), "x"))

    def on_device(block):
        return jax.grad(lambda own: rows(own).sum())(block)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"), check_vma=False)(x)


# Every device boils its part of the row down to its log Σ exp, and a psum adds these up (a sum of logs for the log of a sum).
def logsumexp_gradient__wrong_sum_of_logs(x, *, mesh):
    def rows(block):
        own_largest = jax.lax.stop_gradient(block.max(axis=1, keepdims=True))
        own = own_largest[:, 0] + jnp.log(jnp.exp(block - own_largest).sum(axis=1))
        return jax.lax.psum(own, "x")

    of_rows = jax.shard_map(rows, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(lambda x: of_rows(x).sum())(x)


# A loss is a mean over the tokens, so the rows are averaged before jax.grad.
def logsumexp_gradient__wrong_mean_over_rows(x, *, mesh):
    def rows(block):
        largest = jax.lax.pmax(jax.lax.stop_gradient(block.max(axis=1)), "x")
        sums = jax.lax.psum(jnp.exp(block - largest[:, None]).sum(axis=1), "x")
        return largest + jnp.log(sums)

    def loss(x):
        return jax.shard_map(rows, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x).mean()

    return jax.grad(loss)(x)


# --------------------------------------------------------------- global_argmax


def global_argmax__right_one_candidate_each(v, *, mesh):
    """Each device has one candidate, its first largest entry; those of the devices that have the largest of all go into a pmin."""
    nowhere = v.shape[0]

    def on_device(block):
        candidate = jnp.argmax(block)
        value = block[candidate]
        place = jax.lax.axis_index("x") * block.shape[0] + candidate
        return jax.lax.pmin(jnp.where(value == jax.lax.pmax(value, "x"), place, nowhere), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# Elsewhere the place is -1, and the true place is the largest of what is left (with equal entries on two devices, the later one).
def global_argmax__wrong_last_of_equals(v, *, mesh):
    def on_device(block):
        top = block.max()
        largest = jax.lax.pmax(top, "x")
        first_here = jax.lax.axis_index("x") * block.shape[0] + jnp.argmax(block)
        return jax.lax.pmax(jnp.where(top == largest, first_here, -1), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# A device's part begins at its number times the number of devices (right where a block is as long as the axis).
def global_argmax__wrong_offset_by_devices(v, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        largest = jax.lax.pmax(block.max(), "x")
        places = jax.lax.axis_index("x") * n + jnp.arange(block.shape[0])
        candidates = jnp.where(block == largest, places, jnp.iinfo(jnp.int32).max)
        return jax.lax.pmin(candidates.min(), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# Each device looks where its block has its largest entry, and the smallest place of all is the first (whose largest it is, is never asked).
def global_argmax__wrong_compared_at_home(v, *, mesh):
    far = v.shape[0]

    def on_device(block):
        places = jax.lax.axis_index("x") * block.shape[0] + jnp.arange(block.shape[0])
        mine = jnp.where(block == block.max(), places, far).min()
        return jax.lax.pmin(mine, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)


# No place is as large as the length: but takes the length of the block, where that of the vector is meant.
def global_argmax__wrong_length_of_the_block(v, *, mesh):
    def on_device(block):
        length = block.shape[0]
        largest = jax.lax.pmax(block.max(), "x")
        places = jax.lax.axis_index("x") * length + jnp.arange(length)
        own = jnp.min(jnp.where(block == largest, places, length))
        return jax.lax.pmin(own, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(v)
