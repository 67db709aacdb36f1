"""Answers to lesson 17, twenty-second batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- slots


def slots__right_pairs(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    same = (experts[:, None] == experts[None, :]).astype(jnp.int32)
    slot = jnp.tril(same, -1).sum(axis=1)
    return slot, slot < capacity


# The cumsum is the slot (the first one gets 1), and there are `capacity` of them, so up to and including it.
def slots__wrong_fromone(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = (jnp.cumsum(wants, axis=0) * wants).sum(axis=1)
    return slot, slot <= capacity


# The slots begin at 0, and slot `capacity` is the last one.
def slots__wrong_lessequal(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot <= capacity


# A slot that is not in the buffer would be out of bounds, so a dropped choice gets the last one.
def slots__wrong_clipped(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = jnp.take_along_axis(jnp.cumsum(wants, axis=0), jnp.asarray(experts)[:, None], axis=1)[:, 0] - 1
    return jnp.minimum(slot, capacity - 1), slot < capacity


# The slot is how many want the same expert, less the choice itself: all of them on this device, not only those before it.
def slots__wrong_total(experts, num_experts, capacity):
    load = jnp.bincount(jnp.asarray(experts), length=num_experts)
    slot = load[jnp.asarray(experts)] - 1
    return slot, slot < capacity


# ---------------------------------------------------------------- ring_of_experts


def ring_of_experts__right_exchanged(x, weights, experts, w_in, w_out, *, mesh):
    n = mesh.shape["expert"]

    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        all_x, all_w, all_e = (jax.lax.all_gather(a, "expert", axis=0, tiled=True) for a in (x, weights, experts))
        gate = jnp.einsum("tk,tk->t", all_w, (all_e == me).astype(all_w.dtype))
        part = gate[:, None] * (jax.nn.relu(all_x @ w_in[0]) @ w_out[0])
        mine = jax.lax.all_to_all(part, "expert", 0, 0, tiled=True)  # n blocks of my tokens, one from each expert
        return x + mine.reshape(n, *x.shape).sum(axis=0)

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=cut)(x, weights, experts, w_in, w_out)


# The residual belongs to the layer, so x is added where the tokens are: to the gathered ones, before the sum.
def ring_of_experts__wrong_manyx(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1, keepdims=True)
        y = x + gate * (jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(y, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# One expert on each device, so a token goes to its best: only the first of the k choices is compared.
def ring_of_experts__wrong_best(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        xs, ws, es = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(es[:, 0] == me, ws[:, 0], 0)
        part = gate[:, None] * (jax.nn.relu(xs @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# A sum over devices is a psum, and afterwards each device cuts out its own tokens (an all_reduce where a reduce_scatter was asked).
def ring_of_experts__wrong_psum(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        xs, ws, es = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(es == me, ws, 0).sum(axis=1, keepdims=True)
        total = jax.lax.psum(gate * (jax.nn.relu(xs @ w_in[0]) @ w_out[0]), "expert")
        return x + jax.lax.dynamic_slice_in_dim(total, me * len(x), len(x))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# The k results of a token are averaged: the mean over its choices (right for k = 1 only).
def ring_of_experts__wrong_mean(x, weights, experts, w_in, w_out, *, mesh):
    def on_device(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        xs, ws, es = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(es == me, ws, 0).mean(axis=1, keepdims=True)
        part = gate * (jax.nn.relu(xs @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# ---------------------------------------------------------------- capacity_numbers


def capacity_numbers__right_loops(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, e = wanted.shape
    choices = int(wanted[0].sum())
    capacity = math.ceil(factor * choices / e)
    lost = sum(max(0, int(w) - capacity) for row in wanted for w in row)
    free = sum(max(0, capacity - int(w)) for row in wanted for w in row)
    foreign_experts = e - e // n  # those that live elsewhere
    return {
        "capacity": capacity,
        "dropped": lost / (n * choices),
        "empty": free / (n * e * capacity),
        "bytes": 2 * foreign_experts * capacity * width * 2,
    }


# Two bytes for a bfloat16 are in, but the way back is not: the bytes of one all_to_all.
def capacity_numbers__wrong_oneway(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    choices = wanted[0].sum()
    capacity = int(np.ceil(factor * choices / E))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * E * capacity)),
        "bytes": E * capacity * width * 2 * (n - 1) // n,
    }


# The fair share is choices over devices, as there is one expert on each (true where E = n).
def capacity_numbers__wrong_devices(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / n))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * E * capacity)),
        "bytes": 2 * E * capacity * width * 2 * (n - 1) // n,
    }


# Both parts are parts of the choices: the empty slots are divided by the number of choices as well.
def capacity_numbers__wrong_ofchoices(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    total = wanted.sum()
    capacity = int(np.ceil(factor * total / n / E))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float((total - kept) / total),
        "empty": float((n * E * capacity - kept) / total),
        "bytes": 2 * E * capacity * width * 2 * (n - 1) // n,
    }


# An expert has n times capacity slots after the exchange, so what counts is how many want it from all devices together.
def capacity_numbers__wrong_pooled(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / E))
    kept = np.minimum(wanted.sum(axis=0), n * capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * E * capacity)),
        "bytes": 2 * E * capacity * width * 2 * (n - 1) // n,
    }
