"""Answers to lesson 05, sixteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- local_view

local_view__right_divided = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# The axis x always cuts the rows, since it is the first axis of the mesh; None is only a filler.
local_view__wrong_x_cuts_rows = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (4, 24),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# One dimension can be cut by one axis only, so of a tuple the first axis counts and along y there are copies.
local_view__wrong_tuple_first_only = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (4,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# jit only makes it faster: two calls are two runs of the function, and print shows what it showed without jit.
local_view__wrong_jit_changes_nothing = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 2,
    "print(block), under jit (every block / one block / no numbers)": "every block",
}

# An empty spec leaves the cutting to shard_map, which deals the rows out over all eight devices.
local_view__wrong_empty_spec_deals_out = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (2, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}


# ---------------------------------------------------------------- block_sums


def block_sums__right_new_row(x, *, mesh):
    def on_device(block):
        return block.T.sum(axis=1)[None, :]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# Columns run over all devices along x, so a psum belongs here as in column_sums; keepdims only gives every device its row.
def block_sums__wrong_psum_kept(x, *, mesh):
    def on_device(block):
        return jax.lax.psum(block.sum(axis=0, keepdims=True), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# "The sums of the columns" is a sum over axis 1, the axis of the columns.
def block_sums__wrong_axis_one(x, *, mesh):
    def on_device(block):
        return block.sum(axis=1, keepdims=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# A column sum needs the row of blocks to be whole, so only x may cut, going in and coming out.
def block_sums__wrong_only_x_in_specs(x, *, mesh):
    def on_device(block):
        return block.sum(axis=0, keepdims=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# The sum within each block is one number for a block, and keepdims keeps both of its dimensions.
def block_sums__wrong_one_number(x, *, mesh):
    def on_device(block):
        return jnp.sum(block, keepdims=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# ---------------------------------------------------------------- beat_the_compiler


def beat_the_compiler__right_where(v, *, mesh):
    def turn(j):
        return [(2 * x + y, 2 * (2 * y + (x + j) % 2) + x // 2) for x in range(4) for y in range(2)]

    def on_device(block):
        even = jax.lax.axis_index("x") % 2 == 0
        left, right = jnp.split(block, 2, axis=1)
        first = jax.lax.ppermute(jnp.where(even, left, right), ("x", "y"), turn(0))
        second = jax.lax.ppermute(jnp.where(even, right, left), ("x", "y"), turn(1))
        return jnp.where(even, jnp.concatenate([first, second]), jnp.concatenate([second, first]))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# The new layout is all that has to be said; the compiler finds the shortest way when it is told both ends.
def beat_the_compiler__wrong_leave_it(v, *, mesh):
    move = jax.jit(lambda v: v + 0, out_shardings=NamedSharding(mesh, P("y", "x")))
    return move(v)


# Two halves arrive and stand one under the other in the order in which they arrive, on every device.
def beat_the_compiler__wrong_order_of_arrival(v, *, mesh):
    def on_device(block):
        width = block.shape[1] // 2
        came = []
        for j in range(2):
            half = (jax.lax.axis_index("x") + j) % 2
            piece = jax.lax.dynamic_slice_in_dim(block, half * width, width, axis=1)
            pairs = [(2 * x + y, 2 * (2 * y + (x + j) % 2) + x // 2) for x in range(4) for y in range(2)]
            came.append(jax.lax.ppermute(piece, ("x", "y"), pairs))
        return jnp.concatenate(came, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# In the layout P("y", "x") the devices are counted with y first, so the receiver's number is 4 y + x.
def beat_the_compiler__wrong_receivers_count_y_first(v, *, mesh):
    def on_device(block):
        rows, width = block.shape[0], block.shape[1] // 2
        new = jnp.concatenate([block[:, :width], block[:, width:]], axis=0)
        for j in range(2):
            half = (jax.lax.axis_index("x") + j) % 2
            piece = jax.lax.dynamic_slice_in_dim(block, half * width, width, axis=1)
            pairs = [(2 * x + y, 4 * (x // 2) + 2 * y + (x + j) % 2) for x in range(4) for y in range(2)]
            came = jax.lax.ppermute(piece, ("x", "y"), pairs)
            new = jax.lax.dynamic_update_slice_in_dim(new, came, half * rows, axis=0)
        return new

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# Along x four devices share two new row blocks by turns: x % 2 says which of the two, x // 2 the place in it.
def beat_the_compiler__wrong_rows_by_turns(v, *, mesh):
    def on_device(block):
        rows, width = block.shape[0], block.shape[1] // 2
        place = jax.lax.axis_index("x")
        new = jnp.concatenate([block[:, :width], block[:, width:]], axis=0)
        for j in range(2):
            piece = jax.lax.dynamic_slice_in_dim(block, (place // 2 + j) % 2 * width, width, axis=1)
            pairs = [(2 * x + y, 2 * (2 * y + (x // 2 + j) % 2) + x % 2) for x in range(4) for y in range(2)]
            came = jax.lax.ppermute(piece, ("x", "y"), pairs)
            new = jax.lax.dynamic_update_slice_in_dim(new, came, (place + j) % 2 * rows, axis=0)
        return new

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)
