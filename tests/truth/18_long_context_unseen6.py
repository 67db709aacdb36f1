"""Answers to lesson 18, sixth batch, written by a reader of the notebook only."""

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
    (a, wa, va), (b, wb, vb) = left, right
    top = jnp.maximum(a, b)
    base = jnp.where(top == -jnp.inf, 0, top)
    ra, rb = jnp.exp(a - base), jnp.exp(b - base)
    return top, ra * wa + rb * wb, ra * va + rb * vb


# ---------------------------------------------------------------- zigzag


# Right: finds out for every position who gets it, and sorts by that.
def zigzag__right_sorted_by_owner(text, n):
    text = np.asarray(text)
    place = np.arange(len(text) - 1)
    chunk = place // (len(place) // (2 * n))
    owner = np.minimum(chunk, 2 * n - 1 - chunk)
    order = np.argsort(owner, kind="stable")
    return {"ids": text[:-1][order], "labels": text[1:][order], "positions": place[order]}


# This student deals the ids out first, and takes for a label what comes next in the array.
def zigzag__wrong_next_in_array(text, n):
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([chunks[[d, 2 * n - 1 - d]].reshape(-1) for d in range(n)])
    ids = text[order]
    return {"ids": ids, "labels": np.append(ids[1:], text[-1]), "positions": order}


# This student gives device d the chunks d and d + n: goes to and to, and never fro.
def zigzag__wrong_not_mirrored(text, n):
    T = len(text) - 1
    size = T // (2 * n)
    order = []
    for d in range(n):
        order += list(range(d * size, (d + 1) * size))
        order += list(range((d + n) * size, (d + n + 1) * size))
    order = np.array(order)
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# This student thinks that on the way back the text is read backwards, token by token.
def zigzag__wrong_late_reversed(text, n):
    there_and_back = np.arange(len(text) - 1).reshape(2, n, -1)
    early = there_and_back[0]
    late = np.arange(len(text) - 1)[::-1].reshape(2 * n, -1)[:n]
    order = np.concatenate([early, late], axis=1).reshape(-1)
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# This student's positions are the places inside each device's own piece, each counted from 0.
def zigzag__wrong_positions_on_device(text, n):
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.concatenate([chunks[d], chunks[-1 - d]]) for d in range(n)])
    return {
        "ids": text[order],
        "labels": text[order + 1],
        "positions": np.tile(np.arange(len(order) // n), n),
    }


# ---------------------------------------------------------------- zigzag_ring


# Right: both pairs of a turn in one vmap; what does not belong to a total is merged into it as an empty part.
def zigzag_ring__right_vmap_and_empty(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        lower = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], lower)
        late = merge(part(q[half:], k[half:], v[half:], lower), part(q[half:], k[:half], v[:half]))
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            either = lambda a: jnp.where(before, a[:half], a[half:])
            both = jax.vmap(part)(
                jnp.stack([q[half:], either(q)]), jnp.stack([k[:half], either(k)]), jnp.stack([v[:half], either(v)])
            )
            always, chosen = ([a[i] for a in both] for i in (0, 1))

            def only_if(condition):
                top, weight, mixed = chosen
                return (
                    jnp.where(condition, top, -jnp.inf),
                    jnp.where(condition, weight, 0),
                    jnp.where(condition, mixed, 0),
                )

            early = merge(early, only_if(before))
            late = merge(merge(late, always), only_if(~before))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student computes all four quarters in every turn, and hides what may not be seen: right values, twice the work.
def zigzag_ring__wrong_four_quarters(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v, places):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        one = jnp.arange(half)

        def of(device):
            return jnp.concatenate([device * half + one, (2 * n - 1 - device) * half + one])

        total = part(q, k, v, places[:, None] >= of(me))
        for step in range(1, n):
            k, v = send(k), send(v)
            total = merge(total, part(q, k, v, places[:, None] >= of((me - step) % n)))
        return total[2] / total[1]

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# This student takes a block for one from a lower device only if step < me: the block of device 0 is always missed.
def zigzag_ring__wrong_step_less_than_me(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        h = len(q) // 2
        mask = jnp.tri(h, dtype=bool)
        early = part(q[:h], k[:h], v[:h], mask)
        late = merge(part(q[h:], k[:h], v[:h]), part(q[h:], k[h:], v[h:], mask))
        for step in range(1, n):
            k, v = send(k), send(v)
            late = merge(late, part(q[h:], k[:h], v[:h]))
            before = step < me
            a, b, c = (jnp.where(before, z[:h], z[h:]) for z in (q, k, v))
            p = part(a, b, c)
            new_early, new_late = merge(early, p), merge(late, p)
            early = jax.tree.map(lambda new, old: jnp.where(before, new, old), new_early, early)
            late = jax.tree.map(lambda new, old: jnp.where(before, old, new), new_late, late)
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student makes two triangles at home, and forgets that the late queries see the early keys of their own device too.
def zigzag_ring__wrong_two_triangles_at_home(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        half = len(q) // 2
        q_early, q_late = q[:half], q[half:]
        tri = jnp.tri(half, dtype=bool)
        early = part(q_early, k[:half], v[:half], tri)
        late = part(q_late, k[half:], v[half:], tri)

        def turn(step, carry):
            early, late, k, v = carry
            k, v = send(k), send(v)
            before = step <= me
            late = merge(late, part(q_late, k[:half], v[:half]))
            extra = part(
                jnp.where(before, q_early, q_late),
                jnp.where(before, k[:half], k[half:]),
                jnp.where(before, v[:half], v[half:]),
            )
            target = tuple(jnp.where(before, e, l) for e, l in zip(early, late))
            target = merge(target, extra)
            early = tuple(jnp.where(before, t, e) for t, e in zip(target, early))
            late = tuple(jnp.where(before, l, t) for t, l in zip(target, late))
            return early, late, k, v

        early, late, k, v = jax.lax.fori_loop(1, n, turn, (early, late, k, v))
        return jnp.concatenate([early[2] / early[1], late[2] / late[1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student chooses the operands, but merges the chosen pair into the late total in every turn.
def zigzag_ring__wrong_always_into_late(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me, half = jax.lax.axis_index("x"), q.shape[0] // 2
        tri = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], tri)
        seen = jnp.concatenate([jnp.ones((half, half), bool), tri], axis=1)
        late = part(q[half:], k, v, seen)
        for step in range(1, n):
            k, v = send(k), send(v)
            late = merge(late, part(q[half:], k[:half], v[:half]))
            before = step <= me
            chosen = [jnp.where(before, a[:half], a[half:]) for a in (q, k, v)]
            late = merge(late, part(*chosen))
        return jnp.concatenate([mixed / weight for _, weight, mixed in (early, late)])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- ring_backward


# Right: the blocks go down the ring, in a scan; the gradients travel with them, and one step further.
def ring_backward__right_downwards(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = jnp.sum(dout * out, axis=-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less)
            return dq + ds @ k / root, dk + ds.T @ q / root, dv + w.T @ dout

        def turn(carry, _):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return (send(k, -1), send(v, -1), dq, send(dk, -1), send(dv, -1)), None

        (k, v, dq, dk, dv), _ = jax.lax.scan(turn, (k, v, 0 * q, 0 * k, 0 * v), None, length=n - 1)
        dq, dk, dv = added(k, v, dq, dk, dv)
        return dq, send(dk, -1), send(dv, -1)

    s = P("x")
    return jax.shard_map(body, mesh=mesh, in_specs=(s,) * 6, out_specs=(s, s, s))(q, k, v, out, total, dout)


# This student stops after n - 1 transfers: every block has met everybody, but its gradients are not at home yet.
def ring_backward__wrong_not_home(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(_, carry):
            k, v, *grads = carry
            dq, dk, dv = added(k, v, *grads)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape)) for a in (q, k, v)]
        k, v, dq, dk, dv = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        return added(k, v, dq, dk, dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# This student puts the root of D into the weights, and forgets it where ds becomes the gradients of q and k.
def ring_backward__wrong_root_forgotten(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        inner = (dout * out).sum(-1, keepdims=True)

        def block(k, v):
            w = jnp.exp(q @ k.T / jnp.sqrt(q.shape[-1]) - total)
            ds = w * (dout @ v.T - inner)
            return ds @ k, ds.T @ q, w.T @ dout

        def turn(i, carry):
            k, v, dq, dk, dv = carry
            a, b, c = block(k, v)
            return send(k), send(v), dq + a, send(dk + b), send(dv + c)

        carry = k, v, *(varying(jnp.zeros(z.shape)) for z in (q, k, v))
        k, v, dq, dk, dv = jax.lax.fori_loop(0, n - 1, turn, carry)
        a, b, c = block(k, v)
        return dq + a, send(dk + b), send(dv + c)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# This student lets the blocks travel and keeps dk and dv on the device, like dq: they belong to other keys in every turn.
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
            k, v, grads = carry
            return send(k), send(v), added(k, v, *grads)

        zeros = tuple(varying(jnp.zeros(a.shape)) for a in (q, k, v))
        k, v, grads = jax.lax.fori_loop(0, n - 1, turn, (k, v, zeros))
        return added(k, v, *grads)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# This student gathers the keys once more, makes all weights at once, and adds the gradients up by reduce_scatter: right, but no ring.
def ring_backward__wrong_gathered(q, k, v, out, total, dout, *, mesh):
    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        ks, vs = jax.lax.all_gather(k, "x", tiled=True), jax.lax.all_gather(v, "x", tiled=True)
        w = jnp.exp(q @ ks.T / root - total)
        ds = w * (dout @ vs.T - (dout * out).sum(-1, keepdims=True)) / root
        dk = jax.lax.psum_scatter(ds.T @ q, "x", scatter_dimension=0, tiled=True)
        dv = jax.lax.psum_scatter(w.T @ dout, "x", scatter_dimension=0, tiled=True)
        return ds @ ks, dk, dv

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )
