"""Answers to lesson 20, twenty-third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---------------------------------------------------------------- donated

_donated = [
    "a, in a + 1",
    "a, in a.astype(jnp.int32)",
    "a, in a.astype(jnp.bfloat16)",
    "a, in a + 1 with the result on every device whole",
    "a.addressable_shards[0].data, taken before a + 1",
    "np.asarray(a), taken before a + 1",
]

donated__right_bytes = dict(zip(_donated, ["deleted", "deleted", "alive", "alive", "deleted", "alive"]))

# This student thinks that the memory can be taken only by a result of the same dtype.
donated__wrong_same_dtype = dict(zip(_donated, ["deleted", "alive", "alive", "alive", "deleted", "alive"]))

# This student thinks that a smaller result fits well into the memory of a larger one.
donated__wrong_smaller_fits = dict(zip(_donated, ["deleted", "deleted", "deleted", "alive", "deleted", "alive"]))

# This student thinks that NumPy's array is a view of the devices' memory, and goes with it.
donated__wrong_numpy_views = dict(zip(_donated, ["deleted", "deleted", "alive", "alive", "deleted", "deleted"]))

# This student counts the bytes of whole arrays (64 and 64), and takes the piece of a shard for a copy.
donated__wrong_whole_bytes = dict(zip(_donated, ["deleted", "deleted", "alive", "deleted", "alive", "alive"]))

# ---------------------------------------------------------------- own_numbers


def own_numbers__right_keys_sent_in(x, seed, *, mesh):
    """x[N_X, J] plus noise: row k with the key that k is folded into."""
    common = jax.random.key(seed)
    keys = jax.vmap(lambda k: jax.random.fold_in(common, k))(jnp.arange(mesh.shape["x"]))  # one for each place along x

    def body(key, block):
        return block + jax.random.uniform(key[0], block.shape, block.dtype)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(keys, x)


# This student adds the place to the seed, which gives every device a key of its own as well.
def own_numbers__wrong_seed_plus_place(x, seed, *, mesh):
    def body(block):
        return block + jax.random.uniform(jax.random.key(seed + jax.lax.axis_index("x")), block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student numbers all devices, along both axes, and switches the check off that complains of it.
def own_numbers__wrong_every_device(x, seed, *, mesh):
    def body(block):
        place = jax.lax.axis_index("x") * mesh.shape["y"] + jax.lax.axis_index("y")
        return block + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), place), block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


# This student folds the seed into the place's key, and thinks that the order of the two is all the same.
def own_numbers__wrong_folded_round(x, seed, *, mesh):
    def body(block):
        key = jax.random.fold_in(jax.random.key(jax.lax.axis_index("x")), seed)
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student leaves it to jit, outside of shard_map: one key, and different numbers in every row.
def own_numbers__wrong_one_draw(x, seed, *, mesh):
    noisy = jax.jit(
        lambda x: x + jax.random.uniform(jax.random.key(seed), x.shape), out_shardings=NamedSharding(mesh, P("x"))
    )
    return noisy(x)


# ---------------------------------------------------------------- int_pmean

int_pmean__right_by_hand = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# This student thinks that a sum is done in int32, as NumPy's sum of narrow numbers is done in a wider dtype.
int_pmean__wrong_wide_sum = int_pmean__right_by_hand | {
    "psum of int8": (800, "int32"),
    "pmean of int8": (100.0, "float32"),
}

# This student thinks that an int8 stops at its largest number.
int_pmean__wrong_saturates = int_pmean__right_by_hand | {
    "psum of int8": (127, "int8"),
    "pmean of int8": (15.875, "float32"),
}

# This student thinks that pmean gives back the dtype that came in, as psum does.
int_pmean__wrong_dtype_stays = int_pmean__right_by_hand | {
    "pmean of int32": (4, "int32"),
    "pmean of int8": (4, "int8"),
}

# This student thinks that a sum of truth values is a truth value: whether any is True.
int_pmean__wrong_any = int_pmean__right_by_hand | {"psum of bool": (True, "bool")}
