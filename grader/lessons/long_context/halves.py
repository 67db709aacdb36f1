"""§ 6: a ring in zig-zag order, in which nobody computes what the mask hides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, Flops, ProgramExercise, Turns
from grader.lessons.long_context.attention import INS, ROUNDINGS, ROWS, merged, part, send, whole
from grader.lessons.long_context.balance import positions_of
from grader.lessons.shared import FLOAT, device_map

PLACES = P("x")
Chosen = Callable[[Any, Any], Any]  # of two halves, or trees of them


def _by_position(q, k, v, positions):
    return whole(q, k, v, positions[:, None] >= positions)


zigzag_ring = ProgramExercise("zigzag_ring", points=6, reference=_by_position, mesh_shapes=((4,), (3,)))


@zigzag_ring.cases
def _(draw):
    mesh = draw.mesh("x")
    n, half = mesh["x"], int(draw.rng.choice([6, 8]))
    d, e = (16, 16) if draw.square else (16, 24)
    tokens = 2 * n * half
    widths = {"q": d, "k": d, "v": e}
    arrays = {name: draw.array(tokens, width, spec=ROWS) for name, width in widths.items()}
    positions = positions_of(tokens, n, "zig-zag").ravel().astype(np.int32)
    # Four pairs of halves at home, or three of them, and two in every turn.
    pairs = (3 + 2 * (n - 1)) * half**2
    limits = [
        BytesSent((n - 1) * 2 * half * FLOAT * (d + e)),
        Turns({"collective_permute": 2 * (n - 1)}),
        Flops(2 * pairs * (d + e)),
    ]
    return Case(arrays | {"positions": Array(positions, PLACES)}, mesh, ROWS, limits, roundings=ROUNDINGS)


def _halves(array):
    half = len(array) // 2
    return array[:half], array[half:]


def _ring(
    q,
    k,
    v,
    mesh,
    *,
    before: Callable[[Any, int], Any] = lambda me, step: step <= me,
    seen: Callable[[Any, int], Any] = lambda me, block: jnp.tri(block, dtype=bool),
    common: tuple[int, int] = (1, 0),
):
    """Two products of halves a turn: that of `common` (queries, keys), and early with early or late with late.

    `before` says whether the block at hand stands before the device's own, `seen` is the mask at home.
    """
    n = mesh.shape["x"]

    def body(q, k, v):
        me, queries = lax.axis_index("x"), _halves(q)
        at_home = part(q, k, v, seen(me, len(q)))
        totals = [tuple(_halves(a)[side] for a in at_home) for side in (0, 1)]
        for step in range(1, n):
            k, v = send(k, n), send(v, n)
            keys, values = _halves(k), _halves(v)
            ask, look = common
            totals[ask] = merged(totals[ask], part(queries[ask], keys[look], values[look]))
            choose: Chosen = partial(jax.tree.map, partial(jnp.where, before(me, step)))
            more = part(choose(*queries), choose(*keys), choose(*values))
            early, late = merged(totals[0], more), merged(totals[1], more)
            totals = [choose(early, totals[0]), choose(totals[1], late)]
        return jnp.concatenate([mixed / weight for _, weight, mixed in totals])

    return device_map(body, mesh, INS, ROWS)(q, k, v)


@zigzag_ring.mistake
def hid_what_it_computed(q, k, v, positions, *, mesh):
    """The values are right. But every turn computes four products of halves, and a mask throws two of them away:
    zig-zag brought nothing. Which two pairs of halves does nobody see, if the block at hand comes from *before*?"""
    n = mesh.shape["x"]

    def body(q, k, v, mine):
        total, theirs = part(q, k, v, mine[:, None] >= mine), mine
        half, me = len(q) // 2, lax.axis_index("x")
        for step in range(1, n):
            k, v, source = send(k, n), send(v, n), (me - step) % n
            chunks = jnp.stack([source, 2 * n - 1 - source])
            theirs = (chunks[:, None] * half + jnp.arange(half)).ravel()
            total = merged(total, part(q, k, v, mine[:, None] >= theirs))
        return total[2] / total[1]

    return device_map(body, mesh, (*INS, PLACES), ROWS)(q, k, v, positions)


@zigzag_ring.mistake
def as_if_in_order(q, k, v, positions, *, mesh):
    """The mask is that of blocks which follow one another: all of those before, nothing of those behind. In zig-zag
    order each device has a chunk from the front and one from the end. Where do its tokens stand?"""
    n = mesh.shape["x"]

    def body(q, k, v):
        me, total = lax.axis_index("x"), part(q, k, v, jnp.tri(len(q), dtype=bool))
        for step in range(1, n):
            k, v = send(k, n), send(v, n)
            total = merged(total, part(q, k, v, jnp.full((len(q), len(k)), step <= me)))
        return total[2] / total[1]

    return device_map(body, mesh, INS, ROWS)(q, k, v)


@zigzag_ring.mistake
def cases_exchanged(q, k, v, positions, *, mesh):
    """The blocks of lower devices are taken for those of higher ones, and the other way round. Of a lower device's
    block both of your halves see the early half; of a higher one's, only your late queries see anything, and they see
    all."""
    return _ring(q, k, v, mesh, before=lambda me, step: step > me)


@zigzag_ring.mistake
def late_keys_always(q, k, v, positions, *, mesh):
    """One of your two pairs of halves is right: early with early, or late with late. The other is the same in every
    turn: late queries see everybody's *early* keys, and yours saw the late ones. Which chunk stands where in the
    text?"""
    return _ring(q, k, v, mesh, common=(1, 1))


@zigzag_ring.mistake
def everything_at_home(q, k, v, positions, *, mesh):
    """At home every query sees every key of the device. Its tokens stand in the order of the text, chunk d before chunk
    2n − 1 − d: which mask is right for both together?"""
    return _ring(q, k, v, mesh, seen=lambda me, block: True)


@zigzag_ring.mistake
def one_product_a_turn(q, k, v, positions, *, mesh):
    """One pair of halves is missing in every turn. Late queries see the early keys of *everybody*, and besides that
    either the early queries or the late keys have something to do."""
    n = mesh.shape["x"]

    def body(q, k, v):
        me, queries = lax.axis_index("x"), _halves(q)
        own = part(q, k, v, jnp.tri(len(q), dtype=bool))
        early, late = (tuple(_halves(a)[side] for a in own) for side in (0, 1))
        nothing = part(queries[0], k[: len(queries[0])], v[: len(queries[0])], False)
        for step in range(1, n):
            k, v = send(k, n), send(v, n)
            keys, values = _halves(k), _halves(v)
            choose: Chosen = partial(jax.tree.map, partial(jnp.where, step <= me))
            more = part(choose(*queries), choose(*keys), choose(*values))
            early, late = merged(early, choose(more, nothing)), merged(late, choose(nothing, more))
        return jnp.concatenate([mixed / weight for _, weight, mixed in (early, late)])

    return device_map(body, mesh, INS, ROWS)(q, k, v)
