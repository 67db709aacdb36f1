"""Answers to lesson 18, twenty-third batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- cp_bytes


def cp_bytes__right_pieces(tokens, heads, kv_heads, width, n):
    piece = tokens // n * width * 2  # one head of a device's tokens

    def exchanged(some_heads):
        """Of these heads a device keeps an n-th, and sends the rest."""
        return some_heads // n * (n - 1) * piece

    around = (n - 1) * (kv_heads + kv_heads) * piece
    copied = max(kv_heads, n)
    possible = heads % n == 0
    return {
        "gather": around,
        "ring": around,
        "ulysses": 2 * exchanged(heads) + 2 * exchanged(copied) if possible else None,
    }


# This student forgot that Ulysses copies key-value heads where there are fewer than devices.
def cp_bytes__wrong_uncopied(tokens, heads, kv_heads, width, n):
    piece = tokens // n * width * 2
    around = 2 * kv_heads * (n - 1) * piece
    ulysses = None
    if heads % n == 0:
        had = (2 * heads + 2 * kv_heads) * piece
        ulysses = had * (n - 1) // n
    return {"gather": around, "ring": around, "ulysses": ulysses}


# This student thought that a key-value head is copied for each of its query heads before it is sent, in all three ways.
def cp_bytes__wrong_repeated(tokens, heads, kv_heads, width, n):
    piece = tokens // n * width * 2
    copies = heads // kv_heads
    keys_and_values = 2 * kv_heads * copies
    around = keys_and_values * (n - 1) * piece
    ulysses = None
    if heads % n == 0:
        ulysses = (2 * heads + keys_and_values) * piece * (n - 1) // n
    return {"gather": around, "ring": around, "ulysses": ulysses}


# "n cannot be more than there are heads": this student took that for the whole condition, and forgot that n must divide them.
def cp_bytes__wrong_limit(tokens, heads, kv_heads, width, n):
    piece = tokens // n * width * 2
    around = 2 * kv_heads * (n - 1) * piece
    possible = n <= heads
    exchanged = (2 * heads + 2 * max(kv_heads, n)) * piece * (n - 1) // n
    return {"gather": around, "ring": around, "ulysses": exchanged if possible else None}


# This student counts queries, keys and values on their way, and forgets that the result has to be brought home.
def cp_bytes__wrong_one_way(tokens, heads, kv_heads, width, n):
    piece = tokens // n * width * 2

    def all_to_all(count):
        return count * piece * (n - 1) // n

    around = 2 * kv_heads * (n - 1) * piece
    if heads % n:
        ulysses = None
    else:
        ulysses = all_to_all(heads) + 2 * all_to_all(max(kv_heads, n))
    return {"gather": around, "ring": around, "ulysses": ulysses}


# ---------------------------------------------------------------- gather_kv


def gather_kv__right_ahead(q, k, v, *, mesh):
    def on_device(q, k, v):
        mine, me = len(q), jax.lax.axis_index("x")
        k = jax.lax.all_gather(k, "x", axis=0, tiled=True)
        v = jax.lax.all_gather(v, "x", axis=0, tiled=True)
        # How far a key stands behind the query in the text, if both were counted from this device's first token.
        ahead = jnp.arange(len(k))[None, :] - jnp.arange(mine)[:, None]
        hidden = ahead > me * mine
        _, weight, mixed = part(q, k, v, ~hidden)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x"), P("x")), out_specs=P("x"))(q, k, v)


# "The first query of device 2 sees seven keys": this student counts the queries from 1 and the keys from 0, and so lets
# each query see one key too many.
def gather_kv__wrong_counted(q, k, v, *, mesh):
    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        how_many = me * len(q) + 1 + jnp.arange(len(q))  # keys that each query sees
        seen = jnp.arange(len(k))[None, :] <= how_many[:, None]
        _, weight, mixed = part(q, k, v, seen)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student thought in blocks: a device sees the keys of all devices up to itself, its own block whole.
def gather_kv__wrong_blocks(q, k, v, *, mesh):
    def on_device(q, k, v):
        me, block = jax.lax.axis_index("x"), len(k)
        k, v = (jax.lax.all_gather(b, "x", tiled=True) for b in (k, v))
        from_device = jnp.arange(len(k)) // block
        seen = jnp.broadcast_to(from_device <= me, (len(q), len(k)))
        _, weight, mixed = part(q, k, v, seen)
        return mixed / weight

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student takes the softmax over all keys and hides the later ones afterwards: the weights no longer add up to 1.
def gather_kv__wrong_afterwards(q, k, v, *, mesh):
    def on_device(q, k, v):
        me = jax.lax.axis_index("x")
        k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (k, v))
        place = me * len(q) + jnp.arange(len(q))
        seen = place[:, None] >= jnp.arange(len(k))
        weights = jax.nn.softmax(q @ k.T / q.shape[-1] ** 0.5, axis=-1)
        return jnp.where(seen, weights, 0) @ v

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# This student gathers the queries too, so that the mask is a plain triangle, does the whole text on every device, and
# cuts out its own rows: right, but with three all_gathers.
def gather_kv__wrong_everything(q, k, v, *, mesh):
    def on_device(q, k, v):
        mine, me = len(q), jax.lax.axis_index("x")
        q, k, v = (jax.lax.all_gather(block, "x", tiled=True) for block in (q, k, v))
        triangle = jnp.tri(len(q), dtype=bool)
        _, weight, mixed = part(q, k, v, triangle)
        return jax.lax.dynamic_slice_in_dim(mixed / weight, me * mine, mine)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"))(q, k, v)


# ---------------------------------------------------------------- zigzag


def zigzag__right_folded(text, n):
    tokens = len(text) - 1
    early, late = np.arange(tokens).reshape(2, n, -1)  # the first half of the chunks, and the second
    positions = np.stack([early, late[::-1]], axis=1).reshape(-1)
    return {"ids": text[:-1][positions], "labels": text[1:][positions], "positions": positions}


# This student makes the labels device by device: within a device the next in the array, and only for its last token the
# true next one; where a device's early chunk ends, the label is the first token of its late chunk.
def zigzag__wrong_seam(text, n):
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    ids, labels, positions = [], [], []
    for d in range(n):
        place = np.concatenate([chunks[d], chunks[2 * n - 1 - d]])
        tokens = text[place]
        ids.append(tokens)
        labels.append(np.append(tokens[1:], text[place[-1] + 1]))
        positions.append(place)
    return {name: np.concatenate(rows) for name, rows in (("ids", ids), ("labels", labels), ("positions", positions))}


# Zig-zag goes there and back: this student turns the late chunk round as well.
def zigzag__wrong_turned(text, n):
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([half for d in range(n) for half in (chunks[d], chunks[2 * n - 1 - d][::-1])])
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# This student took the row of owners in the picture (0 1 2 3 3 2 1 0) for the order of the chunks in the array: first all
# early chunks, then the late ones from the back, so P("x") gives device 0 the first two chunks.
def zigzag__wrong_picture(text, n):
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    there = [chunks[d] for d in range(n)]
    back = [chunks[2 * n - 1 - d] for d in range(n)]
    order = np.concatenate(there + back)
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# This student gives as positions the place in the new array to which each token of the text has gone, the inverse.
def zigzag__wrong_inverse(text, n):
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([np.concatenate([chunks[d], chunks[2 * n - 1 - d]]) for d in range(n)])
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return {"ids": text[order], "labels": text[order + 1], "positions": places}
