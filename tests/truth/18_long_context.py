"""Answers to lesson 18, as students give them: written from the student's notebook alone."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def send(block, by=1):
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(block, "x", [(d, (d + by) % n) for d in range(n)])


def varying(value):
    return jax.lax.pcast(value, "x", to="varying")


def part(q, k, v, seen=True):
    logits = jnp.where(seen, q @ k.T / q.shape[-1] ** 0.5, -jnp.inf)
    top = logits.max(-1, keepdims=True)
    weights = jnp.exp(logits - jnp.where(top == -jnp.inf, 0, top))
    return top, weights.sum(-1, keepdims=True), weights @ v


def merge__right_plain(left, right):
    """As it is."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


def merge__wrong_no_scale(left, right):
    """Adds up without bringing both to the same largest logit."""
    return jnp.maximum(left[0], right[0]), left[1] + right[1], left[2] + right[2]


def merge__wrong_nan(left, right):
    """Forgets that both may be empty."""
    top = jnp.maximum(left[0], right[0])
    a, b = jnp.exp(left[0] - top), jnp.exp(right[0] - top)
    return top, a * left[1] + b * right[1], a * left[2] + b * right[2]


def merge__wrong_values_only(left, right):
    """Scales the values, and not the weights."""
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top == -jnp.inf, 0, top)
    a, b = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, left[1] + right[1], a * left[2] + b * right[2]


def merge__wrong_overflow(left, right):
    """Goes through the exponentials themselves."""
    a, b = jnp.exp(left[0]), jnp.exp(right[0])
    top = jnp.maximum(left[0], right[0])
    c = jnp.exp(top)
    return top, (a * left[1] + b * right[1]) / c, (a * left[2] + b * right[2]) / c


def merge__wrong_divided(left, right):
    """Returns values that are divided already."""
    top, weight, mixed = merge__right_plain(left, right)
    return top, weight, mixed / jnp.where(weight == 0, 1, weight)


def _by_tokens(body, mesh, *arrays, **options):
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"),) * len(arrays), out_specs=P("x"), **options)(*arrays)


def _gathered(q, k, v, place):
    k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
    _, weight, mixed = part(q, k, v, place(len(q))[:, None] >= jnp.arange(len(k)))
    return mixed / weight


def gather_kv__right_plain(q, k, v, *, mesh):
    """As it is."""
    body = lambda q, k, v: _gathered(q, k, v, lambda t: jax.lax.axis_index("x") * t + jnp.arange(t))  # noqa: E731
    return _by_tokens(body, mesh, q, k, v)


def gather_kv__wrong_from_zero(q, k, v, *, mesh):
    """Every device's queries count from 0."""
    return _by_tokens(lambda q, k, v: _gathered(q, k, v, jnp.arange), mesh, q, k, v)


def gather_kv__wrong_no_mask(q, k, v, *, mesh):
    """All see all."""
    body = lambda q, k, v: _gathered(q, k, v, lambda t: jnp.full(t, 10**6))  # noqa: E731
    return _by_tokens(body, mesh, q, k, v)


def gather_kv__wrong_strict(q, k, v, *, mesh):
    """A query does not see its own key."""
    body = lambda q, k, v: _gathered(q, k, v, lambda t: jax.lax.axis_index("x") * t + jnp.arange(t) - 1)  # noqa: E731
    return _by_tokens(body, mesh, q, k, v)


def gather_kv__wrong_local(q, k, v, *, mesh):
    """Each device looks at its own keys only."""

    def body(q, k, v):
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return mixed / weight

    return _by_tokens(body, mesh, q, k, v)


def gather_kv__wrong_undivided(q, k, v, *, mesh):
    """Forgets to divide by the weight."""

    def body(q, k, v):
        place = jax.lax.axis_index("x") * len(q) + jnp.arange(len(q))
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        return part(q, k, v, place[:, None] >= jnp.arange(len(k)))[2]

    return _by_tokens(body, mesh, q, k, v)


def gather_kv__wrong_queries_too(q, k, v, *, mesh):
    """Gathers the queries as well, and keeps its own rows."""

    def body(q, k, v):
        rows, me = len(q), jax.lax.axis_index("x")
        q, k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (q, k, v))
        _, weight, mixed = part(q, k, v, jnp.tri(len(q), dtype=bool))
        return jax.lax.dynamic_slice_in_dim(mixed / weight, me * rows, rows)

    return _by_tokens(body, mesh, q, k, v)


def _nothing(q, v):
    shape = (len(q), 1)
    return jax.tree.map(varying, (jnp.full(shape, -jnp.inf), jnp.zeros(shape), jnp.zeros((len(q), v.shape[1]))))


def ring_attention__right_loop(q, k, v, *, mesh):
    """A loop of n - 1 turns and one merge behind it."""

    def body(q, k, v):
        def turn(_, carry):
            total, k, v = carry
            return merge__right_plain(total, part(q, k, v)), send(k), send(v)

        n = jax.lax.axis_size("x")
        total, k, v = jax.lax.fori_loop(0, n - 1, turn, (_nothing(q, v), k, v))
        _, weight, mixed = merge__right_plain(total, part(q, k, v))
        return mixed / weight

    return _by_tokens(body, mesh, q, k, v)


def ring_attention__wrong_last(q, k, v, *, mesh):
    """Forgets the last block."""

    def body(q, k, v):
        def turn(_, carry):
            total, k, v = carry
            return merge__right_plain(total, part(q, k, v)), send(k), send(v)

        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, jax.lax.axis_size("x") - 1, turn, (_nothing(q, v), k, v))
        return mixed / weight

    return _by_tokens(body, mesh, q, k, v)


def ring_attention__wrong_n_turns(q, k, v, *, mesh):
    """One turn, and one transfer, too many."""

    def body(q, k, v):
        def turn(_, carry):
            total, k, v = carry
            return merge__right_plain(total, part(q, k, v)), send(k), send(v)

        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, jax.lax.axis_size("x"), turn, (_nothing(q, v), k, v))
        return mixed / weight

    return _by_tokens(body, mesh, q, k, v)


def ring_attention__wrong_v_stays(q, k, v, *, mesh):
    """Sends the keys, and forgets the values."""

    def body(q, k, v):
        def turn(_, carry):
            total, k = carry
            return merge__right_plain(total, part(q, k, v)), send(k)

        total, k = jax.lax.fori_loop(0, jax.lax.axis_size("x") - 1, turn, (_nothing(q, v), k))
        _, weight, mixed = merge__right_plain(total, part(q, k, v))
        return mixed / weight

    return _by_tokens(body, mesh, q, k, v)


def ring_attention__wrong_written_out(q, k, v, *, mesh):
    """A Python loop: all blocks of logits may be alive together."""

    def body(q, k, v):
        total = part(q, k, v)
        for _ in range(jax.lax.axis_size("x") - 1):
            k, v = send(k), send(v)
            total = merge__right_plain(total, part(q, k, v))
        return total[2] / total[1]

    return _by_tokens(body, mesh, q, k, v)


def ring_attention__wrong_send_first(q, k, v, *, mesh):
    """A turn sends first, and multiplies what has come."""

    def body(q, k, v):
        def turn(_, carry):
            total, k, v = carry
            k, v = send(k), send(v)
            return merge__right_plain(total, part(q, k, v)), k, v

        (_, weight, mixed), _, _ = jax.lax.fori_loop(0, jax.lax.axis_size("x") - 1, turn, (part(q, k, v), k, v))
        return mixed / weight

    return _by_tokens(body, mesh, q, k, v)


def ring_attention__wrong_gather(q, k, v, *, mesh):
    """Gathers after all."""

    def body(q, k, v):
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        _, weight, mixed = part(q, k, v)
        return mixed / weight

    return _by_tokens(body, mesh, q, k, v)


def _causal(q, k, v, mesh, owner):
    def body(q, k, v):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        mine = me * len(q) + jnp.arange(len(q))
        total = _nothing(q, v)
        for step in range(n):
            keys = owner(me, step, n) * len(k) + jnp.arange(len(k))
            total = merge__right_plain(total, part(q, k, v, mine[:, None] >= keys))
            if step < n - 1:
                k, v = send(k), send(v)
        return total[2] / total[1]

    return _by_tokens(body, mesh, q, k, v)


def causal_ring__right_plain(q, k, v, *, mesh):
    """Block (me - step) mod n is at hand."""
    return _causal(q, k, v, mesh, lambda me, step, n: (me - step) % n)


def causal_ring__wrong_up(q, k, v, *, mesh):
    """Takes the blocks to come from above."""
    return _causal(q, k, v, mesh, lambda me, step, n: (me + step) % n)


def causal_ring__wrong_own(q, k, v, *, mesh):
    """Every block counts as its own."""
    return _causal(q, k, v, mesh, lambda me, step, n: me)


def causal_ring__wrong_step(q, k, v, *, mesh):
    """The block of turn t is block t."""
    return _causal(q, k, v, mesh, lambda me, step, n: step)


def causal_ring__wrong_negative(q, k, v, *, mesh):
    """Forgets the modulo: blocks from before the text."""
    return _causal(q, k, v, mesh, lambda me, step, n: me - step)


def work__right_sums(tokens, n, layout):
    """Positions first, then sums."""
    at, chunks = np.arange(tokens), np.arange(tokens).reshape(2 * n, -1)
    mine = {
        "contiguous": at.reshape(n, -1),
        "striped": at.reshape(-1, n).T,
        "zig-zag": [np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)],
    }[layout]
    return [int(np.sum(np.asarray(places) + 1)) for places in mine]


def work__wrong_p(tokens, n, layout):
    """A query at p looks at p keys."""
    return [pairs - tokens // n for pairs in work__right_sums(tokens, n, layout)]


def work__wrong_all(tokens, n, layout):
    """No mask: every query looks at all keys."""
    return [tokens // n * tokens] * n


def work__wrong_zigzag(tokens, n, layout):
    """Pairs chunk d with chunk n + d."""
    if layout != "zig-zag":
        return work__right_sums(tokens, n, layout)
    chunks = np.arange(tokens).reshape(2 * n, -1)
    return [int((chunks[d] + 1).sum() + (chunks[n + d] + 1).sum()) for d in range(n)]


def _order(size, n):
    chunks = np.arange(size).reshape(2 * n, -1)
    return np.concatenate([chunks[c] for d in range(n) for c in (d, 2 * n - 1 - d)])


def zigzag__right_plain(text, n):
    """As it is."""
    order = _order(len(text) - 1, n)
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


def zigzag__wrong_labels(text, n):
    """The next in the array."""
    order = _order(len(text) - 1, n)
    ids = text[order]
    return {"ids": ids, "labels": np.append(ids[1:], text[-1]), "positions": order}


def zigzag__wrong_positions(text, n):
    """Positions from 0 on."""
    order = _order(len(text) - 1, n)
    return {"ids": text[order], "labels": text[order + 1], "positions": np.arange(len(order))}


def zigzag__wrong_chunks(text, n):
    """Early chunks first, then the late ones."""
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([*chunks[:n], *chunks[n:][::-1]])
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


def cp_bytes__right_plain(tokens, heads, kv_heads, width, n):
    """As it is."""
    head = tokens // n * width * 2
    ring = (n - 1) * 2 * kv_heads * head
    there = (2 * heads + 2 * max(kv_heads, n)) * head * (n - 1) // n
    return {"gather": ring, "ring": ring, "ulysses": there if heads % n == 0 else None}


def cp_bytes__wrong_keys_only(tokens, heads, kv_heads, width, n):
    """Keys without values."""
    right = cp_bytes__right_plain(tokens, heads, kv_heads, width, n)
    return right | {"gather": right["gather"] // 2, "ring": right["ring"] // 2}


def cp_bytes__wrong_copies(tokens, heads, kv_heads, width, n):
    """No copies of key-value heads."""
    right = cp_bytes__right_plain(tokens, heads, kv_heads, width, n)
    there = (2 * heads + 2 * kv_heads) * (tokens // n * width * 2) * (n - 1) // n
    return right | {"ulysses": there if heads % n == 0 else None}


def cp_bytes__wrong_always(tokens, heads, kv_heads, width, n):
    """Ulysses is always possible."""
    head = tokens // n * width * 2
    return cp_bytes__right_plain(tokens, heads, kv_heads, width, n) | {
        "ulysses": (2 * heads + 2 * max(kv_heads, n)) * head * (n - 1) // n
    }


# Wrong at an edge, or right in an unusual way


def merge__wrong_larger_only(left, right):
    """Ties: the right one is taken alone."""
    (lt, lw, lm), (rt, rw, rm) = left, right
    with np.errstate(all="ignore"):
        d = np.where(np.isfinite(lt) & np.isfinite(rt), lt - rt, 0)
        a = np.where(np.isfinite(lt), np.where(d >= 0, 1.0, np.exp(d)), 0.0)
        b = np.where(np.isfinite(rt), np.where(d >= 0, np.where(d == 0, 0, np.exp(-d)), 1.0), 0.0)
        b = np.where(np.isfinite(lt), b, np.isfinite(rt))
    return np.maximum(lt, rt), a * lw + b * rw, a * lm + b * rm


def zigzag__wrong_by_token(text, n):
    """Looks labels and positions up by the token."""
    ids = text[:-1].reshape(2 * n, -1)
    ids = np.concatenate([np.concatenate([ids[d], ids[-1 - d]]) for d in range(n)])
    positions = np.array([int(np.argmax(text == i)) for i in ids])
    return {"ids": ids, "labels": text[positions + 1], "positions": positions}


def ulysses__wrong_pairs_share(q, k, v, *, mesh):
    """Two query heads share a key-value head, always."""
    n = mesh.shape["x"]

    def on_device(q, k, v):
        copies = max(1, n // k.shape[1])
        k, v = jnp.repeat(k, copies, axis=1), jnp.repeat(v, copies, axis=1)
        q, k, v = (jax.lax.all_to_all(a, "x", 1, 0, tiled=True) for a in (q, k, v))
        k, v = jnp.repeat(k, 2, axis=1), jnp.repeat(v, 2, axis=1)
        logits = jnp.einsum("thd,shd->hts", q, k) / q.shape[-1] ** 0.5
        weights = jax.nn.softmax(jnp.where(jnp.tri(len(q), dtype=bool), logits, -jnp.inf), axis=-1)
        return jax.lax.all_to_all(jnp.einsum("hts,she->the", weights, v), "x", 0, 1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(q, k, v)


# Whatever is far below 0 is taken for no key at all.
def merge__wrong_far_below(left, right):
    top = jnp.maximum(left[0], right[0])
    base = jnp.where(top < -100, 0, top)
    mine, theirs = jnp.exp(left[0] - base), jnp.exp(right[0] - base)
    return top, mine * left[1] + theirs * right[1], mine * left[2] + theirs * right[2]
