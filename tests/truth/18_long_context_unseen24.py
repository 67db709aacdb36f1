"""Answers to lesson 18, twenty-fourth batch, written by a reader of the notebook only."""

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
    """The part that two parts come to: (largest logit, weight, weighted values)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- merge


def merge__right_stacked(left, right):
    """Both in one array, and a sum over the first axis."""
    tops, weights, values = (jnp.stack(pair) for pair in zip(left, right))
    top = tops.max(axis=0)
    scale = jnp.exp(tops - jnp.where(jnp.isfinite(top), top, 0))
    return top, (scale * weights).sum(axis=0), (scale * values).sum(axis=0)


# Thought: after merging the values are a mean again, so divide by the new weight.
def merge__wrong_divided(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    weight = a * left[1] + b * right[1]
    values = a * left[2] + b * right[2]
    return top, weight, values / jnp.where(weight == 0, 1, weight)


# Thought: only the values have to be brought to the new largest logit; weights are counts that simply add up.
def merge__wrong_weights_as_they_are(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, left[1] + right[1], a * left[2] + b * right[2]


# Thought: undo what was subtracted, add, and subtract the new one (right on paper, exp(1000) is inf in float32).
def merge__wrong_there_and_back(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0]), jnp.exp(right[0])
    return top, (a * left[1] + b * right[1]) / jnp.exp(base), (a * left[2] + b * right[2]) / jnp.exp(base)


# Thought: where both are empty 0 does as well as −inf, so the base is also the new largest logit.
def merge__wrong_zero_for_empty(left, right):
    top = jnp.maximum(left[0], right[0])
    top = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - top), jnp.exp(right[0] - top)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- work


def work__right_owner(tokens, n, layout):
    """Who owns each position; then count p + 1 for its owner."""
    p = np.arange(tokens)
    chunk = p // (tokens // (2 * n))
    owner = {"contiguous": chunk // 2, "striped": p % n, "zig-zag": np.minimum(chunk, 2 * n - 1 - chunk)}[layout]
    return [int((p[owner == d] + 1).sum()) for d in range(n)]


# Thought: position p has p tokens before it, so p keys (forgot that a query sees its own key).
def work__wrong_without_itself(tokens, n, layout):
    p = np.arange(tokens)
    chunks = p.reshape(2 * n, -1)
    rows = {
        "contiguous": p.reshape(n, -1),
        "striped": p.reshape(-1, n).T,
        "zig-zag": [np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)],
    }[layout]
    return [int(np.sum(row)) for row in rows]


# Thought: of 2n chunks device d has d and n + d, one of the first half and one of the second.
def work__wrong_second_half(tokens, n, layout):
    p = np.arange(tokens)
    chunks = p.reshape(2 * n, -1)
    rows = {
        "contiguous": p.reshape(n, -1),
        "striped": p.reshape(-1, n).T,
        "zig-zag": [np.concatenate([chunks[d], chunks[n + d]]) for d in range(n)],
    }[layout]
    return [int((np.asarray(row) + 1).sum()) for row in rows]


# Thought: striped, each of the n blocks at hand is a triangle with its diagonal, so all devices have n triangles.
def work__wrong_n_triangles(tokens, n, layout):
    b = tokens // n
    if layout == "striped":
        return [n * b * (b + 1) // 2 for d in range(n)]
    if layout == "contiguous":
        return [d * b * b + b * (b + 1) // 2 for d in range(n)]
    return [tokens * (tokens + 1) // 2 // n for d in range(n)]


# Thought: contiguous, device d sees the blocks 0 to d, each b by b (its own block is a triangle, though).
def work__wrong_whole_blocks(tokens, n, layout):
    b = tokens // n
    if layout == "contiguous":
        return [(d + 1) * b * b for d in range(n)]
    if layout == "striped":
        return [sum(p + 1 for p in range(d, tokens, n)) for d in range(n)]
    return [tokens * (tokens + 1) // 2 // n for d in range(n)]


# ---------------------------------------------------------------- zigzag_ring


def zigzag_ring__right_indexed(q, k, v, positions, *, mesh):
    """Halves and totals as arrays [2, ...], and an index that says which."""
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2

        def cut(a):
            return a.reshape(2, half, a.shape[-1])

        totals = tuple(cut(a) for a in part(q, k, v, jnp.tri(len(q), dtype=bool)))
        q = cut(q)
        for step in range(1, n):
            k, v = send(k), send(v)
            keys, values = cut(k), cut(v)
            late = merge(tuple(a[1] for a in totals), part(q[1], keys[0], values[0]))
            totals = tuple(a.at[1].set(b) for a, b in zip(totals, late))
            which = jnp.where(step <= me, 0, 1)  # from below: early and early; from above: late and late
            met = merge(tuple(a[which] for a in totals), part(q[which], keys[which], values[which]))
            totals = tuple(a.at[which].set(b) for a, b in zip(totals, met))
        _, weight, mixed = totals
        return (mixed / weight).reshape(2 * half, -1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# Thought: one mask from the positions does it, a block at a time (right values, four products of halves in every turn).
def zigzag_ring__wrong_whole_blocks(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, mine):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        total = part(q, k, v, mine[:, None] >= mine)
        for step in range(1, n):
            k, v = send(k), send(v)
            d = (me - step) % n
            theirs = jnp.concatenate([c * half + jnp.arange(half) for c in (d, 2 * n - 1 - d)])
            total = merge(total, part(q, k, v, mine[:, None] >= theirs))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# Thought: a lower device's block lies before mine, so there it is the late ones that see; swapped the two cases.
def zigzag_ring__wrong_swapped(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        home = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = [a[:half] for a in home], [a[half:] for a in home]
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step > me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            new = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            early, late = (
                [jnp.where(before, a, b) for a, b in zip(merge(early, new), early)],
                [jnp.where(before, b, a) for a, b in zip(merge(late, new), late)],
            )
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# Thought: which way round is up to me, so down; kept `step <= me`, which belongs to the other way (right with n = 2 only).
def zigzag_ring__wrong_other_way_round(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        home = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = [a[:half] for a in home], [a[half:] for a in home]
        for step in range(1, n):
            k, v = send(k, -1), send(v, -1)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            new = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            early, late = (
                [jnp.where(before, a, b) for a, b in zip(merge(early, new), early)],
                [jnp.where(before, b, a) for a, b in zip(merge(late, new), late)],
            )
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# Thought: at home each half is a triangle of its own (forgot that the late queries see the early keys there, too).
def zigzag_ring__wrong_two_triangles(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle)
        late = part(q[half:], k[half:], v[half:], triangle)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            new = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            early, late = (
                [jnp.where(before, a, b) for a, b in zip(merge(early, new), early)],
                [jnp.where(before, b, a) for a, b in zip(merge(late, new), late)],
            )
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)
