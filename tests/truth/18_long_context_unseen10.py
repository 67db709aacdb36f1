"""Answers to lesson 18, tenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- zigzag_ring


# Right: both halves' totals in one array [2, …]; a turn picks a row of queries, keys, values and totals by its number.
def zigzag_ring__right_rows(q, k, v, positions, *, mesh):
    """Causal attention in zig-zag order; two products of halves a turn."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")

        def halves(a):
            return a.reshape(2, len(a) // 2, a.shape[-1])

        queries = halves(q)
        totals = tuple(map(halves, part(q, k, v, jnp.tri(len(q), dtype=bool))))
        for step in range(1, n):
            k, v = send(k), send(v)
            keys, values = halves(k), halves(v)
            late = merge([a[1] for a in totals], part(queries[1], keys[0], values[0]))
            totals = tuple(a.at[1].set(new) for a, new in zip(totals, late))
            row = jnp.where(me >= step, 0, 1)  # from a lower device: early and early
            chosen = merge([a[row] for a in totals], part(queries[row], keys[row], values[row]))
            totals = tuple(a.at[row].set(new) for a, new in zip(totals, chosen))
        _, weight, mixed = totals
        return (mixed / weight).reshape(len(q), -1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Says `step < me`: takes the block of device 0, which is at hand in turn `me`, for one from a higher device.
def zigzag_ring__wrong_before_device_0(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        home = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = [a[:half] for a in home], [a[half:] for a in home]
        for step in range(1, n):
            k, v = send(k), send(v)
            late = merge(late, part(q[half:], k[:half], v[:half]))
            before = step < me
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            both = merge([jnp.where(before, e, l) for e, l in zip(early, late)], other)
            early = [jnp.where(before, new, e) for new, e in zip(both, early)]
            late = [jnp.where(before, l, new) for new, l in zip(both, late)]
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Thinks that after `step` sends up the ring the block of device me + step is at hand; on two devices that is the same one.
def zigzag_ring__wrong_way_round(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        home = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = [a[:half] for a in home], [a[half:] for a in home]
        for step in range(1, n):
            k, v = send(k), send(v)
            late = merge(late, part(q[half:], k[:half], v[:half]))
            before = (me + step) % n < me
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            both = merge([jnp.where(before, e, l) for e, l in zip(early, late)], other)
            early = [jnp.where(before, new, e) for new, e in zip(both, early)]
            late = [jnp.where(before, l, new) for new, l in zip(both, late)]
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# At home gives each half a triangle of its own, since two halves are to be computed in each turn; but the late queries also see
# the early keys of their own device.
def zigzag_ring__wrong_two_triangles(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle)
        late = part(q[half:], k[half:], v[half:], triangle)
        for step in range(1, n):
            k, v = send(k), send(v)
            late = merge(late, part(q[half:], k[:half], v[:half]))
            before = step <= me
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            both = merge([jnp.where(before, e, l) for e, l in zip(early, late)], other)
            early = [jnp.where(before, new, e) for new, e in zip(both, early)]
            late = [jnp.where(before, l, new) for new, l in zip(both, late)]
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Thinks a mask of true positions already spares the hidden halves: right values, but four quarters a turn.
def zigzag_ring__wrong_masked_quarters(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, mine):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        total = part(q, k, v, mine[:, None] >= mine)
        for step in range(1, n):
            k, v = send(k), send(v)
            source = (me - step) % n
            places = jnp.concatenate([c * half + jnp.arange(half) for c in (source, 2 * n - 1 - source)])
            total = merge(total, part(q, k, v, mine[:, None] >= places))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v, positions)


# ---------------------------------------------------------------- ring_attention


# Right: carries a finished mean and the logarithm of its sum of exponentials, in place of the three things of a part.
def ring_attention__right_logarithm(q, k, v, *, mesh):
    """Attention without a mask; keys and values go round, and one block of logits is alive at a time."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def with_block(out, total, k, v):
            top, weight, mixed = part(q, k, v)
            here = top + jnp.log(weight)
            both = jnp.logaddexp(total, here)
            return out * jnp.exp(total - both) + mixed / weight * jnp.exp(here - both), both

        def turn(step, carry):
            out, total, k, v = carry
            return *with_block(out, total, k, v), send(k), send(v)

        nothing = varying(jnp.zeros((len(q), v.shape[-1]))), varying(jnp.full((len(q), 1), -jnp.inf))
        out, total, k, v = jax.lax.fori_loop(0, n - 1, turn, (*nothing, k, v))
        return with_block(out, total, k, v)[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# n blocks, so n turns, each with its transfer: right values, but the last transfer only brings everybody's own block home.
def ring_attention__wrong_n_transfers(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k, v = carry
            return merge(total, part(q, k, v)), send(k), send(v)

        column = (len(q), 1)
        nothing = jnp.full(column, -jnp.inf), jnp.zeros(column), jnp.zeros((len(q), v.shape[-1]))
        total, _, _ = jax.lax.fori_loop(0, n, turn, (jax.tree.map(varying, nothing), k, v))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Rescales what it has to the new largest logit, but adds the new block's part as it is, relative to that block's own largest.
def ring_attention__wrong_rescales_old_only(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def with_block(total, k, v):
            top, weight, mixed = total
            here, new_weight, new_mixed = part(q, k, v)
            new_top = jnp.maximum(top, here)
            shrink = jnp.exp(top - new_top)
            return new_top, shrink * weight + new_weight, shrink * mixed + new_mixed

        def turn(step, carry):
            total, k, v = carry
            return with_block(total, k, v), send(k), send(v)

        column = (len(q), 1)
        nothing = jnp.full(column, -jnp.inf), jnp.zeros(column), jnp.zeros((len(q), v.shape[-1]))
        total, k, v = jax.lax.fori_loop(0, n - 1, turn, (jax.tree.map(varying, nothing), k, v))
        _, weight, mixed = with_block(total, k, v)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Gathers all keys and values first and lets the loop go through their blocks: one block of logits at a time, but nothing goes
# round, and no product runs beside a transfer.
def ring_attention__wrong_gathered_first(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        keys, values = jax.lax.all_gather(k, "x"), jax.lax.all_gather(v, "x")  # [n, T / n, …]

        def turn(step, total):
            return merge(total, part(q, keys[step], values[step]))

        column = (len(q), 1)
        nothing = jnp.full(column, -jnp.inf), jnp.zeros(column), jnp.zeros((len(q), v.shape[-1]))
        _, weight, mixed = jax.lax.fori_loop(0, n, turn, jax.tree.map(varying, nothing))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Begins with the part of its own block in place of nothing, and believes that so n − 1 turns will do without a last merge; but the
# first turn merges its own block again, and the last block that comes is never merged.
def ring_attention__wrong_own_block_twice(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k, v = carry
            return merge(total, part(q, k, v)), send(k), send(v)

        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n - 1, turn, (part(q, k, v), k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- work


# Right: in closed form, s = tokens / n queries on each device.
def work__right_closed(tokens, n, layout):
    """Pairs of a query and a key on each of n devices."""
    s = tokens // n
    if layout == "contiguous":
        return [s * d * s + s * (s + 1) // 2 for d in range(n)]
    if layout == "striped":
        return [s * (d + 1) + n * s * (s - 1) // 2 for d in range(n)]
    return [tokens * (tokens + 1) // (2 * n)] * n


# The query at position p has p keys before it, and is not counted as its own key.
def work__wrong_without_itself(tokens, n, layout):
    places = np.arange(tokens)
    if layout == "contiguous":
        of = places.reshape(n, -1)
    elif layout == "striped":
        of = places.reshape(-1, n).T
    else:
        chunks = places.reshape(2 * n, -1)
        of = np.concatenate([chunks[:n], chunks[: n - 1 : -1]], axis=1)
    return of.sum(axis=1).tolist()


# Takes the d-th chunk from the end to be chunks[-d]; so device 0 has chunk 0 twice, and nobody has chunk n.
def work__wrong_minus_d(tokens, n, layout):
    places = np.arange(tokens)
    if layout == "contiguous":
        of = list(places.reshape(n, -1))
    elif layout == "striped":
        of = list(places.reshape(-1, n).T)
    else:
        chunks = places.reshape(2 * n, -1)
        of = [np.concatenate([chunks[d], chunks[-d]]) for d in range(n)]
    return [int((p + 1).sum()) for p in of]


# Adds up the stripes along the wrong axis: a sum for each round of dealing, not for each device; with n² tokens there are n of
# those too.
def work__wrong_rounds(tokens, n, layout):
    places = np.arange(tokens) + 1
    if layout == "contiguous":
        return [int(row.sum()) for row in places.reshape(n, -1)]
    if layout == "striped":
        return [int(row.sum()) for row in places.reshape(-1, n)]
    chunks = places.reshape(2 * n, -1)
    return [int(chunks[d].sum() + chunks[2 * n - 1 - d].sum()) for d in range(n)]


# Counts as `causal_ring` computes: every block of which a device sees anything at all is counted whole.
def work__wrong_whole_blocks(tokens, n, layout):
    places, s = np.arange(tokens), tokens // n
    if layout == "contiguous":
        of = list(places.reshape(n, -1))
    elif layout == "striped":
        of = list(places.reshape(-1, n).T)
    else:
        chunks = places.reshape(2 * n, -1)
        of = [np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)]
    return [sum(s * s for theirs in of if mine.max() >= theirs.min()) for mine in of]
