"""Answers to lesson 13, twenty-second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

_W2 = 4 * 8192 * 8192 / 1e6
_W1 = 4 * 784 * 8192 / 1e6
_W4 = 4 * 8192 * 10 / 1e6
_b = 4 * 8192 / 1e6
_DP = _W1 + 2 * _W2 + _W4 + 3 * _b + 40 / 1e6
_TP = _W1 + _W2 + _W4 + 2.5 * _b + 40 / 1e6

# ------------------------------------------------------------------ tp_costs

tp_costs__right_counted = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _TP,
    "MB sent over batch, DP": 2 * 7 / 8 * _DP,
    "MB sent over batch, DP + TP": 2 * 3 / 4 * _TP,
    "MB sent over model, DP + TP": 2 * (2 * 1 / 2) * 4 * 2048 * 8192 / 1e6,
}

# This student thinks that with two devices along model each has half of all the parameters (W1 and W4 as well).
tp_costs__wrong_half_of_all = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _DP / 2,
    "MB sent over batch, DP": 2 * 7 / 8 * _DP,
    "MB sent over batch, DP + TP": 2 * 3 / 4 * _DP / 2,
    "MB sent over model, DP + TP": 134.2,
}

# This student takes n for the number of all devices, eight, in the sum over batch on 4 x 2 too.
tp_costs__wrong_n_is_eight = {
    "MB of parameters on a device, DP": 563.0,
    "MB of parameters on a device, DP + TP": 294.5,
    "MB sent over batch, DP": 985.2,
    "MB sent over batch, DP + TP": 294.5 * 2 * 7 / 8,
    "MB sent over model, DP + TP": 134.2,
}

# This student forgets that an all_reduce goes round twice, and counts (n - 1)/n of each array.
tp_costs__wrong_once_round = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _TP,
    "MB sent over batch, DP": 7 / 8 * _DP,
    "MB sent over batch, DP + TP": 3 / 4 * _TP,
    "MB sent over model, DP + TP": 2 * 1 / 2 * 4 * 2048 * 8192 / 1e6,
}

# This student takes the activations that are summed over model to be those of all 8192 examples, on each device.
tp_costs__wrong_all_examples = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _TP,
    "MB sent over batch, DP": 1.75 * _DP,
    "MB sent over batch, DP + TP": 1.5 * _TP,
    "MB sent over model, DP + TP": 2 * 4 * 8192 * 8192 / 1e6,
}

# -------------------------------------------------------------- region_costs

_row = (8 // 2) * 64 * 32  # entries that a row of devices works on

region_costs__right_formula = {
    "bytes sent with an all_reduce": 2 * (4 - 1) * (4 * _row) // 4,
    "bytes sent with all_gather and reduce_scatter": sum((4 - 1) * (4 * _row) // 4 for _ in ("gather", "scatter")),
    "entries of x on a device, whole sequences": _row,
    "entries of x on a device, sequences cut": _row // 4,
}

# This student thinks that all eight devices take part in the collectives, so n is 8.
region_costs__wrong_n_is_eight = {
    "bytes sent with an all_reduce": 57344,
    "bytes sent with all_gather and reduce_scatter": 57344,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 2048,
}

# This student thinks that taking an all_reduce apart and cutting the sequence saves half of what is sent, and counts only one of the two.
region_costs__wrong_half = {
    "bytes sent with an all_reduce": 49152,
    "bytes sent with all_gather and reduce_scatter": 24576,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 2048,
}

# This student forgets, for what is held, that the sequences are dealt out over batch as well.
region_costs__wrong_all_sequences = {
    "bytes sent with an all_reduce": 49152,
    "bytes sent with all_gather and reduce_scatter": 49152,
    "entries of x on a device, whole sequences": 8 * 64 * 32,
    "entries of x on a device, sequences cut": 8 * 64 * 32 // 4,
}

# This student puts entries where bytes are asked for, and forgets the four bytes of a float32.
region_costs__wrong_entries = {
    "bytes sent with an all_reduce": 2 * 3 * 8192 // 4,
    "bytes sent with all_gather and reduce_scatter": 2 * 3 * 8192 // 4,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 2048,
}

# ----------------------------------------------------------- vocab_embedding


def vocab_embedding__right_fill(table, ids, *, mesh):
    """table[V_model, D] looked up at ids[B_batch, T] → [B_batch, T, D]."""

    def look_up(words, ids):
        here = words.shape[0]
        local = ids - here * jax.lax.axis_index("model")
        local = jnp.where(local < 0, here, local)  # what lies before goes behind the end, which is filled
        rows = jnp.take(words, local, axis=0, mode="fill", fill_value=0)
        return jax.lax.psum(rows, "model")

    return jax.shard_map(look_up, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# This student thinks that filling with 0 takes care of all words that are not here, and forgets that negative numbers count from the end.
def vocab_embedding__wrong_negative(table, ids, *, mesh):
    def look_up(words, ids):
        local = ids - words.shape[0] * jax.lax.axis_index("model")
        return jax.lax.psum(jnp.take(words, local, axis=0, mode="fill", fill_value=0), "model")

    return jax.shard_map(look_up, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# This student looks at the ids, which are cut over batch, and takes the device's number along batch for the first word.
def vocab_embedding__wrong_axis(table, ids, *, mesh):
    def on_device(table, ids):
        first = jax.lax.axis_index("batch") * table.shape[0]
        mine = (ids >= first) & (ids < first + table.shape[0])
        rows = table[jnp.where(mine, ids - first, 0)]
        rows = jnp.where(mine[..., None], rows, 0)
        return jax.lax.psum(rows, "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# This student thinks that devices along model have copies of the result, which a mean makes one of.
def vocab_embedding__wrong_mean(table, ids, *, mesh):
    def on_device(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        mine = jnp.logical_and(local >= 0, local < len(table))
        rows = jnp.take(table, jnp.where(mine, local, 0), axis=0)
        return jax.lax.pmean(rows * mine[..., None], "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# This student counts the first word of the next device as one of this device's (<= in place of <), and clips.
def vocab_embedding__wrong_one_more(table, ids, *, mesh):
    def on_device(table, ids):
        size = table.shape[0]
        start = jax.lax.axis_index("model") * size
        stop = start + size
        mine = (start <= ids) & (ids <= stop)
        rows = jnp.take(table, jnp.clip(ids - start, 0, size - 1), axis=0)
        return jax.lax.psum(jnp.where(mine[..., None], rows, 0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)
