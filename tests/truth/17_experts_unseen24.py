"""Answers to lesson 17, twenty-fourth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- slots


def slots__right_pairs(experts, num_experts, capacity):
    """How many before it are equal to it: the lower triangle of all comparisons."""
    experts = jnp.asarray(experts)
    slot = jnp.tril(experts[:, None] == experts[None, :], -1).sum(axis=1)
    return slot, slot < capacity


# Thought: there are `capacity` slots, so a slot up to and including `capacity` is one of them.
def slots__wrong_one_more(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot <= capacity


# Thought: a dropped choice takes no place, so all that are dropped would have got the same slot, the first beyond the buffer.
def slots__wrong_dropped_do_not_count(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    slot = jnp.minimum(slot, capacity)
    return slot, slot < capacity


# Thought: sorted by expert, the slot is the place minus the place where the expert's group begins (left in sorted order).
def slots__wrong_sorted(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    order = jnp.argsort(experts, stable=True)
    sizes = jnp.bincount(experts, length=num_experts)
    begins = jnp.cumsum(sizes) - sizes
    slot = jnp.arange(len(experts)) - begins[experts[order]]
    return slot, slot < capacity


# Thought: a row is a choice, so the count runs along the row.
def slots__wrong_axis(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=1) - 1) * wants).sum(axis=1)
    return slot, slot < capacity


# ---------------------------------------------------------------- capacity_numbers


def capacity_numbers__right_overflow(wanted, factor, width):
    """Count what is too much in place of what is kept."""
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / num_experts)
    dropped = int(np.maximum(wanted - capacity, 0).sum())
    free = int(np.maximum(capacity - wanted, 0).sum())
    elsewhere = num_experts - num_experts // n  # experts that live on other devices
    return {
        "capacity": capacity,
        "dropped": dropped / int(wanted.sum()),
        "empty": free / (wanted.size * capacity),
        "bytes": 2 * elsewhere * capacity * width * 2,
    }


# Thought: an expert is a device, so the fair share is choices / number of devices (right with one expert on each only).
def capacity_numbers__wrong_share_of_devices(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / n)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * num_experts * capacity)),
        "bytes": 2 * (n - 1) / n * num_experts * capacity * width * 2,
    }


# Thought: an empty slot has nothing in it, so only the tokens that were kept are sent.
def capacity_numbers__wrong_only_tokens_travel(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / num_experts)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * num_experts * capacity)),
        "bytes": float(2 * (n - 1) / n * kept / n * width * 2),
    }


# Thought: rounding up is int(...) + 1 (one too many where the share is a whole number).
def capacity_numbers__wrong_always_one_up(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = int(factor * int(wanted[0].sum()) / num_experts) + 1
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * num_experts * capacity)),
        "bytes": 2 * (n - 1) / n * num_experts * capacity * width * 2,
    }


# Thought: after the exchange an expert has n * capacity slots, which the tokens of all devices fill together.
def capacity_numbers__wrong_pooled(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, num_experts = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / num_experts)
    kept = np.minimum(wanted.sum(axis=0), n * capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * num_experts * capacity)),
        "bytes": 2 * (n - 1) / n * num_experts * capacity * width * 2,
    }


# ---------------------------------------------------------------- ring_of_experts


def ring_of_experts__right_weigh_between(x, weights, experts, w_in, w_out, *, mesh):
    """The second product is linear, so the weight may stand before it."""

    def on_device(x, weights, experts, w_in, w_out):
        everyone, all_weights, all_experts = (
            jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts)
        )
        gate = jnp.einsum(
            "tk,tk->t", all_weights, (all_experts == jax.lax.axis_index("expert")).astype(all_weights.dtype)
        )
        share = (gate[:, None] * jax.nn.relu(everyone @ w_in[0])) @ w_out[0]
        return x + jax.lax.psum_scatter(share, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# Thought: y is x plus the results, so x is added to what each device has before the sum (x counts n times).
def ring_of_experts__wrong_x_on_every_device(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1)
        y = x + gate[:, None] * (jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(y, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# Thought: an expert takes the tokens that chose it, each with the token's weight, which is the first (right with k = 1 only).
def ring_of_experts__wrong_first_weight(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        everyone, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where((experts == me).any(axis=1), weights[:, 0], 0)
        done = gate[:, None] * (jax.nn.relu(everyone @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(done, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# Thought: add up with a psum and let each device cut out its own tokens (right values, an all_reduce in place of the reduce_scatter).
def ring_of_experts__wrong_psum_and_cut(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        everyone, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1)
        done = jax.lax.psum(gate[:, None] * (jax.nn.relu(everyone @ w_in[0]) @ w_out[0]), "expert")
        return x + jax.lax.dynamic_slice_in_dim(done, me * len(x), len(x))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# Thought: an expert returns t + its result, and the weighted mean of these is x + ... (only if the weights add up to 1).
def ring_of_experts__wrong_weighted_residual(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1)
        done = gate[:, None] * (x + jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(done, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )
