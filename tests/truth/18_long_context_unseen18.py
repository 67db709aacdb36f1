"""Answers to lesson 18, eighteenth batch, written by a reader of the notebook only."""

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


def by_tokens(body, *arrays, out=P("x")):
    """Run `body` on every device, all arrays cut along their tokens."""
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * len(arrays), out_specs=out)(*arrays)


# ---------------------------------------------------------------- gather_kv


def gather_kv__right_iota(q, k, v, *, mesh):
    def body(q, k, v):
        t = len(q)
        keys, values = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        # key j lies in the past of query i of device me where j - i <= me * t
        ahead = jnp.arange(len(keys)) - jnp.arange(t)[:, None]
        _, weight, mixed = part(q, keys, values, ahead <= jax.lax.axis_index("x") * t)
        return mixed / weight

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# by_tokens does the shard_map already, so one needs no mesh (it takes the notebook's four devices, whatever `mesh` is given).
def gather_kv__wrong_notebook_mesh(q, k, v, *, mesh):
    def body(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        place = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        _, weight, mixed = part(q, k, v, place[:, None] >= jnp.arange(len(k)))
        return mixed / weight

    return by_tokens(body, q, k, v)


# A device may look at the blocks of all devices up to itself (its own block whole, so also ahead).
def gather_kv__wrong_whole_blocks(q, k, v, *, mesh):
    def body(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        me = jax.lax.axis_index("x")
        _, weight, mixed = part(q, k, v, me >= jnp.arange(len(k)) // len(q))
        return mixed / weight

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Looking back means at what came before, so a token does not look at itself (the first one sees nothing: 0/0).
def gather_kv__wrong_not_itself(q, k, v, *, mesh):
    def body(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        place = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        _, weight, mixed = part(q, k, v, place[:, None] > jnp.arange(len(k)))
        return mixed / weight

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Block `me` begins at me times the length of a block, and takes len(k) for it, which after the gather is the whole text.
def gather_kv__wrong_gathered_length(q, k, v, *, mesh):
    def body(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        place = jax.lax.axis_index("x") * len(k) + jnp.arange(len(q))
        _, weight, mixed = part(q, k, v, place[:, None] >= jnp.arange(len(k)))
        return mixed / weight

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- ulysses


def ulysses__right_grouped(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        G = k.shape[1]
        arriving = max(n, G)
        which = np.arange(arriving) * G // arriving
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k[:, which], v[:, which]))
        T, heads, D = q.shape
        causal = jnp.arange(T)[:, None] >= jnp.arange(T)

        def one(q, k, v):
            _, weight, mixed = part(q, k, v, causal)
            return mixed / weight

        sharing = jax.vmap(one, in_axes=(1, None, None), out_axes=1)  # the query heads of one key-value head
        out = jax.vmap(sharing, in_axes=1, out_axes=1)(q.reshape(T, k.shape[1], -1, D), k, v)
        return jax.lax.all_to_all(out.reshape(T, heads, -1), "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# First give every query head its own keys and values, then it is the case without groups (with H / max(G, n) times the bytes).
def ulysses__wrong_copies_first(q, k, v, *, mesh):
    def body(q, k, v):
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Copies of the heads are made by jnp.tile: 0 1 0 1 in place of 0 0 1 1, as if head h shared key-value head h % G.
def ulysses__wrong_tile(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        k, v = (jnp.tile(a, (1, max(1, n // a.shape[1]), 1)) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.tile(a, (1, q.shape[1] // a.shape[1], 1)) for a in (k, v))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# The queries of device me begin at me * T/n, as in gather_kv (but after the exchange all devices have the text from 0 on).
def ulysses__wrong_moved_mask(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        start = jax.lax.axis_index("x") * len(q)
        k, v = (jnp.repeat(a, max(1, n // a.shape[1]), axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        place = start + jnp.arange(len(q))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, place[:, None] >= jnp.arange(len(k)))
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# The result has its heads on the devices, and out_specs puts them together: no way back is needed (it is then cut by heads).
def ulysses__wrong_cut_by_heads(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        k, v = (jnp.repeat(a, max(1, n // a.shape[1]), axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
            return mixed / weight

        return jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P(None, "x"))(q, k, v)


# ---------------------------------------------------------------- ring_backward


def ring_backward__right_downwards(q, k, v, out, total, dout, *, mesh):
    n, root = mesh.shape["x"], q.shape[-1] ** 0.5

    def body(q, k, v, out, total, dout):
        less = jnp.einsum("te,te->t", dout, out)[:, None]

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(carry, _):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            k, v, dk, dv = (send(a, -1) for a in (k, v, dk, dv))
            return (k, v, dq, dk, dv), None

        zeros = (varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        carry, _ = jax.lax.scan(turn, (k, v, *zeros), None, length=n - 1)
        dq, dk, dv = added(*carry)
        return dq, send(dk, -1), send(dv, -1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v, out, total, dout)


# dout · out is one number for each query, a sum over the last axis (without keepdims it is [T/n], and is taken for the keys').
def ring_backward__wrong_row_for_column(q, k, v, out, total, dout, *, mesh):
    n, root = mesh.shape["x"], q.shape[-1] ** 0.5

    def body(q, k, v, out, total, dout):
        less = (dout * out).sum(-1)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = (varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        dq, dk, dv = added(*jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros)))
        return dq, send(dk), send(dv)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=P("x"))(q, k, v, out, total, dout)


# The weights are made again as a softmax of the block at hand (relative to this block's keys only, `total` is not needed).
def ring_backward__wrong_block_softmax(q, k, v, out, total, dout, *, mesh):
    n, root = mesh.shape["x"], q.shape[-1] ** 0.5

    def body(q, k, v, out, total, dout):
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jax.nn.softmax(q @ k.T / root, axis=-1)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = (varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        dq, dk, dv = added(*jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros)))
        return dq, send(dk), send(dv)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=P("x"))(q, k, v, out, total, dout)


# After the loop the gradients stand one place off, so one step back brings them home (it is one step on; they are two off then).
def ring_backward__wrong_step_back(q, k, v, out, total, dout, *, mesh):
    n, root = mesh.shape["x"], q.shape[-1] ** 0.5

    def body(q, k, v, out, total, dout):
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = (varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        dq, dk, dv = added(*jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros)))
        return dq, send(dk, -1), send(dv, -1)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=P("x"))(q, k, v, out, total, dout)


# The root belongs to the queries (q / root are the scaled ones), so only dq is divided by it.
def ring_backward__wrong_root_of_queries(q, k, v, out, total, dout, *, mesh):
    n, root = mesh.shape["x"], q.shape[-1] ** 0.5

    def body(q, k, v, out, total, dout):
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less)
            return dq + ds @ k / root, dk + ds.T @ q, dv + w.T @ dout

        def turn(step, carry):
            k, v, dq, dk, dv = carry
            dq, dk, dv = added(k, v, dq, dk, dv)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = (varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        dq, dk, dv = added(*jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros)))
        return dq, send(dk), send(dv)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=P("x"))(q, k, v, out, total, dout)
