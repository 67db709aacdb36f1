"""Answers to lesson 18, fourteenth batch, written by a reader of the notebook only."""

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


# Another exercise's answer, which those below use.
def merge(left, right):
    """The part that two parts come to: (largest logit, weight, weighted values)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- ring_attention


def ring_attention__right_down(q, k, v, *, mesh):
    """Attention without a mask; keys and values go round, and one block of logits is alive at a time."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(carry, _):
            so_far, k, v = carry
            return (merge(so_far, part(q, k, v)), send(k, -1), send(v, -1)), None

        rows = len(q)
        nothing = jnp.full((rows, 1), -jnp.inf), jnp.zeros((rows, 1)), jnp.zeros((rows, v.shape[-1]))
        start = tuple(varying(a) for a in nothing), k, v
        (so_far, k, v), _ = jax.lax.scan(turn, start, None, length=n - 1)
        _, weight, mixed = merge(so_far, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought that n blocks are n equal turns: the last one sends its block home, though nobody uses it any more.
def ring_attention__wrong_nturns(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            so_far, k, v = carry
            return merge(so_far, part(q, k, v)), send(k), send(v)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[-1]))
        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n, turn, (jax.tree.map(varying, nothing), k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought that weights and weighted values of the blocks may simply be added up, and divided once at the end.
def ring_attention__wrong_added(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            weight, mixed, k, v = carry
            _, w, m = part(q, k, v)
            return weight + w, mixed + m, send(k), send(v)

        start = varying(jnp.zeros((len(q), 1))), varying(jnp.zeros((len(q), v.shape[-1]))), k, v
        weight, mixed, k, v = jax.lax.fori_loop(0, n - 1, turn, start)
        _, w, m = part(q, k, v)
        return (mixed + m) / (weight + w)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought of two rings, one each way, to use both directions of the wire: keys go up and values go down.
def ring_attention__wrong_twoways(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            so_far, k, v = carry
            return merge(so_far, part(q, k, v)), send(k, 1), send(v, -1)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[-1]))
        so_far, k, v = jax.lax.fori_loop(0, n - 1, turn, (jax.tree.map(varying, nothing), k, v))
        _, weight, mixed = merge(so_far, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought: own block first, then in each turn fetch the next one and multiply that; so every product waits for its transfer.
def ring_attention__wrong_fetchfirst(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            so_far, k, v = carry
            k, v = send(k), send(v)
            return merge(so_far, part(q, k, v)), k, v

        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n - 1, turn, (part(q, k, v), k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- causal_ring


def causal_ring__right_down(q, k, v, *, mesh):
    """Causal attention; keys and values go round."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        mine, total = me * len(q) + jnp.arange(len(q)), None
        for step in range(n):
            whose = (me + step) % n  # blocks come down the ring
            piece = part(q, k, v, mine[:, None] >= whose * len(k) + jnp.arange(len(k)))
            total = merge(total, piece) if step else piece
            if step < n - 1:
                k, v = send(k, -1), send(v, -1)
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Sends up the ring, and thought that the block of device me + step is then at hand (right on two devices).
def causal_ring__wrong_upstream(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = me * len(q) + jnp.arange(len(q))
        total = None
        for step in range(n):
            keys = (me + step) % n * len(k) + jnp.arange(len(k))
            piece = part(q, k, v, queries[:, None] >= keys)
            total = piece if total is None else merge(total, piece)
            if step < n - 1:
                k, v = send(k), send(v)
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought that a block is seen or not seen as a whole: that of a lower device and one's own are, with no triangle at home.
def causal_ring__wrong_blocks(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        total = None
        for step in range(n):
            piece = part(q, k, v, (me - step) % n <= me)
            total = piece if total is None else merge(total, piece)
            if step < n - 1:
                k, v = send(k), send(v)
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Counted down from the own block and forgot that the ring closes: later devices' keys get negative positions, so all see them.
def causal_ring__wrong_nomodulo(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = me * len(q) + jnp.arange(len(q))
        total = None
        for step in range(n):
            keys = (me - step) * len(k) + jnp.arange(len(k))
            piece = part(q, k, v, queries[:, None] >= keys)
            total = piece if total is None else merge(total, piece)
            if step < n - 1:
                k, v = send(k), send(v)
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought that positions must travel with their keys: right, but a third array goes round the ring.
def causal_ring__wrong_positions(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        queries = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        keys, total = queries, None
        for step in range(n):
            piece = part(q, k, v, queries[:, None] >= keys)
            total = piece if total is None else merge(total, piece)
            if step < n - 1:
                k, v, keys = send(k), send(v), send(keys)
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- zigzag_ring


def zigzag_ring__right_down(q, k, v, positions, *, mesh):
    """Causal attention in zig-zag order; two products of halves a turn."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle)
        late = merge(part(q[half:], k[half:], v[half:], triangle), part(q[half:], k[:half], v[:half]))
        for step in range(1, n):
            k, v = send(k, -1), send(v, -1)
            lower = me + step >= n  # down the ring: past the top, blocks of lower devices come
            either = [jnp.where(lower, a[:half], a[half:]) for a in (q, k, v)]
            late = merge(late, part(q[half:], k[:half], v[:half]))
            into = merge(jax.tree.map(lambda e, l: jnp.where(lower, e, l), early, late), part(*either))
            early = jax.tree.map(lambda new, old: jnp.where(lower, new, old), into, early)
            late = jax.tree.map(lambda new, old: jnp.where(lower, old, new), into, late)
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought that in turn step = me the lower devices are already through: step < me, but then device 0's block is at hand.
def zigzag_ring__wrong_before(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        home = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = tuple(a[:half] for a in home), tuple(a[half:] for a in home)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step < me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            piece = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            new_early, new_late = merge(early, piece), merge(late, piece)
            early = tuple(jnp.where(before, new, old) for new, old in zip(new_early, early))
            late = tuple(jnp.where(before, old, new) for new, old in zip(new_late, late))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought that a mask of true positions is all it takes: right values, but four quarters of every block are computed.
def zigzag_ring__wrong_masked(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2

        def places(device):
            return jnp.concatenate([device * half + jnp.arange(half), (2 * n - 1 - device) * half + jnp.arange(half)])

        mine, total = places(me), None
        for step in range(n):
            piece = part(q, k, v, mine[:, None] >= places((me - step) % n))
            total = piece if total is None else merge(total, piece)
            if step < n - 1:
                k, v = send(k), send(v)
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Thought of home as two triangles, one for each chunk, and forgot that the late queries see the early keys there too.
def zigzag_ring__wrong_home(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        tri = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], tri)
        late = part(q[half:], k[half:], v[half:], tri)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            piece = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            new_early, new_late = merge(early, piece), merge(late, piece)
            early = tuple(jnp.where(before, new, old) for new, old in zip(new_early, early))
            late = tuple(jnp.where(before, old, new) for new, old in zip(new_late, late))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Chose the half of the keys and values that is seen, and forgot that the queries which see it change as well.
def zigzag_ring__wrong_queries(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        home = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = tuple(a[:half] for a in home), tuple(a[half:] for a in home)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            keys, values = (jnp.where(before, a[:half], a[half:]) for a in (k, v))
            piece = part(q[half:], keys, values)
            new_early, new_late = merge(early, piece), merge(late, piece)
            early = tuple(jnp.where(before, new, old) for new, old in zip(new_early, early))
            late = tuple(jnp.where(before, old, new) for new, old in zip(new_late, late))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)
