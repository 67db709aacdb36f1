"""Answers to lesson 17, fifth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# the answer to an earlier exercise of the lesson, which answers below use
def slots(experts, num_experts, capacity):
    """(slot, kept) of each choice."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
    return slot, slot < capacity


# ---------------------------------------------------------------- route


def route__right_stable_sort(x, router, k):
    logits = jnp.dot(jnp.asarray(x, jnp.float32), jnp.asarray(router, jnp.float32))
    experts = jnp.argsort(-logits, axis=-1, stable=True)[:, :k]
    return jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=-1), axis=-1), experts


# The student takes the softmax over all experts first, and then its k largest entries: they do not add up to 1.
def route__wrong_softmax_of_all(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    return jax.lax.top_k(jax.nn.softmax(logits, axis=-1), k)


# The logits are made float32, but only after the product has been rounded to the type of x.
def route__wrong_cast_too_late(x, router, k):
    logits = (x @ router).astype(jnp.float32)
    top, experts = jax.lax.top_k(logits, k)
    return jax.nn.softmax(top, axis=-1), experts


# Sorted upwards and then turned round: of equal logits that puts the higher number first, which the student does not see.
def route__wrong_sorted_and_turned(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    experts = jnp.argsort(logits, axis=-1, stable=True)[:, ::-1][:, :k]
    return jax.nn.softmax(jnp.take_along_axis(logits, experts, axis=-1), axis=-1), experts


# The softmax goes along axis 0: the weights of an expert, over the tokens, add up to 1.
def route__wrong_softmax_over_tokens(x, router, k):
    logits = jnp.asarray(x, jnp.float32) @ jnp.asarray(router, jnp.float32)
    top, experts = jax.lax.top_k(logits, k)
    return jax.nn.softmax(top, axis=0), experts


# ---------------------------------------------------------------- moe_all_to_all


def moe_all_to_all__right_flat_places(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        tokens, k = experts.shape
        choice = experts.reshape(tokens * k)
        wants = choice[:, None] == jnp.arange(n)
        before = jnp.cumsum(wants, axis=0, dtype=jnp.int32)  # with the choice itself
        slot = jnp.take_along_axis(before, choice[:, None], axis=1)[:, 0] - 1
        kept = slot < capacity
        place = jnp.where(kept, choice * capacity + slot, n * capacity)  # the last one is outside

        whose = jnp.arange(tokens * k) // k
        buffer = jnp.zeros((n * capacity, x.shape[1]), x.dtype).at[place].set(x[whose], mode="drop")
        there = exchange(buffer.reshape(n, capacity, -1))
        back = exchange(jax.nn.relu(there @ w_in[0]) @ w_out[0]).reshape(n * capacity, -1)

        found = back.at[place].get(mode="fill", fill_value=0).reshape(tokens, k, -1)
        y = x + jnp.einsum("tk,tkd->td", weights, found)
        return y, jnp.sum(~kept, dtype=jnp.int32).reshape(1)

    cut = P("expert")
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))
    return run(x, weights, experts, w_in, w_out)


# The tokens are repeated as a whole, k times over, so row j of what is written is no longer the token of choice j.
def moe_all_to_all__wrong_tiled_rows(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        (tokens, k), width = experts.shape, x.shape[1]
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, width)).at[choice, slot].set(jnp.tile(x, (k, 1)))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        found = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(tokens, k, width)
        return x + (weights[..., None] * found).sum(axis=1), jnp.sum(~kept, dtype=jnp.int32)[None]

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(
        x, weights, experts, w_in, w_out
    )


# First choices are more important, so the student hands out slots to all first choices, then to all second ones.
def moe_all_to_all__wrong_first_choices_first(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        (tokens, k), width = experts.shape, x.shape[1]
        choice = experts.T.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, width)).at[choice, slot].set(jnp.tile(x, (k, 1)))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        found = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(k, tokens, width)
        return x + (weights.T[..., None] * found).sum(axis=0), jnp.sum(~kept, dtype=jnp.int32)[None]

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(
        x, weights, experts, w_in, w_out
    )


# "Dropped" is counted in tokens: those that lost all of their choices, and pass unchanged.
def moe_all_to_all__wrong_counts_tokens(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        (tokens, k), width = experts.shape, x.shape[1]
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, width)).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        found = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(tokens, k, width)
        lost = ~kept.reshape(tokens, k).any(axis=1)
        return x + (weights[..., None] * found).sum(axis=1), jnp.sum(lost, dtype=jnp.int32)[None]

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(
        x, weights, experts, w_in, w_out
    )


# Weights of a token add up to 1, so after a drop the student divides those that are left by their sum.
def moe_all_to_all__wrong_weighs_anew(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        (tokens, k), width = experts.shape, x.shape[1]
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, width)).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        found = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(tokens, k, width)
        left = jnp.where(kept.reshape(tokens, k), weights, 0)
        left = left / jnp.maximum(left.sum(axis=1, keepdims=True), 1e-9)
        return x + (left[..., None] * found).sum(axis=1), jnp.sum(~kept, dtype=jnp.int32)[None]

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(
        x, weights, experts, w_in, w_out
    )


# ---------------------------------------------------------------- bias_balance


def bias_balance__right_whole_numbers(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    tokens, num_experts = scores.shape
    _, experts = jax.lax.top_k(scores + bias, k)
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.ravel(), length=num_experts)
    direction = jnp.sign(tokens * k - num_experts * load)  # whole numbers: nothing is rounded
    return chosen / chosen.sum(axis=1, keepdims=True), experts, bias + rate * direction


# top_k gives values and places, so the student takes these values as weights: the bias weighs as well as it chooses.
def bias_balance__wrong_bias_weighs(scores, bias, k, rate):
    top, experts = jax.lax.top_k(jnp.asarray(scores) + jnp.asarray(bias), k)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return top / top.sum(axis=1, keepdims=True), experts, bias + rate * jnp.sign(load.mean() - load)


# There are two cases for the student, too many or not: an expert with just the mean goes up.
def bias_balance__wrong_the_mean_goes_up(scores, bias, k, rate):
    scores = jnp.asarray(scores)
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return weights / weights.sum(axis=1, keepdims=True), experts, bias + jnp.where(load > load.mean(), -rate, rate)


# Whoever is far from the mean has to move further, thinks the student: the step is in proportion to what is lacking.
def bias_balance__wrong_in_proportion(scores, bias, k, rate):
    scores = jnp.asarray(scores)
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jnp.take_along_axis(scores, experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    new_bias = bias + rate * (load.mean() - load) / load.mean()
    return weights / weights.sum(axis=1, keepdims=True), experts, new_bias


# The scores of those chosen are divided by the sum of all scores of the token, as a probability would be.
def bias_balance__wrong_sum_of_all_scores(scores, bias, k, rate):
    scores = jnp.asarray(scores)
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jnp.take_along_axis(scores / scores.sum(axis=1, keepdims=True), experts, axis=1)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)
