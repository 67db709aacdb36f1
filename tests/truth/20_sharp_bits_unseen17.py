"""Answers to lesson 20, seventeenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# --------------------------------------------------------------------- donated

_has = 16 * 4 // 8  # bytes of a on each device
_result = {
    "a, in a + 1": 16 * 4 // 8,
    "a, in a.astype(jnp.int32)": 16 * 4 // 8,
    "a, in a.astype(jnp.bfloat16)": 16 * 2 // 8,
    "a, in a + 1 with the result on every device whole": 16 * 4,
}
donated__right_bytes_compared = {row: "deleted" if size == _has else "alive" for row, size in _result.items()} | {
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# A result can only be written into memory of its own dtype, so integers cannot take the place of floats.
donated__wrong_same_dtype_needed = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "alive",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# Whatever is no larger than the old memory fits into it, and half as many bytes fit all the better.
donated__wrong_smaller_fits = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "deleted",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# The result is float32[16] as a is, 64 bytes in and 64 bytes out, and the layout changes nothing about that.
donated__wrong_bytes_of_the_whole = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "deleted",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# A shard's data is an array of its own that was taken out, while np.asarray copies nothing and looks into the same memory.
donated__wrong_numpy_is_the_view = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "alive",
    "np.asarray(a), taken before a + 1": "deleted",
}


# ----------------------------------------------------------------- own_numbers


def own_numbers__right_key_as_argument(x, seed, *, mesh):
    def body(block, common):
        own = jax.random.fold_in(common, jax.lax.axis_index("x"))
        return block + jax.random.uniform(own, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"))(x, jax.random.key(seed))


# Each device needs a key of its own, so its place among all devices of the mesh is what has to be folded in.
def own_numbers__wrong_place_among_all(x, seed, *, mesh):
    def body(block):
        place = jax.lax.axis_index(mesh.axis_names)
        return block + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), place), block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


# Folding a number into a key is making the key of the seed plus that number.
def own_numbers__wrong_place_added_to_seed(x, seed, *, mesh):
    noise = lambda block: block + jax.random.uniform(jax.random.key(seed + jax.lax.axis_index("x")), block.shape)
    return jax.shard_map(noise, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# The two numbers may be mixed in either order, so make the key of the place, and fold the seed into it.
def own_numbers__wrong_seed_into_place(x, seed, *, mesh):
    def body(block):
        key = jax.random.fold_in(jax.random.key(jax.lax.axis_index("x")), seed)
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Row k of one common draw of all rows is what the device at place k would draw for itself.
def own_numbers__wrong_row_of_one_draw(x, seed, *, mesh):
    def body(block):
        places = jax.lax.axis_size("x")
        everybody = jax.random.uniform(jax.random.key(seed), (places, *block.shape))
        return block + everybody[jax.lax.axis_index("x")]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# ------------------------------------------------------------------- int_pmean

_numbers = [4, 5, 5, 5, 4, 5, 5, 5]
_wrapped = (8 * 100 + 128) % 256 - 128  # 32
int_pmean__right_wrapped = {
    "pmean of int32": (sum(_numbers) / 8, "float32"),
    "psum of int32, // 8": (sum(_numbers) // 8, "int32"),
    "psum of int8": (_wrapped, "int8"),
    "pmean of int8": (_wrapped / 8, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# A collective gives back the dtype that it was given, so a mean of whole numbers is cut to a whole number.
int_pmean__wrong_mean_keeps_dtype = {
    "pmean of int32": (4, "int32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4, "int8"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# Narrow numbers are added up in int32, as NumPy widens them in a sum, so that nothing overflows.
int_pmean__wrong_sum_is_widened = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (800, "int32"),
    "pmean of int8": (100.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# A sum that is too large for int8 stops at the largest number that it has, 127.
int_pmean__wrong_saturates = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (127, "int8"),
    "pmean of int8": (15.875, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# The sum of truth values is an "or" and stays a truth value.
int_pmean__wrong_bool_is_or = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (True, "bool"),
}
