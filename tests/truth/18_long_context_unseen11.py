"""Answers to lesson 18, eleventh batch, written by a reader of the notebook only."""

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
    """The part that two parts come to: (largest logit, weight, weighted values) (an earlier exercise)."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


# ---------------------------------------------------------------- ulysses


def ulysses__right_grouped(q, k, v, *, mesh):
    """The groups stay groups: one einsum over key-value heads and the queries that share them."""
    n = mesh.shape["x"]

    def body(q, k, v):
        copies = max(1, n // k.shape[1])
        k, v = (jnp.repeat(a, copies, axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        T, heads, D = q.shape
        groups = k.shape[1]
        logits = jnp.einsum("tgrd,sgd->grts", q.reshape(T, groups, heads // groups, D), k) / D**0.5
        logits = jnp.where(jnp.tri(T, dtype=bool), logits, -jnp.inf)
        mixed = jnp.einsum("grts,sge->tgre", jax.nn.softmax(logits, axis=-1), v).reshape(T, heads, v.shape[-1])
        return jax.lax.all_to_all(mixed, "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student gives every query head its own copy of keys and values before the exchange: right values, more on the wire than needed.
def ulysses__wrong_a_copy_each(q, k, v, *, mesh):
    def head(q, k, v):
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return mixed / weight

    def body(q, k, v):
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student copies with `tile` (0 1 0 1 in place of 0 0 1 1), so that with 1 < G < n devices get the heads of others.
def ulysses__wrong_tile(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def head(q, k, v):
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return mixed / weight

    def body(q, k, v):
        k, v = (jnp.tile(a, (1, max(1, n // a.shape[1]), 1)) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student thinks as in `gather_kv` that a device's queries begin at me * T / n, though after the exchange it has all of them.
def ulysses__wrong_shifted(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v):
        first = jax.lax.axis_index("x") * len(q)
        copies = max(1, n // k.shape[1])
        k, v = (jnp.repeat(a, copies, axis=1) for a in (k, v))
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        place = first + jnp.arange(len(q))

        def head(q, k, v):
            _, weight, mixed = part(q, k, v, seen=place[:, None] >= jnp.arange(len(k)))
            return mixed / weight

        out = jax.vmap(head, in_axes=1, out_axes=1)(q, k, v)
        return jax.lax.all_to_all(out, "x", 0, 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student exchanges without `tiled`, and lets the source device come behind the token: the tokens come out dealt like stripes, under a mask for the text's order.
def ulysses__wrong_stripes(q, k, v, *, mesh):
    n = mesh.shape["x"]

    def head(q, k, v):
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return mixed / weight

    def there(a):
        t, heads, width = a.shape
        a = jax.lax.all_to_all(a.reshape(t, n, heads // n, width), "x", 1, 1)
        return a.reshape(t * n, heads // n, width)

    def back(a):
        tokens, heads, width = a.shape
        a = jax.lax.all_to_all(a.reshape(tokens // n, n, heads, width), "x", 1, 1)
        return a.reshape(tokens // n, n * heads, width)

    def body(q, k, v):
        copies = max(1, n // k.shape[1])
        q, k, v = there(q), there(jnp.repeat(k, copies, axis=1)), there(jnp.repeat(v, copies, axis=1))
        k, v = (jnp.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
        return back(jax.vmap(head, in_axes=1, out_axes=1)(q, k, v))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- zigzag_ring


def zigzag_ring__right_halves(q, k, v, positions, *, mesh):
    """The halves as an axis of their own; the pair that is seen is picked by an index."""
    n = mesh.shape["x"]

    def body(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        home = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = tuple(a[:half] for a in home), tuple(a[half:] for a in home)
        q2 = q.reshape(2, half, -1)
        for step in range(1, n):
            k, v = send(k), send(v)
            k2, v2 = k.reshape(2, half, -1), v.reshape(2, half, -1)
            before = step <= me
            which = jnp.where(before, 0, 1)
            late = merge(late, part(q2[1], k2[0], v2[0]))
            other = part(q2[which], k2[which], v2[which])
            new_early, new_late = merge(early, other), merge(late, other)
            early = tuple(jnp.where(before, new, old) for new, old in zip(new_early, early))
            late = tuple(jnp.where(before, old, new) for new, old in zip(new_late, late))
        return jnp.concatenate([total[2] / total[1] for total in (early, late)])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# This student thought that blocks which move up the ring bring the keys of the next device, me + step, not of me - step.
def zigzag_ring__wrong_way_round(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        home = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = tuple(a[:half] for a in home), tuple(a[half:] for a in home)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = (me + step) % n < me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            new_early, new_late = merge(early, other), merge(late, other)
            early = tuple(jnp.where(before, new, old) for new, old in zip(new_early, early))
            late = tuple(jnp.where(before, old, new) for new, old in zip(new_late, late))
        return jnp.concatenate([total[2] / total[1] for total in (early, late)])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# This student computes all four pairs of halves in each turn and hides two of them by their positions: right values, twice the products.
def zigzag_ring__wrong_four_quarters(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        total = part(q, k, v, positions[:, None] >= positions)
        for step in range(1, n):
            k, v = send(k), send(v)
            source = (me - step) % n
            places = jnp.concatenate([source * half + jnp.arange(half), (2 * n - 1 - source) * half + jnp.arange(half)])
            total = merge(total, part(q, k, v, positions[:, None] >= places))
        return total[2] / total[1]

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# This student thought that at home each half has a triangle of its own, and forgot that the late queries see all early keys there.
def zigzag_ring__wrong_two_triangles(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        triangle = jnp.tri(half, dtype=bool)
        early = part(q[:half], k[:half], v[:half], triangle)
        late = part(q[half:], k[half:], v[half:], triangle)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            late = merge(late, part(q[half:], k[:half], v[:half]))
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            new_early, new_late = merge(early, other), merge(late, other)
            early = tuple(jnp.where(before, new, old) for new, old in zip(new_early, early))
            late = tuple(jnp.where(before, old, new) for new, old in zip(new_late, late))
        return jnp.concatenate([total[2] / total[1] for total in (early, late)])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# This student merges the chosen pair into the late total as it was before this turn, so that of a higher device the early keys are lost.
def zigzag_ring__wrong_old_total(q, k, v, positions, *, mesh):
    n = mesh.shape["x"]

    def body(q, k, v, positions):
        me, half = jax.lax.axis_index("x"), len(q) // 2
        home = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = tuple(a[:half] for a in home), tuple(a[half:] for a in home)
        for step in range(1, n):
            k, v = send(k), send(v)
            before = step <= me
            always = merge(late, part(q[half:], k[:half], v[:half]))
            other = part(*(jnp.where(before, a[:half], a[half:]) for a in (q, k, v)))
            with_early, with_late = merge(early, other), merge(late, other)
            early = tuple(jnp.where(before, new, old) for new, old in zip(with_early, early))
            late = tuple(jnp.where(before, one, two) for one, two in zip(always, with_late))
        return jnp.concatenate([total[2] / total[1] for total in (early, late)])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 4, out_specs=P("x"))(q, k, v, positions)


# ---------------------------------------------------------------- gather_kv


def gather_kv__right_softmax(q, k, v, *, mesh):
    """An ordinary softmax over the gathered keys, rows and columns numbered as in the text."""

    def body(q, k, v):
        keys, values = (jax.lax.all_gather(a, "x", axis=0, tiled=True) for a in (k, v))
        shape = len(q), len(keys)
        rows = jax.lax.axis_index("x") * len(q) + jax.lax.broadcasted_iota(jnp.int32, shape, 0)
        hidden = jax.lax.broadcasted_iota(jnp.int32, shape, 1) > rows
        logits = jnp.einsum("td,sd->ts", q, keys) / q.shape[-1] ** 0.5
        return jax.nn.softmax(jnp.where(hidden, -jnp.inf, logits), axis=-1) @ values

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student counts the queries from 0 on every device, as if each had the beginning of the text.
def gather_kv__wrong_from_zero(q, k, v, *, mesh):
    def body(q, k, v):
        k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (k, v))
        _, weight, mixed = part(q, k, v, seen=jnp.tri(len(q), len(k), dtype=bool))
        return mixed / weight

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student wrote the four devices of the notebook's ring into the position of a device's first query.
def gather_kv__wrong_four(q, k, v, *, mesh):
    def body(q, k, v):
        k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (k, v))
        place = jax.lax.axis_index("x") * (len(k) // 4) + jnp.arange(len(q))
        _, weight, mixed = part(q, k, v, seen=place[:, None] >= jnp.arange(len(k)))
        return mixed / weight

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student thinks in blocks: a device sees all blocks up to its own, and of its own block everything, the future too.
def gather_kv__wrong_own_block(q, k, v, *, mesh):
    def body(q, k, v):
        me, mine = jax.lax.axis_index("x"), len(q)
        k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (k, v))
        _, weight, mixed = part(q, k, v, seen=jnp.arange(len(k)) // mine <= me)
        return mixed / weight

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student gathers the queries too, does the whole text on every device and keeps its own rows: right values, three gathers and n times the work.
def gather_kv__wrong_queries_too(q, k, v, *, mesh):
    def body(q, k, v):
        me, mine = jax.lax.axis_index("x"), len(q)
        q, k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (q, k, v))
        _, weight, mixed = part(q, k, v, seen=jnp.tri(len(q), dtype=bool))
        return jax.lax.dynamic_slice_in_dim(mixed / weight, me * mine, mine)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)
