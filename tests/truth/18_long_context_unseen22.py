"""Answers to lesson 18, twenty-second batch, written by a reader of the notebook only."""

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
    """The part that two parts come to (my answer of part 2)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- zigzag_ring


def zigzag_ring__right_downwards(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        half = len(q) // 2
        tri = jnp.tri(half, dtype=bool)
        q_early, q_late = q[:half], q[half:]
        early = part(q_early, k[:half], v[:half], tri)
        late = merge(part(q_late, k[half:], v[half:], tri), part(q_late, k[:half], v[:half]))
        for step in range(1, n):
            k, v = send(k, -1), send(v, -1)  # the block of the device above comes
            lower = (me + step) % n < me
            late = merge(late, part(q_late, k[:half], v[:half]))
            other = part(
                jnp.where(lower, q_early, q_late),
                jnp.where(lower, k[:half], k[half:]),
                jnp.where(lower, v[:half], v[half:]),
            )
            early = tuple(jnp.where(lower, new, old) for new, old in zip(merge(early, other), early))
            late = tuple(jnp.where(lower, old, new) for new, old in zip(merge(late, other), late))
        return jnp.concatenate([mixed / weight for _, weight, mixed in (early, late)])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# One mask by position for all blocks, as in causal_ring: all four pairs of halves are multiplied, and half of them hidden.
def zigzag_ring__wrong_fourpairs(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, mine):
        me = jax.lax.axis_index("x")
        half = len(q) // 2

        def places(d):
            return jnp.concatenate([d * half + jnp.arange(half), (2 * n - 1 - d) * half + jnp.arange(half)])

        total = part(q, k, v, mine[:, None] >= mine)
        for step in range(1, n):
            k, v = send(k), send(v)
            total = merge(total, part(q, k, v, mine[:, None] >= places((me - step) % n)))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# The block of turn `step` is from a lower device while step is less than me (the turn in which step = me brings block 0, and is left out).
def zigzag_ring__wrong_lessthanme(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        half = len(q) // 2
        tri = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], tri)
        late = merge(part(q[half:], k[:half], v[:half]), part(q[half:], k[half:], v[half:], tri))
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step < me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            a, b, c = (jnp.where(before, z[:half], z[half:]) for z in (q, k, v))
            new = part(a, b, c)
            early, late = (
                jax.tree.map(lambda m, o: jnp.where(before, m, o), merge(early, new), early),
                jax.tree.map(lambda m, o: jnp.where(before, o, m), merge(late, new), late),
            )
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# At home there are two triangles, one for each chunk; that the late queries see the early keys of their own device was forgotten.
def zigzag_ring__wrong_twotriangles(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        half = len(q) // 2
        tri = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], tri)
        late = part(q[half:], k[half:], v[half:], tri)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            a, b, c = (jnp.where(before, z[:half], z[half:]) for z in (q, k, v))
            new = part(a, b, c)
            early, late = (
                jax.tree.map(lambda m, o: jnp.where(before, m, o), merge(early, new), early),
                jax.tree.map(lambda m, o: jnp.where(before, o, m), merge(late, new), late),
            )
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# The operands have been chosen by `where`, so the part can go into both totals: the wrong half would not be in it.
def zigzag_ring__wrong_intoboth(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        half = len(q) // 2
        tri = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], tri)
        late = merge(part(q[half:], k[:half], v[:half]), part(q[half:], k[half:], v[half:], tri))
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            new = part(*(jnp.where(before, z[:half], z[half:]) for z in (q, k, v)))
            early, late = merge(early, new), merge(late, new)
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


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
    return [int((place[owner == d] + 1).sum()) for d in range(n)]


# The query at position p has p keys before it (itself not counted).
def work__wrong_withoutself(tokens, n, layout):
    place = np.arange(tokens)
    if layout == "contiguous":
        rows = place.reshape(n, -1)
    elif layout == "striped":
        rows = place.reshape(-1, n).T
    else:
        chunks = place.reshape(2 * n, -1)
        rows = np.concatenate([chunks[:n], chunks[n:][::-1]], axis=1)
    return [int(row.sum()) for row in rows]


# Zig-zag: device d has one chunk of the first half and the same one of the second half, d and n + d.
def work__wrong_dandnplusd(tokens, n, layout):
    place = np.arange(tokens)
    if layout == "contiguous":
        rows = place.reshape(n, -1)
    elif layout == "striped":
        rows = place.reshape(-1, n).T
    else:
        chunks = place.reshape(2 * n, -1)
        rows = [np.concatenate([chunks[d], chunks[n + d]]) for d in range(n)]
    return [int((row + 1).sum()) for row in rows]


# A device computes its own queries against its own keys; the keys of the others are the others' work.
def work__wrong_ownkeys(tokens, n, layout):
    place = np.arange(tokens)
    if layout == "contiguous":
        rows = place.reshape(n, -1)
    elif layout == "striped":
        rows = place.reshape(-1, n).T
    else:
        chunks = place.reshape(2 * n, -1)
        rows = [np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)]
    return [int((np.asarray(row)[:, None] >= np.asarray(row)).sum()) for row in rows]


# The mask the other way round: counted for each token how many look at it, tokens - p (keys in place of queries).
def work__wrong_lookedat(tokens, n, layout):
    place = np.arange(tokens)
    if layout == "contiguous":
        rows = place.reshape(n, -1)
    elif layout == "striped":
        rows = place.reshape(-1, n).T
    else:
        chunks = place.reshape(2 * n, -1)
        rows = [np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)]
    return [int((tokens - row).sum()) for row in rows]


# ---------------------------------------------------------------- ring_backward


def ring_backward__right_downwards(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        scale = q.shape[-1] ** -0.5
        less = jnp.einsum("te,te->t", dout, out)[:, None]

        def added(k, v, dq, dk, dv):
            w = jnp.exp(scale * (q @ k.T) - total)
            ds = scale * w * (dout @ v.T - less)
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, *sums = carry
            dq, dk, dv = added(k, v, *sums)
            return send(k, -1), send(v, -1), dq, send(dk, -1), send(dv, -1)

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk, -1), send(dv, -1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# The root of D is in the weights already, so ds needs it no more (dq and dk are too large by that factor).
def ring_backward__wrong_noroot(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less)
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, *sums = carry
            dq, dk, dv = added(k, v, *sums)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros_like(a)) for a in (q, k, v)]
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# The sums dq, dk and dv stay where they are, only keys and values go round: so a device adds up the gradients of other devices' blocks.
def ring_backward__wrong_stay(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, *sums = carry
            return send(k), send(v), *added(k, v, *sums)

        zeros = [varying(jnp.zeros_like(a)) for a in (q, k, v)]
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        return added(k, v, *sums)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# dout · out is one number for each query: a sum over the last axis, [T]; that it is then spread along the keys nobody says, as blocks are square.
def ring_backward__wrong_keepdims(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, *sums = carry
            dq, dk, dv = added(k, v, *sums)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros_like(a)) for a in (q, k, v)]
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# Everything goes once round, n turns, and all is home again: keys and values are sent one time too many.
def ring_backward__wrong_nturns(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return send(k), send(v), dq + ds @ k, send(dk + ds.T @ q), send(dv + w.T @ dout)

        zeros = [varying(jnp.zeros_like(a)) for a in (q, k, v)]
        return jax.lax.fori_loop(0, n, turn, (k, v, *zeros))[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )
