"""Answers to lesson 17, eighteenth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- route


def route__right_sorted(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    experts = jnp.argsort(-logits, axis=1, stable=True)[:, :k]
    top = jnp.take_along_axis(logits, experts, axis=1)
    boltzmann = jnp.exp(top - top[:, :1])
    return boltzmann / boltzmann.sum(axis=1, keepdims=True), experts


# The router's probabilities are a softmax over all experts; the k largest of them are the weights.
def route__wrong_all_experts(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    return jax.lax.top_k(jax.nn.softmax(logits, axis=-1), k)


# It is enough to have the softmax in float32, the choice may be made from the product as it comes.
def route__wrong_cast_late(x, router, k):
    top, experts = jax.lax.top_k(jnp.asarray(x) @ jnp.asarray(router), k)
    return jax.nn.softmax(top.astype(jnp.float32), axis=-1), experts


# The softmax over axis 0, "the first": it normalises over tokens.
def route__wrong_axis(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    top, experts = jax.lax.top_k(logits, k)
    return jax.nn.softmax(top, axis=0), experts


# Sort upwards and read from behind, the largest first (and of equal ones the higher number).
def route__wrong_from_behind(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    experts = jnp.argsort(logits, axis=1)[:, ::-1][:, :k]
    return jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=1), axis=1), experts


# ---------------------------------------------------------------- capacity_numbers


def capacity_numbers__right_over_and_under(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / E)
    over, under = (np.maximum(sign * (wanted - capacity), 0).sum() for sign in (1, -1))
    return {
        "capacity": capacity,
        "dropped": float(over / wanted.sum()),
        "empty": float(under / (n * E * capacity)),
        "bytes": 2 * (E - E // n) * capacity * width * 2,  # there and back; bfloat16
    }


# An expert has n * capacity slots in all, so what counts is how many want it on all devices together.
def capacity_numbers__wrong_pooled(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / E)
    kept = np.minimum(wanted.sum(axis=0), n * capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * E * capacity)),
        "bytes": 2 * (E - E // n) * capacity * width * 2,
    }


# One of the E rows of a buffer stays at home, so E - 1 of them travel (right with one expert on each device).
def capacity_numbers__wrong_one_row(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / E)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * E * capacity)),
        "bytes": 2 * (E - 1) * capacity * width * 2,
    }


# Empty is what is left when all choices have been put into the slots (the dropped ones are in none).
def capacity_numbers__wrong_all_placed(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / E)
    kept, slots = np.minimum(wanted, capacity).sum(), n * E * capacity
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(max(0, slots - wanted.sum()) / slots),
        "bytes": 2 * (E - E // n) * capacity * width * 2,
    }


# On the way back a device sends what its own E/n experts made, each of `capacity` slots (they have that from every device).
def capacity_numbers__wrong_way_back(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / E)
    kept = np.minimum(wanted, capacity).sum()
    there, back = E * capacity * width * 2, E // n * capacity * width * 2
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * E * capacity)),
        "bytes": (there + back) * (n - 1) // n,
    }


# ---------------------------------------------------------------- ring_of_experts


def ring_of_experts__right_exchanged(x, weights, experts, w_in, w_out, *, mesh):
    n = mesh.shape["expert"]

    def body(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        tokens, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.einsum("tk,tk->t", weights, (experts == me).astype(weights.dtype))
        part = gate[:, None] * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0])
        parts = jax.lax.all_to_all(part, "expert", 0, 0, tiled=True)  # block d: what expert d made of my tokens
        return x + parts.reshape(n, *x.shape).sum(axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# y = x + part, on each device, and then the sum over devices brings it home (with x n times).
def ring_of_experts__wrong_x_in_each(x, weights, experts, w_in, w_out, *, mesh):
    def body(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        x, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1)
        y = x + gate[:, None] * (jax.nn.relu(x @ w_in[0]) @ w_out[0])
        return jax.lax.psum_scatter(y, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# Add up everything everywhere, then each device takes its own tokens out (an all_reduce, twice the bytes).
def ring_of_experts__wrong_all_reduce(x, weights, experts, w_in, w_out, *, mesh):
    def body(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        tokens, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        gate = jnp.where(experts == me, weights, 0).sum(axis=1)
        total = jax.lax.psum(gate[:, None] * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0]), "expert")
        return x + jax.lax.dynamic_slice_in_dim(total, me * len(x), len(x))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# The weights are at home and need not travel: add up the chosen experts' results, and weigh the sum there (right for k = 1).
def ring_of_experts__wrong_weighed_at_home(x, weights, experts, w_in, w_out, *, mesh):
    def body(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        tokens, choices = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, experts))
        asked = (choices == me).any(axis=1)
        part = jnp.where(asked[:, None], jax.nn.relu(tokens @ w_in[0]) @ w_out[0], 0)
        home = jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)
        return x + weights.sum(axis=1, keepdims=True) * home

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# argmax of "the choice is me" is the place of my weight (where nobody asked for me it is 0: the first choice's weight).
def ring_of_experts__wrong_argmax(x, weights, experts, w_in, w_out, *, mesh):
    def body(x, weights, experts, w_in, w_out):
        me = jax.lax.axis_index("expert")
        tokens, weights, experts = (jax.lax.all_gather(a, "expert", tiled=True) for a in (x, weights, experts))
        place = jnp.argmax(experts == me, axis=1)
        gate = jnp.take_along_axis(weights, place[:, None], axis=1)
        part = gate * (jax.nn.relu(tokens @ w_in[0]) @ w_out[0])
        return x + jax.lax.psum_scatter(part, "expert", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("expert"),) * 5, out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )
