"""Answers to lesson 17, seventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def exchange(buffer):
    """Row e of [experts, ...] goes to device e; row d of what comes is from device d."""
    return jax.lax.all_to_all(buffer, "expert", split_axis=0, concat_axis=0, tiled=True)


def slots(experts, num_experts, capacity):
    """(slot, kept) of each choice."""
    wants = jax.nn.one_hot(experts, num_experts, dtype=jnp.int32)
    before = jnp.cumsum(wants, axis=0) - wants
    slot = jnp.take_along_axis(before, experts[:, None], axis=1)[:, 0]
    return slot, slot < capacity


# ---------------------------------------------------------------- route


def route__right_sorted(x, router, k):
    logits = jnp.asarray(x).astype(jnp.float32) @ jnp.asarray(router).astype(jnp.float32)
    experts = jnp.argsort(-logits, axis=-1, stable=True)[:, :k]
    best = jnp.take_along_axis(logits, experts, axis=-1)
    share = jnp.exp(best - best[:, :1])  # the first is the largest
    return share / share.sum(axis=-1, keepdims=True), experts


# The softmax is the router's, over all E experts; the k largest probabilities are the weights.
def route__wrong_softmax_first(x, router, k):
    logits = jnp.dot(x.astype(jnp.float32), router.astype(jnp.float32))
    weights, experts = jax.lax.top_k(jax.nn.softmax(logits, axis=-1), k)
    return weights, experts


# Made float32 of the logits, after they had been rounded to bfloat16.
def route__wrong_late_float32(x, router, k):
    logits = (x @ router).astype(jnp.float32)
    top, experts = jax.lax.top_k(logits, k)
    return jax.nn.softmax(top), experts


# Sorts upwards and turns the order round: of equal logits the higher number comes first then.
def route__wrong_reversed_sort(x, router, k):
    logits = x.astype(jnp.float32) @ router.astype(jnp.float32)
    order = jnp.argsort(logits, axis=1)
    experts = order[:, ::-1][:, :k]
    top = jnp.take_along_axis(logits, experts, axis=1)
    return jax.nn.softmax(top, axis=1), experts


# Softmax along the tokens: axis 0 "is where the numbers are", the columns being the choices.
def route__wrong_axis(x, router, k):
    top, experts = jax.lax.top_k(jnp.matmul(x, router, preferred_element_type=jnp.float32), k)
    return jax.nn.softmax(top, axis=0), experts


# ---------------------------------------------------------------- moe_all_to_all


def moe_all_to_all__right_masks(x, weights, experts, w_in, w_out, capacity, *, mesh):
    """As GShard writes it: a mask [T, k, experts, slots], and two einsums in place of writing and reading by index."""
    n, k = mesh.shape["expert"], experts.shape[1]

    def on_device(x, weights, experts, w_in, w_out):
        choice = experts.reshape(-1)
        wants = jax.nn.one_hot(choice, n, dtype=jnp.int32)
        slot = ((jnp.cumsum(wants, axis=0) - 1) * wants).sum(axis=1)
        places = jax.nn.one_hot(slot, capacity, dtype=jnp.int32)  # a row of zeros where there is no such slot
        mask = (wants[:, :, None] * places[:, None, :]).reshape(-1, k, n, capacity).astype(x.dtype)
        there = exchange(jnp.einsum("tkec,td->ecd", mask, x))
        back = exchange(jax.nn.relu(there @ w_in[0]) @ w_out[0])
        y = x + jnp.einsum("tkec,tk,ecd->td", mask, weights, back)
        return y, jnp.sum(slot >= capacity, dtype=jnp.int32)[None]

    e = P("expert")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(e,) * 5, out_specs=(e, e))(x, weights, experts, w_in, w_out)


# Reads the buffer without mode="fill": what was not written cannot be read either, one would think.
def moe_all_to_all__wrong_plain_read(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def on_device(x, weights, experts, w_in, w_out):
        (t, k), d = experts.shape, x.shape[1]
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, d), x.dtype).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        found = back[choice, slot].reshape(t, k, d)
        y = x + (weights[:, :, None] * found).sum(axis=1)
        return y, (~kept).sum().astype(jnp.int32)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# k copies of x one below the other (tile), while the choices stand token by token; with one choice that is the same.
def moe_all_to_all__wrong_tiled_rows(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n, k = mesh.shape["expert"], experts.shape[-1]
    cut = P("expert")

    def body(x, weights, experts, w_in, w_out):
        choice = experts.ravel()
        slot, kept = slots(choice, n, capacity)
        rows = jnp.tile(x, (k, 1))
        buffer = jnp.zeros((n, capacity, x.shape[1]), x.dtype)
        buffer = buffer.at[choice, slot].set(rows)
        arrived = exchange(buffer)
        worked = jax.nn.relu(arrived @ w_in[0]) @ w_out[0]
        home = exchange(worked)
        each = home.at[choice, slot].get(mode="fill", fill_value=0).reshape(*experts.shape, -1)
        y = x + jnp.einsum("tk,tkd->td", weights, each)
        dropped = jnp.sum(jnp.logical_not(kept))
        return y, dropped.astype(jnp.int32)[None]

    return jax.shard_map(body, mesh=mesh, in_specs=(cut,) * 5, out_specs=(cut, cut))(x, weights, experts, w_in, w_out)


# "Dropped" are tokens here: a token counts once, however many of its choices were lost.
def moe_all_to_all__wrong_tokens_counted(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]

    def on_device(x, weights, experts, w_in, w_out):
        t, k = experts.shape
        choice = experts.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        buffer = jnp.zeros((n, capacity, x.shape[1]), x.dtype).at[choice, slot].set(jnp.repeat(x, k, axis=0))
        there = exchange(buffer)
        back = exchange(jax.nn.relu(there @ w_in[0]) @ w_out[0])
        got = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(t, k, -1)
        lost = ~kept.reshape(t, k)
        return x + (got * weights[..., None]).sum(1), lost.any(axis=1).sum().astype(jnp.int32)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("expert"), out_specs=P("expert"))(
        x, weights, experts, w_in, w_out
    )


# All first choices take their slots before any second one, since a first choice matters more: not row by row.
def moe_all_to_all__wrong_first_choices_first(x, weights, experts, w_in, w_out, capacity, *, mesh):
    n = mesh.shape["expert"]
    e = P("expert")

    def on_device(x, weights, experts, w_in, w_out):
        t, k = experts.shape
        choice = experts.T.reshape(-1)
        slot, kept = slots(choice, n, capacity)
        rows = jnp.concatenate([x] * k)
        buffer = jnp.zeros((n, capacity, x.shape[-1]), x.dtype).at[choice, slot].set(rows)
        back = exchange(jax.nn.relu(exchange(buffer) @ w_in[0]) @ w_out[0])
        read = back.at[choice, slot].get(mode="fill", fill_value=0).reshape(k, t, -1)
        y = x + (weights.T[:, :, None] * read).sum(axis=0)
        return y, jnp.sum(~kept).astype(jnp.int32)[None]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(e, e, e, e, e), out_specs=(e, e))(
        x, weights, experts, w_in, w_out
    )


# ---------------------------------------------------------------- bias_balance


def bias_balance__right_whole_numbers(scores, bias, k, rate):
    scores, bias = jnp.asarray(scores), jnp.asarray(bias)
    num = scores.shape[1]
    _, experts = jax.lax.top_k(scores + bias, k)
    picked = jax.vmap(lambda row, which: row[which])(scores, experts)
    load = (experts.reshape(-1, 1) == jnp.arange(num)).sum(axis=0)
    mean_times_num = experts.size  # compare E · load with all choices: no division
    up, down = load * num < mean_times_num, load * num > mean_times_num
    new = jnp.where(up, bias + rate, jnp.where(down, bias - rate, bias))
    return picked / picked.sum(axis=1, keepdims=True), experts, new


# top_k gives values and places, so the values are what the weights are made of; but the bias is in them.
def bias_balance__wrong_biased_weights(scores, bias, k, rate):
    top, experts = jax.lax.top_k(scores + bias, k)
    weights = top / top.sum(axis=-1, keepdims=True)
    load = jnp.bincount(experts.reshape(-1), length=scores.shape[1])
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)


# An expert with many tokens has earned more: load minus mean, the sign the wrong way round.
def bias_balance__wrong_sign(scores, bias, k, rate):
    scores = jnp.asarray(scores)
    experts = jax.lax.top_k(scores + bias, k)[1]
    chosen = jnp.take_along_axis(scores, experts, axis=1)
    load = jax.nn.one_hot(experts, scores.shape[1]).sum(axis=(0, 1))
    step = jnp.sign(load - jnp.mean(load))
    return chosen / chosen.sum(1, keepdims=True), experts, bias + rate * step


# Weights of a router are a softmax, as in `route`: of the chosen scores here.
def bias_balance__wrong_softmax(scores, bias, k, rate):
    _, experts = jax.lax.top_k(jnp.asarray(scores + bias), k)
    weights = jax.nn.softmax(jnp.take_along_axis(jnp.asarray(scores), experts, axis=1), axis=1)
    load = jnp.zeros(scores.shape[1]).at[experts.ravel()].add(1)
    return weights, experts, bias + rate * jnp.sign(load.mean() - load)


# The fair share is tokens / experts; that every token has k choices is forgotten.
def bias_balance__wrong_fair_share(scores, bias, k, rate):
    tokens, num = scores.shape
    _, experts = jax.lax.top_k(scores + bias, k)
    s = jnp.take_along_axis(jnp.asarray(scores), experts, axis=1)
    weights = s / jnp.sum(s, axis=1)[:, None]
    load = jnp.bincount(experts.ravel(), length=num)
    fair = tokens / num
    new_bias = bias + rate * (load < fair) - rate * (load > fair)
    return weights, experts, new_bias
