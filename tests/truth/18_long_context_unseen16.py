"""Answers to lesson 18, sixteenth batch, written by a reader of the notebook only."""

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


def nothing(q, v):
    """The part of no keys at all."""
    t = len(q)
    return tuple(map(varying, (jnp.full((t, 1), -jnp.inf), jnp.zeros((t, 1)), jnp.zeros((t, v.shape[1])))))


# ---------------------------------------------------------------- ring_attention


def ring_attention__right_downwards(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(carry, _):
            so_far, k, v = carry
            coming = send(k, -1), send(v, -1)
            return (merge(part(q, k, v), so_far), *coming), None

        (so_far, k, v), _ = jax.lax.scan(turn, (nothing(q, v), k, v), None, length=n - 1)
        _, weight, mixed = merge(part(q, k, v), so_far)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# "When a larger logit comes, what I have is scaled down": but a block with smaller logits than those so far is added as it is.
def ring_attention__wrong_one_sided(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def add(so_far, block):
        top = jnp.maximum(so_far[0], block[0])
        scale = jnp.exp(so_far[0] - top)
        return top, so_far[1] * scale + block[1], so_far[2] * scale + block[2]

    def on_device(q, k, v):
        def turn(step, carry):
            so_far, k, v = carry
            return add(so_far, part(q, k, v)), send(k), send(v)

        so_far, k, v = jax.lax.fori_loop(0, n - 1, turn, (nothing(q, v), k, v))
        _, weight, mixed = add(so_far, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# "Keys one way round and values the other, so both directions of the wire are used": keys then meet another block's values.
def ring_attention__wrong_two_ways(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            so_far, k, v = carry
            return merge(so_far, part(q, k, v)), send(k, 1), send(v, -1)

        so_far, k, v = jax.lax.fori_loop(0, n - 1, turn, (nothing(q, v), k, v))
        _, weight, mixed = merge(so_far, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# "There are n blocks, so n turns": right values, but each block makes one more transfer, home again.
def ring_attention__wrong_full_circle(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            so_far, k, v = carry
            return merge(so_far, part(q, k, v)), send(k), send(v)

        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n, turn, (nothing(q, v), k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# "Own block first, then always fetch the next and use it": no empty start needed, but each product waits for its transfer.
def ring_attention__wrong_fetch_first(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        def turn(step, carry):
            so_far, k, v = carry
            k, v = send(k), send(v)
            return merge(so_far, part(q, k, v)), k, v

        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, n - 1, turn, (part(q, k, v), k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- work


def work__right_formulas(tokens, n, layout):
    each = tokens // n
    if layout == "contiguous":
        return [each * each * d + each * (each + 1) // 2 for d in range(n)]
    if layout == "striped":
        return [each * (d + 1) + n * each * (each - 1) // 2 for d in range(n)]
    return [tokens // (2 * n) * (tokens + 1)] * n  # chunks d and 2n − 1 − d together are the same for all d


# "The query at position p looks at p keys": its own is forgotten.
def work__wrong_strict(tokens, n, layout):
    p = np.arange(tokens)
    if layout == "contiguous":
        rows = p.reshape(n, -1)
    elif layout == "striped":
        rows = p.reshape(-1, n).T
    else:
        chunks = p.reshape(2 * n, -1)
        rows = [np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)]
    return [int(np.sum(row)) for row in rows]


# "A device computes the pairs of its own queries with its own keys": what comes round the ring is not counted.
def work__wrong_own_keys(tokens, n, layout):
    p = np.arange(tokens)
    if layout == "contiguous":
        rows = p.reshape(n, -1)
    elif layout == "striped":
        rows = p.reshape(-1, n).T
    else:
        chunks = p.reshape(2 * n, -1)
        rows = [np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)]
    return [int((row[:, None] >= row[None, :]).sum()) for row in rows]


# "reshape(n, -1) deals out in turn": contiguous and striped have changed places.
def work__wrong_reshaped(tokens, n, layout):
    keys = np.arange(1, tokens + 1)
    if layout == "striped":
        return keys.reshape(n, -1).sum(axis=1).tolist()
    if layout == "contiguous":
        return keys.reshape(-1, n).sum(axis=0).tolist()
    chunks = keys.reshape(2 * n, -1).sum(axis=1)
    return (chunks[:n] + chunks[n:][::-1]).tolist()


# "One chunk of the first half and the same one of the second": chunks d and n + d, so the second half is not dealt backwards.
def work__wrong_not_back(tokens, n, layout):
    keys = np.arange(1, tokens + 1)
    if layout == "contiguous":
        return keys.reshape(n, -1).sum(axis=1).tolist()
    if layout == "striped":
        return keys.reshape(-1, n).sum(axis=0).tolist()
    chunks = keys.reshape(2, n, -1)
    return chunks.sum(axis=(0, 2)).tolist()


# ---------------------------------------------------------------- ring_backward


def ring_backward__right_scaled(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        scaled = q / root
        less = jnp.einsum("te,te->t", dout, out)[:, None]

        def grown(grads, k, v):
            dq, dk, dv = grads
            w = jnp.exp(scaled @ k.T - total)
            ds = w * (dout @ v.T - less)
            return dq + ds @ k, dk + ds.T @ scaled, dv + w.T @ dout

        def turn(carry, _):
            grads, k, v = carry
            dq, dk, dv = grown(grads, k, v)
            return ((dq, send(dk, -1), send(dv, -1)), send(k, -1), send(v, -1)), None

        zeros = tuple(varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        (grads, k, v), _ = jax.lax.scan(turn, (zeros, k, v), None, length=n - 1)
        dq, dk, dv = grown(grads, k, v)
        return dq / root, send(dk, -1), send(dv, -1)

    cut = P("x")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 6, out_specs=(cut,) * 3)(q, k, v, out, total, dout)


# "After n − 1 transfers everything has been everywhere, so I am done": the gradients of k and v stay one place below home.
def ring_backward__wrong_not_home(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, *grads = carry
            dq, dk, dv = added(k, v, *grads)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = (varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        return added(*jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros)))

    cut = P("x")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 6, out_specs=(cut,) * 3)(q, k, v, out, total, dout)


# "√D is in the weights already": it is forgotten in the gradients of q and k.
def ring_backward__wrong_no_root(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / q.shape[-1] ** 0.5 - total)
            ds = w * (dout @ v.T - less)
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, *grads = carry
            dq, dk, dv = added(k, v, *grads)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = (varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        dq, dk, dv = added(*jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros)))
        return dq, send(dk), send(dv)

    cut = P("x")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 6, out_specs=(cut,) * 3)(q, k, v, out, total, dout)


# "Each device writes down what it owes to each block, and at the end all is added up": right values, by a reduce_scatter.
def ring_backward__wrong_scattered(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        me = jax.lax.axis_index("x")
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(step, k, v, dq, dk, dv):
            whose = (me - step) % n
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk.at[whose].add(ds.T @ q), dv.at[whose].add(w.T @ dout)

        def turn(step, carry):
            k, v, *grads = carry
            return send(k), send(v), *added(step, k, v, *grads)

        zeros = (varying(jnp.zeros(shape)) for shape in (q.shape, (n, *k.shape), (n, *v.shape)))
        last = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(n - 1, *last)
        return dq, jax.lax.psum_scatter(dk, "x"), jax.lax.psum_scatter(dv, "x")

    cut = P("x")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 6, out_specs=(cut,) * 3)(q, k, v, out, total, dout)


# "A softmax backwards subtracts the row's mean of dw": taken over the keys at hand, where it must be over all keys (dout · out).
def ring_backward__wrong_block_mean(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            dw = dout @ v.T
            ds = w * (dw - (w * dw).sum(-1, keepdims=True)) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, *grads = carry
            dq, dk, dv = added(k, v, *grads)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = (varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        dq, dk, dv = added(*jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros)))
        return dq, send(dk), send(dv)

    cut = P("x")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 6, out_specs=(cut,) * 3)(q, k, v, out, total, dout)
