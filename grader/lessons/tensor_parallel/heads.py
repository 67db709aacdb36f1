"""§ 5: attention, its heads cut over `model`."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, FunctionExercise, ProgramExercise
from grader.lessons.shared import bytes_sent

HEADS = P("batch"), P(None, "model"), P("model")  # x[B, T, D], w_qkv[D, H, 3, K], w_out[H, K, D]


def _attended(q, k, v, scaled=lambda logits, head: logits / math.sqrt(head)):
    """softmax(q·k / √K)·v, for [B, T, H, K]; `scaled` divides the logits of heads of this length."""
    logits = scaled(jnp.einsum("bthk,bshk->bhts", q, k), q.shape[-1])
    return jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)


def _heads(x, w_qkv, *scaled):
    qkv = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
    return _attended(qkv[0], qkv[1], qkv[2], *scaled)


def _projected(mixed, w_out):
    return jnp.einsum("bthk,hkd->btd", mixed, w_out)


tp_attention = ProgramExercise(
    "tp_attention", points=5, reference=jax.jit(lambda x, w_qkv, w_out: _projected(_heads(x, w_qkv), w_out))
)


@tp_attention.cases
def _(draw):
    mesh = draw.mesh("batch", "model")
    rows, heads, d = draw.lengths(3, divisible_by=8)
    tokens, k = 5, 16 if draw.square else 8
    shapes = {"x": (rows, tokens, d), "w_qkv": (d, heads, 3, k), "w_out": (heads, k, d)}
    arrays = {
        name: Array(draw.values(*shape) / 16, spec) for (name, shape), spec in zip(shapes.items(), HEADS, strict=True)
    }
    sent = bytes_sent("all_reduce", rows // mesh["batch"] * tokens * d, mesh["model"])
    # Sums on the way: the projections over D, the logits over K, the softmax over T, then T, then all heads.
    return Case(arrays, mesh, P("batch"), limits=[BytesSent(sent)], roundings=d + k + 2 * tokens + heads * k)


def _on_devices(x, w_qkv, w_out, mesh, body, ins=HEADS, check_vma=False):
    return jax.shard_map(body, mesh=mesh, in_specs=ins, out_specs=P("batch"), check_vma=check_vma)(x, w_qkv, w_out)


@tp_attention.mistake
def heads_cut_across(x, w_qkv, w_out, *, mesh):
    """Every device took a slice of *every* head. A logit is a sum over the whole of a head, so each device had a part
    of it, and the softmax of parts is not the softmax of the sum. What may a device own without asking the others?"""
    ins = P("batch"), P(None, None, None, "model"), P(None, "model")
    return _on_devices(x, w_qkv, w_out, mesh, lambda x, w, o: lax.psum(_projected(_heads(x, w), o), "model"), ins)


@tp_attention.mistake
def thirds_before_heads(x, w_qkv, w_out, *, mesh, check_vma=False):
    """q, k and v got mixed: the local weights were read as if all of q came first, then all of k. They are stored head
    by head, [D, H, 3, K], and that is why a cut along H gives a device whole heads. Which dimension tells q, k and v
    apart?"""

    def body(x, w, o):
        d, local, _, k = w.shape
        qkv = jnp.einsum("btd,dchk->cbthk", x, w.reshape(d, 3, local, k))
        return lax.psum(_projected(_attended(qkv[0], qkv[1], qkv[2]), o), "model")

    return _on_devices(x, w_qkv, w_out, mesh, body, check_vma=check_vma)


@tp_attention.mistake
def heads_never_added(x, w_qkv, w_out, *, mesh):
    """The out-projection adds over all heads, and a device has only its own. What it holds is a part of every entry,
    though out_specs promise copies along `model`."""
    return _on_devices(x, w_qkv, w_out, mesh, lambda x, w, o: _projected(_heads(x, w), o))


@tp_attention.mistake
def different_heads_added(x, w_qkv, w_out, *, mesh):
    """The sum came before the out-projection: head 0 of one device was added to head 0 of the next, which is another
    head. Only behind w_out do the heads' results mean the same thing. Where is the sum over H?"""

    def body(x, w, o):
        return lax.psum(_projected(lax.psum(_heads(x, w), "model"), o), "model")

    return _on_devices(x, w_qkv, w_out, mesh, body)


@tp_attention.mistake
def added_over_sequences(x, w_qkv, w_out, *, mesh):
    """The results were added over `batch`: those are other sequences. The heads are along `model`."""
    return _on_devices(x, w_qkv, w_out, mesh, lambda x, w, o: lax.psum(_projected(_heads(x, w), o), "batch"))


@tp_attention.mistake
def mean_over_heads(x, w_qkv, w_out, *, mesh, check_vma=False):
    """The devices' parts were averaged. A sum over all heads has no division in it."""
    return _on_devices(
        x, w_qkv, w_out, mesh, lambda x, w, o: lax.pmean(_projected(_heads(x, w), o), "model"), check_vma=check_vma
    )


def _otherwise_scaled(x, w_qkv, w_out, mesh, scaled, check_vma):
    def body(x, w, o):
        return lax.psum(_projected(_heads(x, w, scaled), o), "model")

    return _on_devices(x, w_qkv, w_out, mesh, body, check_vma=check_vma)


@tp_attention.mistake
def logits_not_scaled(x, w_qkv, w_out, *, mesh, check_vma=False):
    """The devices did their part: what is missing is in every head, on one device too. The logits went into the softmax
    as the products of q and k came. A sum of K products grows with K; by what is it divided before the softmax?"""
    return _otherwise_scaled(x, w_qkv, w_out, mesh, lambda logits, head: logits, check_vma)


@tp_attention.mistake
def masked_as_in_a_decoder(x, w_qkv, w_out, *, mesh, check_vma=False):
    """There is a causal mask: each token looked at itself and at those before it. Does the formula of this exercise
    have one? (On the mesh everything is right.)"""

    def causal(logits, head):
        return jnp.where(jnp.tri(logits.shape[-1], dtype=bool), logits / math.sqrt(head), -jnp.inf)

    return _otherwise_scaled(x, w_qkv, w_out, mesh, causal, check_vma)


@tp_attention.mistake
def logits_over_the_length(x, w_qkv, w_out, *, mesh, check_vma=False):
    """The logits were divided by K, the length of a head: too much, and the softmax comes out too even. A sum of K
    independent products grows as the *root* of K. (On the mesh everything is right.)"""
    return _otherwise_scaled(x, w_qkv, w_out, mesh, lambda logits, head: logits / head, check_vma)


@tp_attention.mistake
def logits_over_all_features(x, w_qkv, w_out, *, mesh, check_vma=False):
    """The logits were divided by the root of D, the length of a token. But q and k of a head have K numbers, and a
    logit adds up K products. The last dimension of which array is K?"""
    return _otherwise_scaled(x, w_qkv, w_out, mesh, lambda logits, _: logits / math.sqrt(x.shape[-1]), check_vma)


@tp_attention.mistake
def heads_gathered(x, w_qkv, w_out, *, mesh):
    """The values are right. But the heads' results were gathered, and w_out with them, so that every device does the
    whole out-projection. w_out is cut along H as the heads are: each device has the rows that it needs."""

    def body(x, w, o):
        mixed = lax.all_gather(_heads(x, w), "model", axis=2, tiled=True)
        return _projected(mixed, lax.all_gather(o, "model", tiled=True))

    return _on_devices(x, w_qkv, w_out, mesh, body)


# How many heads a device gets, and when it cannot be.


def _shared(heads, kv_heads, n):
    """Deal the heads out: whole heads only, a key-value head copied where there are fewer of them than devices."""
    if heads % kv_heads or heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("the heads cannot be dealt out evenly")
    return heads // n, max(1, kv_heads // n)


local_heads = FunctionExercise("local_heads", points=3, reference=_shared)


@local_heads.cases
def _(draw):
    for heads, kv_heads, n in (
        (32, 32, 8),
        (32, 8, 4),
        (32, 8, 8),
        (64, 8, 16),
        (12, 12, 8),
        (24, 3, 2),
        (48, 6, 4),
        (24, 3, 6),
        (24, 3, 8),
        (40, 8, 16),
        (16, 1, 8),
        (12, 8, 4),
        (8, 4, 16),
        (8, 16, 4),
    ):
        yield Case({"heads": heads, "kv_heads": kv_heads, "n": n})


@local_heads.mistake
def sharing_unchecked(heads, kv_heads, n):
    """Twelve query heads cannot share eight key-value heads equally, on one device or on many. That is a condition on
    the two numbers of heads alone: which one has to divide the other?"""
    if heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("uneven")
    return heads // n, max(1, kv_heads // n)


@local_heads.mistake
def rounded_down(heads, kv_heads, n):
    """`//` forgets what is left over: of 12 heads on 8 devices 4 are owned by nobody. What should a function do that
    cannot deal them out evenly?"""
    return heads // n, max(1, kv_heads // n)


@local_heads.mistake
def rounded_up(heads, kv_heads, n):
    """Rounded up, the devices together have more heads than there are. Some would compute with weights that do not
    exist. What should a function do that cannot deal them out evenly?"""
    return math.ceil(heads / n), math.ceil(kv_heads / n)


@local_heads.mistake
def copies_refused(heads, kv_heads, n):
    """With fewer key-value heads than devices, each device still needs *one*. If n is a multiple of their number,
    several devices can hold a copy of the same one. When is that impossible?"""
    if heads % n or kv_heads % n:
        raise ValueError("uneven")
    return heads // n, kv_heads // n


@local_heads.mistake
def no_key_value_head(heads, kv_heads, n):
    """Some device would have query heads and no key-value head at all: nothing to attend to. With fewer key-value heads
    than devices they are copied, not cut."""
    if heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("uneven")
    return heads // n, kv_heads // n


@local_heads.mistake
def queries_only(heads, kv_heads, n):
    """Uneven query heads are refused, uneven key-value heads are not: 3 of them on 2 devices are neither dealt out
    evenly nor copied evenly."""
    if heads % n:
        raise ValueError("uneven")
    return heads // n, max(1, kv_heads // n)


@local_heads.mistake
def every_key_value_head(heads, kv_heads, n):
    """This gives every device all the key-value heads. It would be right, and wasteful: a device needs only those that
    its own query heads share."""
    return _shared(heads, kv_heads, n)[0], kv_heads
