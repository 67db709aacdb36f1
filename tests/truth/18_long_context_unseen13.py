"""Answers to lesson 18, thirteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

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


# ---------------------------------------------------------------- zigzag


def zigzag__right_stack(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    chunks = np.arange(len(text) - 1).reshape(2, n, -1)
    early, late = chunks[0], chunks[1, ::-1]  # row d of each is for device d
    positions = np.hstack([early, late]).reshape(-1)
    reads, follows = text[:-1], text[1:]
    return {"ids": reads[positions], "labels": follows[positions], "positions": positions}


# Thinks: a label is the token after, so move the dealt-out tokens by one and close with the text's last token.
def zigzag__wrong_next_in_array(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([chunks[c] for d in range(n) for c in (d, 2 * n - 1 - d)])
    ids = text[order]
    return {"ids": ids, "labels": np.append(ids[1:], text[-1]), "positions": order}


# Thinks: zig-zag goes to and fro, so on the way back the late chunks are read from their end.
def zigzag__wrong_backwards(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    length = (len(text) - 1) // (2 * n)
    positions = np.arange(len(text) - 1)
    order = []
    for d in range(n):
        order.append(positions[d * length : (d + 1) * length])
        late = positions[::-1][d * length : (d + 1) * length]
        order.append(late)
    order = np.concatenate(order)
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# Thinks: deal chunks 0 to n - 1 to the devices in turn, then the others in the opposite turn: that is also their order in the array.
def zigzag__wrong_early_then_late(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([chunks[:n], chunks[n:][::-1]]).reshape(-1)
    return {"ids": text[order], "labels": text[order + 1], "positions": order}


# Thinks: `positions` says for each token of the text in which place it has come to stand.
def zigzag__wrong_inverse(text, n):
    """{"ids", "labels", "positions"} of a text in zig-zag order."""
    chunks = np.arange(len(text) - 1).reshape(2 * n, -1)
    order = np.concatenate([chunks[c] for d in range(n) for c in (d, 2 * n - 1 - d)])
    positions = np.empty_like(order)
    positions[order] = np.arange(len(order))
    return {"ids": text[order], "labels": text[order + 1], "positions": positions}


# ---------------------------------------------------------------- work


def work__right_formula(tokens, n, layout):
    """Pairs of a query and a key on each of n devices."""

    def run(first, length, step=1):
        """1 for the query itself, and a key for each position before it: first + 1, first + step + 1, …"""
        return length * (first + 1) + step * (length * (length - 1) // 2)

    share, half = tokens // n, tokens // (2 * n)
    if layout == "contiguous":
        return [run(d * share, share) for d in range(n)]
    if layout == "striped":
        return [run(d, share, step=n) for d in range(n)]
    return [run(d * half, half) + run((2 * n - 1 - d) * half, half) for d in range(n)]


# Thinks: in zig-zag a device has one chunk of the first half and the same one of the second, d and n + d.
def work__wrong_same_of_each_half(tokens, n, layout):
    """Pairs of a query and a key on each of n devices."""
    place = np.arange(tokens)
    if layout == "contiguous":
        rows = place.reshape(n, -1)
    elif layout == "striped":
        rows = place.reshape(-1, n).T
    else:
        chunks = place.reshape(2 * n, -1)
        rows = np.stack([np.concatenate([chunks[d], chunks[n + d]]) for d in range(n)])
    return [int(count) for count in (rows + 1).sum(axis=1)]


# Thinks: positions count from 0, and the query at position p has p keys before it.
def work__wrong_before(tokens, n, layout):
    """Pairs of a query and a key on each of n devices."""
    place = np.arange(tokens)
    if layout == "contiguous":
        rows = place.reshape(n, -1)
    elif layout == "striped":
        rows = place.reshape(-1, n).T
    else:
        chunks = place.reshape(2 * n, -1)
        rows = np.concatenate([chunks[:n], chunks[: n - 1 : -1]], axis=1)
    return [int(row.sum()) for row in rows]


# Thinks: dealt out in turn, a row of reshape(-1, n) is what one device has.
def work__wrong_rows(tokens, n, layout):
    """Pairs of a query and a key on each of n devices."""
    keys = np.arange(tokens) + 1
    if layout == "contiguous":
        rows = keys.reshape(n, -1)
    elif layout == "striped":
        rows = keys.reshape(-1, n)
    else:
        chunks = keys.reshape(2 * n, -1)
        rows = np.concatenate([chunks[:n], chunks[n:][::-1]], axis=1)
    return rows.sum(axis=1).tolist()


# Thinks: a block of which anything is seen has to be computed whole, so count blocks and multiply by their pairs.
def work__wrong_whole_blocks(tokens, n, layout):
    """Pairs of a query and a key on each of n devices."""
    share, half = tokens // n, tokens // (2 * n)
    if layout == "contiguous":
        return [(d + 1) * share**2 for d in range(n)]
    if layout == "striped":
        return [n * share**2 for d in range(n)]  # every block is seen in part
    return [((d + 1) + (2 * n - d)) * half**2 for d in range(n)]


# ---------------------------------------------------------------- cp_bytes


def cp_bytes__right_shares(tokens, heads, kv_heads, width, n):
    """Bytes sent by each device in one layer: {"gather", "ring", "ulysses"}."""
    head = tokens // n * width * 2  # bytes of one head of a device's tokens
    passing = (n - 1) * (kv_heads + kv_heads) * head
    sent = {"gather": passing, "ring": passing, "ulysses": None}
    if heads % n == 0:
        queries_and_result = 2 * (heads // n)
        keys_and_values = 2 * max(1, kv_heads // n)
        sent["ulysses"] = (n - 1) * (queries_and_result + keys_and_values) * head  # so much to each other device
    return sent


# Thinks: each key-value head is on one device after the exchange, so kv_heads of keys and of values are sent, be they few or many.
def cp_bytes__wrong_no_copies(tokens, heads, kv_heads, width, n):
    """Bytes sent by each device in one layer: {"gather", "ring", "ulysses"}."""
    head = tokens / n * width * 2
    around = (n - 1) * 2 * kv_heads * head
    ulysses = (2 * heads + 2 * kv_heads) * head * (n - 1) / n if heads % n == 0 else None
    return {"gather": around, "ring": around, "ulysses": ulysses}


# Thinks: a device keeps an n-th of what it has in a gather too; only in the ring does its block pass n - 1 times.
def cp_bytes__wrong_gather_once(tokens, heads, kv_heads, width, n):
    """Bytes sent by each device in one layer: {"gather", "ring", "ulysses"}."""
    head = tokens / n * width * 2
    keys_and_values = 2 * kv_heads * head
    ulysses = None
    if heads % n == 0:
        ulysses = (2 * heads + 2 * max(kv_heads, n)) * head * (n - 1) / n
    return {"gather": keys_and_values * (n - 1) / n, "ring": keys_and_values * (n - 1), "ulysses": ulysses}


# Thinks: Ulysses is not possible if there are more devices than query heads; otherwise everybody finds a head.
def cp_bytes__wrong_enough_heads(tokens, heads, kv_heads, width, n):
    """Bytes sent by each device in one layer: {"gather", "ring", "ulysses"}."""
    head = tokens / n * width * 2
    around = (n - 1) * 2 * kv_heads * head
    ulysses = None if n > heads else 2 * (heads + max(kv_heads, n)) * head * (n - 1) / n
    return {"gather": around, "ring": around, "ulysses": ulysses}


# Thinks: what is exchanged is queries, keys and values, three all_to_alls; the result is where it belongs.
def cp_bytes__wrong_no_way_back(tokens, heads, kv_heads, width, n):
    """Bytes sent by each device in one layer: {"gather", "ring", "ulysses"}."""
    head = tokens / n * width * 2
    around = (n - 1) * 2 * kv_heads * head
    ulysses = (heads + 2 * max(kv_heads, n)) * head * (n - 1) / n if heads % n == 0 else None
    return {"gather": around, "ring": around, "ulysses": ulysses}
