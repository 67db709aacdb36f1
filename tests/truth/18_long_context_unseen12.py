"""Answers to lesson 18, twelfth batch, written by a reader of the notebook only."""

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
    """The part that two parts come to: (largest logit, weight, weighted values)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- ring_attention


def ring_attention__right_scan(q, k, v, *, mesh):
    """Attention without a mask; keys and values go round, and one block of logits is alive at a time."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def take_in(sofar, k, v):
            high, weight, mixed = sofar
            top, more, values = part(q, k, v)
            new = jnp.maximum(high, top)
            old, fresh = jnp.exp(high - new), jnp.exp(top - new)
            return new, old * weight + fresh * more, old * mixed + fresh * values

        def turn(carry, _):
            sofar, k, v = carry
            return (take_in(sofar, k, v), send(k), send(v)), None

        rows = len(q)
        empty = (jnp.full((rows, 1), -jnp.inf), jnp.zeros((rows, 1)), jnp.zeros((rows, v.shape[1])))
        (sofar, k, v), _ = jax.lax.scan(turn, (tuple(map(varying, empty)), k, v), None, length=n - 1)
        _, weight, mixed = take_in(sofar, k, v)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# This student let the loop run n turns, one for each block, so that keys and values are sent home again at the end.
def ring_attention__wrong_nturns(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k, v = carry
            return merge(total, part(q, k, v)), send(k), send(v)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        nothing = jax.tree.map(varying, nothing)
        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n, turn, (nothing, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student sent the keys round and left the values at home, "they are only needed after the softmax".
def ring_attention__wrong_valuesstay(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            total, k = carry
            return merge(total, part(q, k, v)), send(k)

        nothing = jax.tree.map(
            varying, (jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1])))
        )
        total, k = jax.lax.fori_loop(0, n - 1, turn, (nothing, k))
        top, weight, mixed = merge(total, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student brought the weights to the common largest logit, but added the values as they are, "those are weighted already".
def ring_attention__wrong_unscaled(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def join(a, b):
        top = jnp.maximum(a[0], b[0])
        weight = a[1] * jnp.exp(a[0] - top) + b[1] * jnp.exp(b[0] - top)
        return top, weight, a[2] + b[2]

    def on_device(q, k, v):
        T, E = len(q), v.shape[1]

        def turn(step, carry):
            total, k, v = carry
            return join(total, part(q, k, v)), send(k), send(v)

        start = tuple(varying(a) for a in (jnp.full((T, 1), -jnp.inf), jnp.zeros((T, 1)), jnp.zeros((T, E))))
        total, k, v = jax.lax.fori_loop(0, n - 1, turn, (start, k, v))
        _, weight, mixed = join(total, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student let the queries travel, with what they have gathered so far, past keys and values that stay, and sent the result home.
def ring_attention__wrong_queriestravel(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))

        def turn(step, carry):
            q, total = carry
            total = merge(total, part(q, k, v))
            return send(q), tuple(send(a) for a in total)

        q, total = jax.lax.fori_loop(0, n - 1, turn, (q, jax.tree.map(varying, nothing)))
        _, weight, mixed = merge(total, part(q, k, v))
        return send(mixed / weight)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- causal_ring


def causal_ring__right_kinds(q, k, v, *, mesh):
    """Causal attention; keys and values go round."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        triangle = jnp.tri(len(q), dtype=bool)
        total = None
        for step in range(n):
            nxt = (send(k), send(v)) if step < n - 1 else None
            if step == 0:
                total = part(q, k, v, triangle)
            else:
                # after `step` transfers the block of device me - step is here, if the ring has not closed yet
                total = merge(total, part(q, k, v, jnp.broadcast_to(me >= step, triangle.shape)))
            if nxt:
                k, v = nxt
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# This student thought that blocks sent up the ring come from above: after `step` transfers that of device me + step.
def causal_ring__wrong_above(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        queries = me * len(q) + jnp.arange(len(q))

        def see(step, total, k, v):
            keys = (me + step) % n * len(k) + jnp.arange(len(k))
            return merge(total, part(q, k, v, queries[:, None] >= keys))

        def turn(step, carry):
            total, k, v = carry
            return see(step, total, k, v), send(k), send(v)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        total, k, v = jax.lax.fori_loop(0, n - 1, turn, (jax.tree.map(varying, nothing), k, v))
        _, weight, mixed = see(n - 1, total, k, v)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student masked by blocks only: a device sees its own block and those of lower devices, each as a whole.
def causal_ring__wrong_blocks(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        total = part(q, k, v)
        for step in range(1, n):
            # the own block has been counted; of those that came, only lower ones count
            if step == 1:
                nk, nv = send(k), send(v)
            k, v = nk, nv
            if step < n - 1:
                nk, nv = send(k), send(v)
            total = merge(total, part(q, k, v, (me - step) % n <= me))
        return total[2] / total[1]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student took the triangle for the mask of every block at hand, as if each block began at position 0.
def causal_ring__wrong_triangles(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        seen = jnp.arange(len(q))[:, None] >= jnp.arange(len(k))

        def turn(step, carry):
            total, k, v = carry
            return merge(total, part(q, k, v, seen)), send(k), send(v)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        total, k, v = jax.lax.fori_loop(0, n - 1, turn, (jax.tree.map(varying, nothing), k, v))
        _, weight, mixed = merge(total, part(q, k, v, seen))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student was told that whatever belongs to a token goes with it, and sent the positions round with the keys: a third transfer in each turn.
def causal_ring__wrong_positionstravel(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        here = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))

        def turn(step, carry):
            total, k, v, places = carry
            total = merge(total, part(q, k, v, here[:, None] >= places))
            return total, send(k), send(v), send(places)

        nothing = jnp.full((len(q), 1), -jnp.inf), jnp.zeros((len(q), 1)), jnp.zeros((len(q), v.shape[1]))
        total, k, v, places = jax.lax.fori_loop(0, n - 1, turn, (jax.tree.map(varying, nothing), k, v, here))
        _, weight, mixed = merge(total, part(q, k, v, here[:, None] >= places))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- ring_backward


def ring_backward__right_scan(q, k, v, out, total, dout, *, mesh):
    """(dq, dk, dv) of attention without a mask; blocks and their gradients go round."""
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        scale = q.shape[-1] ** -0.5
        own = jnp.einsum("te,te->t", dout, out)[:, None]

        def block(k, v):
            w = jnp.exp(scale * q @ k.T - total)
            ds = scale * w * (dout @ v.T - own)
            return ds @ k, ds.T @ q, w.T @ dout

        def turn(carry, _):
            k, v, dq, dk, dv = carry
            a, b, c = block(k, v)
            return (send(k), send(v), dq + a, send(dk + b), send(dv + c)), None

        start = (k, v, *(varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v)))
        (k, v, dq, dk, dv), _ = jax.lax.scan(turn, start, None, length=n - 1)
        a, b, c = block(k, v)
        return dq + a, send(dk + b), send(dv + c)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v, out, total, dout)


# This student thought that n - 1 transfers bring everything round, and left the gradients one place below home.
def ring_backward__wrong_nothome(q, k, v, out, total, dout, *, mesh):
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

        zeros = tuple(varying(jnp.zeros(a.shape)) for a in (q, k, v))
        k, v, dq, dk, dv = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        return added(k, v, dq, dk, dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# This student used the softmax's own backward formula on each block: what is subtracted is the sum over the keys at hand only.
def ring_backward__wrong_blockless(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            dw = dout @ v.T
            ds = w * (dw - (w * dw).sum(-1, keepdims=True)) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, *sums = carry
            dq, dk, dv = added(k, v, *sums)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = tuple(varying(jnp.zeros(a.shape)) for a in (q, k, v))
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# This student divided by the root where the queries' gradient is made, and thought that the keys' then has it too.
def ring_backward__wrong_root(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = jnp.sqrt(q.shape[-1])
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less)
            return dq + ds @ k / root, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = tuple(varying(jnp.zeros(a.shape)) for a in (q, k, v))
        k, v, dq, dk, dv = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, dq, dk, dv)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# This student remembered that a ppermute backwards goes the other way, and sent the gradients down the ring while their blocks go up.
def ring_backward__wrong_otherway(q, k, v, out, total, dout, *, mesh):
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
            return send(k), send(v), dq, send(dk, -1), send(dv, -1)

        zeros = tuple(varying(jnp.zeros(a.shape)) for a in (q, k, v))
        k, v, dq, dk, dv = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, dq, dk, dv)
        return dq, send(dk, -1), send(dv, -1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )
