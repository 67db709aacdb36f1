"""Answers to lesson 20, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---------------------------------------------------------------- float_order

float_order__right_table = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# This student knows GPUs, whose atomics add in the order in which threads arrive: no two runs are alike.
float_order__wrong_gpu_runs = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "not equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# This student thinks that a ring is an all_reduce, and an all_reduce leaves the same on everybody.
float_order__wrong_ring_is_allreduce = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# This student has one rule, "another order, another result", for whatever is computed in floats.
float_order__wrong_order_always_matters = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "not equal",
    "pmax over 8 devices, and NumPy's max": "not equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# This student thinks that brackets matter but the order of the terms does not: float addition commutes.
float_order__wrong_commutes = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "equal",
}

# ---------------------------------------------------------------- own_numbers


def own_numbers__right_keys_dealt(x, seed, *, mesh):
    """All keys are made first, and dealt out along x as the rows are."""
    keys = jax.vmap(lambda k: jax.random.fold_in(jax.random.key(seed), k))(jnp.arange(mesh.shape["x"]))

    def noisy(block, key):
        return block + jax.random.uniform(key[0], block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(x, keys)


# This student adds the place to the seed: a key of its own for every place, made in the way the text warns of.
def own_numbers__wrong_seed_plus_place(x, seed, *, mesh):
    def noisy(block):
        key = jax.random.key(seed + jax.lax.axis_index("x"))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student gives every *device* a key of its own, as an MPI rank would, and silences the check that objects to it.
def own_numbers__wrong_rank(x, seed, *, mesh):
    def noisy(block):
        rank = jax.lax.axis_index("x") * jax.lax.axis_size("y") + jax.lax.axis_index("y")
        key = jax.random.fold_in(jax.random.key(seed), rank)
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


# This student mixes up the two: makes the key from the place, and folds the seed into it.
def own_numbers__wrong_swapped(x, seed, *, mesh):
    def noisy(block):
        key = jax.random.fold_in(jax.random.key(jax.lax.axis_index("x")), seed)
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student thinks that one draw for the whole of x, cut afterwards, is the same thing: each row has other numbers, after all.
def own_numbers__wrong_one_draw(x, seed, *, mesh):
    noise = jax.random.uniform(jax.random.key(seed), x.shape)
    return jax.shard_map(lambda block, n: block + n, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(x, noise)


# ---------------------------------------------------------------- first_of

first_of__right_table = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student thinks that the first row stays where it is, on the first device, and nothing has to be sent.
first_of__wrong_stays = {
    "x[0], x cut by rows": (0, 1),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student has the dimensions the wrong way round: takes "cut by rows" for "the rows are cut in pieces".
first_of__wrong_other_dimension = {
    "x[0], x cut by rows": (0, 8),
    "x[0], x cut by columns": (1, 8),
    "x[:, 0], x cut by rows": (1, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student takes a sum for an MPI_Reduce: one collective, and the result at the root.
first_of__wrong_root = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 1),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student thinks that a shard is still an array of the mesh, and that only element-wise work and shards are free of sending.
first_of__wrong_all_indexing_sends = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (1, 8),
    "x[:, 0], x cut by rows": (1, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 8),
}
