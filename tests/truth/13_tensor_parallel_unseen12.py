"""Answers to lesson 13, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- tp_attention


def tp_attention__right_flat(x, w_qkv, w_out, *, mesh):
    """Attention over all tokens, its heads dealt out over `model`."""

    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        b, t, h, k = mixed.shape
        part = mixed.reshape(b, t, h * k) @ w_out.reshape(h * k, -1)  # heads and K are one dimension to be summed
        return jax.lax.psum(part, "model")

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch")
    )(x, w_qkv, w_out)


# Thought: K is the feature dimension, so it is dealt out as hidden units are (each head is cut, with a softmax of parts).
def tp_attention__wrong_cut_heads(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch"), P(None, None, None, "model"), P(None, "model")),
        out_specs=P("batch"),
    )(x, w_qkv, w_out)


# Thought: attention takes means, so the devices' results are averaged over their heads.
def tp_attention__wrong_pmean(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        return jax.lax.pmean(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch")
    )(x, w_qkv, w_out)


# Thought: a reduce_scatter is half of an all_reduce and every device needs only its tokens (so the result comes out cut by tokens).
def tp_attention__wrong_scattered(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        part = jnp.einsum("bthk,hkd->btd", mixed, w_out)
        return jax.lax.psum_scatter(part, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch", "model")
    )(x, w_qkv, w_out)


# Thought: the heads must be added up before w_out (a finished input), and the product with a part of w_out has to be added up as well.
def tp_attention__wrong_sums_mixed(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        mixed = jax.lax.psum(mixed, "model")
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), "model")

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch")
    )(x, w_qkv, w_out)


# ---------------------------------------------------------------- tp_mlp


def tp_mlp__right_first_adds_b2(params, x, *, mesh):
    """relu(relu(x W1 + b1) W2 + b2), hidden units dealt out over `model`."""
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        once = jnp.where(jax.lax.axis_index("model") == 0, p["b2"], 0)  # only one of the devices brings b2 along
        return jax.nn.relu(jax.lax.psum(hidden @ p["W2"] + once, "model"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, P("batch", None)), out_specs=P("batch", None))(
        params, x
    )


# Thought: a layer is product plus bias, and the sum over model finishes the layer (so b2 is added once on every device).
def tp_mlp__wrong_b2_in_the_sum(params, x, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.nn.relu(jax.lax.psum(hidden @ p["W2"] + p["b2"], "model"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, P("batch", None)), out_specs=P("batch", None))(
        params, x
    )


# Thought: relu is done on the parts as in the first layer, where nobody else was needed, and b2 once after the sum.
def tp_mlp__wrong_relu_on_parts(params, x, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        part = jax.nn.relu(hidden @ p["W2"])
        return jax.nn.relu(jax.lax.psum(part, "model") + p["b2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, P("batch", None)), out_specs=P("batch", None))(
        params, x
    )


# Thought: the second layer needs all hidden units, so gather them and have W2 whole on every device: no sum at all.
def tp_mlp__wrong_gathers_hidden(params, x, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P(), "b2": P()}

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        hidden = jax.lax.all_gather(hidden, "model", axis=1, tiled=True)
        return jax.nn.relu(hidden @ p["W2"] + p["b2"])

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, P("batch", None)), out_specs=P("batch", None), check_vma=False
    )(params, x)


# Thought: one all_reduce over the whole mesh finishes the sum (it also adds the results of different examples).
def tp_mlp__wrong_both_axes(params, x, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        whole = jax.lax.psum(hidden @ p["W2"], ("batch", "model"))
        return jax.nn.relu(whole + p["b2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, P("batch", None)), out_specs=P("batch", None))(
        params, x
    )


# ---------------------------------------------------------------- vocab_embedding


def vocab_embedding__right_divmod(table, ids, *, mesh):
    """table[V_model, D] looked up at ids[B_batch, T] → [B_batch, T, D]."""

    def on_device(table, ids):
        owner, local = ids // table.shape[0], ids % table.shape[0]
        mine = owner == jax.lax.axis_index("model")
        return jax.lax.psum(jnp.where(mine[..., None], table[local], 0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Thought: mode="fill" with zero gives zeros for every word that is not here (negative local numbers count from the end).
def vocab_embedding__wrong_fill(table, ids, *, mesh):
    def on_device(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        rows = jnp.take(table, local, axis=0, mode="fill", fill_value=0)
        return jax.lax.psum(rows, "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Thought: my words go from the first to first + rows, both included (so the first word of the next device is taken for mine, too).
def vocab_embedding__wrong_one_too_many(table, ids, *, mesh):
    def on_device(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        mine = (local >= 0) & (local <= table.shape[0])
        rows = jnp.take(table, jnp.where(mine, local, 0), axis=0, mode="clip")
        return jax.lax.psum(jnp.where(mine[..., None], rows, 0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Thought: only one device has something that is not zero, so the maximum picks it out (not where an entry is negative).
def vocab_embedding__wrong_pmax(table, ids, *, mesh):
    def on_device(table, ids):
        local = ids - jax.lax.axis_index("model") * table.shape[0]
        mine = (local >= 0) & (local < table.shape[0])
        rows = jnp.take(table, jnp.where(mine, local, 0), axis=0)
        return jax.lax.pmax(jnp.where(mine[..., None], rows, 0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Thought: gather the table right before it is used, then every device looks up what it likes.
def vocab_embedding__wrong_gathers_table(table, ids, *, mesh):
    def on_device(table, ids):
        whole = jax.lax.all_gather(table, "model", axis=0, tiled=True)
        return whole[ids]

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"), check_vma=False
    )(table, ids)
