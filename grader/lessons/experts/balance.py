"""§ 8–9: what keeps the experts equally busy: a loss of the whole batch, or a bias without any loss."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, BytesSent, Case, FunctionExercise, ProgramExercise
from grader.lessons.experts.tokens import drawn_choices
from grader.lessons.shared import bytes_sent, device_map

# Fedus, Zoph and Shazeer, Switch Transformers, 2021, §2.2: E · Σ f · P, here for k choices.

CHOSEN = P("expert"), P("expert")  # logits[T, E], experts[T, K]


def _fractions(experts, count):
    """The part of all choices that each expert got."""
    return jax.nn.one_hot(experts, count).mean(axis=(0, 1))


def _loss(logits, experts):
    count = logits.shape[1]
    return count * jnp.sum(_fractions(experts, count) * jax.nn.softmax(logits, axis=1).mean(axis=0))


balance_loss = ProgramExercise("balance_loss", points=5, reference=jax.jit(_loss), mesh_shapes=((4,), (8,), (2,), (6,)))


@balance_loss.cases
def _(draw):
    mesh = draw.mesh("expert")
    n = mesh["expert"]
    (count,) = draw.lengths(1, divisible_by=4)
    t = 2 * count  # so many that all choices are more numbers than a few for each expert
    k = 3 if draw.square else 2
    _, experts = drawn_choices(draw, n * t, count, k)
    experts[:t] = np.arange(t)[:, None] % 2 + [0, 2, 4][:k]  # the first device's tokens are of another kind
    arrays = {"logits": Array(draw.values(n * t, count) / 4, CHOSEN[0]), "experts": Array(experts, CHOSEN[1])}
    # Every device's two means, of E numbers each, and their cotangents.
    sent = 2 * bytes_sent("all_gather", 2 * count, n)
    return Case(arrays, mesh, P(), limits=[BytesSent(sent)], cotangents=Array(draw.values(1)[0], P()))


def _over_devices(value):
    return lax.pmean(value, "expert")


def _cut(
    logits,
    experts,
    mesh,
    check_vma,
    *,
    f=lambda logits, experts: _over_devices(_fractions(experts, logits.shape[1])),
    p=lambda logits: _over_devices(jax.nn.softmax(logits, axis=1).mean(axis=0)),
    together=lambda f, p: len(f) * jnp.sum(f * p),
):
    body = lambda logits, experts: together(f(logits, experts), p(logits))  # noqa: E731
    return device_map(body, mesh, CHOSEN, P(), check_vma)(logits, experts)


@balance_loss.mistake
def mean_of_the_devices_losses(logits, experts, *, mesh):
    """Each device computed the loss of its own tokens, and the mean was taken of those. The mean of products is not the
    product of means: a device whose tokens all want the same expert pays, although the batch as a whole is balanced.
    What has to be averaged *before* f and P are multiplied?"""
    return _cut(
        logits,
        experts,
        mesh,
        True,
        f=lambda logits, experts: _fractions(experts, logits.shape[1]),
        p=lambda logits: jax.nn.softmax(logits, axis=1).mean(axis=0),
        together=lambda f, p: _over_devices(len(f) * jnp.sum(f * p)),
    )


@balance_loss.mistake
def own_tokens_only(logits, experts, *, mesh):
    """Every device has the loss of its own tokens, though out_specs promise copies. Balance is a matter of the whole
    batch: what do the devices have to tell each other?"""
    return _cut(
        logits,
        experts,
        mesh,
        False,
        f=lambda logits, experts: _fractions(experts, logits.shape[1]),
        p=lambda logits: jax.nn.softmax(logits, axis=1).mean(axis=0),
    )


@balance_loss.mistake
def without_the_number_of_experts(logits, experts, *, mesh):
    """The factor E is missing. With it the loss of a balanced batch is 1, however many experts there are; without it,
    1/E."""
    return _cut(logits, experts, mesh, True, together=lambda f, p: jnp.sum(f * p))


@balance_loss.mistake
def number_of_devices_for_experts(logits, experts, *, mesh):
    """The factor is the number of devices, and should be that of the experts. The two are equal only where every device
    has one expert. Which dimension of `logits` says how many experts there are?"""
    n = mesh.shape["expert"]
    return _cut(logits, experts, mesh, True, together=lambda f, p: n * jnp.sum(f * p))


@balance_loss.mistake
def sums_for_means(logits, experts, *, mesh):
    """f and P are both as many times too large as there are devices, and the loss by the square of that. How much do
    the fractions of all experts come to together?"""
    return _cut(
        logits,
        experts,
        mesh,
        True,
        f=lambda logits, experts: lax.psum(_fractions(experts, logits.shape[1]), "expert"),
        p=lambda logits: lax.psum(jax.nn.softmax(logits, axis=1).mean(axis=0), "expert"),
    )


@balance_loss.mistake
def fractions_of_tokens(logits, experts, *, mesh):
    """The loss is k times too large. Each token counts once for each of its k choices: divided by the number of tokens,
    the fractions add up to k. Of what are they fractions?"""
    return _cut(logits, experts, mesh, True, together=lambda f, p: experts.shape[1] * len(f) * jnp.sum(f * p))


@balance_loss.mistake
def probabilities_twice(logits, experts, *, mesh):
    """Both factors are the mean probabilities. One of them was to be what really happened: which part of all choices
    each expert got. (Probabilities may be balanced while the largest of each token is always the same expert's.)"""
    return _cut(
        logits,
        experts,
        mesh,
        True,
        f=lambda logits, experts: _over_devices(jax.nn.softmax(logits, axis=1).mean(axis=0)),
    )


@balance_loss.mistake
def choices_twice(logits, experts, *, mesh):
    """Both factors are fractions of choices. Those are counts: they have no gradient, so this loss moves nothing. Which
    factor lets the router feel it?"""
    return _cut(
        logits,
        experts,
        mesh,
        True,
        together=lambda f, p: len(f) * jnp.sum(f * f) + 0 * jnp.sum(p),
    )


@balance_loss.mistake
def probabilities_stopped(logits, experts, *, mesh):
    """The loss is right, and its gradient is zero. Counts have no gradient anyhow: what stops that of the
    probabilities? Who is to learn from this loss?"""
    return _cut(
        logits,
        experts,
        mesh,
        True,
        p=lambda logits: _over_devices(jax.nn.softmax(lax.stop_gradient(logits), axis=1).mean(axis=0)),
    )


@balance_loss.mistake
def all_logits_gathered(logits, experts, *, mesh):
    """The value is right, but the logits of all tokens went to every device. Two numbers for each expert are enough.
    Which two?"""

    def body(logits, experts):
        whole = (lax.all_gather(value, "expert", tiled=True) for value in (logits, experts))
        return _loss(*whole)

    return device_map(body, mesh, CHOSEN, P())(logits, experts)


# DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, §2.1.2: chosen by score + bias, weighed by score alone.


def _biased(scores, bias, k, rate):
    scores, bias = np.asarray(scores), np.asarray(bias)
    _, experts = jax.lax.top_k(scores + bias, k)
    experts = np.asarray(experts)
    return _shares(scores, experts), experts, _moved(bias, experts, rate)


def _shares(scores, experts):
    top = np.take_along_axis(scores, experts, axis=1)
    return top / top.sum(axis=1, keepdims=True)


def _load(experts, count):
    return np.bincount(experts.reshape(-1), minlength=count)


def _moved(bias, experts, rate, by=np.sign):
    load = _load(experts, len(bias))
    return bias + rate * by(load.mean() - load)


bias_balance = FunctionExercise("bias_balance", points=4, reference=_biased)


@bias_balance.cases
def _(draw):
    for tokens, count, k, rate in ((8, 6, 2, 0.125), (12, 4, 2, 0.25), (9, 9, 3, 0.125)):
        scores, bias = _drawn(draw, tokens, count)
        while not _has_some_next_to_the_mean(scores, bias, k):
            scores, bias = _drawn(draw, tokens, count)
        yield Case({"scores": scores, "bias": bias, "k": k, "rate": rate})


def _drawn(draw, tokens, count):
    scores = (draw.rng.integers(1, 16, (tokens, count)) / 16).astype(np.float32)
    return scores, (draw.values(count) / 8).astype(np.float32)


def _has_some_next_to_the_mean(scores, bias, k):
    """Whether loads just below and above the mean occur, or the mean itself: who rounds it is to notice."""
    load = _load(_biased(scores, bias, k, rate=0)[1], len(bias))
    return {math.floor(load.mean()), math.ceil(load.mean())} <= set(load.tolist())


@bias_balance.mistake
def bias_in_the_weights(scores, bias, k, rate):
    """The experts are the right ones, but the bias went into their weights as well: a busy expert is heard less, and
    the gradient of the router is no longer its own. The bias *chooses*. What weighs?"""
    _, experts, moved = _biased(scores, bias, k, rate)
    return _shares(np.asarray(scores) + bias, experts), experts, moved


@bias_balance.mistake
def bias_not_asked(scores, bias, k, rate):
    """The experts were chosen by their scores alone, so the bias changes nothing. It is added for the choice, and only
    there."""
    right = _biased(scores, np.zeros_like(bias), k, rate)
    return right[0], right[1], _moved(np.asarray(bias), right[1], rate)


@bias_balance.mistake
def towards_the_busy(scores, bias, k, rate):
    """The bias moves the wrong way: an expert with many tokens becomes yet more attractive. Whose bias should grow?"""
    weights, experts, _ = _biased(scores, bias, k, rate)
    return weights, experts, _moved(np.asarray(bias), experts, -rate)


@bias_balance.mistake
def as_far_as_it_is_off(scores, bias, k, rate):
    """The bias moved in proportion to how far the load is off, by many times `rate` where it is off by many tokens.
    It moves by `rate`, up or down, however far."""
    weights, experts, _ = _biased(scores, bias, k, rate)
    return weights, experts, _moved(np.asarray(bias), experts, rate, by=lambda off: off)


@bias_balance.mistake
def down_at_the_mean(scores, bias, k, rate):
    """The bias of an expert that got just as many as the mean went down as well. It is neither busy nor idle, and its
    bias stays. Which function gives -1, 0 or 1?"""
    weights, experts, _ = _biased(scores, bias, k, rate)
    return weights, experts, _moved(np.asarray(bias), experts, rate, by=lambda off: np.where(off > 0, 1, -1))


@bias_balance.mistake
def never_moved(scores, bias, k, rate):
    """Weights and choices are right; the bias was returned as it came. Who got more than the mean, who less?"""
    weights, experts, _ = _biased(scores, bias, k, rate)
    return weights, experts, np.asarray(bias)


@bias_balance.mistake
def weights_left_as_scores(scores, bias, k, rate):
    """The weights of a token are its scores themselves, which need not add up to 1. Divide them by the sum of those
    that were chosen."""
    _, experts, moved = _biased(scores, bias, k, rate)
    return np.take_along_axis(np.asarray(scores), experts, axis=1), experts, moved


@bias_balance.mistake
def softmax_of_the_scores(scores, bias, k, rate):
    """The weights are a softmax of the chosen scores. These scores are no logits: they have been through a sigmoid, and
    are only to be divided by their sum."""
    _, experts, moved = _biased(scores, bias, k, rate)
    top = np.take_along_axis(np.asarray(scores), experts, axis=1)
    return np.asarray(jax.nn.softmax(top)), experts, moved
