"""Answers to lesson 18, third batch, written by a reader of the notebook only."""

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
    """The part that two parts come to: (largest logit, weight, weighted values). (Another exercise's answer.)"""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- zigzag_ring


def _choose(condition, yes, no):
    return tuple(jnp.where(condition, a, b) for a, b in zip(yes, no))


def zigzag_ring__right_halves(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        me, half = jax.lax.axis_index("x"), q.shape[0] // 2
        triangle = jnp.tri(half, dtype=bool)
        q_early, q_late = q[:half], q[half:]
        early = part(q_early, k[:half], v[:half], triangle)
        late = merge(part(q_late, k[half:], v[half:], triangle), part(q_late, k[:half], v[:half]))
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me  # the block is from a lower device
            late = merge(late, part(q_late, k[:half], v[:half]))
            other = part(
                jnp.where(before, q_early, q_late),
                jnp.where(before, k[:half], k[half:]),
                jnp.where(before, v[:half], v[half:]),
            )
            early = _choose(before, merge(early, other), early)
            late = _choose(before, late, merge(late, other))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# The positions go round with the keys, and the mask is made of them: all four pairs of halves are computed.
def zigzag_ring__wrong_by_positions(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v, positions):
        at = positions
        total = part(q, k, v, positions[:, None] >= at[None, :])
        for _ in range(n - 1):
            k, v, at = send(k), send(v), send(at)
            total = merge(total, part(q, k, v, positions[:, None] >= at[None, :]))
        return total[2] / total[1]

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# A block from a lower device has me - step >= 1, so I wrote step < me: device 0's block I took for a higher one.
def zigzag_ring__wrong_off_by_one(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        me, half = jax.lax.axis_index("x"), q.shape[0] // 2
        tri = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], tri)
        late = merge(part(q[half:], k[half:], v[half:], tri), part(q[half:], k[:half], v[:half]))
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step < me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            early = _choose(before, merge(early, other), early)
            late = _choose(before, late, merge(late, other))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# At home the two chunks are far apart in the text, so each half has its triangle, and nothing between the two.
def zigzag_ring__wrong_home(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        me, half = jax.lax.axis_index("x"), q.shape[0] // 2
        tri = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], tri)
        late = part(q[half:], k[half:], v[half:], tri)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            early = _choose(before, merge(early, other), early)
            late = _choose(before, late, merge(late, other))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# The text is cut in blocks, and a block from a lower device is seen whole, one from a higher device not at all.
def zigzag_ring__wrong_contiguous(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        me, t = jax.lax.axis_index("x"), q.shape[0]
        total = part(q, k, v, jnp.tri(t, dtype=bool))
        for step in range(1, n):
            k, v = send(k), send(v)
            total = merge(total, part(q, k, v, step <= me))
        return total[2] / total[1]

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- work


def work__right_owners(tokens, n, layout):
    place = np.arange(tokens)
    if layout == "contiguous":
        owner = place // (tokens // n)
    elif layout == "striped":
        owner = place % n
    else:
        chunk = place // (tokens // (2 * n))
        owner = np.minimum(chunk, 2 * n - 1 - chunk)
    pairs = [0] * n
    for device, p in zip(owner.tolist(), place.tolist()):
        pairs[device] += p + 1
    return pairs


# The query at position p looks at the p tokens before it.
def work__wrong_before(tokens, n, layout):
    rows = np.arange(tokens).reshape(n, -1)
    if layout == "striped":
        rows = np.arange(tokens).reshape(-1, n).T
    elif layout == "zig-zag":
        chunks = np.arange(tokens).reshape(2 * n, -1)
        rows = np.stack([np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)])
    return [int(row.sum()) for row in rows]


# Striped: n tokens to each device in turn, as a stripe is n wide.
def work__wrong_stripes(tokens, n, layout):
    rows = np.arange(tokens).reshape(n, -1)
    if layout == "striped":
        place = np.arange(tokens)
        rows = [place[place // n % n == d] for d in range(n)]
    elif layout == "zig-zag":
        chunks = np.arange(tokens).reshape(2 * n, -1)
        rows = np.stack([np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)])
    return [int((row + 1).sum()) for row in rows]


# Zig-zag: the chunks d and n + d, to and fro.
def work__wrong_second_half(tokens, n, layout):
    rows = np.arange(tokens).reshape(n, -1)
    if layout == "striped":
        rows = np.arange(tokens).reshape(-1, n).T
    elif layout == "zig-zag":
        chunks = np.arange(tokens).reshape(2 * n, -1)
        rows = np.stack([np.concatenate([chunks[d], chunks[n + d]]) for d in range(n)])
    return [int((row + 1).sum()) for row in rows]


# A device's queries look at the keys that the device has: the triangle of its own tokens.
def work__wrong_own_keys(tokens, n, layout):
    own = tokens // n
    return [own * (own + 1) // 2 for _ in range(n)]


# ---------------------------------------------------------------- ulysses


def ulysses__right_grouped(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        copies = max(1, n // k.shape[1])
        q = jax.lax.all_to_all(q, "x", 1, 0, tiled=True)
        k, v = (jax.lax.all_to_all(jnp.repeat(a, copies, axis=1), "x", 1, 0, tiled=True) for a in (k, v))
        t, heads, d = q.shape
        grouped = q.reshape(t, k.shape[1], heads // k.shape[1], d)
        logits = jnp.einsum("tgrd,sgd->grts", grouped, k) / d**0.5
        weights = jax.nn.softmax(jnp.where(jnp.tri(t, dtype=bool), logits, -jnp.inf), axis=-1)
        out = jnp.einsum("grts,sge->tgre", weights, v).reshape(t, heads, -1)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


def _attend(q, k, v, causal=True):
    """All heads of equal number, on one device."""

    def head(q, k, v):
        _, weight, values = part(q, k, v, jnp.tri(len(q), dtype=bool) if causal else True)
        return values / weight

    return jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)


# To be on the safe side every key-value head is copied until there are as many as query heads, and then exchanged.
def ulysses__wrong_copied_first(q, k, v, *, mesh):
    def body(q, k, v):
        group = q.shape[1] // k.shape[1]
        k, v = jnp.repeat(k, group, axis=1), jnp.repeat(v, group, axis=1)
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        return jax.lax.all_to_all(_attend(q, k, v), "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Copies of the heads one behind the other: 0, 1, 0, 1 (tile), as heads of a model are often laid out.
def ulysses__wrong_tiled(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        copies = max(1, n // k.shape[1])
        k, v = jnp.tile(k, (1, copies, 1)), jnp.tile(v, (1, copies, 1))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        group = q.shape[1] // k.shape[1]
        k, v = jnp.tile(k, (1, group, 1)), jnp.tile(v, (1, group, 1))
        return jax.lax.all_to_all(_attend(q, k, v), "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# After the exchange a device has all tokens, so no mask is needed any more.
def ulysses__wrong_no_mask(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        copies = max(1, n // k.shape[1])
        k, v = jnp.repeat(k, copies, axis=1), jnp.repeat(v, copies, axis=1)
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        group = q.shape[1] // k.shape[1]
        k, v = jnp.repeat(k, group, axis=1), jnp.repeat(v, group, axis=1)
        return jax.lax.all_to_all(_attend(q, k, v, causal=False), "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Where there are fewer key-value heads than devices (or not), gather all of keys and values; only queries and results are exchanged.
def ulysses__wrong_gathered(q, k, v, *, mesh):
    def body(q, k, v):
        group = q.shape[1] // k.shape[1]
        q = jax.lax.all_to_all(q, "x", 1, 0, tiled=True)
        k, v = (jax.lax.all_gather(a, "x", axis=0, tiled=True) for a in (k, v))
        first = jax.lax.axis_index("x") * q.shape[1]
        mine = (first + jnp.arange(q.shape[1])) // group
        return jax.lax.all_to_all(_attend(q, k[:, mine], v[:, mine]), "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)
