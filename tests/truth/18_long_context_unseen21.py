"""Answers to lesson 18, twenty-first batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
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
    """The part that two parts come to: (largest logit, weight, weighted values). (My answer of part 2.)"""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- gather_kv


def gather_kv__right_softmax(q, k, v, *, mesh):
    def on_device(q, k, v):
        keys = jax.lax.all_gather(k, "x").reshape(-1, k.shape[1])
        values = jax.lax.all_gather(v, "x").reshape(-1, v.shape[1])
        ahead = (
            jnp.arange(len(keys)) - jnp.arange(len(q))[:, None]
        )  # how far a key lies ahead, from device 0's point of view
        hidden = ahead > jax.lax.axis_index("x") * len(q)
        logits = jnp.einsum("td,sd->ts", q, keys) / np.sqrt(q.shape[1])
        return jax.nn.softmax(jnp.where(hidden, -jnp.inf, logits), axis=-1) @ values

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x"), P("x")), out_specs=P("x"))(q, k, v)


# Thought: a causal mask is the lower triangle, here with as many rows as I have queries (counted from 0 on every device).
def gather_kv__wrong_triangle_from_zero(q, k, v, *, mesh):
    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), len(k), dtype=bool))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Thought: the queries of device me begin at me times the number of devices.
def gather_kv__wrong_times_devices(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        place = jax.lax.axis_index("x") * n + jnp.arange(len(q))
        _, weight, mixed = part(q, k, v, place[:, None] >= jnp.arange(len(k)))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Thought: device me may see the blocks of the devices up to me, so I compare block numbers (its own block it sees whole).
def gather_kv__wrong_whole_blocks(q, k, v, *, mesh):
    def on_device(q, k, v):
        mine = len(k)
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        owner = jnp.arange(len(k)) // mine
        seen = owner[None, :] <= jax.lax.axis_index("x")
        _, weight, mixed = part(q, k, v, seen)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Thought: if I gather the queries as well, positions are simple: attention of the whole text, and everybody cuts out its rows.
def gather_kv__wrong_gathers_queries_too(q, k, v, *, mesh):
    def on_device(q, k, v):
        mine = len(q)
        q, k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (q, k, v))
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return jax.lax.dynamic_slice_in_dim(mixed / weight, jax.lax.axis_index("x") * mine, mine)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- ring_attention


def ring_attention__right_scan_down(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(carry, _):
            total, k, v = carry
            coming = send(k, -1), send(v, -1)
            return (merge(total, part(q, k, v)), *coming), None

        t = len(q)
        nothing = jnp.full((t, 1), -jnp.inf, q.dtype), jnp.zeros((t, 1), q.dtype), jnp.zeros((t, v.shape[1]), v.dtype)
        start = jax.tree.map(varying, nothing), k, v
        (total, k, v), _ = jax.lax.scan(turn, start, None, length=n - 1)
        _, weight, mixed = merge(total, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought: there are n blocks, so n turns, each merges one and hands it on (the last transfer brings everything home for nothing).
def ring_attention__wrong_n_turns(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k, v = carry
            return merge(total, part(q, k, v)), send(k), send(v)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        total, _, _ = jax.lax.fori_loop(0, n, turn, (jax.tree.map(varying, nothing), k, v))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Thought: first my own block, then n - 1 times fetch one and merge it (the product waits for the block that it fetched).
def ring_attention__wrong_fetches_first(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k, v = carry
            k, v = send(k), send(v)
            return merge(total, part(q, k, v)), k, v

        total, _, _ = jax.lax.fori_loop(0, n - 1, turn, (part(q, k, v), k, v))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Thought: weights and weighted values are not divided yet, so they can simply be added up over the blocks.
def ring_attention__wrong_sums_without_rescaling(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def added(weight, mixed, k, v):
            _, w, m = part(q, k, v)
            return weight + w, mixed + m

        def turn(step, carry):
            weight, mixed, k, v = carry
            return (*added(weight, mixed, k, v), send(k), send(v))

        start = varying(jnp.zeros((len(q), 1))), varying(jnp.zeros((len(q), v.shape[1])))
        weight, mixed, k, v = jax.lax.fori_loop(0, n - 1, turn, (*start, k, v))
        weight, mixed = added(weight, mixed, k, v)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Thought: queries look for keys, so the keys travel; the values stay with the queries that want them.
def ring_attention__wrong_values_stay(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k = carry
            return merge(total, part(q, k, v)), send(k)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        total, k = jax.lax.fori_loop(0, n - 1, turn, (jax.tree.map(varying, nothing), k))
        _, weight, mixed = merge(total, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- cp_bytes


def cp_bytes__right_per_head(tokens, heads, kv_heads, width, n):
    head = 2 * width * (tokens // n)  # bytes of one head of a device's tokens
    around = (n - 1) * 2 * kv_heads * head
    found = {"gather": around, "ring": around, "ulysses": None}
    if heads % n == 0:
        to_each = 2 * (heads // n) + 2 * (max(kv_heads, n) // n)  # heads for every other device: q and result, k and v
        found["ulysses"] = (n - 1) * to_each * head
    return found


# Thought: Ulysses exchanges queries, keys and values: three all_to_alls (the result's way home is forgotten).
def cp_bytes__wrong_no_way_home(tokens, heads, kv_heads, width, n):
    piece = tokens / n * width * 2
    passed = (n - 1) * 2 * kv_heads * piece
    ulysses = (heads + 2 * max(kv_heads, n)) * piece * (n - 1) / n
    return {"gather": passed, "ring": passed, "ulysses": ulysses if heads % n == 0 else None}


# Thought: in a gather a device gives away (n - 1)/n of what it has, as in an all_to_all; only in a ring do n - 1 blocks pass by.
def cp_bytes__wrong_gather_like_all_to_all(tokens, heads, kv_heads, width, n):
    piece = tokens // n * width * 2
    own = 2 * kv_heads * piece
    result = {"gather": own * (n - 1) / n, "ring": own * (n - 1)}
    if heads % n:
        result["ulysses"] = None
    else:
        result["ulysses"] = (2 * heads + 2 * max(kv_heads, n)) * piece * (n - 1) / n
    return result


# Thought: after the exchange each query head needs its own keys and values, so they are copied to as many heads before it is sent.
def cp_bytes__wrong_copies_for_every_query_head(tokens, heads, kv_heads, width, n):
    piece = tokens / n * width * 2
    ring = 2 * kv_heads * piece * (n - 1)
    ulysses = None if heads % n else 4 * heads * piece * (n - 1) / n
    return {"gather": ring, "ring": ring, "ulysses": ulysses}


# Thought: Ulysses needs a key-value head for each device, so it is not possible where n does not divide the key-value heads.
def cp_bytes__wrong_none_by_kv_heads(tokens, heads, kv_heads, width, n):
    piece = tokens / n * width * 2
    ring = 2 * kv_heads * piece * (n - 1)
    ulysses = None
    if heads % n == 0 and kv_heads % n == 0:
        ulysses = (2 * heads + 2 * kv_heads) * piece * (n - 1) / n
    return {"gather": ring, "ring": ring, "ulysses": ulysses}
