"""§ 9: the gradient of a ring, with keys, values and their gradients going round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from grader.exercises import Array, BytesSent, Case, PeakBytes, ProgramExercise, Turns
from grader.lessons.long_context.attention import LOOPS, ROUNDINGS, ROWS, drawn, send, whole
from grader.lessons.shared import FLOAT, device_map

SIX = (ROWS,) * 6


def _gradients(q, k, v, out, total, dout):
    """The gradients of `whole` by q, k and v for `dout`, in double precision."""
    q, k, v, out, total, dout = (a.astype(np.float64) for a in (q, k, v, out, total, dout))
    weights = np.exp(_logits(q, k) - total)
    dlogits = weights * (dout @ v.T - (dout * out).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return dlogits @ k, dlogits.T @ q, weights.T @ dout


def _logits(q, k):
    return q @ k.T / q.shape[-1] ** 0.5


ring_backward = ProgramExercise("ring_backward", points=6, reference=_gradients, mesh_shapes=LOOPS)


@ring_backward.cases
def _(draw):
    mesh, arrays = drawn(draw, 32, 40, 48)
    n, arrays = mesh["x"], {name: Array(a.value / 4, ROWS) for name, a in arrays.items()}
    q, k, v = (arrays[name].value for name in "qkv")
    logits = _logits(q.astype(np.float64), k.astype(np.float64))
    top = logits.max(-1, keepdims=True)
    total = top + np.log(np.exp(logits - top).sum(-1, keepdims=True))
    arrays |= {
        "out": Array(whole(q, k, v).astype(np.float32), ROWS),
        "total": Array(total.astype(np.float32), ROWS),
        "dout": draw.array(*v.shape, spec=ROWS),
    }
    (tokens, d), e = k.shape, v.shape[1]
    block = tokens // n
    a_pair = FLOAT * block * (d + e)  # keys and values of a block, or the gradients of both
    limits = [
        BytesSent((2 * n - 1) * a_pair),
        Turns({"collective_permute": 2 * (2 * n - 1)}),
        # Arguments and results, two blocks of weights, and what travels, for a turn and the next.
        PeakBytes(FLOAT * block * (3 * d + 4 * e + 1 + 2 * block) + 5 * a_pair),
    ]
    return Case(arrays, mesh, SIX[:3], limits, roundings=4 * ROUNDINGS)


def _ring(
    q,
    k,
    v,
    out,
    total,
    dout,
    mesh,
    *,
    scale: float = 1.0,
    delta: float = 1.0,
    follow: bool = True,
    home: bool = True,
    own_softmax: bool = False,
    last: bool = True,
    weight: Callable[[Any, Any], Any] = lambda logits, base: jnp.exp(logits - base),
):
    """`follow`: the gradients travel with their block; `home`: they are sent on once more at the end; `last`: the block
    that comes last is looked at, too."""
    n = mesh.shape["x"]

    def body(q, k, v, out, total, dout):
        less = delta * (dout * out).sum(-1, keepdims=True)

        def added(carry) -> Any:
            k, v, dq, dk, dv = carry
            logits = _logits(q, k)
            base = _logsumexp(logits) if own_softmax else total
            weights = weight(logits, base)
            dlogits = weights * (dout @ v.T - less) / q.shape[-1] ** 0.5 * scale
            return dq + dlogits @ k, dk + dlogits.T @ q, dv + weights.T @ dout

        def turn(_, carry):
            dq, dk, dv = added(carry)
            k, v = send(carry[0], n), send(carry[1], n)
            return k, v, dq, *((send(dk, n), send(dv, n)) if follow else (dk, dv))

        start = k, v, *(jnp.zeros_like(a) for a in (q, k, v))
        done = lax.fori_loop(0, n - 1, turn, start)
        dq, dk, dv = added(done) if last else done[2:]
        return dq, *((send(dk, n), send(dv, n)) if follow and home else (dk, dv))

    return device_map(body, mesh, SIX, SIX[:3])(q, k, v, out, total, dout)


def _logsumexp(logits):
    top = logits.max(-1, keepdims=True)
    return top + jnp.log(jnp.exp(logits - top).sum(-1, keepdims=True))


@ring_backward.mistake
def not_sent_home(q, k, v, out, total, dout, *, mesh):
    """The gradients of keys and values are complete, each on a wrong device: one place short of home. A block that need
    not be seen again may stay where it is after n − 1 transfers, its gradient may not."""
    return _ring(q, k, v, out, total, dout, mesh, home=False)


@ring_backward.mistake
def gradients_stayed(q, k, v, out, total, dout, *, mesh):
    """A device added up gradients of n different blocks in one place, while the blocks went round. The gradient of a
    block belongs to the block: it travels with it, and each device adds its share."""
    return _ring(q, k, v, out, total, dout, mesh, follow=False)


@ring_backward.mistake
def forgot_what_all_share(q, k, v, out, total, dout, *, mesh):
    """The softmax's gradient is weights · (dweights − their mean by weight): that mean is missing. It is one number for
    all keys of a query, the sum of dout · out."""
    return _ring(q, k, v, out, total, dout, mesh, delta=0.0)


@ring_backward.mistake
def forgot_the_root_backwards(q, k, v, out, total, dout, *, mesh):
    """The logits were divided by √D, so the gradients of q and k are, too. Only dv has nothing to do with it."""
    return _ring(q, k, v, out, total, dout, mesh, scale=q.shape[-1] ** 0.5)


@ring_backward.mistake
def softmax_of_a_block(q, k, v, out, total, dout, *, mesh):
    """The weights were made by a softmax over the block at hand. Those of the forward pass are relative to *all* keys:
    `total` is the logarithm of their sum, so exp(logit − total) is the weight, of any block, at any time."""
    return _ring(q, k, v, out, total, dout, mesh, own_softmax=True)


@ring_backward.mistake
def last_block_left_out(q, k, v, out, total, dout, *, mesh):
    """A block is missing: each device adds n − 1 of the n. With its own block and n − 1 transfers it has had one more
    than there were turns. Where is the last one looked at?"""
    return _ring(q, k, v, out, total, dout, mesh, last=False)


@ring_backward.mistake
def total_for_the_sum(q, k, v, out, total, dout, *, mesh):
    """The exponentials were divided by `total`. It is the *logarithm* of their sum: what is an exponential divided by
    a sum, where the sum's logarithm is known?"""
    return _ring(q, k, v, out, total, dout, mesh, weight=lambda logits, total: jnp.exp(logits) / total)


@ring_backward.mistake
def gathered_and_scattered(q, k, v, out, total, dout, *, mesh):
    """The values are right. But all keys were gathered, so that every device has those of all, and gradients for all of
    them, before a psum_scatter takes these home. Let the blocks go round, and their gradients with them."""

    def body(q, k, v, out, total, dout):
        k, v = (lax.all_gather(a, "x", tiled=True) for a in (k, v))
        weights = jnp.exp(_logits(q, k) - total)
        dlogits = weights * (dout @ v.T - (dout * out).sum(-1, keepdims=True)) / q.shape[-1] ** 0.5
        scattered = [lax.psum_scatter(a, "x", tiled=True) for a in (dlogits.T @ q, weights.T @ dout)]
        return dlogits @ k, *scattered

    return device_map(body, mesh, SIX, SIX[:3])(q, k, v, out, total, dout)
