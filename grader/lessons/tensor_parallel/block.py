"""§ 9: a whole block of a transformer, its tokens cut between the pairs, its heads and hidden units inside them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, Flops, ProgramExercise, Roots
from grader.lessons.shared import bytes_sent, device_map

TOKENS = P("batch", "model")  # x[B, T, D]
BLOCK = {
    "scale_1": P(),
    "w_qkv": P(None, "model"),  # [D, H, 3, K]
    "w_out": P("model"),  # [H, K, D]
    "scale_2": P(),
    "W1": P(None, "model"),
    "W2": P("model", None),
}
HEAD = 8  # K


def _norm(x, scale):
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def _attend(x, w_qkv, w_out):
    """Causal attention of all tokens x[B, T, D], by the heads of w_qkv[D, H, 3, K] and w_out[H, K, D]."""
    q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
    logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    logits = jnp.where(jnp.tri(x.shape[1], dtype=bool), logits, -jnp.inf)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
    return jnp.einsum("bthk,hkd->btd", mixed, w_out)


def _hidden(x, W1, W2):
    return jax.nn.silu(x @ W1) @ W2


def _itself(x):
    return x


def _block_of(p, x, gather=_itself, scatter=_itself):
    x = x + scatter(_attend(gather(_norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
    return x + scatter(_hidden(gather(_norm(x, p["scale_2"])), p["W1"], p["W2"]))


tp_block = ProgramExercise("tp_block", points=8, reference=jax.jit(_block_of), piece=True)


@tp_block.cases
def _(draw):
    mesh = draw.mesh("batch", "model")
    tokens, heads, d, f = draw.lengths(4, divisible_by=8)
    rows, b, n = 8, mesh["batch"], mesh["model"]
    shapes = {
        "scale_1": (d,),
        "w_qkv": (d, heads, 3, HEAD),
        "w_out": (heads, HEAD, d),
        "scale_2": (d,),
        "W1": (d, f),
        "W2": (f, d),
    }
    # Powers of two, so that products are exact, and small ones, so that neither logits nor hidden units saturate.
    params = {
        name: Array(draw.values(*shape) / (8 if len(shape) == 1 else 64), BLOCK[name]) for name, shape in shapes.items()
    }
    x = Array(draw.values(rows, tokens, d) / 4, TOKENS)
    x.value[0, 0] /= 1024  # a token so small that epsilon shows
    out = Array(draw.values(rows, tokens, d) / 4, TOKENS)
    own = rows // b * tokens * d  # entries of x in a row of devices
    pairs = 2 * (bytes_sent("all_gather", own // n, n) + bytes_sent("reduce_scatter", own, n))
    weights = d * heads * 4 * HEAD // n + 2 * d * f // n  # a device's own, whose gradients are added over `batch`
    sums = bytes_sent("all_reduce", weights, b) + bytes_sent("all_reduce", 2 * d, b * n)  # the scales': over both
    products = own * (4 * heads * HEAD + 2 * f) + rows // b * heads * 2 * tokens**2 * HEAD
    # Sums on the way, forward and back: the norms, projections, logits, softmax, values, heads, hidden units.
    roundings = 2 * (4 * d + HEAD + 2 * tokens + heads * HEAD + f)
    return Case(
        {"params": params, "x": x},
        mesh,
        TOKENS,
        limits=[  # the gradient included
            BytesSent(2 * pairs + sums),
            Flops(3 * 2 * products // n),
            Roots(2 * rows // b * tokens // n, times=2),
        ],
        cotangents=out,
        roundings=roundings,
    )


def _on_devices(params, x, mesh, body, specs=BLOCK, tokens=TOKENS, check_vma=False):
    return device_map(body, mesh, (specs, tokens), tokens, check_vma)(params, x)


def _together(x):
    return lax.all_gather(x, "model", axis=1, tiled=True)


def _dealt(parts):
    return lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)


def _own_tokens(total, like):
    return lax.dynamic_slice_in_dim(total, lax.axis_index("model") * like.shape[1], like.shape[1], axis=1)


@tp_block.mistake
def tokens_not_gathered(params, x, *, mesh, check_vma=False):
    """Each device sent its own tokens through its own heads and hidden units, and then parts of *different* tokens were
    added. No token looked at one that is on another device either. What must every device have before a pair?"""
    return _on_devices(
        params, x, mesh, lambda p, x: _block_of(p, x, scatter=lambda part: lax.psum(part, "model")), check_vma=check_vma
    )


@tp_block.mistake
def attention_of_own_tokens(params, x, *, mesh, check_vma=False):
    """The MLP's half is right. In attention each device had its own tokens and its own heads only: no token looked at
    one that is on another device, and the other devices' heads were never added. The same two collectives stand
    around attention as around the MLP. Which one before, which one behind?"""

    def body(p, x):
        x = x + _attend(_norm(x, p["scale_1"]), p["w_qkv"], p["w_out"])
        return x + _dealt(_hidden(_together(_norm(x, p["scale_2"])), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def scattered_only_at_the_end(params, x, *, mesh, check_vma=False):
    """Everything was gathered once, and summed once, at the very end. So the second norm and the MLP saw x plus one
    device's *part* of attention, and the last sum has x as many times as `model` has devices. Where is the result of
    attention needed whole, and what should be outside of a sum?"""

    def body(p, x):
        return _dealt(_block_of(p, _together(x)))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def added_to_the_normed(params, x, *, mesh):
    """What a half brings was added to the *normed* tokens. The norm is for what goes into attention and into the MLP
    only; their results are added to x as it came in, which so has a way through all blocks on which nobody scales it.
    Which of your names is the tokens, and which the normed tokens?"""

    def body(p, x):
        normed = _norm(x, p["scale_1"])
        x = normed + _dealt(_attend(_together(normed), p["w_qkv"], p["w_out"]))
        normed = _norm(x, p["scale_2"])
        return normed + _dealt(_hidden(_together(normed), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body)


@tp_block.mistake
def block_added_then_sliced(params, x, *, mesh, check_vma=False):
    """The values are right. But each sum was brought to every device, and all tokens except its own were thrown away.
    Which collective adds the parts and deals out the tokens, for half of the bytes?"""

    def body(p, x):
        return _block_of(p, x, _together, lambda parts: _own_tokens(lax.psum(parts, "model"), x))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def whole_until_the_end(params, x, *, mesh, check_vma=False):
    """The values are right. But all tokens stayed on every device through the whole block, two sums were brought to
    everybody, and the tokens were dealt out at the very end. An all_reduce is a reduce_scatter *and* an all_gather:
    which of the two is due behind a pair, and which before the next?"""

    def body(p, x):
        return _own_tokens(_block_of(p, _together(x), scatter=lambda parts: lax.psum(parts, "model")), x)

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def gathered_the_sequences(params, x, *, mesh, check_vma=False):
    """Collectives ran along dimension 0, the sequences: the other devices' tokens of the same sequences then stood
    there as if they were those of further ones, and no token looked at one that is on another device. Which dimension
    of [B, T, D] are the tokens?"""

    def gather(x):
        return lax.all_gather(x, "model", axis=0, tiled=True)

    def scatter(parts):
        return lax.psum_scatter(parts, "model", scatter_dimension=0, tiled=True)

    return _on_devices(params, x, mesh, lambda p, x: _block_of(p, x, gather, scatter), check_vma=check_vma)


@tp_block.mistake
def scattered_along_the_features(params, x, *, mesh, check_vma=False):
    """The sum was scattered along the features: a device has all tokens then, and some features of each. That cannot be
    added to x, which has some tokens and all their features. Which dimension of [B, T, D] are the tokens?"""

    def scatter(parts):
        return lax.psum_scatter(parts, "model", scatter_dimension=2, tiled=True)

    return _on_devices(params, x, mesh, lambda p, x: _block_of(p, x, _together, scatter), check_vma=check_vma)


@tp_block.mistake
def parts_kept(params, x, *, mesh, check_vma=False):
    """Each device kept its own tokens of its own *part* of each sum: the heads and hidden units of the others are
    missing from them. Who adds the parts?"""
    return _on_devices(
        params,
        x,
        mesh,
        lambda p, x: _block_of(p, x, _together, lambda parts: _own_tokens(parts, x)),
        check_vma=check_vma,
    )


@tp_block.mistake
def residual_inside_the_sum(params, x, *, mesh, check_vma=False):
    """Behind each pair, what came in is there as many times as `model` has devices: was it added before the
    reduce_scatter, on every device? What should each device add exactly once, and to which tokens?"""

    def body(p, x):
        x = _dealt(_together(x) + _attend(_together(_norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return _dealt(_together(x) + _hidden(_together(_norm(x, p["scale_2"])), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def first_residual_inside_the_sum(params, x, *, mesh, check_vma=False):
    """Behind the first half x is there as many times as `model` has devices: was it added before the reduce_scatter, on
    every device? The second half is right: what does it add, and where?"""

    def body(p, x):
        x = _dealt(_together(x) + _attend(_together(_norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return x + _dealt(_hidden(_together(_norm(x, p["scale_2"])), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def second_residual_inside_the_sum(params, x, *, mesh, check_vma=False):
    """Attention's half is right. In the second half its result is there as many times as `model` has devices: was it
    added before the reduce_scatter, on every device? To which tokens should a device add it, and when?"""

    def body(p, x):
        x = x + _dealt(_attend(_together(_norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return _dealt(_together(x) + _hidden(_together(_norm(x, p["scale_2"])), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def residual_forgotten(params, x, *, mesh, check_vma=False):
    """Both halves of the block *add* to x, and here they replaced it. With small weights the sum hardly differs from x,
    which is how eighty blocks in a row can be trained. What is added to what?"""

    def body(p, x):
        x = _dealt(_attend(_together(_norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return _dealt(_hidden(_together(_norm(x, p["scale_2"])), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def second_half_from_the_start(params, x, *, mesh, check_vma=False):
    """Attention and the MLP stand side by side: the second half begins with x as it came. (There are models like that,
    GPT-J is one.) Here the MLP sees what attention has made. Which `x` does the second norm get?"""

    def body(p, x):
        first = _dealt(_attend(_together(_norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return x + first + _dealt(_hidden(_together(_norm(x, p["scale_2"])), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def norms_forgotten(params, x, *, mesh, check_vma=False):
    """The tokens went into both pairs as they came, without a norm. It needs one token at a time, so each device can
    norm its own, before they are gathered."""

    def body(p, x):
        x = x + _dealt(_attend(_together(x), p["w_qkv"], p["w_out"]))
        return x + _dealt(_hidden(_together(x), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def second_norm_forgotten(params, x, *, mesh, check_vma=False):
    """The tokens went into the MLP without a norm, and `scale_2` was used nowhere: its gradient is 0. Each half of the
    block begins with a norm, and each norm has its own scale."""

    def body(p, x):
        x = x + _dealt(_attend(_together(_norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return x + _dealt(_hidden(_together(x), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def normed_after_the_gather(params, x, *, mesh, check_vma=False):
    """The values are right, and so is what travels. But where tokens are gathered before they are normed, every device
    norms all of them. A norm needs one token at a time, so each device can norm its own. Which comes first in your
    program, the norm or the all_gather?"""

    def body(p, x):
        x = x + _dealt(_attend(_norm(_together(x), p["scale_1"]), p["w_qkv"], p["w_out"]))
        return x + _dealt(_hidden(_norm(_together(x), p["scale_2"]), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def norm_of_some_features(params, x, *, mesh, check_vma=False):
    """x was taken apart along its *features*, so that each norm saw only some numbers of a token, and divided by the
    root of their mean square instead of the whole token's. Cut along the tokens, each device has whole tokens to norm.
    Which dimension of x is its second?"""

    def gather(x):
        return lax.all_gather(x, "model", axis=2, tiled=True)

    def scatter(parts):
        return lax.psum_scatter(parts, "model", scatter_dimension=2, tiled=True)

    specs = BLOCK | {"scale_1": P("model"), "scale_2": P("model")}
    return _on_devices(
        params, x, mesh, lambda p, x: _block_of(p, x, gather, scatter), specs, P("batch", None, "model"), check_vma
    )


@tp_block.mistake
def features_scattered(params, x, *, mesh, check_vma=False):
    """The sum was scattered along the features, and the pieces were reshaped until they fitted x. They have all tokens
    and some features of each; x has some tokens and all features. Along which dimension are the tokens?"""

    def scatter(parts):
        pieces = lax.psum_scatter(parts, "model", scatter_dimension=2, tiled=True)
        return pieces.reshape(parts.shape[0], -1, parts.shape[2])

    return _on_devices(params, x, mesh, lambda p, x: _block_of(p, x, _together, scatter), check_vma=check_vma)


@tp_block.mistake
def stacked_tokens(params, x, *, mesh, check_vma=False):
    """Tokens of different sequences stand in one, in an order that the causal mask takes for that of the text. Without
    `tiled=True` all_gather stacks the devices' pieces along a new first dimension, and reshape reads row by row. Which
    option puts the pieces one after the other?"""

    def gather(x):
        return lax.all_gather(x, "model").reshape(x.shape[0], -1, x.shape[2])

    return _on_devices(params, x, mesh, lambda p, x: _block_of(p, x, gather, _dealt), check_vma=check_vma)


@tp_block.mistake
def heads_cut_through(params, x, *, mesh, check_vma=False):
    """Every device got a slice of *every* head. A logit is a sum over the whole of a head, so the softmax was one of
    parts. What may a device own without asking the others?"""
    specs = BLOCK | {"w_qkv": P(None, None, None, "model"), "w_out": P(None, "model")}
    return _on_devices(params, x, mesh, lambda p, x: _block_of(p, x, _together, _dealt), specs, check_vma=check_vma)


@tp_block.mistake
def gathered_for_each(params, x, *, mesh, check_vma=False):
    """The values are right. But tokens are gathered more often than there are pairs, and every gather sends them again.
    Is it done anew for q, k and v? How often does a pair need all tokens?"""

    def body(p, x):
        normed = _norm(x, p["scale_1"])
        q, k, v = (jnp.einsum("btd,dhk->bthk", _together(normed), p["w_qkv"][:, :, part]) for part in range(3))
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        logits = jnp.where(jnp.tri(q.shape[1], dtype=bool), logits, -jnp.inf)
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        x = x + _dealt(jnp.einsum("bthk,hkd->btd", mixed, p["w_out"]))
        return x + _dealt(_hidden(_together(_norm(x, p["scale_2"])), p["W1"], p["W2"]))

    return _on_devices(params, x, mesh, body, check_vma=check_vma)


@tp_block.mistake
def copies_of_whole_sequences(params, x, *, mesh, check_vma=False):
    """in_specs ask for whole sequences and out_specs promise them: nothing is cut between the pairs, and every device
    norms all tokens of its sequences. Describe x as it is laid out, and leave the result cut alike."""

    def body(p, x):
        return _block_of(p, x, scatter=lambda parts: lax.psum(parts, "model"))

    return _on_devices(params, x, mesh, body, tokens=P("batch"), check_vma=check_vma)
