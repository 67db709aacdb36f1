"""Answers to lesson 13, ninth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---- vocab_embedding


def vocab_embedding__right_pushed_out(table, ids, *, mesh):
    def on_device(words, ids):
        here = words.shape[0]
        number = ids - jax.lax.axis_index("model") * here
        number = jnp.where(number < 0, here, number)  # words before mine go beyond my end, too
        found = jnp.take(words, number, axis=0, mode="fill", fill_value=0)
        return jax.lax.psum(found, "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Thought: table.shape[0] is V, so an n-th of it is a device's part, and device m begins at m times that.
def vocab_embedding__wrong_divided_again(table, ids, *, mesh):
    def on_device(table, ids):
        own_words = table.shape[0] // jax.lax.axis_size("model")
        local = ids - jax.lax.axis_index("model") * own_words
        mine = (local >= 0) & (local < own_words)
        rows = jnp.take(table, jnp.where(mine, local, 0), axis=0)
        return jax.lax.psum(jnp.where(mine[..., None], rows, 0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Thought: words are dealt out like cards, so word w lies on device w % n, in its row w // n.
def vocab_embedding__wrong_dealt_like_cards(table, ids, *, mesh):
    def on_device(table, ids):
        n = jax.lax.axis_size("model")
        mine = ids % n == jax.lax.axis_index("model")
        rows = table[ids // n]
        return jax.lax.psum(rows * mine[..., None], "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Thought: only one device has something else than zeros, so the largest of the devices' numbers is the one that is looked for.
def vocab_embedding__wrong_largest_wins(table, ids, *, mesh):
    def on_device(table, ids):
        first = jax.lax.axis_index("model") * table.shape[0]
        mine = jnp.logical_and(first <= ids, ids < first + table.shape[0])
        rows = jnp.where(mine[..., None], table[jnp.where(mine, ids - first, 0)], 0)
        return jax.lax.pmax(rows, "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Thought: with P() for the table inside, each device can simply index, and I have not written any collective.
def vocab_embedding__wrong_table_comes_in_whole(table, ids, *, mesh):
    def on_device(table, ids):
        return jnp.take(table, ids, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("batch")), out_specs=P("batch"))(table, ids)


# ---- tp_costs

_LARGE = 8192 * 8192 * 4 / 1e6
_REST = 4 * (784 * 8192 + 8192 * 10 + 3 * 8192 + 10) / 1e6
_DP, _TP = 2 * _LARGE + _REST, _LARGE + _REST - 4 * 4096 / 1e6

tp_costs__right_from_sizes = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _TP,
    "MB sent over batch, DP": 2 * 7 / 8 * _DP,
    "MB sent over batch, DP + TP": 2 * 3 / 4 * _TP,
    "MB sent over model, DP + TP": 2 * (2 * 1 / 2) * (8192 / 4 * 8192 * 4 / 1e6),
}

# Thought: model has two devices, so each has half of the parameters, and half of what there is to send.
tp_costs__wrong_half_of_everything = {
    **tp_costs__right_from_sizes,
    "MB of parameters on a device, DP + TP": _DP / 2,
    "MB sent over batch, DP + TP": 2 * 3 / 4 * _DP / 2,
}

# Thought: there are eight devices in both cases, so the factor of the gradients' all_reduce is 2 · 7/8 in both.
tp_costs__wrong_eight_both_times = {
    **tp_costs__right_from_sizes,
    "MB sent over batch, DP + TP": 2 * 7 / 8 * _TP,
}

# Thought: the pair needs a single sum over model, that of the result of W3; backwards the psum sends nothing.
tp_costs__wrong_one_sum_of_the_pair = {
    **tp_costs__right_from_sizes,
    "MB sent over model, DP + TP": 2 * 1 / 2 * (2048 * 8192 * 4 / 1e6),
}

# Thought: a gradient is summed over batch as a whole array and only then cut as its parameter is; and the two devices along model see the whole batch of 8192.
tp_costs__wrong_cut_after_the_sum = {
    **tp_costs__right_from_sizes,
    "MB sent over batch, DP + TP": 2 * 3 / 4 * _DP,
    "MB sent over model, DP + TP": 2 * (2 * 1 / 2) * (8192 * 8192 * 4 / 1e6),
}


# ---- megatron_specs

megatron_specs__right_short_spellings = {"W1": P(None, ("model",)), "b1": P("model"), "W2": P("model"), "b2": P(None)}

# Thought: b1 is added where relu comes next, and every device needs the biases to do so; biases are small and stay whole.
megatron_specs__wrong_biases_whole = {"W1": P(None, "model"), "b1": P(), "W2": P("model", None), "b2": P()}

# Thought: "as little as possible" holds for b2 as well: everything that can be cut over model is cut, and each device adds its part of it.
megatron_specs__wrong_b2_cut = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P("model")}

# Thought: what the two have in common is F, and in x @ W a row of W belongs to a unit, so W1 by rows and W2 by columns, the bias after the cut one.
megatron_specs__wrong_units_are_rows_first = {
    "W1": P("model", None),
    "b1": P(),
    "W2": P(None, "model"),
    "b2": P("model"),
}

# Thought: a device holds least if the other axis of the mesh cuts the other dimension, too.
megatron_specs__wrong_batch_cuts_too = {
    "W1": P("batch", "model"),
    "b1": P("model"),
    "W2": P("model", "batch"),
    "b2": P("batch"),
}
