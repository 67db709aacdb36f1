"""Answers to lesson 18, eighth batch, written by a reader of the notebook only."""

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
    n = mesh.shape["x"]

    def on_device(q, k, v):
        t, e = q.shape[0], v.shape[1]
        nothing = (jnp.full((t, 1), -jnp.inf, q.dtype), jnp.zeros((t, 1), q.dtype), jnp.zeros((t, e), v.dtype))

        def turn(carry, _):
            so_far, k, v = carry
            return (merge(so_far, part(q, k, v)), send(k), send(v)), None

        (so_far, k, v), _ = jax.lax.scan(turn, (tuple(map(varying, nothing)), k, v), None, length=n - 1)
        _, weight, mixed = merge(so_far, part(q, k, v))
        return mixed / weight

    rows = P("x", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(rows, rows, rows), out_specs=rows)(q, k, v)


# "Divided once" was read as "once in each turn": the carry is an attention so far, and is merged on as if it were weighted values.
def ring_attention__wrong_divided(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        t, e = q.shape[0], v.shape[1]

        def together(so_far, k, v):
            top, weight, mixed = merge(so_far, part(q, k, v))
            return top, weight, mixed / weight

        def turn(_, carry):
            so_far, k, v = carry
            return together(so_far, k, v), send(k), send(v)

        nothing = jnp.full((t, 1), -jnp.inf), jnp.zeros((t, 1)), jnp.zeros((t, e))
        so_far, k, v = jax.lax.fori_loop(0, n - 1, turn, (jax.tree.map(varying, nothing), k, v))
        return together(so_far, k, v)[2]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Keys up and values down the ring, so that both directions of every wire are used (lesson 15); key and value no longer belong together.
def ring_attention__wrong_both_ways(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        t, e = q.shape[0], v.shape[1]

        def turn(_, carry):
            so_far, k, v = carry
            return merge(so_far, part(q, k, v)), send(k, 1), send(v, -1)

        nothing = jnp.full((t, 1), -jnp.inf), jnp.zeros((t, 1)), jnp.zeros((t, e))
        so_far, k, v = jax.lax.fori_loop(0, n - 1, turn, (jax.tree.map(varying, nothing), k, v))
        _, weight, mixed = merge(so_far, part(q, k, v))
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# n blocks, n turns: the loop merges all of them, and the last transfer brings everything home again.
def ring_attention__wrong_round_trip(q, k, v, *, mesh):
    def on_device(q, k, v):
        t, e = q.shape[0], v.shape[1]

        def turn(_, carry):
            so_far, k, v = carry
            return merge(so_far, part(q, k, v)), send(k), send(v)

        nothing = jnp.full((t, 1), -jnp.inf), jnp.zeros((t, 1)), jnp.zeros((t, e))
        start = jax.tree.map(varying, nothing), k, v
        (_, weight, mixed), *_ = jax.lax.fori_loop(0, jax.lax.axis_size("x"), turn, start)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Any common number may be subtracted, so everything is kept relative to the largest logit of the device's *own* block; where another
# block has a logit that is larger by a hundred, this overflows.
def ring_attention__wrong_own_reference(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v):
        t, e = q.shape[0], v.shape[1]
        reference = (q @ k.T / q.shape[-1] ** 0.5).max(-1, keepdims=True)

        def added(sums, k, v):
            top, weight, mixed = part(q, k, v)
            scale = jnp.exp(top - reference)
            return sums[0] + scale * weight, sums[1] + scale * mixed

        def turn(_, carry):
            sums, k, v = carry
            return added(sums, k, v), send(k), send(v)

        zeros = varying(jnp.zeros((t, 1))), varying(jnp.zeros((t, e)))
        sums, k, v = jax.lax.fori_loop(0, n - 1, turn, (zeros, k, v))
        weight, mixed = added(sums, k, v)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- ulysses


def ulysses__right_groups(q, k, v, *, mesh):
    n, G = mesh.shape["x"], k.shape[1]
    copies = n // G if G < n else 1

    def to_heads(a):
        return jax.lax.all_to_all(a, "x", split_axis=1, concat_axis=0, tiled=True)

    def to_tokens(a):
        return jax.lax.all_to_all(a, "x", split_axis=0, concat_axis=1, tiled=True)

    def on_device(q, k, v):
        k, v = (jnp.repeat(a, copies, axis=1) for a in (k, v))
        q, k, v = map(to_heads, (q, k, v))
        T, heads, D = q.shape
        q = q.reshape(T, k.shape[1], -1, D)  # tokens, key-value heads, queries of one of these, numbers
        logits = jnp.einsum("tgrd,sgd->grts", q, k) / D**0.5
        weights = jax.nn.softmax(jnp.where(jnp.tri(T, dtype=bool), logits, -jnp.inf), axis=-1)
        out = jnp.einsum("grts,sge->tgre", weights, v).reshape(T, heads, -1)
        return to_tokens(out)

    cut = P("x", None, None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=cut)(q, k, v)


# Copies the key-value heads as a row of all of them, again and again (tile), in place of each one beside itself.
def ulysses__wrong_tile(q, k, v, *, mesh):
    n, G = mesh.shape["x"], k.shape[1]
    copies = max(1, n // G)

    def head(q, k, v):
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return mixed / weight

    def on_device(q, k, v):
        k, v = (jnp.tile(a, (1, copies, 1)) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# "A device's queries are not the first ones of the text" (part 3): the mask of gather_kv, though after the exchange all queries are there.
def ulysses__wrong_offset(q, k, v, *, mesh):
    n, G = mesh.shape["x"], k.shape[1]

    def on_device(q, k, v):
        here = len(q)
        k, v = (jnp.repeat(a, max(1, n // G), axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        place = jax.lax.axis_index("x") * here + jnp.arange(len(q))
        seen = place[:, None] >= jnp.arange(len(k))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, seen)
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# Untiled, with the devices as a second dimension behind the tokens: so the tokens come in stripes, and the triangle is of another order.
def ulysses__wrong_striped(q, k, v, *, mesh):
    n, G = mesh.shape["x"], k.shape[1]

    def there(a):
        t, h, d = a.shape
        came = jax.lax.all_to_all(a.reshape(t, n, h // n, d), "x", split_axis=1, concat_axis=1)  # [t, n, h / n, d]
        return came.reshape(t * n, h // n, d)

    def back(a):
        T, h, d = a.shape
        came = jax.lax.all_to_all(a.reshape(T // n, n, h, d), "x", split_axis=1, concat_axis=1)
        return came.reshape(T // n, n * h, d)

    def head(q, k, v):
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return mixed / weight

    def on_device(q, k, v):
        k, v = (jnp.repeat(a, max(1, n // G), axis=1) for a in (k, v))
        q, k, v = there(q), there(k), there(v)
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        return back(jax.vmap(head, in_axes=1, out_axes=1)(q, k, v))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# On the device the query heads are dealt out in turn to its key-value heads (h % G), which is the same only if it has one of them, or as
# many as query heads.
def ulysses__wrong_in_turn(q, k, v, *, mesh):
    n, G = mesh.shape["x"], k.shape[1]

    def on_device(q, k, v):
        k, v = (jnp.repeat(a, max(1, n // G), axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        T, heads, D = q.shape
        q = q.reshape(T, -1, k.shape[1], D)
        logits = jnp.einsum("trgd,sgd->rgts", q, k) / D**0.5
        weights = jax.nn.softmax(jnp.where(jnp.tri(T, dtype=bool), logits, -jnp.inf), axis=-1)
        out = jnp.einsum("rgts,sge->trge", weights, v).reshape(T, heads, -1)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- ring_backward


def ring_backward__right_scan(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]
    root = q.shape[-1] ** 0.5

    def on_device(q, k, v, out, total, dout):
        less = jnp.einsum("te,te->t", dout, out)[:, None]

        def added(blocks, sums):
            (k, v), (dq, dk, dv) = blocks, sums
            w = jnp.exp(jnp.einsum("td,sd->ts", q, k) / root - total)
            ds = w * (jnp.einsum("te,se->ts", dout, v) - less)
            return dq + ds @ k / root, dk + ds.T @ q / root, dv + w.T @ dout

        def turn(carry, _):
            blocks, sums = carry
            dq, dk, dv = added(blocks, sums)
            return (tuple(map(send, blocks)), (dq, send(dk), send(dv))), None

        zeros = tuple(varying(jnp.zeros(a.shape, a.dtype)) for a in (q, k, v))
        (blocks, sums), _ = jax.lax.scan(turn, ((k, v), zeros), None, length=n - 1)
        dq, dk, dv = added(blocks, sums)
        return dq, send(dk), send(dv)

    cut = P("x")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 6, out_specs=(cut,) * 3)(q, k, v, out, total, dout)


# "A ppermute backwards is a ppermute the other way": keys and values go up, their gradients down the ring.
def ring_backward__wrong_other_way(q, k, v, out, total, dout, *, mesh):
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
            dq, dk, dv = added(k, v, *sums)
            return send(k), send(v), dq, send(dk, -1), send(dv, -1)

        zeros = [varying(jnp.zeros(a.shape)) for a in (q, k, v)]
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk, -1), send(dv, -1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# dout · out, taken block by block like everything else: of what the block at hand gives, in place of the whole result.
def ring_backward__wrong_of_the_block(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root - total)
            less = (dout * (w @ v)).sum(-1, keepdims=True)
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(_, carry):
            k, v, *sums = carry
            dq, dk, dv = added(k, v, *sums)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape)) for a in (q, k, v)]
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# Takes `total` for the sum of exponentials itself, and divides by it.
def ring_backward__wrong_no_logarithm(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def added(k, v, dq, dk, dv):
            w = jnp.exp(q @ k.T / root) / total
            ds = w * (dout @ v.T - less) / root
            return dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout

        def turn(_, carry):
            k, v, *sums = carry
            dq, dk, dv = added(k, v, *sums)
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape)) for a in (q, k, v)]
        k, v, *sums = jax.lax.fori_loop(0, n - 1, turn, (k, v, *zeros))
        dq, dk, dv = added(k, v, *sums)
        return dq, send(dk), send(dv)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )


# All four come home together: n turns for everybody, keys and values too.
def ring_backward__wrong_all_home(q, k, v, out, total, dout, *, mesh):
    n = mesh.shape["x"]

    def on_device(q, k, v, out, total, dout):
        root = q.shape[-1] ** 0.5
        less = (dout * out).sum(-1, keepdims=True)

        def turn(_, carry):
            k, v, dq, dk, dv = carry
            w = jnp.exp(q @ k.T / root - total)
            ds = w * (dout @ v.T - less) / root
            dq, dk, dv = dq + ds @ k, dk + ds.T @ q, dv + w.T @ dout
            return send(k), send(v), dq, send(dk), send(dv)

        zeros = [varying(jnp.zeros(a.shape)) for a in (q, k, v)]
        return jax.lax.fori_loop(0, n, turn, (k, v, *zeros))[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 6, out_specs=(P("x"),) * 3)(
        q, k, v, out, total, dout
    )
