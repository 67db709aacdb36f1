"""Answers to lesson 18, written by a reader of the notebook only."""

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

    `seen` is True where a query may look at a key. Both are relative to the largest logit, not yet divided.
    """
    logits = jnp.where(seen, q @ k.T / q.shape[-1] ** 0.5, -jnp.inf)
    top = logits.max(-1, keepdims=True)
    weights = jnp.exp(logits - jnp.where(top == -jnp.inf, 0, top))  # −inf − (−inf) is not a number
    return top, weights.sum(-1, keepdims=True), weights @ v


def merge__right_stacked(left, right):
    """Stacked, and a log-sum-exp by hand."""
    tops = jnp.stack([left[0], right[0]])
    top = tops.max(0)
    scale = jnp.where(tops == -jnp.inf, 0, jnp.exp(tops - jnp.where(jnp.isfinite(top), top, 0)))
    return top, (scale * jnp.stack([left[1], right[1]])).sum(0), (scale * jnp.stack([left[2], right[2]])).sum(0)


def merge__wrong_empty(left, right):
    """−inf − (−inf) where both are empty."""
    top = jnp.maximum(left[0], right[0])
    a, b = jnp.exp(left[0] - top), jnp.exp(right[0] - top)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


def merge__wrong_overflow(left, right):
    """No common maximum: exp(1000)."""
    a, b = jnp.exp(left[0]), jnp.exp(right[0])
    top = jnp.maximum(left[0], right[0])
    base = jnp.exp(jnp.where(top == -jnp.inf, 0, top))
    return top, (a * left[1] + b * right[1]) / base, (a * left[2] + b * right[2]) / base


def merge__wrong_divided(left, right):
    """Divides the values already."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    weight = a * left[1] + b * right[1]
    return top, weight, (a * left[2] + b * right[2]) / weight


def merge__wrong_unscaled(left, right):
    """Weights added as they are."""
    return jnp.maximum(left[0], right[0]), left[1] + right[1], left[2] + right[2]


def merge__wrong_values_unscaled(left, right):
    """Only the weights are rescaled."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    return top, jnp.exp(left[0] - base) * left[1] + jnp.exp(right[0] - base) * right[1], left[2] + right[2]


def merge__wrong_exponent(left, right):
    """The exponent turned round."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(base - left[0]), jnp.exp(base - right[0])
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


def _ring(body, check=True):
    def program(q, k, v, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"), check_vma=check)(q, k, v)

    return program


def gather_kv__right_softmax(q, k, v, *, mesh):
    """A softmax by JAX."""

    def on_device(q, k, v):
        K, V = jax.lax.all_gather((k, v), "x", tiled=True)
        rows = jax.lax.axis_index("x") * q.shape[0] + jnp.arange(q.shape[0])
        scores = jnp.where(jnp.arange(K.shape[0])[None] <= rows[:, None], q @ K.T * q.shape[1] ** -0.5, -jnp.inf)
        return jax.nn.softmax(scores, axis=1) @ V

    return _ring(on_device)(q, k, v, mesh)


def gather_kv__wrong_local_mask(q, k, v, *, mesh):
    """Queries counted from 0 on every device."""

    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (k, v))
        _, weight, values = part(q, k, v, seen=jnp.arange(len(q))[:, None] >= jnp.arange(len(k)))
        return values / weight

    return _ring(on_device)(q, k, v, mesh)


def gather_kv__wrong_strict(q, k, v, *, mesh):
    """A token does not see itself."""

    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (k, v))
        place = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        _, weight, values = part(q, k, v, seen=place[:, None] > jnp.arange(len(k)))
        return values / weight

    return _ring(on_device)(q, k, v, mesh)


def gather_kv__wrong_no_mask(q, k, v, *, mesh):
    """No mask."""

    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (k, v))
        _, weight, values = part(q, k, v)
        return values / weight

    return _ring(on_device)(q, k, v, mesh)


def gather_kv__wrong_not_divided(q, k, v, *, mesh):
    """The division forgotten."""

    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (k, v))
        place = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        return part(q, k, v, seen=place[:, None] >= jnp.arange(len(k)))[2]

    return _ring(on_device)(q, k, v, mesh)


def gather_kv__wrong_future(q, k, v, *, mesh):
    """Sees the future only."""

    def on_device(q, k, v):
        k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (k, v))
        place = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        _, weight, values = part(q, k, v, seen=place[:, None] <= jnp.arange(len(k)))
        return values / weight

    return _ring(on_device)(q, k, v, mesh)


def gather_kv__wrong_queries_too(q, k, v, *, mesh):
    """Queries gathered as well, three gathers."""

    def on_device(q, k, v):
        rows = len(q)
        q, k, v = (jax.lax.all_gather(a, "x", tiled=True) for a in (q, k, v))
        _, weight, values = part(q, k, v, seen=jnp.tri(len(q), dtype=bool))
        return jax.lax.dynamic_slice_in_dim(values / weight, jax.lax.axis_index("x") * rows, rows)

    return _ring(on_device)(q, k, v, mesh)


def work__right_sets(tokens, n, layout):
    """Owner of each position."""
    counts = [0] * n
    for p in range(tokens):
        if layout == "contiguous":
            d = p * n // tokens
        elif layout == "striped":
            d = p % n
        else:
            c = p * 2 * n // tokens
            d = min(c, 2 * n - 1 - c)
        counts[d] += p + 1
    return counts


def work__wrong_strict(tokens, n, layout):
    """A query does not look at its own key."""
    p = np.arange(tokens)
    rows = {"contiguous": p.reshape(n, -1), "striped": p.reshape(-1, n).T}.get(layout)
    if rows is None:
        c = p.reshape(2 * n, -1)
        rows = [np.concatenate([c[d], c[2 * n - 1 - d]]) for d in range(n)]
    return [int(np.sum(r)) for r in rows]


def work__wrong_local(tokens, n, layout):
    """Only pairs within a device's own block."""
    own = tokens // n
    return [own * (own + 1) // 2] * n


def work__wrong_all_pairs(tokens, n, layout):
    """No mask."""
    return [tokens * (tokens // n)] * n


def work__wrong_neighbours(tokens, n, layout):
    """Zig-zag with chunks 2d and 2d + 1."""
    p = np.arange(tokens)
    rows = p.reshape(-1, n).T if layout == "striped" else p.reshape(n, -1)
    return [int((r + 1).sum()) for r in rows]


def work__wrong_stripes_swapped(tokens, n, layout):
    """Contiguous and striped swapped."""
    p = np.arange(tokens)
    if layout == "zig-zag":
        c = p.reshape(2 * n, -1)
        return [int((c[d] + 1).sum() + (c[2 * n - 1 - d] + 1).sum()) for d in range(n)]
    rows = p.reshape(n, -1) if layout == "striped" else p.reshape(-1, n).T
    return [int((r + 1).sum()) for r in rows]


def zigzag__right_argsort(text, n):
    """Positions sorted by owner, stably."""
    t = len(text) - 1
    chunk = np.arange(t) * 2 * n // t
    order = np.argsort(np.minimum(chunk, 2 * n - 1 - chunk), kind="stable")
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


def zigzag__wrong_labels_after(text, n):
    """Labels: the next token in zig-zag order."""
    c = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.concatenate([c[d], c[2 * n - 1 - d]]) for d in range(n)])
    ids = text[order]
    return {"ids": ids, "labels": np.roll(ids, -1), "positions": order}


def zigzag__wrong_positions_new(text, n):
    """Positions counted in the new order."""
    c = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.concatenate([c[d], c[2 * n - 1 - d]]) for d in range(n)])
    return {"ids": text[order], "labels": text[order + 1], "positions": np.arange(len(order))}


def zigzag__wrong_inverse(text, n):
    """The inverse order for positions."""
    c = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.concatenate([c[d], c[2 * n - 1 - d]]) for d in range(n)])
    return {"ids": text[order], "labels": text[order + 1], "positions": np.argsort(order)}


def zigzag__wrong_off_by_one(text, n):
    """Partner chunk 2n - d."""
    c = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.concatenate([c[d], c[(2 * n - d) % (2 * n)]]) for d in range(n)])
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


def zigzag__wrong_late_first(text, n):
    """The late chunk first."""
    c = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.concatenate([c[2 * n - 1 - d], c[d]]) for d in range(n)])
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


def zigzag__wrong_all_early_then_late(text, n):
    """First all early chunks, then all late ones: P("x") cuts that elsewhere."""
    c = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([c[d] for d in range(n)] + [c[2 * n - 1 - d] for d in range(n)])
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


def cp_bytes__right_pieces(tokens, heads, kv_heads, width, n):
    one = tokens * width * 2 // n  # a head of a device's tokens
    around = 2 * kv_heads * (n - 1) * one
    both = 2 * (heads + max(kv_heads, n)) * one * (n - 1) // n
    return {"gather": around, "ring": around, "ulysses": None if heads % n else both}


def cp_bytes__wrong_no_copies(tokens, heads, kv_heads, width, n):
    """kv_heads without the copies."""
    one = tokens / n * width * 2
    return {
        "gather": 2 * kv_heads * (n - 1) * one,
        "ring": 2 * kv_heads * (n - 1) * one,
        "ulysses": None if heads % n else 2 * (heads + kv_heads) * one * (n - 1) / n,
    }


def cp_bytes__wrong_keys_only(tokens, heads, kv_heads, width, n):
    """Values forgotten."""
    one = tokens / n * width * 2
    return {
        "gather": kv_heads * (n - 1) * one,
        "ring": kv_heads * (n - 1) * one,
        "ulysses": None if heads % n else (2 * heads + max(kv_heads, n)) * one * (n - 1) / n,
    }


def cp_bytes__wrong_float32(tokens, heads, kv_heads, width, n):
    """Four bytes."""
    one = tokens / n * width * 4
    return {
        "gather": 2 * kv_heads * (n - 1) * one,
        "ring": 2 * kv_heads * (n - 1) * one,
        "ulysses": None if heads % n else 2 * (heads + max(kv_heads, n)) * one * (n - 1) / n,
    }


def cp_bytes__wrong_all_heads(tokens, heads, kv_heads, width, n):
    """Query heads go round the ring."""
    one = tokens / n * width * 2
    return {
        "gather": 2 * heads * (n - 1) * one,
        "ring": 2 * heads * (n - 1) * one,
        "ulysses": None if heads % n else 2 * (heads + max(kv_heads, n)) * one * (n - 1) / n,
    }


def cp_bytes__wrong_never_none(tokens, heads, kv_heads, width, n):
    """Ulysses is always possible."""
    one = tokens / n * width * 2
    return {
        "gather": 2 * kv_heads * (n - 1) * one,
        "ring": 2 * kv_heads * (n - 1) * one,
        "ulysses": 2 * (heads + max(kv_heads, n)) * one * (n - 1) / n,
    }


def cp_bytes__wrong_result_forgotten(tokens, heads, kv_heads, width, n):
    """The way back of the result is not counted."""
    one = tokens / n * width * 2
    return {
        "gather": 2 * kv_heads * (n - 1) * one,
        "ring": 2 * kv_heads * (n - 1) * one,
        "ulysses": None if heads % n else (heads + 2 * max(kv_heads, n)) * one * (n - 1) / n,
    }
