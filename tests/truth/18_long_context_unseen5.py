"""Answers to lesson 18, fifth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def send(block, by=1):
    """Send the block `by` places up the ring over x; returns the one that came instead."""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(block, "x", [(d, (d + by) % n) for d in range(n)])


def varying(value):
    """The same value, marked as one that may differ along x (`lax.pvary` until JAX 0.8.1, `lax.pcast` since)."""
    return jax.lax.pcast(value, "x", to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(value, "x")


def part(q, k, v, seen=True):
    """What these keys come to for q[T, D]: largest logit [T, 1], weight [T, 1], weighted values [T, E].

    `seen` is True where a query may look at a key. Weight and values are relative to the largest logit, not yet divided.
    """
    logits = jnp.where(seen, q @ k.T / q.shape[-1] ** 0.5, -jnp.inf)
    top = logits.max(-1, keepdims=True)
    weights = jnp.exp(logits - jnp.where(top == -jnp.inf, 0, top))  # −inf − (−inf) is not a number
    return top, weights.sum(-1, keepdims=True), weights @ v


# ---------------------------------------------------------------- merge


def merge__right_stacked(left, right):
    tops, weights, values = (jnp.stack(pair) for pair in zip(left, right))
    top = tops.max(axis=0)
    scale = jnp.exp(tops - jnp.where(jnp.isneginf(top), 0.0, top))
    return top, (scale * weights).sum(axis=0), (scale * values).sum(axis=0)


# The new largest logit is subtracted as it is; that both parts may be empty, the student has not thought of: nan.
def merge__wrong_both_empty(left, right):
    top = jnp.maximum(left[0], right[0])
    a, b = jnp.exp(left[0] - top), jnp.exp(right[0] - top)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# Everything is brought to the largest logit of the left part, which overflows if the right one's is much larger.
def merge__wrong_relative_to_left(left, right):
    base = jnp.where(left[0] == -jnp.inf, right[0], left[0])
    base = jnp.where(base == -jnp.inf, 0, base)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    top = jnp.where(left[0] == -jnp.inf, right[0], left[0])
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# The two factors are exchanged: the student multiplies each part by what the other one's largest logit calls for.
def merge__wrong_factors_exchanged(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(right[0] - base), jnp.exp(left[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# The student divides the values by the weight at once, so the part is no longer one that can be merged again.
def merge__wrong_divided_already(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    weight = a * left[1] + b * right[1]
    return top, weight, (a * left[2] + b * right[2]) / jnp.where(weight == 0, 1, weight)


# ---------------------------------------------------------------- gather_kv


def gather_kv__right_rows_of_a_triangle(q, k, v, *, mesh):
    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", axis=0, tiled=True) for block in (k, v))
        below = varying(jnp.tri(len(k), dtype=bool))
        seen = jax.lax.dynamic_slice_in_dim(below, jax.lax.axis_index("x") * len(q), len(q))
        _, weight, mixed = part(q, k, v, seen)
        return mixed / weight

    cut = P("x")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=cut)(q, k, v)


# The queries begin at me times the length of k, the student writes, and k is already the gathered one.
def gather_kv__wrong_length_after_the_gather(q, k, v, *, mesh):
    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        place = jax.lax.axis_index("x") * len(k) + jnp.arange(len(q))
        _, weight, mixed = part(q, k, v, seen=place[:, None] >= jnp.arange(len(k)))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# `part` gives the weighted values, and the student returns those: nobody has divided by the weight.
def gather_kv__wrong_not_divided(q, k, v, *, mesh):
    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        place = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        return part(q, k, v, seen=place[:, None] >= jnp.arange(len(k)))[2]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# With everything in one place the mask is simple: the student gathers the queries too, and keeps the own rows of the result.
def gather_kv__wrong_gathers_queries_too(q, k, v, *, mesh):
    def on_device(q, k, v):
        own = len(q)
        q, k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (q, k, v))
        _, weight, mixed = part(q, k, v, seen=jnp.tri(len(q), dtype=bool))
        return jax.lax.dynamic_slice_in_dim(mixed / weight, jax.lax.axis_index("x") * own, own)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# The student takes P("x") for dealing out in turn: query i of device d would stand at i · n + d.
def gather_kv__wrong_dealt_out_in_turn(q, k, v, *, mesh):
    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        place = jnp.arange(len(q)) * jax.lax.axis_size("x") + jax.lax.axis_index("x")
        _, weight, mixed = part(q, k, v, seen=place[:, None] >= jnp.arange(len(k)))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- causal_ring


def causal_ring__right_sends_ahead(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def joined(left, right):
        top = jnp.maximum(left[0], right[0])
        a, b = (jnp.exp(one[0] - jnp.where(top == -jnp.inf, 0, top)) for one in (left, right))
        return top, a * left[1] + b * right[1], a * left[2] + b * right[2]

    def on_device(q, k, v):
        me, length = jax.lax.axis_index("x"), len(k)
        total = None
        for step in range(n):
            ahead = (send(k), send(v)) if step + 1 < n else (None, None)
            distance = (me - (me - step) % n) * length  # from the block of keys at hand to the own queries
            seen = distance + jnp.arange(len(q))[:, None] - jnp.arange(length) >= 0
            found = part(q, k, v, seen)
            total = found if total is None else joined(total, found)
            k, v = ahead
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x"), P("x")), out_specs=P("x"))(q, k, v)


# The mask is made of block numbers: the own block is an earlier or equal one, so the student lets it be seen whole.
def causal_ring__wrong_own_block_whole(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def merge(left, right):
        top = jnp.maximum(left[0], right[0])
        base = jnp.where(top == -jnp.inf, 0, top)
        a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
        return top, a * left[1] + b * right[1], a * left[2] + b * right[2]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        total = part(q, k, v)
        for step in range(1, n):
            k, v = send(k), send(v)
            total = merge(total, part(q, k, v, seen=(me - step) % n <= me))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# The keys go round, and the values are left at home: the weights of one block meet the values of another.
def causal_ring__wrong_values_stay(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def merge(left, right):
        top = jnp.maximum(left[0], right[0])
        base = jnp.where(top == -jnp.inf, 0, top)
        a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
        return top, a * left[1] + b * right[1], a * left[2] + b * right[2]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = me * len(q) + jnp.arange(len(q))
        total = part(q, k, v, seen=queries[:, None] >= queries)
        for step in range(1, n):
            k = send(k)
            keys = (me - step) % n * len(k) + jnp.arange(len(k))
            total = merge(total, part(q, k, v, seen=queries[:, None] >= keys))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Block numbers are taken modulo 4, the ring of the notebook; on any other ring the keys stand in wrong places.
def causal_ring__wrong_modulo_four(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def merge(left, right):
        top = jnp.maximum(left[0], right[0])
        base = jnp.where(top == -jnp.inf, 0, top)
        a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
        return top, a * left[1] + b * right[1], a * left[2] + b * right[2]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = me * len(q) + jnp.arange(len(q))
        total = part(q, k, v, seen=queries[:, None] >= queries)
        for step in range(1, n):
            k, v = send(k), send(v)
            keys = (me - step) % 4 * len(k) + jnp.arange(len(k))
            total = merge(total, part(q, k, v, seen=queries[:, None] >= keys))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# The keys have their positions in the text, and the queries are counted from 0 on every device.
def causal_ring__wrong_queries_from_zero(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def merge(left, right):
        top = jnp.maximum(left[0], right[0])
        base = jnp.where(top == -jnp.inf, 0, top)
        a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
        return top, a * left[1] + b * right[1], a * left[2] + b * right[2]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = jnp.arange(len(q))
        total = part(q, k, v, seen=jnp.tri(len(q), dtype=bool))
        for step in range(1, n):
            k, v = send(k), send(v)
            keys = (me - step) % n * len(k) + jnp.arange(len(k))
            total = merge(total, part(q, k, v, seen=queries[:, None] >= keys))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)
