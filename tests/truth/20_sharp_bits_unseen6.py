"""Answers to lesson 20, sixth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- donated


donated__right_table = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student thinks that memory of another dtype cannot be used again, be it as large as it may.
donated__wrong_dtype_counts = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "alive",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student thinks "it fits" means "there is room": a smaller result fits into a larger memory.
donated__wrong_smaller_fits = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "deleted",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student counts the bytes of the whole array (64 and 64), and not those on each device.
donated__wrong_whole_bytes = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "deleted",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}

# This student mixes up which of the two is a view: takes a shard for an array of its own, and the NumPy array for a window on a's memory.
donated__wrong_views = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "alive",
    "np.asarray(a), taken before a + 1": "deleted",
}


# ---------------------------------------------------------------- int_pmean


int_pmean__right_table = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# This student thinks that a mean of whole numbers stays whole, in the dtype that came in.
int_pmean__wrong_stays_whole = {
    "pmean of int32": (4, "int32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4, "int8"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# This student thinks that JAX adds narrow numbers up in int32, as NumPy's sum does: nothing overflows.
int_pmean__wrong_no_overflow = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (800, "int32"),
    "pmean of int8": (100.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# This student thinks that an int8 stops at its largest number.
int_pmean__wrong_saturates = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (127, "int8"),
    "pmean of int8": (15.875, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# This student takes the sum of truth values for an "or", which is a truth value.
int_pmean__wrong_or = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (True, "bool"),
}


# ---------------------------------------------------------------- same_on_every_mesh


# Right: the rows' numbers are cut like x and go in beside it, so nobody has to work out where a block begins.
def same_on_every_mesh__right_numbers_as_argument(x, seed, *, mesh):
    def one_row(i, row):
        return row + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), row.shape)

    noisy = jax.shard_map(jax.vmap(one_row), mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))
    return noisy(jnp.arange(x.shape[0]), x)


# This student counts the rows of the block from 0: the same noise on every device.
def same_on_every_mesh__wrong_counts_in_the_block(x, seed, *, mesh):
    def body(block):
        key = jax.random.key(seed)
        draw_row = lambda i: jax.random.uniform(jax.random.fold_in(key, i), (block.shape[1],))
        return block + jax.vmap(draw_row)(jnp.arange(block.shape[0]))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student begins each block at its place along x, without multiplying by the rows of a block (right if a device has one row).
def same_on_every_mesh__wrong_begins_at_the_place(x, seed, *, mesh):
    def body(block):
        rows, width = block.shape
        number = jax.lax.axis_index("x") + jnp.arange(rows)
        keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(seed), i))(number)
        return block + jax.vmap(lambda k: jax.random.uniform(k, (width,)))(keys)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student adds the row's number to the seed in place of folding it in.
def same_on_every_mesh__wrong_seed_plus_row(x, seed, *, mesh):
    def body(block):
        first = jax.lax.axis_index("x") * len(block)
        noise = [jax.random.uniform(jax.random.key(seed + first + r), block.shape[1:]) for r in range(len(block))]
        return block + jnp.stack(noise)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student draws the noise of the whole of x on every device with one key, and cuts its rows out: the same on every mesh, but other numbers.
def same_on_every_mesh__wrong_whole_draw(x, seed, *, mesh):
    whole = x.shape

    def body(block):
        noise = jax.random.uniform(jax.random.key(seed), whole)
        begin = jax.lax.axis_index("x") * block.shape[0]
        return block + jax.lax.dynamic_slice_in_dim(noise, begin, block.shape[0], axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
