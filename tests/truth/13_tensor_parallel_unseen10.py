"""Answers to lesson 13, tenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---- tp_attention


def tp_attention__right_matrix(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        own = mixed.reshape(*mixed.shape[:2], -1) @ w_out.reshape(-1, w_out.shape[-1])
        return jax.lax.psum(own, "model")

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch")
    )(x, w_qkv, w_out)


# "concatenate the heads, then project", as the textbooks say: gathers all heads, and w_out whole on every device
def tp_attention__wrong_gathers_heads(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        mixed = jax.lax.all_gather(mixed, "model", axis=2, tiled=True)
        return jnp.einsum("bthk,hkd->btd", mixed, w_out)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P()), out_specs=P("batch"), check_vma=False
    )(x, w_qkv, w_out)


# thinks that the last product is linear, so its sum over the devices may as well be taken before it (other heads meet other rows)
def tp_attention__wrong_sum_before_product(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        mixed = jax.lax.psum(mixed, "model")
        w_out = jax.lax.psum(w_out, "model")
        return jnp.einsum("bthk,hkd->btd", mixed, w_out)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch")
    )(x, w_qkv, w_out)


# adds up over all axes of the mesh, as for the loss of the whole batch: other examples are added in
def tp_attention__wrong_both_axes(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        return jax.lax.psum(jnp.einsum("bthk,hkd->btd", mixed, w_out), mesh.axis_names)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch")
    )(x, w_qkv, w_out)


# has the block of part 9 in mind: scatters the sum along the tokens, and leaves them cut
def tp_attention__wrong_scatters_tokens(x, w_qkv, w_out, *, mesh):
    def on_device(x, w_qkv, w_out):
        q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
        logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
        parts = jnp.einsum("bthk,hkd->btd", mixed, w_out)
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("batch"), P(None, "model"), P("model")), out_specs=P("batch", "model")
    )(x, w_qkv, w_out)


# ---- local_heads


def local_heads__right_lcm(heads, kv_heads, n):
    import math

    few, many = sorted((kv_heads, n))
    if heads % math.lcm(kv_heads, n) or many % few:
        raise ValueError(f"{heads} and {kv_heads} heads cannot be dealt out over {n} devices")
    return heads // n, -(-kv_heads // n)


# both kinds of heads are cut over n, so both must be divisible: forgets that key-value heads may be copied
def local_heads__wrong_no_copies(heads, kv_heads, n):
    if heads % kv_heads or heads % n or kv_heads % n:
        raise ValueError("the heads cannot be dealt out evenly")
    return heads // n, kv_heads // n


# rounds the key-value heads up wherever they do not come out even: 6 on 4 devices are "2 each"
def local_heads__wrong_rounded_up(heads, kv_heads, n):
    if heads % kv_heads or heads % n:
        raise ValueError("the heads cannot be dealt out evenly")
    return heads // n, (kv_heads + n - 1) // n


# with fewer key-value heads than devices, gives how many devices share a copy in place of how many heads a device has
def local_heads__wrong_counts_copies(heads, kv_heads, n):
    if heads % kv_heads or heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("the heads cannot be dealt out evenly")
    return heads // n, kv_heads // n if kv_heads >= n else n // kv_heads


# asks of each kind whether it can be dealt to the devices, and not whether query heads fit the key-value heads they share
def local_heads__wrong_sharing_unasked(heads, kv_heads, n):
    if heads % n or max(kv_heads, n) % min(kv_heads, n):
        raise ValueError("the heads cannot be dealt out evenly")
    return heads // n, max(1, kv_heads // n)


# ---- tp_grads


def tp_grads__right_sum_over_all(params, x, y, *, mesh):
    layout = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    entries = y.size

    def on_device(p, x, y):
        def value(p):
            found = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jax.lax.psum(jnp.sum((found - y) ** 2), "batch") / entries

        return jax.value_and_grad(value)(p)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layout, P("batch", None), P("batch", None)), out_specs=(P(), layout)
    )(params, x, y)


# adds b2 on every device and then sums over `model`: b2 is in the result once for each device
def tp_grads__wrong_b2_in_the_sum(params, x, y, *, mesh):
    layout = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def value(p):
            found = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"], "model")
            return jax.lax.pmean(jnp.mean((found - y) ** 2), "batch")

        return jax.value_and_grad(value)(p)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layout, P("batch", None), P("batch", None)), out_specs=(P(), layout)
    )(params, x, y)


# takes the old recipe and corrects its ratios, but only for the first layer: thinks W2 belongs to the sum, not before it
def tp_grads__wrong_recipe_half_mended(params, x, y, *, mesh):
    layout = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def value(p):
            found = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jnp.mean((found - y) ** 2)

        found, grads = jax.value_and_grad(value)(p)
        grads = {name: g / mesh.shape["model"] if name in ("W1", "b1") else g for name, g in grads.items()}
        return jax.lax.pmean((found, grads), "batch")

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(layout, P("batch", None), P("batch", None)),
        out_specs=(P(), layout),
        check_vma=False,
    )(params, x, y)


# "the loss of the whole batch is the sum of the devices' losses", each of which is a mean already: a forgotten division
def tp_grads__wrong_sum_of_means(params, x, y, *, mesh):
    layout = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        found = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
        return jax.lax.psum(jnp.mean((found - y) ** 2), "batch")

    mapped = jax.shard_map(on_device, mesh=mesh, in_specs=(layout, P("batch", None), P("batch", None)), out_specs=P())
    return jax.value_and_grad(mapped)(params, x, y)


# thinks that one mean over both axes finishes everything: the parts of the outputs are never added before they are squared
def tp_grads__wrong_one_mean_for_all(params, x, y, *, mesh):
    layout = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def value(p):
            found = jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"]
            return jax.lax.pmean(jnp.mean((found - y) ** 2), ("batch", "model"))

        return jax.value_and_grad(value)(p)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layout, P("batch", None), P("batch", None)), out_specs=(P(), layout)
    )(params, x, y)
