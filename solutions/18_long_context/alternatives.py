"""Right answers to 18_long_context, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what a program does, not how it is written.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P


def along(mesh, arrays, out=None):
    specs = (P("x"),) * arrays
    return partial(jax.shard_map, mesh=mesh, in_specs=specs, out_specs=out or P("x"), check_vma=False)


def up(block, n):
    return lax.ppermute(block, "x", [(k, (k + 1) % n) for k in range(n)])


def fold(total, q, k, v, seen=True):
    """A block of keys added to (largest, weight, values) as in FlashAttention: only the old sums are rescaled."""
    largest, weight, mixed = total
    logits = jnp.where(seen, jnp.einsum("td,sd->ts", q, k) / jnp.sqrt(q.shape[-1]), -1e30)
    new = jnp.maximum(largest, logits.max(-1))
    shrink, weights = jnp.exp(largest - new), jnp.exp(logits - new[:, None])
    return new, shrink * weight + weights.sum(-1), shrink[:, None] * mixed + weights @ v


def nothing(q, v):
    return jnp.full(len(q), -1e30), jnp.zeros(len(q)), jnp.zeros((len(q), v.shape[1]))


def merge__in_numpy(left, right):
    """The scale of an empty part is 0 by a where, not by the exponential."""
    top = np.maximum(left[0], right[0])
    with np.errstate(invalid="ignore"):
        one, other = (np.where(np.isinf(part[0]), 0, np.exp(part[0] - top)) for part in (left, right))
    return top, one * left[1] + other * right[1], one * left[2] + other * right[2]


def merge__stacked(left, right):
    """Both parts as one array each, and the sums over the two."""
    tops, weights, mixed = (jnp.stack(pair) for pair in zip(left, right, strict=True))
    top = tops.max(0)
    scales = jnp.exp(tops - jnp.nan_to_num(top, neginf=0.0))
    return top, (scales * weights).sum(0), (scales * mixed).sum(0)


def gather_kv__one_gather(q, k, v, *, mesh):
    """Keys and values side by side in one gather; the mask adds −inf."""

    @along(mesh, 3)
    def go(q, k, v):
        both = lax.all_gather(jnp.concatenate([k, v], 1), "x", tiled=True)
        keys, values = both[:, : k.shape[1]], both[:, k.shape[1] :]
        place = lax.axis_index("x") * len(q) + jnp.arange(len(q))
        hidden = jnp.where(place[:, None] < jnp.arange(len(keys)), -jnp.inf, 0.0)
        return jax.nn.softmax(q @ keys.T / q.shape[-1] ** 0.5 + hidden, axis=-1) @ values

    return go(q, k, v)


def gather_kv__rows_of_a_triangle(q, k, v, *, mesh):
    """The mask is cut out of the whole triangle."""

    @along(mesh, 3)
    def go(q, k, v):
        keys, values = lax.all_gather((k, v), "x", tiled=True)
        triangle = jnp.tri(len(keys), dtype=bool)
        seen = lax.dynamic_slice_in_dim(triangle, lax.axis_index("x") * len(q), len(q))
        logits = jnp.where(seen, q @ keys.T / q.shape[-1] ** 0.5, -jnp.inf)
        return jax.nn.softmax(logits, axis=-1) @ values

    return go(q, k, v)


def ring_attention__down(q, k, v, *, mesh):
    """Blocks go down the ring, sums are folded in."""
    n = mesh.shape["x"]

    @along(mesh, 3)
    def go(q, k, v):
        down = partial(lax.ppermute, axis_name="x", perm=[(d, (d - 1) % n) for d in range(n)])

        def turn(_, carry):
            total, k, v = carry
            return fold(total, q, k, v), down(k), down(v)

        total, k, v = lax.fori_loop(0, n - 1, turn, (nothing(q, v), k, v))
        _, weight, mixed = fold(total, q, k, v)
        return mixed / weight[:, None]

    return go(q, k, v)


def ring_attention__in_a_scan(q, k, v, *, mesh):
    """A scan over the turns; keys and values travel as one block."""
    n = mesh.shape["x"]

    @along(mesh, 3)
    def go(q, k, v):
        d = k.shape[1]

        def turn(carry, _):
            total, both = carry
            return (fold(total, q, both[:, :d], both[:, d:]), up(both, n)), None

        (total, both), _ = lax.scan(turn, (nothing(q, v), jnp.concatenate([k, v], 1)), length=n - 1)
        _, weight, mixed = fold(total, q, both[:, :d], both[:, d:])
        return mixed / weight[:, None]

    return go(q, k, v)


def causal_ring__in_a_loop(q, k, v, *, mesh):
    """As the ring without a mask, in a loop that counts turns."""
    n = mesh.shape["x"]

    @along(mesh, 3)
    def go(q, k, v):
        me, place = lax.axis_index("x"), jnp.arange(len(q))

        def added(step, total, k, v):
            return fold(total, q, k, v, (me * len(q) + place)[:, None] >= (me - step) % n * len(q) + place)

        def turn(step, carry):
            total, k, v = carry
            return added(step, total, k, v), up(k, n), up(v, n)

        total, k, v = lax.fori_loop(0, n - 1, turn, (nothing(q, v), k, v))
        _, weight, mixed = added(n - 1, total, k, v)
        return mixed / weight[:, None]

    return go(q, k, v)


def causal_ring__three_kinds(q, k, v, *, mesh):
    """All, a triangle or nothing, by comparing the numbers of two blocks."""
    n = mesh.shape["x"]

    @along(mesh, 3)
    def go(q, k, v):
        me = lax.axis_index("x")
        total = fold(nothing(q, v), q, k, v, jnp.tri(len(q), dtype=bool))
        for step in range(1, n):
            k, v = up(k, n), up(v, n)
            total = fold(total, q, k, v, jnp.full((len(q), len(k)), me >= step))
        return total[2] / total[1][:, None]

    return go(q, k, v)


def work__by_masks(tokens, n, layout):
    """Pairs counted one by one in a mask, each query asked for its device."""
    block, chunk = tokens // n, tokens // (2 * n)
    owner = {
        "contiguous": lambda p: p // block,
        "striped": lambda p: p % n,
        "zig-zag": lambda p: min(p // chunk, 2 * n - 1 - p // chunk),
    }[layout]
    pairs = [0] * n
    for query in range(tokens):
        pairs[owner(query)] += sum(key <= query for key in range(tokens))
    return pairs


def work__closed_form(tokens, n, layout):
    """Sums of arithmetic series."""
    block = tokens // n
    if layout == "zig-zag":
        return [tokens * (tokens + 1) // 2 // n] * n
    if layout == "striped":
        return [block * (d + 1) + n * block * (block - 1) // 2 for d in range(n)]
    return [d * block * block + block * (block + 1) // 2 for d in range(n)]


def zigzag__sorted(tokens, n):
    """Positions sorted by the device that gets them; the sort is stable."""
    chunk = np.arange(len(tokens) - 1) * 2 * n // (len(tokens) - 1)
    order = np.argsort(np.minimum(chunk, 2 * n - 1 - chunk), kind="stable")
    return {"ids": tokens[:-1][order], "labels": tokens[1:][order], "positions": order}


def zigzag__lists(tokens, n):
    """Plain lists."""
    size = (len(tokens) - 1) // (2 * n)
    order = []
    for d in range(n):
        for chunk in (d, 2 * n - 1 - d):
            order += range(chunk * size, (chunk + 1) * size)
    return {
        "ids": [int(tokens[p]) for p in order],
        "labels": [int(tokens[p + 1]) for p in order],
        "positions": order,
    }


def zigzag_ring__in_a_loop(q, k, v, positions, *, mesh):
    """One loop; where a half has nothing to do, its part is that of no keys."""
    n = mesh.shape["x"]

    @along(mesh, 3)
    def go(q, k, v):
        me, half = lax.axis_index("x"), len(q) // 2
        front, back = slice(0, half), slice(half, None)
        home = fold(nothing(q, v), q, k, v, jnp.tri(len(q), dtype=bool))

        def turn(step, carry):
            early, late, k, v = carry
            k, v, lower = up(k, n), up(v, n), step <= me
            late = fold(late, q[back], k[front], v[front])
            own = jax.tree.map(lambda a, b: jnp.where(lower, a, b), early, late)
            new = fold(own, *(jnp.where(lower, a[front], a[back]) for a in (q, k, v)))
            early, late = (
                jax.tree.map(lambda a, b, mine=mine: jnp.where(mine, a, b), new, old)
                for mine, old in ((lower, early), (~lower, late))
            )
            return early, late, k, v

        start = tuple(a[front] for a in home), tuple(a[back] for a in home), k, v
        early, late, *_ = lax.fori_loop(1, n, turn, start)
        return jnp.concatenate([mixed / weight[:, None] for _, weight, mixed in (early, late)])

    return go(q, k, v)


def ulysses__einsum(q, k, v, *, mesh):
    """Heads in one einsum, and keys with values in one exchange."""
    n = mesh.shape["x"]

    @along(mesh, 3)
    def go(q, k, v):
        both = jnp.repeat(jnp.concatenate([k, v], 2), max(1, n // k.shape[1]), axis=1)
        queries, both = (lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, both))
        both = jnp.repeat(both, queries.shape[1] // both.shape[1], axis=1)
        keys, values = both[..., : k.shape[2]], both[..., k.shape[2] :]
        logits = jnp.einsum("thd,shd->hts", queries, keys) / q.shape[-1] ** 0.5
        logits = jnp.where(jnp.tri(len(queries), dtype=bool), logits, -jnp.inf)
        mixed = jnp.einsum("hts,she->the", jax.nn.softmax(logits, axis=-1), values)
        return lax.all_to_all(mixed, "x", 0, 1, tiled=True)

    return go(q, k, v)


def ulysses__untiled(q, k, v, *, mesh):
    """The dimension that is split is made by a reshape."""
    n = mesh.shape["x"]

    @along(mesh, 3)
    def go(q, k, v):
        def there(a):
            a = a if a.shape[1] >= n else jnp.repeat(a, n // a.shape[1], axis=1)
            pieces = a.reshape(len(a), n, -1, a.shape[-1])
            return lax.all_to_all(pieces, "x", 1, 0).reshape(n * len(a), -1, a.shape[-1])

        queries, keys, values = map(there, (q, k, v))
        shared = queries.shape[1] // keys.shape[1]
        heads = []
        for h in range(queries.shape[1]):
            total = fold(
                nothing(queries[:, h], values[:, 0]),
                queries[:, h],
                keys[:, h // shared],
                values[:, h // shared],
                jnp.tri(len(queries), dtype=bool),
            )
            heads.append(total[2] / total[1][:, None])
        back = lax.all_to_all(jnp.stack(heads).reshape(len(heads), n, -1, v.shape[-1]), "x", 1, 0)
        return back.reshape(-1, len(q), v.shape[-1]).swapaxes(0, 1)

    return go(q, k, v)


def cp_bytes__by_elements(tokens, heads, kv_heads, width, n):
    """Numbers first, bytes last."""
    numbers = tokens * width / n
    everybody = 2 * kv_heads * numbers * (n - 1)
    there = heads + 2 * (n if n > kv_heads else kv_heads)
    exchanged = (there + heads) * numbers * (1 - 1 / n) if heads % n == 0 else None
    return {"gather": 2 * everybody, "ring": 2 * everybody, "ulysses": exchanged and 2 * exchanged}


def ring_backward__down(q, k, v, out, total, dout, *, mesh):
    """Down the ring, what travels in one block."""
    n = mesh.shape["x"]

    @along(mesh, 6, (P("x"),) * 3)
    def go(q, k, v, out, total, dout):
        d, less = k.shape[1], jnp.einsum("te,te->t", dout, out)[:, None]
        down = partial(lax.ppermute, axis_name="x", perm=[(r, (r - 1) % n) for r in range(n)])

        def added(both, grads, dq):
            keys, values = both[:, :d], both[:, d:]
            weights = jnp.exp(q @ keys.T / d**0.5 - total)
            ds = weights * (dout @ values.T - less) / d**0.5
            return grads + jnp.concatenate([ds.T @ q, weights.T @ dout], 1), dq + ds @ keys

        def turn(carry, _):
            both, *sums = carry
            grads, dq = added(both, *sums)
            return (down(both), down(grads), dq), None

        both = jnp.concatenate([k, v], 1)
        (both, *sums), _ = lax.scan(turn, (both, jnp.zeros_like(both), jnp.zeros_like(q)), length=n - 1)
        grads, dq = added(both, *sums)
        grads = down(grads)
        return dq, grads[:, :d], grads[:, d:]

    return go(q, k, v, out, total, dout)
