"""Answers to lesson 20, fifteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def own_numbers__right_places(x, seed, *, mesh):
    def body(block, place):
        return block + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), place[0]), block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(x, jnp.arange(mesh.shape["x"]))


# Thought: a seed for each device, as torch.manual_seed(seed + rank).
def own_numbers__wrong_seed_plus_rank(x, seed, *, mesh):
    def body(block):
        return block + jax.random.uniform(jax.random.key(seed + jax.lax.axis_index("x")), block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought: every device needs its own number, so the place is counted over both axes (and the check is in the way).
def own_numbers__wrong_both_axes(x, seed, *, mesh):
    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index(tuple(mesh.axis_names)))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


# Thought: fold_in mixes two numbers, and it does not matter which of them is the key.
def own_numbers__wrong_swapped(x, seed, *, mesh):
    def body(block):
        key = jax.random.fold_in(jax.random.key(jax.lax.axis_index("x")), seed)
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought: the rank of a device is jax.process_index(), as in lesson 19.
def own_numbers__wrong_process_index(x, seed, *, mesh):
    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.process_index())
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def same_on_every_mesh__right_keys_first(x, seed, *, mesh):
    def body(block):
        rows, length = block.shape
        numbers = jax.lax.axis_index("x") * rows + jnp.arange(rows)
        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(jax.random.key(seed), numbers)
        return block + jax.vmap(lambda key: jax.random.uniform(key, (length,)))(keys)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought: the same as own_numbers; the block's number is the row's number.
def same_on_every_mesh__wrong_block_number(x, seed, *, mesh):
    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x"))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought: rows are dealt out in turns, as DistributedSampler does: row r of device k is r * n + k.
def same_on_every_mesh__wrong_in_turns(x, seed, *, mesh):
    def body(block):
        numbers = jnp.arange(block.shape[0]) * mesh.shape["x"] + jax.lax.axis_index("x")
        draw_row = lambda i: jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), (block.shape[1],))
        return block + jax.vmap(draw_row)(numbers)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought: a row has one key, so it has one random number, which broadcasts along the row.
def same_on_every_mesh__wrong_one_per_row(x, seed, *, mesh):
    def body(block):
        numbers = jax.lax.axis_index("x") * block.shape[0] + jnp.arange(block.shape[0])
        noise = jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i)))(numbers)
        return block + noise[:, None]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought: to know the numbers of the rows one needs the whole x: gather it, add the noise, take my part back out.
def same_on_every_mesh__wrong_gathers(x, seed, *, mesh):
    def body(block):
        whole = jax.lax.all_gather(block, "x", axis=0, tiled=True)
        draw_row = lambda i: jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), (whole.shape[1],))
        whole = whole + jax.vmap(draw_row)(jnp.arange(whole.shape[0]))
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * block.shape[0], block.shape[0], 0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


_ROWS = (
    "psum over 8 devices, and a loop that adds one by one",
    "psum over 8 devices, the same program twice",
    "a ring on 8 devices: the copies",
    "psum and the loop, of whole numbers in float32",
    "pmax over 8 devices, and NumPy's max",
    "psum over 8 devices, and over the same numbers shuffled",
)

float_order__right_rows = dict(zip(_ROWS, ["not equal", "equal", "not equal", "equal", "equal", "not equal"]))

# Thought: all devices of an all-reduce end with the same bits, or they would not be copies.
float_order__wrong_copies_are_copies = dict(zip(_ROWS, ["not equal", "equal", "equal", "equal", "equal", "not equal"]))

# Thought: float32 is never exact, whole numbers or not.
float_order__wrong_floats_never_exact = dict(
    zip(_ROWS, ["not equal", "equal", "not equal", "not equal", "equal", "not equal"])
)

# Thought: devices finish in an order that nobody knows (as on a GPU), so two runs differ.
float_order__wrong_never_twice = dict(
    zip(_ROWS, ["not equal", "not equal", "not equal", "equal", "equal", "not equal"])
)

# Thought: psum is one fixed program, and a sum does not depend on which numbers come first.
float_order__wrong_shuffling_is_harmless = dict(
    zip(_ROWS, ["not equal", "equal", "not equal", "equal", "equal", "equal"])
)
