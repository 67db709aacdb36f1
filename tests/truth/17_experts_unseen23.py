"""Answers to lesson 17, twenty-third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- balance_loss


def balance_loss__right_sums(logits, experts, *, mesh):
    tokens, num_experts = logits.shape

    def on_device(logits, experts):
        counts = (experts[..., None] == jnp.arange(num_experts)).sum(axis=(0, 1)).astype(jnp.float32)
        mass = jax.nn.softmax(logits, axis=-1).sum(axis=0)
        counts, mass = jax.lax.psum((counts, mass), "expert")
        return num_experts * jnp.dot(counts / counts.sum(), mass / tokens)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# This student thought that the loss is a mean, so the mean of the devices' own losses is that of the whole batch.
def balance_loss__wrong_own(logits, experts, *, mesh):
    num_experts = logits.shape[1]

    def own_loss(logits, experts):
        f = jax.nn.one_hot(experts, num_experts).mean(axis=(0, 1))
        p = jax.nn.softmax(logits, axis=-1).mean(axis=0)
        return num_experts * jnp.sum(f * p)

    def on_device(logits, experts):
        return jax.lax.pmean(own_loss(logits, experts), "expert")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# This student counts choices per token, not per choice: f adds up to k and not to 1 (right with k = 1).
def balance_loss__wrong_tokens(logits, experts, *, mesh):
    num_experts = logits.shape[1]

    def on_device(logits, experts):
        tokens = logits.shape[0]
        f = jax.nn.one_hot(experts, num_experts).sum(axis=(0, 1)) / tokens
        p = jax.nn.softmax(logits, axis=-1).sum(axis=0) / tokens
        f, p = jax.lax.pmean(f, "expert"), jax.lax.pmean(p, "expert")
        return num_experts * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# "Of the whole batch": this student brings the whole batch to every device, though only a few numbers for each expert may travel.
def balance_loss__wrong_gathered(logits, experts, *, mesh):
    num_experts = logits.shape[1]

    def on_device(logits, experts):
        logits = jax.lax.all_gather(logits, "expert", tiled=True)
        experts = jax.lax.all_gather(experts, "expert", tiled=True)
        f = jax.nn.one_hot(experts, num_experts).mean(axis=(0, 1))
        p = jax.nn.softmax(logits, axis=-1).mean(axis=0)
        # all devices have the same number; the mean tells JAX so
        return jax.lax.pmean(num_experts * jnp.sum(f * p), "expert")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# This student takes the softmax of the mean logits in place of the mean of the softmaxes.
def balance_loss__wrong_softmax_last(logits, experts, *, mesh):
    num_experts = logits.shape[1]

    def on_device(logits, experts):
        def over_batch(value):
            return jax.lax.pmean(value, "expert")

        f = over_batch(jax.nn.one_hot(experts, num_experts).mean(axis=(0, 1)))
        p = jax.nn.softmax(over_batch(logits.mean(axis=0)))
        return num_experts * jnp.sum(f * p)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("expert"), P("expert")), out_specs=P())(logits, experts)


# ---------------------------------------------------------------- moe_all_to_all


def moe_all_to_all__right_flat(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        (tokens, width), k = x.shape, experts.shape[1]
        choice = experts.reshape(-1)
        same = choice[:, None] == choice[None, :]
        slot = jnp.tril(same, -1).sum(axis=1)  # how many before it want the same
        kept = slot < capacity
        place = jnp.where(kept, choice * capacity + slot, n * capacity)  # outside, if there is none
        rows = x[jnp.arange(tokens * k) // k]
        buffer = jnp.zeros((n * capacity, width), x.dtype).at[place].set(rows, mode="drop")
        there = exchange(buffer.reshape(n, capacity, width))
        done = jax.nn.relu(there @ w_in[0]) @ w_out[0]
        back = exchange(done).reshape(n * capacity, width)
        results = back.at[place].get(mode="fill", fill_value=0).reshape(tokens, k, width)
        return x + jnp.einsum("tk,tkd->td", weights, results), jnp.sum(~kept)[None]

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(
        x, weights, experts, w_in, w_out
    )


# This student reads the buffer as it is: a dropped choice gets what stands in the last slot, another token's result.
def moe_all_to_all__wrong_read(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        k = experts.shape[1]
        choice = experts.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        rows = jnp.repeat(x, k, axis=0)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(rows)
        done = jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0]
        back = exchange(done)
        results = back[choice, slot].reshape(*experts.shape, -1)
        return x + (weights[..., None] * results).sum(axis=1), (slot >= capacity).sum()[None]

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(
        x, weights, experts, w_in, w_out
    )


# This student counts the tokens that lost all their choices, not the choices that were dropped (right with k = 1).
def moe_all_to_all__wrong_tokens(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def slots(choice):
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        return slot, slot < capacity

    def on_device(x, weights, experts, w_in, w_out):
        k = experts.shape[1]
        choice = experts.reshape(-1)
        slot, kept = slots(choice)
        rows = jnp.repeat(x, k, axis=0)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(rows)
        done = jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0]
        back = exchange(done).at[choice, slot].get(mode="fill", fill_value=0)
        y = x + (weights[..., None] * back.reshape(*experts.shape, -1)).sum(axis=1)
        passed_unchanged = ~kept.reshape(experts.shape).any(axis=1)
        return y, passed_unchanged.sum()[None]

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(
        x, weights, experts, w_in, w_out
    )


# This student serves all first choices before all second ones, which reads `experts` column by column.
def moe_all_to_all__wrong_columns(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        tokens, k = experts.shape
        choice = experts.T.reshape(-1)  # the first choice of every token, then the second, ...
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        rows = jnp.tile(x, (k, 1))
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(rows)
        done = jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0]
        back = exchange(done).at[choice, slot].get(mode="fill", fill_value=0)
        results = back.reshape(k, tokens, -1)
        return x + (weights.T[..., None] * results).sum(axis=0), (slot >= capacity).sum()[None]

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(
        x, weights, experts, w_in, w_out
    )


# This student lets the choices that were kept carry the weight of those that were dropped, so that a token's weights
# add up to what they did before.
def moe_all_to_all__wrong_shared(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def on_device(x, weights, experts, w_in, w_out):
        k = experts.shape[1]
        choice = experts.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        kept = slot < capacity
        rows = jnp.repeat(x, k, axis=0)
        buffer = jnp.zeros((n, capacity, x.shape[1])).at[choice, slot].set(rows)
        done = jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0]
        back = exchange(done).at[choice, slot].get(mode="fill", fill_value=0)

        before = weights.sum(axis=1, keepdims=True)
        left = jnp.where(kept.reshape(experts.shape), weights, 0)
        after = left.sum(axis=1, keepdims=True)
        scaled = left * before / jnp.where(after == 0, 1, after)
        y = x + (scaled[..., None] * back.reshape(*experts.shape, -1)).sum(axis=1)
        return y, jnp.sum(~kept)[None]

    cut = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(
        x, weights, experts, w_in, w_out
    )


# ---------------------------------------------------------------- bias_balance


def bias_balance__right_sorted(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    tokens, num_experts = scores.shape
    experts = jnp.argsort(-(scores + bias), axis=1, stable=True)[:, :k]
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    weights = chosen / chosen.sum(axis=1, keepdims=True)
    load = (experts[..., None] == jnp.arange(num_experts)).sum(axis=(0, 1))
    too_few = jnp.sign(tokens * k - num_experts * load)  # whole numbers: the mean is met exactly or not at all
    return weights, experts, bias + rate * too_few


# This student weighs with what top_k returns, which has the bias in it.
def bias_balance__wrong_biased(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    top, experts = jax.lax.top_k(scores + bias, k)
    weights = top / top.sum(axis=1, keepdims=True)
    load = jnp.bincount(experts.reshape(-1), length=len(bias))
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)


# This student thought that the mean load is tokens / experts, and forgot that each token makes k choices.
def bias_balance__wrong_mean(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    tokens, num_experts = scores.shape
    _, experts = jax.lax.top_k(scores + bias, k)
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    weights = chosen / chosen.sum(axis=1, keepdims=True)
    load = jnp.bincount(experts.reshape(-1), length=num_experts)
    fair = tokens / num_experts
    return weights, experts, bias + rate * jnp.sign(fair - load)


# This student knows only two cases, too many or not, and so pushes up an expert that has just the mean.
def bias_balance__wrong_two_cases(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)

    def moved(load):
        overloaded = load > load.mean()
        return jnp.where(overloaded, bias - rate, bias + rate)

    _, experts = jax.lax.top_k(scores + bias, k)
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    weights = chosen / chosen.sum(axis=1, keepdims=True)
    load = jax.nn.one_hot(experts, len(bias)).sum(axis=(0, 1))
    return weights, experts, moved(load)


# This student takes a softmax of the k scores, as `route` did of the k logits; but the scores have been through a sigmoid.
def bias_balance__wrong_softmax(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    _, experts = jax.lax.top_k(scores + bias, k)
    weights = jax.nn.softmax(jnp.take_along_axis(scores, experts, axis=1), axis=1)
    load = jnp.bincount(experts.reshape(-1), length=len(bias))
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)
