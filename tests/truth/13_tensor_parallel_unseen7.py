"""Answers to lesson 13, seventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

# ---- megatron_specs

megatron_specs__right_SHORT = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model"), "b2": P(None)}

# Thinks that biases are small and stay whole, all of them.
megatron_specs__wrong_BIASES_WHOLE = {"W1": P(None, "model"), "b1": P(), "W2": P("model", None), "b2": P()}

# Takes "as little as possible" for b2, too: cuts it like the other bias.
megatron_specs__wrong_B2_CUT = {
    "W1": P(None, "model"),
    "b1": P("model"),
    "W2": P("model", None),
    "b2": P("model"),
}

# Mixes up rows and columns: W1 by rows, W2 by columns, and the biases as the columns are.
megatron_specs__wrong_ROWS_THEN_COLUMNS = {"W1": P("model", None), "b1": P(), "W2": P(None, "model"), "b2": P("model")}

# Cuts both matrices alike, by columns, the hidden units and then the outputs.
megatron_specs__wrong_COLUMNS_TWICE = dict(W1=P(None, "model"), b1=P("model"), W2=P(None, "model"), b2=P())


# ---- vocab_embedding


def vocab_embedding__right_FILLED(table, ids, *, mesh):
    def on_device(table, ids):
        words = table.shape[0]
        local = ids - words * jax.lax.axis_index("model")
        local = jnp.where(local < 0, words, local)  # a negative one would count from the end
        return jax.lax.psum(jnp.take(table, local, axis=0, mode="fill", fill_value=0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Masks the words beyond the end, but forgets that those before the first have a negative number, which counts from the end.
def vocab_embedding__wrong_ONE_SIDE(table, ids, *, mesh):
    def body(table, ids):
        local = ids - jax.lax.axis_index("model") * len(table)
        mine = local < len(table)
        rows = table[jnp.where(mine, local, 0)]
        return jax.lax.psum(jnp.where(mine[..., None], rows, 0), "model")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Brings the whole table to every device and looks up there: right, and every row of it travels.
def vocab_embedding__wrong_TABLE_TRAVELS(table, ids, *, mesh):
    table = jax.lax.with_sharding_constraint(table, NamedSharding(mesh, P()))
    look_up = jax.shard_map(lambda t, i: t[i], mesh=mesh, in_specs=(P(), P("batch")), out_specs=P("batch"))
    return look_up(table, ids)


# Takes the device's number along the wrong axis: where its examples begin, and not where its words do.
def vocab_embedding__wrong_BATCH_INDEX(table, ids, *, mesh):
    def on_device(table, ids):
        first = jax.lax.axis_index("batch") * table.shape[0]
        local = ids - first
        mine = (local >= 0) & (local < table.shape[0])
        rows = table[jnp.where(mine, local, 0)] * mine[..., None]
        return jax.lax.psum(rows, "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# Thinks that the devices' answers have to be averaged to agree, though all but one of them are zeros.
def vocab_embedding__wrong_MEAN(table, ids, *, mesh):
    def on_device(table, ids):
        size = table.shape[0]
        start = size * jax.lax.axis_index("model")
        inside = (ids >= start) & (ids < start + size)
        rows = jnp.take(table, jnp.where(inside, ids - start, 0), axis=0)
        rows = jnp.where(inside[:, :, None], rows, 0.0)
        return jax.lax.pmean(rows, "model")

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("model", None), P("batch", None)), out_specs=P("batch", None, None)
    )(table, ids)


# ---- init_rows


def init_rows__right_OUT_SHARDINGS(key, fan_in, fan_out, *, mesh):
    def whole(words):
        spread = fan_in**-0.5
        return spread * jax.random.normal(jax.random.wrap_key_data(words), (fan_in, fan_out))

    return jax.jit(whole, out_shardings=NamedSharding(mesh, P("model", None)))(key)


# Divides by the root of the rows that one device has.
def init_rows__wrong_LOCAL_FAN_IN(key, fan_in, fan_out, *, mesh):
    local = fan_in // mesh.shape["model"]
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / local**0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


# Draws each device's rows inside of shard_map, from a key with the device's number folded in: other numbers on every mesh.
def init_rows__wrong_FOLDED_IN(key, fan_in, fan_out, *, mesh):
    def on_device(words):
        own = jax.random.fold_in(jax.random.wrap_key_data(words), jax.lax.axis_index("model"))
        rows = fan_in // jax.lax.axis_size("model")
        return jax.random.normal(own, (rows, fan_out)) / jnp.sqrt(fan_in)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(), out_specs=P("model", None))(key)


# Takes the number of outputs for the fan-in, as if a row of W were what is added up.
def init_rows__wrong_FAN_OUT(key, fan_in, fan_out, *, mesh):
    W = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_out**0.5
    return jax.lax.with_sharding_constraint(W, NamedSharding(mesh, P("model", None)))


# Cuts the columns over model, as in the cell above, and forgets that this is the row-parallel one.
def init_rows__wrong_BY_COLUMNS(key, fan_in, fan_out, *, mesh):
    k = jax.random.wrap_key_data(key)
    draw_it = jax.jit(
        lambda k: jax.random.normal(k, (fan_in, fan_out)) / fan_in**0.5,
        out_shardings=NamedSharding(mesh, P(None, "model")),
    )
    return draw_it(k)
