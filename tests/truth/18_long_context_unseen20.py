"""Answers to lesson 18, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

if len(jax.devices()) >= 4:
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
    """The part that two parts come to (the exercise of part 2; used by the answers below)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- merge


def merge__right_stacked(left, right):
    tops, weights, values = (jnp.stack(pair) for pair in zip(left, right))
    top = tops.max(axis=0)
    scale = jnp.exp(tops - jnp.where(jnp.isneginf(top), 0, top))
    return top, (scale * weights).sum(axis=0), (scale * values).sum(axis=0)


# exp(-inf) is 0, so an empty part takes care of itself: its factor is 0.
def merge__wrong_both_empty(left, right):
    top = jnp.maximum(left[0], right[0])
    a, b = jnp.exp(left[0] - top), jnp.exp(right[0] - top)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# The weights change with the largest logit; the values are the tokens' values, which no shift of the logits changes.
def merge__wrong_values_not_rescaled(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    weight = jnp.exp(left[0] - base) * left[1] + jnp.exp(right[0] - base) * right[1]
    return top, weight, left[2] + right[2]


# Make the true weights again (times exp of the largest logit), add them, and divide by exp of the new largest.
def merge__wrong_true_weights_first(left, right):
    top = jnp.maximum(left[0], right[0])
    a, b = jnp.exp(left[0]), jnp.exp(right[0])
    whole = jnp.exp(jnp.where(top == -jnp.inf, 0, top))
    return top, (a * left[1] + b * right[1]) / whole, (a * left[2] + b * right[2]) / whole


# A softmax ends with a division by the weight, so the values of the merged part are divided by it.
def merge__wrong_divided_at_once(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    weight = a * left[1] + b * right[1]
    return top, weight, (a * left[2] + b * right[2]) / jnp.where(weight == 0, 1, weight)


# ---------------------------------------------------------------- ring_backward


def ring_backward__right_downwards(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = jnp.sum(dout * out, axis=-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(carry, _):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return (send(k, -1), send(v, -1), dq, send(dk, -1), send(dv, -1)), None

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        (k, v, *sums), _ = jax.lax.scan(turn, (k, v, *zeros), None, length=n - 1)
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk, -1), send(dv, -1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# After n - 1 transfers each block has met everybody, so its gradient is complete and the ring is closed.
def ring_backward__wrong_one_place_from_home(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        k, v, dq, dk, dv = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        return added(k, v, dq, dk, dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# The root belongs to the queries (q / sqrt(D) times k), so only the gradient of q is divided by it.
def ring_backward__wrong_root_for_q_only(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less)
            return dq + ds @ k / root, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        k, v, dq, dk, dv = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, dq, dk, dv)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# The weights are made again from the two blocks at hand: a softmax of their logits.
def ring_backward__wrong_softmax_of_a_block(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jax.nn.softmax(q @ k.T / root, axis=-1)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        k, v, dq, dk, dv = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, dq, dk, dv)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# The gradients need n transfers anyway, so everything goes round n times in one loop, and all is at home at the end.
def ring_backward__wrong_all_go_round_n_times(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return send(k), send(v), dq + ds @ k, send(dk + ds.T @ q), send(dv + w.T @ dout)

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        return jax.lax.fori_loop(0, n, turn, (k, v, *zeros))[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# ---------------------------------------------------------------- zigzag_ring


def zigzag_ring__right_downwards(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(2 * half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle[:half, :half])
        late = part(q[half:], k, v, triangle[half:])
        for step in range(1, n):
            k, v = send(k, -1), send(v, -1)
            before = me + step >= n  # the ring has closed: the block at hand is of a lower device
            late = merge(late, part(q[half:], k[:half], v[:half]))
            asks, holds, gives = (jnp.where(before, a[:half], a[half:]) for a in (q, k, v))
            total = merge(jax.tree.map(lambda e, l: jnp.where(before, e, l), early, late), part(asks, holds, gives))
            early = jax.tree.map(lambda new, old: jnp.where(before, new, old), total, early)
            late = jax.tree.map(lambda new, old: jnp.where(before, old, new), total, late)
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# Step 0 was at home, so device `me` meets lower devices in the steps below `me`.
def zigzag_ring__wrong_step_below_me(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(2 * half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle[:half, :half])
        late = part(q[half:], k, v, triangle[half:])
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step < me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            one = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            with_early, with_late = merge(early, one), merge(late, one)
            early = tuple(jnp.where(before, new, old) for new, old in zip(with_early, early))
            late = tuple(jnp.where(before, old, new) for new, old in zip(with_late, late))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# Early keys are early for everybody: early queries always see them, and late queries see early keys of a lower device
# and late keys of a higher one.
def zigzag_ring__wrong_early_always_sees_early(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(2 * half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle[:half, :half])
        late = part(q[half:], k, v, triangle[half:])
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            early = merge(early, part(q[:half], k[:half], v[:half]))
            holds, gives = (jnp.where(before, a[:half], a[half:]) for a in (k, v))
            late = merge(late, part(q[half:], holds, gives))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# With the right positions of the block at hand one mask takes care of all four pairs, and what is hidden costs nothing.
def zigzag_ring__wrong_mask_of_positions(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2

        def places(device):
            inside = jnp.arange(half)
            return jnp.concatenate([device * half + inside, (2 * n - 1 - device) * half + inside])

        mine = places(me)[:, None]
        total = part(q, k, v, mine >= places(me))
        for step in range(1, n):
            k, v = send(k), send(v)
            total = merge(total, part(q, k, v, mine >= places((me - step) % n)))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# At home each of the two chunks meets itself: a triangle for the early one and a triangle for the late one.
def zigzag_ring__wrong_two_triangles_at_home(q, k, v, positions, *, mesh):
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
            one = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            with_early, with_late = merge(early, one), merge(late, one)
            early = tuple(jnp.where(before, new, old) for new, old in zip(with_early, early))
            late = tuple(jnp.where(before, old, new) for new, old in zip(with_late, late))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)
