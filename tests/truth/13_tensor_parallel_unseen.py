"""Answers to lesson 13, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

megatron_specs__right_explicit = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P(None)}
# rows, then columns
megatron_specs__wrong_turned = {"W1": P("model", None), "b1": P("model"), "W2": P(None, "model"), "b2": P()}
# b1 held whole
megatron_specs__wrong_b1_whole = {"W1": P(None, "model"), "b1": P(), "W2": P("model", None), "b2": P()}
# b2 cut, too
megatron_specs__wrong_b2_cut = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P("model")}
# W2 by columns as W1
megatron_specs__wrong_columns_twice = {
    "W1": P(None, "model"),
    "b1": P("model"),
    "W2": P(None, "model"),
    "b2": P("model"),
}
# biases swapped
megatron_specs__wrong_biases = {"W1": P(None, "model"), "b1": P(), "W2": P("model", None), "b2": P("model")}


def _mlp(body, specs=None, check=True, out=P("batch", None)):
    def program(params, x, *, mesh):
        s = specs or {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
        return jax.shard_map(body, mesh=mesh, in_specs=(s, P("batch", None)), out_specs=out, check_vma=check)(params, x)

    return program


def tp_mlp__right_maximum(params, x, *, mesh):
    """Written with maximum and a partial function."""

    def on_device(p, x):
        hidden = jnp.maximum(jnp.dot(x, p["W1"]) + p["b1"], 0)
        total = jax.lax.psum(jnp.dot(hidden, p["W2"]), "model")
        return jnp.maximum(total + p["b2"], 0)

    return _mlp(on_device)(params, x, mesh=mesh)


def tp_mlp__wrong_b2_in_sum(params, x, *, mesh):
    """b2 added before the sum, so n times."""

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.nn.relu(jax.lax.psum(hidden @ p["W2"] + p["b2"], "model"))

    return _mlp(on_device)(params, x, mesh=mesh)


def tp_mlp__wrong_relu_first(params, x, *, mesh):
    """The second relu before the sum."""

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.lax.psum(jax.nn.relu(hidden @ p["W2"]), "model") + p["b2"]

    return _mlp(on_device)(params, x, mesh=mesh)


def tp_mlp__wrong_no_last_relu(params, x, *, mesh):
    """The last relu forgotten."""

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.lax.psum(hidden @ p["W2"], "model") + p["b2"]

    return _mlp(on_device)(params, x, mesh=mesh)


def tp_mlp__wrong_pmean(params, x, *, mesh):
    """pmean for psum."""

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.nn.relu(jax.lax.pmean(hidden @ p["W2"], "model") + p["b2"])

    return _mlp(on_device)(params, x, mesh=mesh)


def tp_mlp__wrong_batch(params, x, *, mesh):
    """Added up over batch as well."""

    def on_device(p, x):
        hidden = jax.nn.relu(x @ p["W1"] + p["b1"])
        return jax.nn.relu(jax.lax.psum(hidden @ p["W2"], ("batch", "model")) + p["b2"])

    return _mlp(on_device, check=False)(params, x, mesh=mesh)


def local_heads__right_steps(heads, kv_heads, n):
    """One reason after the other."""
    for big, small in ((heads, kv_heads), (heads, n), (max(kv_heads, n), min(kv_heads, n))):
        if divmod(big, small)[1]:
            raise ValueError(f"{big} is not a multiple of {small}")
    return heads // n, kv_heads // n or 1


def local_heads__wrong_zero(heads, kv_heads, n):
    """No key-value head where there are more devices than heads."""
    if heads % n or heads % kv_heads or (kv_heads % n and n % kv_heads):
        raise ValueError("cannot be dealt out")
    return heads // n, kv_heads // n


def local_heads__wrong_more_devices(heads, kv_heads, n):
    """Refuses more devices than key-value heads."""
    if heads % n or heads % kv_heads or kv_heads % n:
        raise ValueError("cannot be dealt out")
    return heads // n, kv_heads // n


def local_heads__wrong_no_check_kv(heads, kv_heads, n):
    """Only query heads against n."""
    if heads % n:
        raise ValueError("cannot be dealt out")
    return heads // n, max(1, kv_heads // n)


def local_heads__wrong_returned_error(heads, kv_heads, n):
    """Returns the error in place of raising it."""
    if heads % n or heads % kv_heads or (kv_heads % n and n % kv_heads):
        return ValueError("cannot be dealt out")
    return heads // n, max(1, kv_heads // n)


def local_heads__wrong_ceil(heads, kv_heads, n):
    """Rounds up, refuses nothing."""
    return -(-heads // n), -(-kv_heads // n)


def vocab_embedding__right_clip(table, ids, *, mesh):
    """The mask from the quotient."""

    def on_device(table, ids):
        words = table.shape[0]
        owner, local = ids // words, ids % words
        rows = table[local] * (owner == jax.lax.axis_index("model"))[..., None]
        return jax.lax.psum(rows, "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


def _embedding(body, check=True):
    def program(table, ids, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"), check_vma=check)(
            table, ids
        )

    return program


def vocab_embedding__wrong_one_side(table, ids, *, mesh):
    """The mask has one side: negative numbers only."""

    def on_device(table, ids):
        local = ids - jax.lax.axis_index("model") * len(table)
        rows = table[jnp.where(local >= 0, local, 0)]
        return jax.lax.psum(jnp.where((local >= 0)[..., None], rows, 0), "model")

    return _embedding(on_device)(table, ids, mesh)


def vocab_embedding__wrong_no_shift(table, ids, *, mesh):
    """No shift: the first words on all devices."""

    def on_device(table, ids):
        mine = ids < len(table)
        return jax.lax.psum(jnp.where(mine[..., None], table[jnp.where(mine, ids, 0)], 0), "model")

    return _embedding(on_device)(table, ids, mesh)


def vocab_embedding__wrong_inclusive(table, ids, *, mesh):
    """<= for <: the first word of the next one counts as mine."""

    def on_device(table, ids):
        local = ids - jax.lax.axis_index("model") * len(table)
        mine = (local >= 0) & (local <= len(table))
        return jax.lax.psum(jnp.where(mine[..., None], table[jnp.where(mine, local, 0)], 0), "model")

    return _embedding(on_device)(table, ids, mesh)


def vocab_embedding__wrong_zeroth(table, ids, *, mesh):
    """Not masked after the lookup: row 0 is added."""

    def on_device(table, ids):
        local = ids - jax.lax.axis_index("model") * len(table)
        mine = (local >= 0) & (local < len(table))
        return jax.lax.psum(table[jnp.where(mine, local, 0)], "model")

    return _embedding(on_device)(table, ids, mesh)


def vocab_embedding__wrong_gathered(table, ids, *, mesh):
    """The table travels."""

    def on_device(table, ids):
        return jax.lax.all_gather(table, "model", tiled=True)[ids]

    return _embedding(on_device, check=False)(table, ids, mesh)


def vocab_embedding__wrong_batch_axis(table, ids, *, mesh):
    """The place along batch in place of model."""

    def on_device(table, ids):
        local = ids - jax.lax.axis_index("batch") * len(table)
        mine = (local >= 0) & (local < len(table))
        return jax.lax.psum(jnp.where(mine[..., None], table[jnp.where(mine, local, 0)], 0), "model")

    return _embedding(on_device)(table, ids, mesh)


def init_rows__right_constraint(key, fan_in, fan_out, *, mesh):
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) * fan_in**-0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


def init_rows__wrong_local(key, fan_in, fan_out, *, mesh):
    """Divided by the root of the local rows."""
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / (fan_in // mesh.shape["model"]) ** 0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


def init_rows__wrong_variance(key, fan_in, fan_out, *, mesh):
    """1/fan_in: the variance taken for the spread."""
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_in
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


def init_rows__wrong_fold(key, fan_in, fan_out, *, mesh):
    """Each device a key of its own: other numbers on each mesh."""

    def on_device(key):
        k = jax.random.fold_in(jax.random.wrap_key_data(key), jax.lax.axis_index("model"))
        return jax.random.normal(k, (fan_in // mesh.shape["model"], fan_out)) / fan_in**0.5

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(), out_specs=P("model", None))(key)


def init_rows__wrong_same_rows(key, fan_in, fan_out, *, mesh):
    """The same rows on all devices."""

    def on_device(key):
        return jax.random.normal(jax.random.wrap_key_data(key), (fan_in // mesh.shape["model"], fan_out)) / fan_in**0.5

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(), out_specs=P("model", None), check_vma=False)(key)


def init_rows__wrong_columns(key, fan_in, fan_out, *, mesh):
    """Cut by columns."""
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_in**0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P(None, "model")))


def init_rows__wrong_fan_out(key, fan_in, fan_out, *, mesh):
    """Fan-out for fan-in."""
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_out**0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))
