"""Answers to lesson 18, seventh batch, written by a reader of the notebook only."""

import functools

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


def merge(left, right):
    """The part that two parts come to (used by the rings below)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- merge


def merge__right_stacked(left, right):
    """Both parts on top of each other: then it is a maximum and two sums along a new axis."""
    tops, weights, values = (jnp.stack(pair) for pair in zip(left, right))
    top = tops.max(axis=0)
    scale = jnp.exp(tops - jnp.where(jnp.isneginf(top), 0.0, top))
    return top, (scale * weights).sum(axis=0), (scale * values).sum(axis=0)


# The values are weighted already, so only the weights have to be brought to the new largest logit.
def merge__wrong_values_as_they_are(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    weight = left[1] * jnp.exp(left[0] - base) + right[1] * jnp.exp(right[0] - base)
    return top, weight, left[2] + right[2]


# Returns the number that was subtracted as the largest logit: where both are empty that is 0 and not −inf.
def merge__wrong_base_returned(left, right):
    (m1, w1, v1), (m2, w2, v2) = left, right
    m = jnp.maximum(m1, m2)
    m = jnp.where(m == -jnp.inf, 0, m)
    e1, e2 = jnp.exp(m1 - m), jnp.exp(m2 - m)
    return m, e1 * w1 + e2 * w2, e1 * v1 + e2 * v2


# Goes back to true exponentials, adds them up, and makes them relative again: exp(1000) is infinite.
def merge__wrong_absolute(left, right):
    top = jnp.maximum(left[0], right[0])
    total = left[1] * jnp.exp(left[0]) + right[1] * jnp.exp(right[0])
    mixed = left[2] * jnp.exp(left[0]) + right[2] * jnp.exp(right[0])
    back = jnp.exp(-jnp.where(top == -jnp.inf, 0, top))
    return top, total * back, mixed * back


# Gives the attention itself as third: divides by the weight at every merge, and not once at the end.
def merge__wrong_divided(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(jnp.isfinite(top), top, 0)
    scaled = [(jnp.exp(m - base) * w, jnp.exp(m - base) * v) for m, w, v in (left, right)]
    weight = scaled[0][0] + scaled[1][0]
    values = scaled[0][1] + scaled[1][1]
    return top, weight, values / jnp.where(weight == 0, 1, weight)


# ---------------------------------------------------------------- causal_ring


def causal_ring__right_list(q, k, v, *, mesh):
    """Written out; the parts are collected in a list and merged at the end."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, t = jax.lax.axis_index("x"), len(q)
        place = me * t + jnp.arange(t)
        parts = []
        for step in range(n):
            following = (send(k), send(v)) if step + 1 < n else (None, None)
            holder = jnp.where(step <= me, me - step, me - step + n)
            parts.append(part(q, k, v, holder * t + jnp.arange(t) <= place[:, None]))
            k, v = following
        _, weight, mixed = functools.reduce(merge, parts)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Blocks move up, so after `step` transfers there must be the block of me + step.
def causal_ring__wrong_other_way(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = me * len(q) + jnp.arange(len(q))

        def looked(step, k, v):
            keys = (me + step) % n * len(k) + jnp.arange(len(k))
            return part(q, k, v, queries[:, None] >= keys)

        def turn(step, carry):
            so_far, k, v = carry
            return merge(so_far, looked(step, k, v)), send(k), send(v)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        so_far, k, v = jax.lax.fori_loop(0, n - 1, turn, (jax.tree.map(varying, nothing), k, v))
        _, weight, mixed = merge(so_far, looked(n - 1, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x"), P("x")), out_specs=P("x"))(q, k, v)


# Knows where the keys stand in the text, but counts each device's queries from 0.
def causal_ring__wrong_queries_from_zero(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        me = jax.lax.axis_index("x")
        queries = jnp.arange(len(q))
        total = None
        for step in range(n):
            keys = (me - step) % n * len(k) + jnp.arange(len(k))
            one = part(q, k, v, queries[:, None] >= keys)
            total = one if total is None else merge(total, one)
            if step < n - 1:
                k, v = send(k), send(v)
        return total[2] / total[1]

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# me - step without the % n: a block from the end of the text gets negative positions, and everybody sees it.
def causal_ring__wrong_no_wrap(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        rows = jnp.arange(len(q))
        so_far = part(q, k, v, rows[:, None] >= rows)  # at home: a triangle

        for step in range(1, n):
            k, v = send(k), send(v)
            here = (me - step) * len(k) + rows
            so_far = merge(so_far, part(q, k, v, (me * len(q) + rows)[:, None] >= here))

        return so_far[2] / so_far[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# A loop of n turns, each of which sends: simpler than a last merge after it, but every block comes home again.
def causal_ring__wrong_n_transfers(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        place = me * len(q) + jnp.arange(len(q))

        def turn(step, carry):
            total, k, v = carry
            keys = (me - step) % n * len(k) + jnp.arange(len(k))
            total = merge(total, part(q, k, v, place[:, None] >= keys[None, :]))
            return total, send(k), send(v)

        t, e = len(q), v.shape[-1]
        empty = varying(jnp.full((t, 1), -jnp.inf)), varying(jnp.zeros((t, 1))), varying(jnp.zeros((t, e)))
        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n, turn, (empty, k, v))
        return mixed / weight

    cut = P("x")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=cut)(q, k, v)


# ---------------------------------------------------------------- cp_bytes


def cp_bytes__right_pieces(tokens, heads, kv_heads, width, n):
    """Counts pieces: a head of one device's tokens. To each of the n − 1 others goes an n-th of the heads."""
    piece = tokens // n * width * 2
    others = n - 1
    around = others * 2 * kv_heads * piece
    if heads % n:
        return {"gather": around, "ring": around, "ulysses": None}
    copied = kv_heads if kv_heads >= n else n
    to_each = heads // n + heads // n + copied // n + copied // n  # q, result, k, v
    return {"gather": around, "ring": around, "ulysses": others * to_each * piece}


# Gather: a device sends what it has, so its own keys and values once; only a ring passes blocks on.
def cp_bytes__wrong_gather_once(tokens, heads, kv_heads, width, n):
    mine = tokens // n * width * 2
    ulysses = (n - 1) / n * 2 * (heads + max(kv_heads, n)) * mine if heads % n == 0 else None
    return {"gather": 2 * kv_heads * mine, "ring": (n - 1) * 2 * kv_heads * mine, "ulysses": ulysses}


# Ulysses sends the key-value heads there are; that they are copied when there are fewer than devices is forgotten.
def cp_bytes__wrong_no_copies(tokens, heads, kv_heads, width, n):
    head = tokens / n * width * 2
    kv = 2 * kv_heads * head
    out = {"gather": (n - 1) * kv, "ring": (n - 1) * kv}
    out["ulysses"] = None if heads % n else (2 * heads * head + kv) * (n - 1) / n
    return out


# The result comes home for nothing: three exchanges (q, k, v) are counted in place of four.
def cp_bytes__wrong_three_exchanges(tokens, heads, kv_heads, width, n):
    b = 2 * width * tokens // n
    d = dict(gather=2 * (n - 1) * kv_heads * b, ring=2 * (n - 1) * kv_heads * b, ulysses=None)
    if heads % n == 0:
        d["ulysses"] = (heads + 2 * max(kv_heads, n)) * b * (n - 1) // n
    return d


# "The other devices have (n − 1)/n of the text": for gather and ring takes that part of a device's own block, not of the whole.
def cp_bytes__wrong_part_of_own(tokens, heads, kv_heads, width, n):
    def passed(number_of_heads):
        return number_of_heads * tokens // n * width * 2 * (n - 1) // n

    kv = 2 * passed(kv_heads)
    if heads % n != 0:
        u = None
    else:
        u = 2 * passed(heads) + 2 * passed(max(kv_heads, n))
    return {"gather": kv, "ring": kv, "ulysses": u}
