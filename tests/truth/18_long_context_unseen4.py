"""Answers to lesson 18, fourth batch, written by a reader of the notebook only."""

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


def merge(left, right):
    """The part that two parts come to (an answer to the exercise `merge`)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ------------------------------------------------------------------ zigzag_ring


def zigzag_ring__right_vmap(q, k, v, positions, *, mesh):
    """The two pairs of a turn as one batch of two."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        q_early, q_late = jnp.split(q, 2)
        early = part(q_early, k[:half], v[:half], triangle)
        late = merge(part(q_late, k[:half], v[:half]), part(q_late, k[half:], v[half:], triangle))
        for step in range(1, n):
            k, v = send(k), send(v)
            lower = step <= me  # the block is from a lower device
            queries = jnp.stack([q_late, jnp.where(lower, q_early, q_late)])
            keys, values = (jnp.stack([a[:half], jnp.where(lower, a[:half], a[half:])]) for a in (k, v))
            both = jax.vmap(part)(queries, keys, values)
            always, other = ([a[i] for a in both] for i in range(2))
            late = merge(late, always)
            with_early, with_late = merge(early, other), merge(late, other)
            early = tuple(jnp.where(lower, new, old) for new, old in zip(with_early, early))
            late = tuple(jnp.where(lower, old, new) for new, old in zip(with_late, late))
        return jnp.concatenate([mixed / weight for _, weight, mixed in (early, late)])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student counts a block that has come `me` places for one of a higher device: off by one.
def zigzag_ring__wrong_one_turn_early(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle)
        late = merge(part(q[half:], k[:half], v[:half]), part(q[half:], k[half:], v[half:], triangle))
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step < me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            early, late = (
                tuple(jnp.where(before, new, old) for new, old in zip(merge(early, other), early)),
                tuple(jnp.where(before, old, new) for new, old in zip(merge(late, other), late)),
            )
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student sends the positions along and masks whole blocks by them: right values, four pairs of halves a turn.
def zigzag_ring__wrong_whole_blocks(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        places = positions
        total = part(q, k, v, positions[:, None] >= places)
        for _ in range(1, n):
            k, v, places = send(k), send(v), send(places)
            total = merge(total, part(q, k, v, positions[:, None] >= places))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# This student forgot that at home the late queries see all of the early keys.
def zigzag_ring__wrong_home_triangles_only(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle)
        late = part(q[half:], k[half:], v[half:], triangle)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            early, late = (
                tuple(jnp.where(before, new, old) for new, old in zip(merge(early, other), early)),
                tuple(jnp.where(before, old, new) for new, old in zip(merge(late, other), late)),
            )
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student adds weights and values of parts as they are, although each is relative to its own largest logit.
def zigzag_ring__wrong_parts_just_added(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def added(left, right):
            return jnp.maximum(left[0], right[0]), left[1] + right[1], left[2] + right[2]

        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle)
        late = added(part(q[half:], k[:half], v[:half]), part(q[half:], k[half:], v[half:], triangle))
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            late = added(late, part(q[half:], k[:half], v[:half]))
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            early, late = (
                tuple(jnp.where(before, new, old) for new, old in zip(added(early, other), early)),
                tuple(jnp.where(before, old, new) for new, old in zip(added(late, other), late)),
            )
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ------------------------------------------------------------------ ulysses


def ulysses__right_grouped(q, k, v, *, mesh):
    """Queries grouped by the key-value head that they share: nothing is repeated after the exchange."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        copies = -(-n // k.shape[1])
        k, v = (jnp.repeat(a, copies, axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        seen = jnp.tri(len(q), dtype=bool)

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, seen)
            return mixed / weight

        groups = q.reshape(len(q), k.shape[1], -1, q.shape[-1])
        shared = jax.vmap(head, in_axes=(1, None, None), out_axes=1)
        out = jax.vmap(shared, in_axes=1, out_axes=1)(groups, k, v)
        return jax.lax.all_to_all(out.reshape(len(q), -1, v.shape[-1]), "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student copies keys and values for every query head before they are sent: right values, too many bytes.
def ulysses__wrong_copied_first(q, k, v, *, mesh):
    def on_device(q, k, v):
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student makes the copies for the devices with tile: device d gets head d mod G in place of d // (n / G).
def ulysses__wrong_tiled_for_devices(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        k, v = (jnp.tile(a, (1, max(1, n // a.shape[1]), 1)) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student lets neighbouring query heads take different key-value heads on a device: h mod G in place of h // (H / G).
def ulysses__wrong_heads_in_turn(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        k, v = (jnp.repeat(a, max(1, n // a.shape[1]), axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.tile(a, (1, q.shape[1] // a.shape[1], 1)) for a in (k, v))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student kept the mask of the gather, in which a device's queries begin at me * (its tokens), though all tokens are there now.
def ulysses__wrong_shifted_mask(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        own = len(q)
        k, v = (jnp.repeat(a, max(1, n // a.shape[1]), axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        place = jax.lax.axis_index("x") * own + jnp.arange(len(q))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, place[:, None] >= jnp.arange(len(k)))
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ------------------------------------------------------------------ ring_backward


def ring_backward__right_scan(q, k, v, out, total, dout, *, mesh):
    """The n - 1 turns as a scan; q is scaled once, at the beginning and at the end."""
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        scaled = q / root
        less = jnp.sum(dout * out, axis=-1, keepdims=True)

        def met(k, v, dq, dk, dv):
            w = jnp.exp(scaled @ k.T - total)
            ds = w * (dout @ v.T - less)
            return dq + ds @ k, dk + ds.T @ scaled, dv + w.T @ dout

        def turn(carry, _):
            k, v, dq, dk, dv = carry
            here = send(k), send(v)
            dq, dk, dv = met(k, v, dq, dk, dv)
            return (*here, dq, send(dk), send(dv)), None

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        (k, v, dq, dk, dv), _ = jax.lax.scan(turn, (k, v, *zeros), length=n - 1)
        dq, dk, dv = met(k, v, dq, dk, dv)
        return dq / root, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# This student stops the gradients after n - 1 transfers, one place below home.
def ring_backward__wrong_one_below_home(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(_, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        return added(*jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros)))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# This student divides the logits by the root of D but not their gradient.
def ring_backward__wrong_root_once(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less)
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(_, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# This student took the weights for constants of the sum: what is subtracted, dout · out, is missing.
def ring_backward__wrong_nothing_subtracted(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, total, dout):
        root = q.shape[-1] ** 0.5

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(_, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 5, out_specs=(P("x"),) * 3)(q, k, v, total, dout)


# This student keeps all three gradients at home while keys and values go round, as dq may be.
def ring_backward__wrong_gradients_stay(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(_, carry):
            k, v, *sums = carry
            return send(k), send(v), *added(k, v, *sums)

        zeros = [varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)]
        return added(*jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros)))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )
