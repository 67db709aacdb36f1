"""Answers to lesson 17, ninth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

# ---------------------------------------------------------------- slots


def slots__right_pairs(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    same = experts[:, None] == experts[None, :]
    earlier = jnp.tri(len(experts), k=-1, dtype=bool)
    slot = jnp.sum(same & earlier, axis=1, dtype=jnp.int32)
    return slot, slot < capacity


# A dropped choice is "outside", so its slot is set to the first one outside, whatever it would have been.
def slots__wrong_clipped(experts, num_experts, capacity):
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    so_far = jnp.cumsum(wants, axis=0) - 1
    slot = jnp.take_along_axis(so_far, jnp.asarray(experts)[:, None], axis=1)[:, 0]
    slot = jnp.minimum(slot, capacity)
    return slot, slot != capacity


# Sorts by expert as the dropless layer does, and returns the places in the sorted order without writing them home.
def slots__wrong_sorted(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    in_order = experts[jnp.argsort(experts, stable=True)]
    sizes = jnp.bincount(experts, length=num_experts)
    starts = jnp.cumsum(sizes) - sizes
    slot = jnp.arange(len(experts)) - starts[in_order]
    return slot, slot < capacity


# Takes slots to be numbered through all buffers of the device: expert e has those from e * capacity on.
def slots__wrong_address(experts, num_experts, capacity):
    experts = jnp.asarray(experts)
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    place = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return experts * capacity + place, place < capacity


# Reads the one entry of a row as its largest: that is the count of the most wanted expert so far, not of the chosen one.
def slots__wrong_largest(experts, num_experts, capacity):
    counts = jnp.cumsum(jax.nn.one_hot(experts, num_experts, dtype=jnp.int32), axis=0)
    slot = counts.max(axis=1) - 1
    return slot, slot < capacity


# ---------------------------------------------------------------- bias_balance


def bias_balance__right_counts(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    T, E = scores.shape
    experts = jnp.argsort(-(scores + bias), axis=1, stable=True)[:, :k]
    raw = scores[jnp.arange(T)[:, None], experts]
    load = jnp.zeros(E, jnp.int32).at[experts.ravel()].add(1)
    # whole numbers: load against T * k / E
    up, down = load * E < T * k, load * E > T * k
    return (
        raw / raw.sum(axis=1, keepdims=True),
        experts,
        bias + rate * (up.astype(bias.dtype) - down.astype(bias.dtype)),
    )


# Divides by the sum of all E scores of a token (what a softmax over all experts would do), not by that of the k chosen.
def bias_balance__wrong_all_scores(scores, bias, k, rate):
    scores = jnp.asarray(scores)
    _, experts = jax.lax.top_k(scores + bias, k)
    shares = scores / scores.sum(axis=1, keepdims=True)
    weights = jnp.take_along_axis(shares, experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)


# Measures how busy an expert is as in part 8, by its mean score, and not by the choices that it got.
def bias_balance__wrong_soft_load(scores, bias, k, rate):
    scores = jnp.asarray(scores)
    experts = jax.lax.top_k(scores + bias, k)[1]
    weights = jnp.take_along_axis(scores, experts, axis=1)
    weights = weights / weights.sum(axis=1, keepdims=True)
    load = jnp.mean(scores, axis=0)
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)


# Knows only up and down: an expert with just the mean goes down too.
def bias_balance__wrong_up_or_down(scores, bias, k, rate):
    scores = jnp.asarray(scores)
    E = scores.shape[1]
    experts = jax.lax.top_k(scores + bias, k)[1]
    mine = jnp.take_along_axis(scores, experts, 1)
    load = jax.nn.one_hot(experts, E).sum((0, 1))
    new_bias = jnp.where(load < load.mean(), bias + rate, bias - rate)
    return mine / mine.sum(1, keepdims=True), experts, new_bias


# Takes the mean over the experts that got something at all, since the others "had no tokens to count".
def bias_balance__wrong_mean_of_the_busy(scores, bias, k, rate):
    scores = jnp.asarray(scores)
    experts = jax.lax.top_k(scores + bias, k)[1]
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    weights = chosen / jnp.sum(chosen, axis=1, keepdims=True)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    mean = load.sum() / jnp.count_nonzero(load)
    return weights, experts, bias + rate * jnp.sign(mean - load)


# ---------------------------------------------------------------- balance_loss


def balance_loss__right_linear(logits, experts, *, mesh):
    E = logits.shape[-1]

    def on_device(logits, experts):
        hits = (experts.reshape(-1, 1) == jnp.arange(E)).astype(logits.dtype)
        f = jax.lax.pmean(hits.mean(axis=0), "expert")  # of the whole batch
        p = jax.nn.softmax(logits, axis=-1).mean(axis=0)  # of my tokens: the sum is linear in it
        return jax.lax.pmean(E * jnp.dot(f, p), "expert")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P())(logits, experts)


# Takes f as the part of all tokens that visit an expert: with k choices f adds up to k, not to 1.
def balance_loss__wrong_part_of_tokens(logits, experts, *, mesh):
    E = logits.shape[1]

    def on_device(logits, experts):
        f = jax.nn.one_hot(experts, E).sum(axis=1).mean(axis=0)
        p = jax.nn.softmax(logits, axis=1).mean(axis=0)
        f, p = jax.lax.pmean((f, p), "expert")
        return E * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# The axis is called "expert", so its size is taken for E: right where every device has one expert.
def balance_loss__wrong_axis_size(logits, experts, *, mesh):
    def on_device(logits, experts):
        f = jnp.mean(jax.nn.one_hot(experts, logits.shape[1]), axis=(0, 1))
        p = jnp.mean(jax.nn.softmax(logits, axis=1), axis=0)
        f = jax.lax.pmean(f, "expert")
        p = jax.lax.pmean(p, "expert")
        return jax.lax.axis_size("expert") * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# Takes the probabilities of `route`, a softmax of the k chosen logits, in place of one over all E.
def balance_loss__wrong_softmax_of_k(logits, experts, *, mesh):
    E = logits.shape[1]

    def on_device(logits, experts):
        one_hot = jax.nn.one_hot(experts, E)
        weights = jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=1), axis=1)
        p = jnp.mean(jnp.sum(weights[:, :, None] * one_hot, axis=1), axis=0)
        f = jnp.mean(one_hot, axis=(0, 1))
        f, p = jax.lax.pmean(f, "expert"), jax.lax.pmean(p, "expert")
        return E * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# Heard that one factor has no gradient, and stops it at the wrong one.
def balance_loss__wrong_gradient_stopped(logits, experts, *, mesh):
    E = logits.shape[1]

    def on_device(logits, experts):
        p = jax.lax.stop_gradient(jax.nn.softmax(logits, axis=-1))
        f = jax.nn.one_hot(experts, E)
        f = jax.lax.pmean(f.mean(axis=(0, 1)), "expert")
        p = jax.lax.pmean(p.mean(axis=0), "expert")
        return E * (f * p).sum()

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"),) * 2, out_specs=P())(logits, experts)
