"""§ 4, 5: keys and values go round, and each device merges what they come to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from grader.exercises import BytesSent, Case, Draw, Meanwhile, PeakBytes, ProgramExercise, Turns
from grader.lessons.long_context.attention import (
    INS,
    LOOPS,
    NOTHING,
    RINGS,
    ROUNDINGS,
    ROWS,
    attend,
    causal,
    drawn,
    merged,
    part,
    send,
    whole,
)
from grader.lessons.shared import FLOAT, device_map

Seen = Callable[[Any, Any, int, int], Any]  # the mask of a turn, given the device, the turn, n, and a block's tokens
Merge = Callable[[Any, Any], Any]


def _case(draw: Draw, *blocks: int, peak: bool = False) -> Case:
    """A case in which k and v go round once; `peak`: a device may hold the logits of one block at a time."""
    mesh, arrays = drawn(draw, *blocks)
    n, (tokens, d), e = mesh["x"], arrays["k"].value.shape, arrays["v"].value.shape[1]
    block = tokens // n
    limits = [
        BytesSent((n - 1) * FLOAT * block * (d + e)),
        Turns({"collective_permute": 2 * (n - 1)}),
        Meanwhile(block * block * (d + e)),
        # Queries, keys, values and result; a block of logits and one of weights; what a turn and the next one carry.
        *([PeakBytes(FLOAT * (2 * block * (d + e) + 2 * block**2 + 4 * block * (d + e)))] if peak else []),
    ]
    return Case(arrays, mesh, ROWS, limits, roundings=ROUNDINGS)


def _all(me, step, n: int, block: int):
    return True


def _nothing(like, width: int):
    """The part of no keys."""
    zeros = jnp.zeros((len(like), 1))
    return zeros + NOTHING, zeros, jnp.zeros((len(like), width))


def _ring(
    q,
    k,
    v,
    mesh,
    *,
    seen: Seen = _all,
    merge: Merge = merged,
    turns: Callable[[int], int] = lambda n: n,
    first: int = 0,
    travels: tuple[bool, bool] = (True, True),
    done: Callable[[Any], Any] = lambda total: total[2] / total[1],
):
    """A turn multiplies the block at hand while a copy of it is on its way; the last block is not sent on.

    `first` is how many transfers come before the first product, `travels` whether keys go, and whether values.
    """
    n = mesh.shape["x"]

    def body(q, k, v):
        me, block = lax.axis_index("x"), len(q)

        def on(k, v):
            return tuple(send(a, n) if goes else a for a, goes in zip((k, v), travels, strict=True))

        def turn(step, carry):
            total, k, v = carry
            return merge(total, part(q, k, v, seen(me, step, n, block))), *on(k, v)

        for _ in range(first):
            k, v = on(k, v)
        last = first + turns(n) - 1
        total, k, v = lax.fori_loop(first, last, turn, (_nothing(q, v.shape[1]), k, v))
        return done(merge(total, part(q, k, v, seen(me, last, n, block))))

    return device_map(body, mesh, INS, ROWS)(q, k, v)


ring_attention = ProgramExercise("ring_attention", points=6, reference=whole, mesh_shapes=LOOPS)


@ring_attention.cases
def _(draw):
    return _case(draw, 40, 48, peak=True)


def _averages(total, new):
    """Softmaxes by block, added up: the weight counts blocks."""
    return total[0], total[1] + 1, total[2] + new[2] / new[1]


@ring_attention.mistake
def averaged_the_softmaxes(q, k, v, *, mesh):
    """This is the mean of what a softmax over each block gives. A block whose logits are large then counts no more than
    one whose logits are small. What do two parts have to know of each other to be merged?"""
    return _ring(q, k, v, mesh, merge=_averages)


def _unscaled(total, new):
    return jnp.maximum(total[0], new[0]), total[1] + new[1], total[2] + new[2]


@ring_attention.mistake
def sums_never_rescaled(q, k, v, *, mesh):
    """The sums of the blocks were added up as they are, each relative to the largest logit of its *own* block. By what
    is each to be multiplied first, so that all are relative to the same?"""
    return _ring(q, k, v, mesh, merge=_unscaled)


def _weights_only(total, new):
    top, weight, _ = merged(total, new)
    return top, weight, total[2] + new[2]


@ring_attention.mistake
def values_never_rescaled(q, k, v, *, mesh):
    """The weights are rescaled when a larger logit turns up, and the weighted values are not. Both are sums over the
    same keys, relative to the same largest logit."""
    return _ring(q, k, v, mesh, merge=_weights_only)


def _absolute(total, new):
    """Sums without a largest logit."""
    scale = jnp.exp(new[0])
    return total[0], total[1] + scale * new[1], total[2] + scale * new[2]


@ring_attention.mistake
def without_a_maximum(q, k, v, *, mesh):
    """exp(logit) without the largest one taken off: right for small logits; in float32 infinite from 89 on, and 0 from
    −104 down. (Tests with small random numbers never see it.) Carry the largest logit so far, and keep both sums
    relative to it."""
    return _ring(q, k, v, mesh, merge=_absolute)


@ring_attention.mistake
def values_left_at_home(q, k, v, *, mesh):
    """The keys went round and the values stayed: the weights of one block are multiplied by the values of another.
    Keys and values of a token belong together."""
    return _ring(q, k, v, mesh, travels=(True, False))


@ring_attention.mistake
def keys_left_at_home(q, k, v, *, mesh):
    """The values went round and the keys stayed, so that every device weighs all values by its own keys. Keys and
    values of a token belong together."""
    return _ring(q, k, v, mesh, travels=(False, True))


@ring_attention.mistake
def one_block_missing(q, k, v, *, mesh):
    """One block of keys was never met. There are n blocks, one of them at home: how many parts are merged, and how
    many transfers are between them?"""
    return _ring(q, k, v, mesh, turns=lambda n: n - 1)


@ring_attention.mistake
def own_block_left_out(q, k, v, *, mesh):
    """A device's own block is missing from what it merged. The keys that it has from the start are keys like the
    others."""
    return _ring(q, k, v, mesh, first=1, turns=lambda n: n - 1)


@ring_attention.mistake
def own_block_twice(q, k, v, *, mesh):
    """A device's own keys count twice. After n transfers they are back: how many parts are merged, and how many
    transfers are between them?"""
    return _ring(q, k, v, mesh, turns=lambda n: n + 1)


@ring_attention.mistake
def never_divided(q, k, v, *, mesh):
    """The weighted values are not divided by the weights. It is done once, at the end."""
    return _ring(q, k, v, mesh, done=lambda total: total[2])


@ring_attention.mistake
def sent_home_again(q, k, v, *, mesh):
    """The values are right. But the last turn sends keys and values on once more, home to where they began, and nobody
    needs them there: n transfers for n − 1. Which block is to be merged behind the loop?"""
    n = mesh.shape["x"]

    def body(q, k, v):
        def turn(_, carry):
            total, k, v = carry
            return merged(total, part(q, k, v)), send(k, n), send(v, n)

        total, *_ = lax.fori_loop(0, n, turn, (_nothing(q, v.shape[1]), k, v))
        return total[2] / total[1]

    return device_map(body, mesh, INS, ROWS)(q, k, v)


@ring_attention.mistake
def sent_on_unmet(q, k, v, *, mesh):
    """The values are right. But the last turn sends keys and values on once more, and nobody multiplies what arrives:
    n transfers for n − 1. Which block can be merged behind the loop, so that a turn less sends?"""
    n = mesh.shape["x"]

    def body(q, k, v):
        def turn(_, carry):
            total, k, v = carry
            return merged(total, part(q, k, v)), send(k, n), send(v, n)

        total, *_ = lax.fori_loop(1, n, turn, (part(q, k, v), send(k, n), send(v, n)))
        return total[2] / total[1]

    return device_map(body, mesh, INS, ROWS)(q, k, v)


@ring_attention.mistake
def sent_first(q, k, v, *, mesh):
    """Values and transfers are right. But nothing runs beside a transfer: what a turn multiplies waits for the block
    that comes in it. In a loop a turn ends before the next begins: what can it multiply at once?"""
    n = mesh.shape["x"]

    def body(q, k, v):
        def turn(_, carry):
            total, k, v = carry
            k, v = send(k, n), send(v, n)
            return merged(total, part(q, k, v)), k, v

        total, *_ = lax.fori_loop(1, n, turn, (part(q, k, v), k, v))
        return total[2] / total[1]

    return device_map(body, mesh, INS, ROWS)(q, k, v)


@ring_attention.mistake
def written_out(q, k, v, *, mesh):
    """Values and transfers are right, and the memory is that of [T/n, T] logits. Written out, the products of all
    blocks wait for nothing but their block, so a compiler may do the first halves of all before it merges one: all
    blocks of logits are alive at once. What makes one turn end before the next begins?"""
    n = mesh.shape["x"]

    def body(q, k, v):
        total = part(q, k, v)
        for _ in range(1, n):
            k, v = send(k, n), send(v, n)
            total = merged(total, part(q, k, v))
        return total[2] / total[1]

    return device_map(body, mesh, INS, ROWS)(q, k, v)


@ring_attention.mistake
def gathered_after_all(q, k, v, *, mesh):
    """All keys at once are a gather: every device then holds those of all. Here the keys are to come by, a block a
    turn, and what they come to is merged."""

    def body(q, k, v):
        return attend(q, *(lax.all_gather(a, "x", tiled=True) for a in (k, v)))

    return device_map(body, mesh, INS, ROWS)(q, k, v)


# The same with a causal mask.


def _from(source: Callable[[Any, Any, int], Any]) -> Seen:
    """The causal mask for a device's queries and the keys of the block `source(me, step, n)`."""

    def seen(me, step, n, block):
        queries, keys = me * block + jnp.arange(block), source(me, step, n) % n * block + jnp.arange(block)
        return queries[:, None] >= keys

    return seen


def _behind(me, step, n):
    return me - step


def _ahead(me, step, n):
    return me + step


causal_ring = ProgramExercise("causal_ring", points=4, reference=causal, mesh_shapes=RINGS, piece=True)
_causal = functools.partial(_ring, seen=_from(_behind))


@causal_ring.cases
def _(draw):
    return _case(draw, 5, 6, 7)


@causal_ring.mistake
def source_ahead(q, k, v, *, mesh):
    """The mask is made as if blocks came from the other side. To which neighbour does your ring send, and whose block
    does device d hold after t steps: that of d + t, or that of d − t? Without a mask nobody notices, for then the
    blocks' order plays no part."""
    return _ring(q, k, v, mesh, seen=_from(_ahead))


@causal_ring.mistake
def local_triangle(q, k, v, *, mesh):
    """Every block of keys got the same triangle, as if it stood where the queries stand. That is right for a device's
    own block only. A block from before is seen whole, one from behind not at all: on what does it depend?"""
    return _ring(q, k, v, mesh, seen=lambda me, step, n, block: jnp.tri(block, dtype=bool))


@causal_ring.mistake
def no_mask_at_all(q, k, v, *, mesh):
    """Every token looks at every token: there is no mask. Which keys may a query at position i look at?"""
    return _ring(q, k, v, mesh)


@causal_ring.mistake
def hidden_logits_zero(q, k, v, *, mesh):
    """A logit of 0 hides no key: its weight is e to the power of 0, over the same sum as all others. Beside large
    logits nobody notices. Which logit has the weight 0?"""
    n = mesh.shape["x"]

    def body(q, k, v):
        me, block = lax.axis_index("x"), len(q)

        def at_hand(step, k, v):
            seen = _from(_behind)(me, step, n, block)
            logits = jnp.where(seen, q @ k.T / q.shape[-1] ** 0.5, 0)
            top = logits.max(-1, keepdims=True)
            weights = jnp.exp(logits - top)
            return top, weights.sum(-1, keepdims=True), weights @ v

        total = at_hand(0, k, v)
        for step in range(1, n):
            k, v = send(k, n), send(v, n)
            total = merged(total, at_hand(step, k, v))
        return total[2] / total[1]

    return device_map(body, mesh, INS, ROWS)(q, k, v)


@causal_ring.mistake
def whole_blocks_only(q, k, v, *, mesh):
    """The blocks before are seen and those behind are not, that is right; but within its own block a token sees those
    after it, too. There the mask is a triangle."""
    return _ring(q, k, v, mesh, seen=lambda me, step, n, block: me >= (me - step) % n)


@causal_ring.mistake
def step_for_a_block(q, k, v, *, mesh):
    """The mask takes the *turn* for the number of the block: the same on every device. After t transfers the devices
    hold different blocks. On which two numbers does the block depend?"""
    return _ring(q, k, v, mesh, seen=_from(lambda me, step, n: step))


@causal_ring.mistake
def blind_to_itself(q, k, v, *, mesh):
    """A token does not see itself in your mask. The first of the text then sees nothing at all, and the softmax of
    nothing is not a number. Is it > or >=?"""

    def seen(me, step, n, block):
        queries, keys = me * block + jnp.arange(block), (me - step) % n * block + jnp.arange(block)
        return queries[:, None] > keys

    return _ring(q, k, v, mesh, seen=seen)


@causal_ring.mistake
def local_positions(q, k, v, *, mesh):
    """The keys have their true positions, the queries are numbered from 0 on every device. The last device's
    tokens stand behind the blocks of all the others."""

    def seen(me, step, n, block):
        return jnp.arange(block)[:, None] >= (me - step) % n * block + jnp.arange(block)

    return _ring(q, k, v, mesh, seen=seen)


def _unguarded(one, other):
    """A merge that forgets that both parts may be empty."""
    top = jnp.maximum(one[0], other[0])
    mine, theirs = jnp.exp(one[0] - top), jnp.exp(other[0] - top)
    return top, mine * one[1] + theirs * other[1], mine * one[2] + theirs * other[2]


@causal_ring.mistake
def empty_first(q, k, v, *, mesh):
    """On some devices nothing is a number. Do they begin with a block that the mask hides altogether? Its largest logit
    is −inf, that of nothing yet is −inf too, and −inf − (−inf) is not a number. Which block has something to see for
    every query? Begin with that."""
    n = mesh.shape["x"]
    # The block from above comes first, which is hidden from all but the last device.
    seen = _from(lambda me, step, n: me + step)

    def body(q, k, v):
        me, block, total = lax.axis_index("x"), len(q), _nothing(q, v.shape[1])
        for step in range(1, n + 1):
            k, v = send(k, n, -1), send(v, n, -1)
            total = _unguarded(total, part(q, k, v, seen(me, step, n, block)))
        return total[2] / total[1]

    return device_map(body, mesh, INS, ROWS)(q, k, v)
