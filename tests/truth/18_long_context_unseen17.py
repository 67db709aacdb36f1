"""Answers to lesson 18, seventeenth batch, written by a reader of the notebook only."""

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


# ---- an answer to another exercise


def merge(left, right):
    """The part that two parts come to: (largest logit, weight, weighted values)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---- zigzag


def zigzag__right_side_by_side(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    early, late = chunks[:n], chunks[n:][::-1]
    positions = np.hstack([early, late]).reshape(-1)  # a row for each device
    return {"ids": text[:-1][positions], "labels": text[1:][positions], "positions": positions}


# This student dealt the tokens out first, and then took as a label the next one in the array.
def zigzag__wrong_next_in_array(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.append(chunks[d], chunks[2 * n - 1 - d]) for d in range(n)])
    ids = text[order]
    return {"ids": ids, "labels": np.append(ids[1:], text[-1]), "positions": order}


# This student thought: to and fro means that on the way back the tokens, too, are dealt out backwards.
def zigzag__wrong_backwards_too(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.append(chunks[d], chunks[2 * n - 1 - d][::-1]) for d in range(n)])
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# This student gave as positions where each token of the text has gone, not where each token at hand stood.
def zigzag__wrong_where_it_went(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.append(chunks[d], chunks[2 * n - 1 - d]) for d in range(n)])
    return {"ids": text[order], "labels": text[order + 1], "positions": np.argsort(order)}


# This student wrote all early chunks first and then all late ones, and forgot that P("x") cuts the array in n contiguous pieces.
def zigzag__wrong_early_then_late(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([*chunks[:n], *chunks[: n - 1 : -1]])
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# ---- causal_ring


def causal_ring__right_down_the_ring(q, k, v, *, mesh):
    """Causal attention; keys and values go round."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, size = jax.lax.axis_index("x"), len(k)
        places = jnp.arange(size)
        queries = me * size + places
        total = None
        for step in range(n):
            owner = (me + step) % n  # blocks go down, so the next one is that of the device above
            here = part(q, k, v, queries[:, None] >= owner * size + places)
            if step < n - 1:
                k, v = send(k, -1), send(v, -1)
            total = here if total is None else merge(total, here)
        _, weight, mixed = total
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student thought in whole blocks only: what is mine or earlier is seen, what is later is not.
def causal_ring__wrong_whole_blocks(q, k, v, *, mesh):
    """Causal attention; keys and values go round."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        total = part(q, k, v)
        for step in range(1, n):
            k, v = send(k), send(v)
            block = (me - step) % n
            total = merge(total, part(q, k, v, block <= me))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student let the positions of the keys travel with them, as "whatever belongs to a token goes with it" (a third transfer each turn).
def causal_ring__wrong_positions_travel(q, k, v, *, mesh):
    """Causal attention; keys and values go round."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        queries = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        keys = queries
        total = part(q, k, v, queries[:, None] >= keys)
        for _ in range(n - 1):
            k, v, keys = send(k), send(v), send(keys)
            total = merge(total, part(q, k, v, queries[:, None] >= keys))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student forgot that the ring closes: below device 0 the blocks get negative numbers, and so seem to be early ones.
def causal_ring__wrong_ring_not_closed(q, k, v, *, mesh):
    """Causal attention; keys and values go round."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = me * len(q) + jnp.arange(len(q))

        def at_hand(step, k, v):
            keys = (me - step) * len(k) + jnp.arange(len(k))
            return part(q, k, v, queries[:, None] >= keys)

        def turn(step, carry):
            total, k, v = carry
            return merge(total, at_hand(step, k, v)), send(k), send(v)

        widths = 1, 1, v.shape[1]
        nothing = tuple(
            varying(jnp.full((len(q), w), start, q.dtype)) for w, start in zip(widths, (-jnp.inf, 0.0, 0.0))
        )
        total, k, v = jax.lax.fori_loop(0, n - 1, turn, (nothing, k, v))
        _, weight, mixed = merge(total, at_hand(n - 1, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student begins each turn of the loop with the transfer and multiplies what has just come: the values are right, but every product waits.
def causal_ring__wrong_waits(q, k, v, *, mesh):
    """Causal attention; keys and values go round."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        places = jnp.arange(len(q))

        def seen(step):
            return (me * len(q) + places)[:, None] >= (me - step) % n * len(q) + places

        def turn(step, carry):
            total, k, v = carry
            k, v = send(k), send(v)
            return merge(total, part(q, k, v, seen(step))), k, v

        total, _, _ = jax.lax.fori_loop(1, n, turn, (part(q, k, v, seen(0)), k, v))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---- zigzag_ring


def zigzag_ring__right_down_the_ring(q, k, v, positions, *, mesh):
    """Causal attention in zig-zag order; two products of halves a turn."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)

        def halves(a):
            return a[:half], a[half:]

        (q_early, q_late), (k_early, k_late), (v_early, v_late) = map(halves, (q, k, v))
        early = part(q_early, k_early, v_early, triangle)
        late = merge(part(q_late, k_early, v_early), part(q_late, k_late, v_late, triangle))

        for step in range(1, n):
            k, v = send(k, -1), send(v, -1)
            lower = step >= n - me  # the block of device (me + step) % n: is that one below mine?

            def pick(one, other):
                return jax.tree.map(lambda a, b: jnp.where(lower, a, b), one, other)

            (k_early, k_late), (v_early, v_late) = halves(k), halves(v)
            late = merge(late, part(q_late, k_early, v_early))  # whoever it is from
            other = part(*pick((q_early, k_early, v_early), (q_late, k_late, v_late)))
            grown = merge(pick(early, late), other)
            early, late = pick(grown, early), pick(late, grown)

        return jnp.concatenate([mixed / weight for _, weight, mixed in (early, late)])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student compares true positions, so the values are right, but multiplies all four pairs of halves in every turn.
def zigzag_ring__wrong_four_quarters(q, k, v, positions, *, mesh):
    """Causal attention in zig-zag order; two products of halves a turn."""
    n = mesh.shape["x"]

    def on_device(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        total = part(q, k, v, positions[:, None] >= positions)
        for step in range(1, n):
            k, v = send(k), send(v)
            source = (me - step) % n
            within = jnp.arange(half)
            keys = jnp.concatenate([source * half + within, (2 * n - 1 - source) * half + within])
            total = merge(total, part(q, k, v, positions[:, None] >= keys))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# This student thought: at home there are two triangles, early and late (and forgot that the late queries see the early keys at home, too).
def zigzag_ring__wrong_two_triangles(q, k, v, positions, *, mesh):
    """Causal attention in zig-zag order; two products of halves a turn."""
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
            operands = (jnp.where(before, a[:half], a[half:]) for a in (q, k, v))
            total = tuple(jnp.where(before, a, b) for a, b in zip(early, late))
            total = merge(total, part(*operands))
            early = tuple(jnp.where(before, a, b) for a, b in zip(total, early))
            late = tuple(jnp.where(before, a, b) for a, b in zip(late, total))

        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student was off by one: after `me` transfers the block of device 0 is here, and counts as one that comes later.
def zigzag_ring__wrong_device_0_is_later(q, k, v, positions, *, mesh):
    """Causal attention in zig-zag order; two products of halves a turn."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle)
        late = part(q[half:], k, v, jnp.concatenate([jnp.ones_like(triangle), triangle], axis=1))

        for step in range(1, n):
            k, v = send(k), send(v)
            before = me - step > 0
            late = merge(late, part(q[half:], k[:half], v[:half]))
            operands = (jnp.where(before, a[:half], a[half:]) for a in (q, k, v))
            total = tuple(jnp.where(before, a, b) for a, b in zip(early, late))
            total = merge(total, part(*operands))
            early = tuple(jnp.where(before, a, b) for a, b in zip(total, early))
            late = tuple(jnp.where(before, a, b) for a, b in zip(late, total))

        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student sends down the ring, but tells early from late blocks as if they went up (right on two devices only).
def zigzag_ring__wrong_other_way_round(q, k, v, positions, *, mesh):
    """Causal attention in zig-zag order; two products of halves a turn."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle)
        late = merge(part(q[half:], k[:half], v[:half]), part(q[half:], k[half:], v[half:], triangle))

        for step in range(1, n):
            k, v = send(k, -1), send(v, -1)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            operands = (jnp.where(before, a[:half], a[half:]) for a in (q, k, v))
            total = tuple(jnp.where(before, a, b) for a, b in zip(early, late))
            total = merge(total, part(*operands))
            early = tuple(jnp.where(before, a, b) for a, b in zip(total, early))
            late = tuple(jnp.where(before, a, b) for a, b in zip(late, total))

        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)
