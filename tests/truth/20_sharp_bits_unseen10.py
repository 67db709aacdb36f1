"""Answers to lesson 20, tenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
mesh, line


# ---- first_of ---------------------------------------------------------------------------------------------------

first_of__right_all = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student thinks as with pmap: x[0] is the first device's piece, it is there, and nothing has to be sent.
first_of__wrong_lies_on_the_first = {
    "x[0], x cut by rows": (0, 1),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student counts an all_reduce as two collectives, a reduce_scatter and an all_gather, since it sends twice the bytes.
first_of__wrong_two_in_one = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (2, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student thinks that whatever is indexed out of a cut array ends as a copy on all devices, along either dimension.
first_of__wrong_every_index_sends = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (1, 8),
    "x[:, 0], x cut by rows": (1, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# This student thinks that a shard belongs to its array, and so to the eight devices of that.
first_of__wrong_shard_of_eight = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 8),
}

# ---- int_pmean --------------------------------------------------------------------------------------------------

int_pmean__right_all = {
    "pmean of int32": (38 / 8, "float32"),
    "psum of int32, // 8": (38 // 8, "int32"),
    "psum of int8": (800 - 3 * 256, "int8"),
    "pmean of int8": (32 / 8, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# This student thinks that a mean keeps the dtype that came in, and is cut down to a whole number.
int_pmean__wrong_stays_whole = {
    "pmean of int32": (4, "int32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4, "int8"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# This student knows from NumPy that sums of narrow integers are made in a wider one.
int_pmean__wrong_widened = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (800, "int32"),
    "pmean of int8": (100.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# This student thinks that an int8 that is full stays at its largest number.
int_pmean__wrong_saturates = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (127, "int8"),
    "pmean of int8": (15.875, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# This student thinks that truth values are added up to a truth value, and that // 8 rounds to the nearest.
int_pmean__wrong_any = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (5, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (True, "bool"),
}


# ---- same_on_every_mesh -----------------------------------------------------------------------------------------


def same_on_every_mesh__right_numbers_cut_too(x, seed, *, mesh):
    """x[I_X, J] plus noise: each row with a key of its own number."""

    def one(row, i):
        return row + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), row.shape)

    noisy_rows = jax.shard_map(jax.vmap(one), mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))
    return noisy_rows(x, jnp.arange(x.shape[0]))


# This student numbers the rows of a block, and forgets that every block begins at 0 again.
def same_on_every_mesh__wrong_numbers_in_the_block(x, seed, *, mesh):
    key = jax.random.key(seed)

    def body(block):
        draw_row = lambda i: jax.random.uniform(jax.random.fold_in(key, i), block.shape[1:])
        return block + jax.vmap(draw_row)(jnp.arange(block.shape[0]))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student thinks that rows are dealt out like cards: device k has rows k, k + n, k + 2n, ...
def same_on_every_mesh__wrong_dealt_like_cards(x, seed, *, mesh):
    key = jax.random.key(seed)

    def body(block):
        n = mesh.shape["x"]
        rows = jax.lax.axis_index("x") + n * jnp.arange(block.shape[0])
        return block + jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key, i), (block.shape[1],)))(rows)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student has read that jit with one key gives the same numbers on every mesh, and folds nothing in.
def same_on_every_mesh__wrong_one_key_for_all(x, seed, *, mesh):
    cut = NamedSharding(mesh, P("x"))
    return jax.jit(lambda x: x + jax.random.uniform(jax.random.key(seed), x.shape), out_shardings=cut)(x)


# This student thinks that a row's number in the whole is only known where the whole is, gathers x, and cuts out his block.
def same_on_every_mesh__wrong_gathers_first(x, seed, *, mesh):
    def body(block):
        whole = jax.lax.all_gather(block, "x", tiled=True)
        numbers = jnp.arange(whole.shape[0])
        noise = jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), (whole.shape[1],)))
        start = jax.lax.axis_index("x") * block.shape[0]
        return jax.lax.dynamic_slice_in_dim(whole + noise(numbers), start, block.shape[0], 0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
