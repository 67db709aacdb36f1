"""Answers to lesson 18, nineteenth batch, written by a reader of the notebook only."""

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
    """The part that two parts come to: (largest logit, weight, weighted values). (The answer of part 2.)"""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, left[1] * a + right[1] * b, left[2] * a + right[2] * b


# ---------------------------------------------------------------- ring_attention


def ring_attention__right_scan_down(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(carry, _):
            so_far, (k, v) = carry
            going = send(k, -1), send(v, -1)
            return (merge(so_far, part(q, k, v)), going), None

        column = jnp.zeros((len(q), 1), q.dtype)
        nothing = column - jnp.inf, column, jnp.zeros((len(q), v.shape[1]), v.dtype)
        (so_far, (k, v)), _ = jax.lax.scan(turn, (jax.tree.map(varying, nothing), (k, v)), None, length=n - 1)
        _, weight, mixed = merge(so_far, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought that n - 1 turns see all blocks, and forgot the one that has come at the end of the last turn.
def ring_attention__wrong_last_block(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k, v = carry
            return merge(total, part(q, k, v)), send(k), send(v)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        nothing = jax.tree.map(varying, nothing)
        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n - 1, turn, (nothing, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought that a ring has n blocks, so n turns, each with its transfer: the last one brings everything home for nothing.
def ring_attention__wrong_n_turns(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k, v = carry
            return merge(total, part(q, k, v)), send(k), send(v)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        nothing = jax.tree.map(varying, nothing)
        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n, turn, (nothing, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Began with the own block and let each turn fetch a block first and multiply the one that came: no product runs beside a transfer.
def ring_attention__wrong_fetch_first(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k, v = carry
            k, v = send(k), send(v)
            return merge(total, part(q, k, v)), k, v

        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n - 1, turn, (part(q, k, v), k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought that weights and weighted values are plain sums, to be added block by block; each is relative to another largest logit.
def ring_attention__wrong_plain_sums(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def add(total, k, v):
            _, weight, mixed = part(q, k, v)
            return total[0] + weight, total[1] + mixed

        def turn(step, carry):
            total, k, v = carry
            return add(total, k, v), send(k), send(v)

        nothing = varying(jnp.zeros((len(q), 1))), varying(jnp.zeros((len(q), v.shape[1])))
        total, k, v = jax.lax.fori_loop(0, n - 1, turn, (nothing, k, v))
        weight, mixed = add(total, k, v)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- work


def work__right_owners(tokens, n, layout):
    p = np.arange(tokens)
    if layout == "contiguous":
        owner = p // (tokens // n)
    elif layout == "striped":
        owner = p % n
    else:
        chunk = p // (tokens // (2 * n))
        owner = np.minimum(chunk, 2 * n - 1 - chunk)
    pairs = np.zeros(n, np.int64)
    np.add.at(pairs, owner, p + 1)
    return pairs.tolist()


# Thought that the query at position p sees the p keys before it, and forgot its own.
def work__wrong_not_itself(tokens, n, layout):
    if layout == "contiguous":
        rows = np.arange(tokens).reshape(n, -1)
    elif layout == "striped":
        rows = np.arange(tokens).reshape(-1, n).T
    else:
        chunks = np.arange(tokens).reshape(2 * n, -1)
        rows = np.stack([np.append(chunks[d], chunks[2 * n - 1 - d]) for d in range(n)])
    return [int(row.sum()) for row in rows]


# Dealt the 2n chunks of the zig-zag round twice in the same direction: chunks d and n + d.
def work__wrong_two_rounds(tokens, n, layout):
    places = np.arange(tokens) + 1
    if layout == "contiguous":
        rows = places.reshape(n, -1)
    elif layout == "striped":
        rows = places.reshape(-1, n).T
    else:
        chunks = places.reshape(2 * n, -1)
        rows = [np.concatenate([chunks[d], chunks[n + d]]) for d in range(n)]
    return [int(np.sum(row)) for row in rows]


# Read "each block at hand is a triangle", and counted for stripes n equal triangles with their diagonals on each device.
def work__wrong_equal_triangles(tokens, n, layout):
    block = tokens // n
    triangle = block * (block + 1) // 2
    if layout == "contiguous":
        return [d * block * block + triangle for d in range(n)]
    if layout == "striped":
        return [n * triangle] * n
    chunks = np.arange(1, tokens + 1).reshape(2 * n, -1).sum(axis=1)
    return [int(chunks[d] + chunks[2 * n - 1 - d]) for d in range(n)]


# Thought that pairs of blocks are seen or not seen as a whole, so that a contiguous device also computes all of its own block.
def work__wrong_whole_blocks(tokens, n, layout):
    block = tokens // n
    if layout == "contiguous":
        return [(d + 1) * block * block for d in range(n)]
    positions = np.arange(tokens)
    if layout == "striped":
        return [int((positions[d::n] + 1).sum()) for d in range(n)]
    chunks = positions.reshape(2 * n, -1)
    return [int((chunks[d] + 1).sum() + (chunks[2 * n - 1 - d] + 1).sum()) for d in range(n)]


# ---------------------------------------------------------------- cp_bytes


def cp_bytes__right_lcm(tokens, heads, kv_heads, width, n):
    import math

    head = tokens // n * width * 2  # one head of the tokens of a device
    round_trip = (n - 1) * 2 * kv_heads * head
    if heads % n:
        return {"gather": round_trip, "ring": round_trip, "ulysses": None}
    exchanged = [heads, math.lcm(kv_heads, n), math.lcm(kv_heads, n), heads]  # q, k, v, result
    return {"gather": round_trip, "ring": round_trip, "ulysses": sum(h // n * (n - 1) for h in exchanged) * head}


# Thought that Ulysses sends the key-value heads as they are, and forgot the copies where there are fewer than devices.
def cp_bytes__wrong_no_copies(tokens, heads, kv_heads, width, n):
    piece = tokens / n * width * 2
    gather = (n - 1) * 2 * kv_heads * piece
    ulysses = (2 * heads + 2 * kv_heads) * piece * (n - 1) / n if heads % n == 0 else None
    return {"gather": gather, "ring": gather, "ulysses": ulysses}


# Thought that in a ring the blocks go all the way round, n transfers, while a gather brings n - 1 blocks.
def cp_bytes__wrong_ring_closes(tokens, heads, kv_heads, width, n):
    piece = tokens / n * width * 2
    return {
        "gather": (n - 1) * 2 * kv_heads * piece,
        "ring": n * 2 * kv_heads * piece,
        "ulysses": (2 * heads + 2 * max(kv_heads, n)) * piece * (n - 1) / n if heads % n == 0 else None,
    }


# Counted queries, keys and values for Ulysses, and forgot that the result has to come home by another all_to_all.
def cp_bytes__wrong_one_way(tokens, heads, kv_heads, width, n):
    piece = tokens // n * width * 2
    ways = {"gather": 2 * kv_heads * (n - 1) * piece}
    ways["ring"] = ways["gather"]
    ways["ulysses"] = None if heads % n else (heads + 2 * max(kv_heads, n)) * piece * (n - 1) // n
    return ways


# Thought that it is the key-value heads that must be divisible by n for Ulysses.
def cp_bytes__wrong_limit(tokens, heads, kv_heads, width, n):
    piece = tokens // n * width * 2
    gather = 2 * kv_heads * (n - 1) * piece
    if kv_heads % n != 0:
        return {"gather": gather, "ring": gather, "ulysses": None}
    return {"gather": gather, "ring": gather, "ulysses": 2 * (heads + kv_heads) * piece // n * (n - 1)}
