"""Answers to lesson 17, eleventh batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- route


def route__right_sorted(x, router, k):
    """A stable sort of the negative logits: of equal ones the lower number comes first."""
    x, router = (jnp.asarray(a).astype(jnp.float32) for a in (x, router))
    logits = jnp.einsum("td,de->te", x, router, precision="highest")
    experts = jnp.argsort(-logits, axis=1, stable=True)[:, :k]
    return jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=1), axis=1), experts


# This student thought that the weights are the router's probabilities, a softmax over all E, of which the k largest are taken.
def route__wrong_over_all(x, router, k):
    logits = x.astype(jnp.float32) @ router.astype(jnp.float32)
    return jax.lax.top_k(jax.nn.softmax(logits, axis=-1), k)


# This student made the logits float32, but after the product.
def route__wrong_too_late(x, router, k):
    logits = (jnp.asarray(x) @ jnp.asarray(router)).astype(jnp.float32)
    top, experts = jax.lax.top_k(logits, k)
    return jax.nn.softmax(top, axis=-1), experts


# This student let the softmax go over the tokens, down the columns, not over a token's k choices.
def route__wrong_down(x, router, k):
    logits = x.astype(jnp.float32) @ router.astype(jnp.float32)
    top, experts = jax.lax.top_k(logits, k)
    return jax.nn.softmax(top, axis=0), experts


# This student sorts upwards and reads from the end: largest first, but of equal logits the higher number wins.
def route__wrong_from_the_end(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    experts = jnp.argsort(logits, axis=1)[:, ::-1][:, :k]
    return jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=1), axis=1), experts


# ---------------------------------------------------------------- slots


def slots__right_pairs(experts, num_experts, capacity):
    """A square of pairs: which earlier choices want the same expert?"""
    experts = jnp.asarray(experts)
    same = experts[:, None] == experts[None, :]
    slot = jnp.tril(same.astype(jnp.int32), -1).sum(axis=1)
    return slot, slot < capacity


# This student counts the choice itself too, so that slots begin at 1 (and compares accordingly, so that `kept` is right).
def slots__wrong_from_one(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = (jnp.cumsum(wants, axis=0) * wants).sum(axis=1)
    return slot, slot <= capacity


# This student takes the largest count of each row, thinking that it is the one that the choice has just raised.
def slots__wrong_largest(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = jnp.cumsum(wants, axis=0).max(axis=1) - 1
    return slot, slot < capacity


# This student pushes whoever finds no slot to the last one, so that every slot is inside the buffer.
def slots__wrong_pushed(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return jnp.minimum(slot, capacity - 1), slot < capacity


# This student sorts, counts within each group, and then reads by the order once more where the counts should be written home.
def slots__wrong_read_again(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    order = jnp.argsort(experts, stable=True)
    in_order = experts[order]
    place = jnp.arange(len(experts)) - jnp.searchsorted(in_order, in_order, side="left")
    slot = place[order]
    return slot, slot < capacity


# ---------------------------------------------------------------- capacity_numbers


def capacity_numbers__right_surplus(wanted, factor, width):
    """What is too much and what is too little, cell by cell; the bytes in whole numbers."""
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = math.ceil(factor * int(wanted[0].sum()) / E)
    too_many, free = np.clip(wanted - capacity, 0, None), np.clip(capacity - wanted, 0, None)
    return {
        "capacity": capacity,
        "dropped": float(too_many.sum() / wanted.sum()),
        "empty": float(free.sum() / (n * E * capacity)),
        "bytes": 2 * 2 * width * capacity * (E - E // n),
    }


# This student thought that a device keeps one expert's slots for itself, as with one expert each: (E - 1) / E in place of (n - 1) / n.
def capacity_numbers__wrong_one_each(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / E))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * E * capacity),
        "bytes": 2 * (E - 1) * capacity * width * 2,
    }


# This student thought that an expert's slots are one pool for all devices: what one device leaves free another may fill.
def capacity_numbers__wrong_pool(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / E))
    kept = np.minimum(wanted.sum(axis=0), n * capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * E * capacity),
        "bytes": 2 * (n - 1) / n * E * capacity * width * 2,
    }


# This student thought that only the slots with a token in them travel.
def capacity_numbers__wrong_only_full(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / E))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": 1 - kept / wanted.sum(),
        "empty": 1 - kept / (n * E * capacity),
        "bytes": 2 * (n - 1) / n * (kept / n) * width * 2,
    }


# This student gives the empty slots as a part of the choices, like the dropped ones, not as a part of the slots.
def capacity_numbers__wrong_of_choices(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = int(np.ceil(factor * wanted[0].sum() / E))
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": (wanted.sum() - kept) / wanted.sum(),
        "empty": (n * E * capacity - kept) / wanted.sum(),
        "bytes": 2 * (n - 1) / n * E * capacity * width * 2,
    }
