"""Answers to lesson 18, ninth batch, written by a reader of the notebook only."""

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
    """The exercise `merge` (an answer of this student, used below)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- zigzag


def zigzag__right_folded(text, n):
    T = len(text) - 1
    early, late = np.arange(T).reshape(2, n, -1)
    order = np.stack([early, late[::-1]], axis=1).ravel()
    ids, follows = np.asarray(text)[:-1], np.asarray(text)[1:]
    return {"ids": ids[order], "labels": follows[order], "positions": order}


# All early chunks first, then all late ones backwards: the right pairs by number, but P("x") cuts them elsewhere.
def zigzag__wrong_there_then_back(text, n):
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([chunks[d] for d in range(n)] + [chunks[2 * n - 1 - d] for d in range(n)])
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# Understands `positions` as where each token of the text has gone, not as where the token that stands here came from.
def zigzag__wrong_where_it_went(text, n):
    chunks = np.split(np.arange(len(text) - 1), 2 * n)
    order = np.concatenate([np.concatenate([chunks[d], chunks[-1 - d]]) for d in range(n)])
    return {"ids": text[order], "labels": text[order + 1], "positions": np.argsort(order)}


# Is afraid of an index beyond the T tokens and lets the last token be followed by the first.
def zigzag__wrong_round_the_end(text, n):
    T = len(text) - 1
    chunks = np.arange(T).reshape(2 * n, T // (2 * n))
    order = []
    for d in range(n):
        order.extend(chunks[d])
        order.extend(chunks[2 * n - 1 - d])
    order = np.array(order)
    return {"ids": text[order], "labels": text[(order + 1) % T], "positions": order}


# Deals out single tokens to and fro (0 1 2 3 3 2 1 0 0 1 ...), as if a chunk were one token.
def zigzag__wrong_single_tokens(text, n):
    T = len(text) - 1
    owner = np.array((list(range(n)) + list(range(n))[::-1]) * (T // (2 * n)))
    order = np.argsort(owner, kind="stable")
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# ---------------------------------------------------------------- cp_bytes


def cp_bytes__right_per_neighbour(tokens, heads, kv_heads, width, n):
    head = tokens // n * width * 2  # bytes of one head of a device's tokens
    passing = (n - 1) * 2 * kv_heads * head
    to_each = 2 * (heads // n) + 2 * max(kv_heads // n, 1)  # heads that one neighbour gets: q, result, k, v
    return {"gather": passing, "ring": passing, "ulysses": None if heads % n else (n - 1) * to_each * head}


# "At most n = query heads": so it is possible whenever there are no more devices than heads.
def cp_bytes__wrong_enough_heads(tokens, heads, kv_heads, width, n):
    piece = tokens / n * width * 2
    blocks = (n - 1) * 2 * kv_heads * piece
    if n > heads:
        ulysses = None
    else:
        ulysses = (2 * heads + 2 * max(kv_heads, n)) * piece * (n - 1) / n
    return {"gather": blocks, "ring": blocks, "ulysses": ulysses}


# Lets the blocks of the ring travel all the way home, n transfers, as the gradients do in part 9.
def cp_bytes__wrong_ring_goes_home(tokens, heads, kv_heads, width, n):
    block = 2 * kv_heads * tokens // n * width * 2
    there = 2 * heads + 2 * max(kv_heads, n)
    return {
        "gather": (n - 1) * block,
        "ring": n * block,
        "ulysses": there * tokens * width * 2 * (n - 1) // n**2 if heads % n == 0 else None,
    }


# Counts three arrays that go (q, k, v) and forgets that the result has to come home.
def cp_bytes__wrong_one_way(tokens, heads, kv_heads, width, n):
    piece = tokens // n * width * 2
    gather = 2 * kv_heads * piece * (n - 1)
    if heads % n:
        return {"gather": gather, "ring": gather, "ulysses": None}
    return {"gather": gather, "ring": gather, "ulysses": (heads + 2 * max(kv_heads, n)) * piece * (n - 1) // n}


# A device keeps an n-th of what it has: takes this for the gather too, which hands on whole blocks; only the ring goes n - 1 times.
def cp_bytes__wrong_gather_keeps_a_part(tokens, heads, kv_heads, width, n):
    piece = tokens / n * width * 2
    away = (n - 1) / n
    return {
        "gather": 2 * kv_heads * piece * away,
        "ring": 2 * kv_heads * piece * (n - 1),
        "ulysses": None if heads % n != 0 else 2 * (heads + max(kv_heads, n)) * piece * away,
    }


# ---------------------------------------------------------------- causal_ring


def causal_ring__right_all_parts_at_once(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, here = jax.lax.axis_index("x"), jnp.arange(len(q))
        parts = []
        for step in range(n):
            ahead = (me * len(q) + here)[:, None] - ((me - step) % n * len(k) + jnp.arange(len(k)))
            parts.append(part(q, k, v, ahead >= 0))
            if step + 1 < n:
                k, v = send(k), send(v)
        tops, weights, mixed = (jnp.stack(each) for each in zip(*parts))
        scale = jnp.exp(tops - tops.max(axis=0))  # finite: everybody sees itself
        return (scale * mixed).sum(axis=0) / (scale * weights).sum(axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# There is no device below 0, so the number of the block at hand stops at 0 where it should go round.
def causal_ring__wrong_stops_at_zero(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = me * len(q) + jnp.arange(len(q))

        def at_hand(step, k, v):
            source = jnp.maximum(me - step, 0)
            keys = source * len(k) + jnp.arange(len(k))
            return part(q, k, v, queries[:, None] >= keys)

        total = at_hand(0, k, v)
        for step in range(1, n):
            k, v = send(k), send(v)
            total = merge(total, at_hand(step, k, v))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Read in part 6 that in a ring each block at hand is a triangle (true of stripes) and gives every block the same one.
def causal_ring__wrong_always_a_triangle(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        triangle = jnp.tri(len(q), len(k), dtype=bool)
        total = part(q, k, v, triangle)
        for _ in range(n - 1):
            k, v = send(k), send(v)
            total = merge(total, part(q, k, v, triangle))
        _, weight, mixed = total
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# "Whatever belongs to a token goes with it": sends the positions of the keys round as well. Right values, a third transfer.
def causal_ring__wrong_places_travel(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        mine = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        place = mine
        total = part(q, k, v, mine[:, None] >= place)
        for _ in range(n - 1):
            k, v, place = send(k), send(v), send(place)
            total = merge(total, part(q, k, v, mine[:, None] >= place))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Puts all n blocks into the loop, so that the keys and values are sent once more, home, after the last product.
def causal_ring__wrong_n_transfers(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = me * len(q) + jnp.arange(len(q))

        def turn(step, carry):
            total, k, v = carry
            keys = (me - step) % n * len(k) + jnp.arange(len(k))
            total = merge(total, part(q, k, v, queries[:, None] >= keys))
            return total, send(k), send(v)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        total, _, _ = jax.lax.fori_loop(0, n, turn, (jax.tree.map(varying, nothing), k, v))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)
