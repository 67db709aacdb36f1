"""Answers to lesson 13, fifteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- region_costs
_V = 8 // 2 * 64 * 32 * 4
region_costs__right_halved_batch = {
    "bytes sent with an all_reduce": 2 * 3 * _V // 4,
    "bytes sent with all_gather and reduce_scatter": 3 * _V // 4 + 3 * _V // 4,
    "entries of x on a device, whole sequences": _V // 4,
    "entries of x on a device, sequences cut": _V // 16,
}

# The student took n from the axis batch (2 places) and not from model (4).
region_costs__wrong_n_of_batch = {
    "bytes sent with an all_reduce": 32768,
    "bytes sent with all_gather and reduce_scatter": 32768,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 2048,
}

# The student thought that an all_gather and a reduce_scatter of (n-1)/n each are (n-1)/n together ("half of an all_reduce").
region_costs__wrong_half_the_bytes = {
    "bytes sent with an all_reduce": 49152,
    "bytes sent with all_gather and reduce_scatter": 24576,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 2048,
}

# The student took, for the pair of collectives, V to be the share that a device puts in: 3/4 of 8192 B, twice.
region_costs__wrong_v_is_the_share = {
    "bytes sent with an all_reduce": 49152,
    "bytes sent with all_gather and reduce_scatter": 12288,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 2048,
}

# The student forgot in the last two rows that the batch is cut over the 2 rows of the mesh: 8 sequences on each device.
region_costs__wrong_batch_not_cut = {
    "bytes sent with an all_reduce": 49152,
    "bytes sent with all_gather and reduce_scatter": 49152,
    "entries of x on a device, whole sequences": 16384,
    "entries of x on a device, sequences cut": 4096,
}

# ---------------------------------------------------------------- tp_costs
_large = 4 * 8192**2 / 1e6
_rest = 4 * (784 * 8192 + 8192 * 10 + 3 * 8192 + 10) / 1e6
_dp, _tp = 2 * _large + _rest, _large + _rest - 4 * 4096 / 1e6

tp_costs__right_counted = {
    "MB of parameters on a device, DP": _dp,
    "MB of parameters on a device, DP + TP": _tp,
    "MB sent over batch, DP": 7 / 4 * _dp,
    "MB sent over batch, DP + TP": 3 / 2 * _tp,
    "MB sent over model, DP + TP": 2 * 2048 * 8192 * 4 / 1e6,
}

# The student thought that TP over two devices halves all of the parameters, W1 and W4 too.
tp_costs__wrong_everything_halved = tp_costs__right_counted | {
    "MB of parameters on a device, DP + TP": _dp / 2,
    "MB sent over batch, DP + TP": 3 / 2 * _dp / 2,
}

# The student counted the activations of the whole batch, [8192, 8192], and forgot that it is cut over batch.
tp_costs__wrong_whole_batch_travels = tp_costs__right_counted | {
    "MB sent over model, DP + TP": 2 * 8192 * 8192 * 4 / 1e6,
}

# The student took the price of a reduce_scatter, (n-1)/n, for that of an all_reduce.
tp_costs__wrong_one_way = tp_costs__right_counted | {
    "MB sent over batch, DP": 7 / 8 * _dp,
    "MB sent over batch, DP + TP": 3 / 4 * _tp,
    "MB sent over model, DP + TP": 2048 * 8192 * 4 / 1e6,
}

# The student thought that gradients are always added over all eight devices, with n = 8 on 4 x 2 also.
tp_costs__wrong_eight_on_4x2 = tp_costs__right_counted | {
    "MB sent over batch, DP + TP": 7 / 4 * _tp,
}


# ---------------------------------------------------------------- tp_attention
def tp_attention__right_tensordot(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = (jnp.tensordot(x, w_qkv[:, :, c], axes=1) for c in range(3))
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        return jax.lax.psum(jnp.tensordot(mixed, w_out, axes=2), "model")

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch")
    )(x, w_qkv, w_out)


# The student thought that w_out already "adds over all heads", and switched the check off when JAX complained of the layout.
def tp_attention__wrong_check_off(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        return jnp.einsum("bthk,hkd->btd", mixed, w_out)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch"), check_vma=False
    )(x, w_qkv, w_out)


# The student averaged the devices' results, as one does with losses, instead of adding them.
def tp_attention__wrong_mean_of_heads(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        return jax.lax.pmean(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch")
    )(x, w_qkv, w_out)


# The student added the heads of all devices up before w_out ("the sum over all heads"), and the products again after it.
def tp_attention__wrong_heads_added_first(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        mixed = jax.lax.psum(mixed, "model")
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch")
    )(x, w_qkv, w_out)


# The student scattered the sum along the tokens (as sequence parallelism does), and left the result cut over model.
def tp_attention__wrong_tokens_left_cut(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        parts = jnp.einsum("bthk,hkd->btd", mixed, w_out)
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch", "model")
    )(x, w_qkv, w_out)
