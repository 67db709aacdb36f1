"""Answers to lesson 20, twenty-first batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---- first_of

first_of__right_all = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# Thought: as with pmap's loss[0], the row is on device 0 already, so nothing is sent and the result stays there.
first_of__wrong_pmap = {
    "x[0], x cut by rows": (0, 1),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# Thought: "cut by rows" cuts every row into pieces, so that it is the index of a column that stays within a device (rows and columns exchanged).
first_of__wrong_axes = {
    "x[0], x cut by rows": (0, 8),
    "x[0], x cut by columns": (1, 8),
    "x[:, 0], x cut by rows": (1, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# Thought: an all_reduce is a reduce_scatter and an all_gather, so the sum has two collectives.
first_of__wrong_two_for_a_sum = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (2, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# Thought: one row or a sum is a single thing, brought to the one device that asks; only what stays cut is on eight.
first_of__wrong_single_results = {
    "x[0], x cut by rows": (1, 1),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 1),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}


# ---- own_numbers


def own_numbers__right_places_cut(x, seed, *, mesh):
    def noisy(block, place):
        own = jax.random.fold_in(jax.random.key(seed), place[0])
        return block + jax.random.uniform(own, block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(x, jnp.arange(mesh.shape["x"]))


# Thought: the text says that split(key, n)[k] serves as well, so it must be the same numbers.
def own_numbers__right_split(x, seed, *, mesh):
    def noisy(block):
        own = jax.random.split(jax.random.key(seed), mesh.shape["x"])[jax.lax.axis_index("x")]
        return block + jax.random.uniform(own, block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought: every device folds both of its places in, and a mean over y then makes the copies equal again, as the types want it.
def own_numbers__wrong_mean_over_y(x, seed, *, mesh):
    def noisy(block):
        own = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x"))
        own = jax.random.fold_in(own, jax.lax.axis_index("y"))
        return block + jax.lax.pmean(jax.random.uniform(own, block.shape), "y")

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought: a key of its own is a seed of its own: seed + place (what the text warns of).
def own_numbers__wrong_seed_plus(x, seed, *, mesh):
    def noisy(block):
        own = jax.random.key(seed + jax.lax.axis_index("x"))
        return block + jax.random.uniform(own, block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought: eight devices, eight places, so number them x first, then y; the check complains, so off with it; NumPy shows the right rows.
def own_numbers__wrong_every_device(x, seed, *, mesh):
    def noisy(block):
        place = jax.lax.axis_index("x") + mesh.shape["x"] * jax.lax.axis_index("y")
        return block + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), place), block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


# ---- int_pmean

int_pmean__right_all = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# Thought: a sum of int8 is widened to int32, as NumPy does it, so nothing overflows.
int_pmean__wrong_widened = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (800, "int32"),
    "pmean of int8": (100.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# Thought: int8 saturates at its largest number, 127.
int_pmean__wrong_saturates = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (127, "int8"),
    "pmean of int8": (15.875, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# Thought: a psum keeps the dtype that came in, and for truth values adding is "or".
int_pmean__wrong_bool_or = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (True, "bool"),
}

# Thought: pmean turns whole numbers into floats before it adds them, so only the bare psum overflows.
int_pmean__wrong_float_before = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (100.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}
