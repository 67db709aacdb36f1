"""Answers to lesson 18, fifteenth batch, written by a reader of the notebook only."""

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
    tops = jnp.stack([left[0], right[0]])
    top = tops.max(axis=0)
    scale = jnp.exp(tops - jnp.where(jnp.isfinite(top), top, 0.0))
    weight = (scale * jnp.stack([left[1], right[1]])).sum(axis=0)
    mixed = (scale * jnp.stack([left[2], right[2]])).sum(axis=0)
    return top, weight, mixed


# This student thought that exp(-inf - top) = 0 takes care of empty parts, and forgot that both may be empty.
def merge__wrong_both_empty(left, right):
    top = jnp.maximum(left[0], right[0])
    a, b = jnp.exp(left[0] - top), jnp.exp(right[0] - top)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# This student thought that a merge ends with the division, and returns the mean of the values in place of their weighted sum.
def merge__wrong_divided(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    weight, mixed = 0, 0
    for m, w, values in (left, right):
        factor = jnp.exp(m - base)
        weight = weight + factor * w
        mixed = mixed + factor * values
    return top, weight, jnp.where(weight > 0, mixed / jnp.where(weight > 0, weight, 1), 0)


# This student first makes the weights absolute, by exp of each part's own largest logit, and then relative again: it overflows.
def merge__wrong_absolute(left, right):
    (m1, w1, v1), (m2, w2, v2) = left, right
    top = jnp.maximum(m1, m2)
    whole = jnp.exp(jnp.where(top == -jnp.inf, 0, top))
    weight = (jnp.exp(m1) * w1 + jnp.exp(m2) * w2) / whole
    mixed = (jnp.exp(m1) * v1 + jnp.exp(m2) * v2) / whole
    return top, weight, mixed


# This student thought that only the weights are relative to the largest logit, and that values may be added as they are.
def merge__wrong_values_unscaled(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    weight = jnp.exp(left[0] - base) * left[1] + jnp.exp(right[0] - base) * right[1]
    return top, weight, left[2] + right[2]


# ---------------------------------------------------------------- ulysses


def ulysses__right_grouped(q, k, v, *, mesh):
    n = mesh.shape["x"]
    G, D = k.shape[1], q.shape[2]
    copies = max(1, n // G)

    def to_heads(a):
        return jax.lax.all_to_all(a, "x", split_axis=1, concat_axis=0, tiled=True)

    def on_device(q, k, v):
        q = to_heads(q)
        k, v = (to_heads(jnp.repeat(a, copies, axis=1)) for a in (k, v))
        T, heads, groups = q.shape[0], q.shape[1], k.shape[1]
        q = q.reshape(T, groups, heads // groups, D)  # no copy of k or v here: a group of queries shares them
        logits = jnp.einsum("tgrd,sgd->grts", q, k) / D**0.5
        logits = jnp.where(jnp.tri(T, dtype=bool), logits, -jnp.inf)
        out = jnp.einsum("grts,sge->tgre", jax.nn.softmax(logits, axis=-1), v).reshape(T, heads, v.shape[-1])
        return jax.lax.all_to_all(out, "x", split_axis=0, concat_axis=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x"), P("x")), out_specs=P("x"))(q, k, v)


# This student copies the key-value heads until there is one for each query head, and sends all these copies over the wire.
def ulysses__wrong_copies_first(q, k, v, *, mesh):
    share = q.shape[1] // k.shape[1]

    def head(q, k, v):
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return mixed / weight

    def on_device(q, k, v):
        k, v = jnp.repeat(k, share, axis=1), jnp.repeat(v, share, axis=1)
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student copies heads with tile, 0 1 0 1, in place of repeat, 0 0 1 1: as if query head h had key-value head h % G.
def ulysses__wrong_tile(q, k, v, *, mesh):
    n, G = mesh.shape["x"], k.shape[1]

    def head(q, k, v):
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return mixed / weight

    def on_device(q, k, v):
        k, v = (jnp.tile(a, (1, max(1, n // G), 1)) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        more = q.shape[1] // k.shape[1]
        k, v = (jnp.tile(a, (1, more, 1)) for a in (k, v))
        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student took over the mask of gather_kv: the queries of device `me` would begin at me * T / n, also after the exchange.
def ulysses__wrong_shifted_mask(q, k, v, *, mesh):
    n, G = mesh.shape["x"], k.shape[1]

    def on_device(q, k, v):
        start = jax.lax.axis_index("x") * len(q)
        k, v = (jnp.repeat(a, max(1, n // G), axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        place = start + jnp.arange(len(q))
        seen = place[:, None] >= jnp.arange(len(k))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, seen)
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student exchanges only queries and result, and gathers all keys and values on each device to pick the heads there.
def ulysses__wrong_gathers(q, k, v, *, mesh):
    n = mesh.shape["x"]
    H, G = q.shape[1], k.shape[1]

    def head(q, k, v):
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return mixed / weight

    def mine(a):
        a = jax.lax.all_gather(a, "x", tiled=True)
        a = jnp.repeat(a, H // G, axis=1)
        return jax.lax.dynamic_slice_in_dim(a, jax.lax.axis_index("x") * (H // n), H // n, axis=1)

    def on_device(q, k, v):
        q = jax.lax.all_to_all(q, "x", 1, 0, tiled=True)
        out = jax.vmap(head, in_axes=1, out_axes=1)(q, mine(k), mine(v))
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- cp_bytes


def cp_bytes__right_per_head(tokens, heads, kv_heads, width, n):
    one = tokens // n * width * 2  # a head of a device's tokens
    passing = (n - 1) * 2 * kv_heads * one
    result = {"gather": passing, "ring": passing, "ulysses": None}
    if heads % n == 0:
        leaving = 0
        for count in (heads, max(kv_heads, n), max(kv_heads, n), heads):  # q, k, v, result
            leaving += (count - count // n) * one
        result["ulysses"] = leaving
    return result


# This student counted keys and values as one array: a key-value head is sent once.
def cp_bytes__wrong_keys_only(tokens, heads, kv_heads, width, n):
    block = tokens // n * width * 2
    moved = (n - 1) * kv_heads * block
    ulysses = (2 * heads + max(kv_heads, n)) * block * (n - 1) // n
    return {"gather": moved, "ring": moved, "ulysses": ulysses if heads % n == 0 else None}


# This student forgot that with fewer key-value heads than devices Ulysses has to send copies of them.
def cp_bytes__wrong_no_copies(tokens, heads, kv_heads, width, n):
    block = tokens // n * width * 2
    moved = 2 * (n - 1) * kv_heads * block
    ulysses = None if heads % n else 2 * (heads + kv_heads) * block * (n - 1) // n
    return {"gather": moved, "ring": moved, "ulysses": ulysses}


# This student lets the blocks go all the way round until they are home again: n transfers in the ring.
def cp_bytes__wrong_full_circle(tokens, heads, kv_heads, width, n):
    b = tokens // n * width * 2
    out = {"gather": 2 * kv_heads * b * (n - 1), "ring": 2 * kv_heads * b * n}
    out["ulysses"] = (2 * heads + 2 * max(kv_heads, n)) * b * (n - 1) // n if heads % n == 0 else None
    return out


# This student exchanged queries, keys and values, and forgot that the result has to go home too.
def cp_bytes__wrong_no_way_back(tokens, heads, kv_heads, width, n):
    block = tokens // n * width * 2
    moved = 2 * (n - 1) * kv_heads * block
    if heads % n:
        return {"gather": moved, "ring": moved, "ulysses": None}
    return {"gather": moved, "ring": moved, "ulysses": (heads + 2 * max(kv_heads, n)) * block * (n - 1) // n}
