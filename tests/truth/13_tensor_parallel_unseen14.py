"""Answers to lesson 13, fourteenth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- local_heads


def local_heads__right_gcd(heads, kv_heads, n):
    """(query heads, key-value heads) on one of n devices; ValueError if they cannot be dealt out evenly."""
    common = math.gcd(kv_heads, n)
    if heads % math.lcm(kv_heads, n):
        raise ValueError("query heads cannot be dealt out evenly")
    if common != min(kv_heads, n):
        raise ValueError("neither of key-value heads and devices is a multiple of the other")
    return heads // n, kv_heads // common


# This student thought that key-value heads are just rounded up where they do not fit, and that only query heads can fail.
def local_heads__wrong_rounded_up(heads, kv_heads, n):
    if heads % n or heads % kv_heads:
        raise ValueError("query heads")
    return heads // n, -(-kv_heads // n)


# This student thought that both kinds of heads have to be divisible by n, and forgot that a head may be copied.
def local_heads__wrong_no_copies(heads, kv_heads, n):
    if heads % kv_heads or heads % n or kv_heads % n:
        raise ValueError("heads cannot be dealt out evenly")
    return heads // n, kv_heads // n


# This student thought that only n matters for what is even, and did not look at how many query heads share a key-value head.
def local_heads__wrong_no_groups(heads, kv_heads, n):
    if heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("heads cannot be dealt out evenly")
    return heads // n, max(1, kv_heads // n)


# This student thought that with fewer key-value heads than devices, each device gets a copy of all of them.
def local_heads__wrong_copy_of_all(heads, kv_heads, n):
    if heads % kv_heads or heads % n or (kv_heads % n and n % kv_heads):
        raise ValueError("heads cannot be dealt out evenly")
    return heads // n, kv_heads // n if kv_heads >= n else kv_heads


# ---------------------------------------------------------------- init_rows


def init_rows__right_out_shardings(key, fan_in, fan_out, *, mesh):
    """W[fan_in_model, fan_out], normal with spread 1/√fan_in, the same on any mesh."""

    def as_a_whole(words):
        return jax.random.normal(jax.random.wrap_key_data(words), (fan_in, fan_out)) / fan_in**0.5

    return jax.jit(as_a_whole, out_shardings=NamedSharding(mesh, P("model", None)))(key)


# This student thought that fan-in is the number of rows that a device has.
def init_rows__wrong_local_fan_in(key, fan_in, fan_out, *, mesh):
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out))
    W = W / (fan_in // mesh.shape["model"]) ** 0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


# This student thought that each device draws its own rows from a key of its own (so the numbers depend on how many devices there are).
def init_rows__wrong_own_keys(key, fan_in, fan_out, *, mesh):
    def on_device(words):
        own = jax.random.fold_in(jax.random.wrap_key_data(words), jax.lax.axis_index("model"))
        return jax.random.normal(own, (fan_in // mesh.shape["model"], fan_out)) / fan_in**0.5

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(), out_specs=P("model", None))(key)


# This student took over the layout of the example above, by columns, for a matrix that is cut by rows.
def init_rows__wrong_columns(key, fan_in, fan_out, *, mesh):
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_in**0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P(None, "model")))


# This student thought that a key for each row makes it the same on every mesh (it does, but they are not the numbers of one device's draw).
def init_rows__wrong_key_for_each_row(key, fan_in, fan_out, *, mesh):
    keys = jax.random.split(jax.random.wrap_key_data(key), fan_in)
    W = jax.vmap(lambda k: jax.random.normal(k, (fan_out,)))(keys) / fan_in**0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


# ---------------------------------------------------------------- vocab_cross_entropy


def vocab_cross_entropy__right_one_hot(logits, targets, *, mesh):
    """log Σ exp(logits) − the target's logit, for logits[B_batch, V_model] → [B_batch]."""

    def on_device(logits, targets):
        top = jax.lax.pmax(jax.lax.stop_gradient(logits).max(axis=1), "model")
        below = logits - top[:, None]
        width = logits.shape[1]
        words = jax.lax.axis_index("model") * width + jnp.arange(width)
        hit = words[None, :] == targets[:, None]
        target = jax.lax.psum(jnp.where(hit, below, 0).sum(axis=1), "model")
        return jnp.log(jax.lax.psum(jnp.exp(below).sum(axis=1), "model")) - target

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )


# This student thought that each device may subtract its own maximum, as long as the common one is added back.
def vocab_cross_entropy__wrong_own_maximum(logits, targets, *, mesh):
    def on_device(logits, targets):
        own = jax.lax.stop_gradient(logits.max(axis=1))
        total = jax.lax.psum(jnp.exp(logits - own[:, None]).sum(axis=1), "model")
        local = targets - jax.lax.axis_index("model") * logits.shape[1]
        mine = (local >= 0) & (local < logits.shape[1])
        found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
        target = jax.lax.psum(jnp.where(mine, found, 0), "model")
        return jax.lax.pmax(own, "model") + jnp.log(total) - target

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )


# This student thought that a word is mine if it does not lie beyond my last column, and forgot those before my first.
def vocab_cross_entropy__wrong_one_sided(logits, targets, *, mesh):
    def on_device(logits, targets):
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        local = targets - jax.lax.axis_index("model") * logits.shape[1]
        mine = local < logits.shape[1]
        found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
        target = jax.lax.psum(jnp.where(mine, found, 0), "model")
        return top + jnp.log(total) - target

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )


# This student thought that it is enough to stop the gradient of what comes out of the pmax.
def vocab_cross_entropy__wrong_stopped_outside(logits, targets, *, mesh):
    def on_device(logits, targets):
        top = jax.lax.stop_gradient(jax.lax.pmax(logits.max(axis=1), "model"))
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        local = targets - jax.lax.axis_index("model") * logits.shape[1]
        mine = (local >= 0) & (local < logits.shape[1])
        found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
        target = jax.lax.psum(jnp.where(mine, found, 0), "model")
        return top + jnp.log(total) - target

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )


# This student thought that the log of the sum over all words is the sum of the devices' logs of sums.
def vocab_cross_entropy__wrong_sum_of_logs(logits, targets, *, mesh):
    def on_device(logits, targets):
        log_total = jax.lax.psum(jax.nn.logsumexp(logits, axis=1), "model")
        local = targets - jax.lax.axis_index("model") * logits.shape[1]
        mine = (local >= 0) & (local < logits.shape[1])
        found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
        return log_total - jax.lax.psum(jnp.where(mine, found, 0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )
