"""§ 3: every device gathers all keys and values."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from grader.exercises import BytesSent, Case, ProgramExercise, Turns
from grader.lessons.long_context.attention import INS, RINGS, ROUNDINGS, ROWS, attend, causal, drawn
from grader.lessons.shared import bytes_sent, device_map

gather_kv = ProgramExercise("gather_kv", points=4, reference=causal, mesh_shapes=RINGS)


@gather_kv.cases
def _(draw):
    mesh, arrays = drawn(draw, 5, 6, 7)
    n, entries = mesh["x"], arrays["k"].value.size + arrays["v"].value.size
    limits = [BytesSent(bytes_sent("all_gather", entries // n, n)), Turns({"all_gather": 2})]
    return Case(arrays, mesh, ROWS, limits, roundings=ROUNDINGS)


def _gathered(q, k, v, mesh, *, seen=lambda queries, keys: queries >= keys, place=lambda me, block: me * block):
    """Own queries against all keys; `place` is the position of a device's first token, `seen` who looks at whom."""

    def body(q, k, v):
        k, v = (lax.all_gather(a, "x", tiled=True) for a in (k, v))
        queries = place(lax.axis_index("x"), len(q)) + jnp.arange(len(q))
        return attend(q, k, v, seen(queries[:, None], jnp.arange(len(k))))

    return device_map(body, mesh, INS, ROWS)(q, k, v)


@gather_kv.mistake
def everyone_starts_at_zero(q, k, v, *, mesh):
    """Every device numbers its own tokens from 0, so those of the last see no more than those of the first. The
    keys have the positions of the whole text. Which position has the first token of device `me`?"""
    return _gathered(q, k, v, mesh, place=lambda me, block: 0)


@gather_kv.mistake
def number_for_a_position(q, k, v, *, mesh):
    """The first token of a device stands at its *number* in your mask. Device 1 has a whole block of tokens before it:
    at which position does it begin?"""
    return _gathered(q, k, v, mesh, place=lambda me, block: me)


@gather_kv.mistake
def looked_ahead(q, k, v, *, mesh):
    """Every token looks at every token, the later ones too: there is no mask. A causal attention looks at itself and
    at what stood before."""
    return _gathered(q, k, v, mesh, seen=lambda queries, keys: True)


@gather_kv.mistake
def only_the_future(q, k, v, *, mesh):
    """The mask is the wrong way round: a token sees itself and what comes *after* it. Which index must be the larger
    one, the query's or the key's?"""
    return _gathered(q, k, v, mesh, seen=lambda queries, keys: queries <= keys)


@gather_kv.mistake
def not_itself(q, k, v, *, mesh):
    """A token does not see itself in your mask. The first of all then sees nothing, and the softmax of nothing is not a
    number. Is it < or <=?"""
    return _gathered(q, k, v, mesh, seen=lambda queries, keys: queries > keys)


@gather_kv.mistake
def only_its_own_keys(q, k, v, *, mesh):
    """A token looks only at the keys that its own device holds: of what stood on the devices before, it knows nothing.
    Are those keys gathered, and does the mask show them?"""

    def body(q, k, v):
        return attend(q, k, v, jnp.tri(len(q), dtype=bool))

    return device_map(body, mesh, INS, ROWS)(q, k, v)


@gather_kv.mistake
def forgot_the_root(q, k, v, *, mesh):
    """The logits were not divided by √D. Sharding has nothing to do with it; D is the width of a query."""
    return _gathered(q * q.shape[-1] ** 0.5, k, v, mesh)


@gather_kv.mistake
def queries_gathered_too(q, k, v, *, mesh):
    """The values are right. But every device gathered the queries as well. Only one side of a product has to travel:
    whose result does a device need?"""

    def body(q, k, v):
        block, me = len(q), lax.axis_index("x")
        q, k, v = (lax.all_gather(a, "x", tiled=True) for a in (q, k, v))
        return lax.dynamic_slice_in_dim(attend(q, k, v, jnp.tri(len(q), dtype=bool)), me * block, block)

    return device_map(body, mesh, INS, ROWS)(q, k, v)
