"""Answers to lesson 17, fourteenth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- capacity_numbers


def capacity_numbers__right_overflow(wanted, factor, width):
    """Capacity, part dropped, part empty, bytes that a device sends."""
    wanted = np.asarray(wanted)
    devices, experts = wanted.shape
    capacity = math.ceil(factor * wanted[0].sum() / experts)
    over = np.maximum(wanted - capacity, 0).sum()
    free = np.maximum(capacity - wanted, 0).sum()
    foreign = experts - experts // devices  # the experts that live elsewhere
    return {
        "capacity": capacity,
        "dropped": over / wanted.sum(),
        "empty": free / (wanted.size * capacity),
        "bytes": 2 * foreign * capacity * width * 2,
    }


# Thought that the fair share is that of the whole batch: all devices' choices by E, though each device has slots of its own.
def capacity_numbers__wrong_global(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, e = wanted.shape
    capacity = math.ceil(factor * wanted.sum() / e)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * e * capacity),
        "bytes": 2 * (n - 1) / n * e * capacity * width * 2,
    }


# Thought that the devices' slots for an expert are one pool, so that a device may use what another one leaves free.
def capacity_numbers__wrong_pool(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, e = wanted.shape
    capacity = math.ceil(factor * wanted.sum(axis=1)[0] / e)
    kept = np.minimum(wanted.sum(axis=0), n * capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * e * capacity),
        "bytes": 2 * (n - 1) / n * e * capacity * width * 2,
    }


# Thought that every choice fills a slot, dropped or not, so empty is what the choices leave of the slots.
def capacity_numbers__wrong_empty(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, e = wanted.shape
    capacity = math.ceil(factor * wanted[0].sum() / e)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": max(0.0, 1 - wanted.sum() / (n * e * capacity)),
        "bytes": 2 * (n - 1) / n * e * capacity * width * 2,
    }


# Thought that an all_to_all sends the whole buffer, with the rows that stay at home.
def capacity_numbers__wrong_home(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, e = wanted.shape
    capacity = math.ceil(factor * wanted[0].sum() / e)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * e * capacity),
        "bytes": 2 * e * capacity * width * 2,
    }


# ---------------------------------------------------------------- bias_balance


def bias_balance__right_integers(scores, bias, k, rate):
    """(weights, experts, new bias)."""
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    tokens, num_experts = scores.shape
    experts = jnp.argsort(-(scores + bias), axis=1, stable=True)[:, :k]
    own = jax.vmap(lambda row, chosen: row[chosen])(scores, experts)
    load = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32).sum(axis=(0, 1))
    direction = jnp.sign(tokens * k - num_experts * load)  # whole numbers: no rounding at the mean
    return own / own.sum(axis=1, keepdims=True), experts, bias + rate * direction


# Thought that "the largest first" means the largest weight first, and sorted the chosen ones by their scores.
def bias_balance__wrong_resorted(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    _, chosen = jax.lax.top_k(scores + bias, k)
    own, order = jax.lax.top_k(jnp.take_along_axis(scores, chosen, axis=1), k)
    experts = jnp.take_along_axis(chosen, order, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return own / own.sum(axis=1, keepdims=True), experts, bias + rate * jnp.sign(load.mean() - load)


# Thought that there are only two cases: too many goes down, all others go up (also one that has just the mean).
def bias_balance__wrong_twocases(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    _, experts = jax.lax.top_k(scores + bias, k)
    own = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return own / own.sum(axis=1, keepdims=True), experts, bias + jnp.where(load > load.mean(), -rate, rate)


# Thought that the scores become weights by dividing through the sum of all E of a token, like probabilities.
def bias_balance__wrong_alle(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jnp.take_along_axis(scores / scores.sum(axis=1, keepdims=True), experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)


# Thought of a controller: the bias moves by rate times how much (as a part of the mean) the load is off.
def bias_balance__wrong_proportional(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    _, experts = jax.lax.top_k(scores + bias, k)
    own = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return own / own.sum(axis=1, keepdims=True), experts, bias + rate * (load.mean() - load) / load.mean()


# ---------------------------------------------------------------- slots


def slots__right_pairs(experts, num_experts, capacity):
    """(slot, kept) of each choice."""
    experts = jnp.asarray(experts)
    same = experts[:, None] == experts[None, :]
    slot = jnp.tril(same, -1).sum(axis=1)  # of those before me, how many want the same
    return slot, slot < capacity


# Thought that slots 0 to capacity are there: the comparison is off by one.
def slots__wrong_onemore(experts, num_experts, capacity):
    wants = jax.nn.one_hot(jnp.asarray(experts), num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot <= capacity


# Thought that a slot must be one that exists, and pushed a dropped choice's to the last one.
def slots__wrong_clamped(experts, num_experts, capacity):
    wants = jax.nn.one_hot(jnp.asarray(experts), num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return jnp.minimum(slot, capacity - 1), slot < capacity


# Sorted the choices by expert and counted within each group, but left the counts in sorted order.
def slots__wrong_sorted(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    sizes = jnp.bincount(experts, length=num_experts)
    starts = jnp.cumsum(sizes) - sizes
    in_order = experts[jnp.argsort(experts, stable=True)]
    slot = jnp.arange(len(experts)) - starts[in_order]
    return slot, slot < capacity


# Thought of the buffers of all experts as one flat array, and returned the place in that.
def slots__wrong_flat(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return experts * capacity + slot, slot < capacity
