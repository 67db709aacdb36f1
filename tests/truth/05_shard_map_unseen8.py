"""Answers to lesson 05, eighth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ----------------------------------------------------------------- local_view
local_view__right_divided = {
    "float32[16, 24], P('x', 'y')": (16 // 4, 24 // 2),
    "float32[16, 24], P(None, 'x')": (16, 24 // 4),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (16 // 8,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# thought: jit calls the function once to trace it and once more for the second call, which has new numbers
local_view__wrong_two_calls = {**local_view__right_divided, "calls of the function, twice under jit": 2}

# thought: P() names nothing, so each device sees nothing cut, but its share of the rows must come from somewhere: all eight
local_view__wrong_empty_spec_shares = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (2, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# thought: an axis left over cuts what is left over: with P(None, 'x') y cuts the rows; a tuple needs two dimensions
local_view__wrong_left_over_axis = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (8, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (4, 2),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# thought: the function is read once for all devices, so what it shows is one block, the one of the device that reads it
local_view__wrong_one_block = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "one block",
}

# --------------------------------------------------------------- partial_view
_spec = "in_specs={}, {}".format

partial_view__right_formatted = {
    _spec("P('data', 'model')", "no axis_names"): (4, 4),
    _spec("P('data')", "axis_names={'data'}"): (4, 8),
    _spec("P(None, 'model')", "axis_names={'model'}"): (16, 4),
    _spec("P()", "axis_names={'data'}"): (16, 8),
    _spec("P('data', 'model')", "axis_names={'data'}"): "an error",
}

# thought: without axis_names nothing is manual, and the function keeps the global view
partial_view__wrong_none_manual = {
    "in_specs=P('data', 'model'), no axis_names": (16, 8),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# thought: the names that are not manual are simply left to the compiler, so that the last one sees (4, 8)
partial_view__wrong_left_to_compiler = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": (4, 8),
}

# thought: an axis that is manual must be named in in_specs, or else JAX does not know how to cut along it
partial_view__wrong_must_be_named = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": "an error",
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# thought: axis_names lists the axes that stay with the compiler, so these are the ones that do not cut
partial_view__wrong_names_are_auto = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": "an error",
    "in_specs=P(None, 'model'), axis_names={'model'}": "an error",
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}


# ---------------------------------------------------------- beat_the_compiler
def beat_the_compiler__right_where(v, *, mesh):
    def pairs(turn):
        out = []
        for x in range(4):
            for y in range(2):
                half = (x + turn) % 2
                out.append((2 * x + y, 2 * (2 * y + half) + x // 2))
        return out

    def exchange(block):
        left, right = jnp.split(block, 2, axis=1)
        odd = jax.lax.axis_index("x") % 2 == 1
        own = jax.lax.ppermute(jnp.where(odd, right, left), ("x", "y"), pairs(0))
        other = jax.lax.ppermute(jnp.where(odd, left, right), ("x", "y"), pairs(1))
        return jnp.where(odd, jnp.concatenate([other, own]), jnp.concatenate([own, other]))

    return jax.shard_map(exchange, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# thought: what arrives first belongs above, what arrives second below
def beat_the_compiler__wrong_order_of_arrival(v, *, mesh):
    def body(block):
        w = block.shape[1] // 2
        me = jax.lax.axis_index("x")
        came = []
        for j in range(2):
            piece = jax.lax.dynamic_slice_in_dim(block, (me + j) % 2 * w, w, axis=1)
            pairs = [(2 * x + y, 2 * (2 * y + (x + j) % 2) + x // 2) for x in range(4) for y in range(2)]
            came.append(jax.lax.ppermute(piece, ("x", "y"), pairs))
        return jnp.concatenate(came, axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# thought: a gather along y and then only what I need along x: all numbers are right, and a gather over two devices is cheap
def beat_the_compiler__wrong_gathers(v, *, mesh):
    def body(block):
        rows = jax.lax.all_gather(block, "y", axis=1, tiled=True)
        return jax.lax.all_to_all(rows, "x", split_axis=1, concat_axis=0, tiled=True)

    def rows_half(block):
        whole_columns = body(block)
        half = whole_columns.shape[0] // 2
        return jax.lax.dynamic_slice_in_dim(whole_columns, jax.lax.axis_index("y") * half, half, axis=0)

    return jax.shard_map(rows_half, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# thought: the number of a device in the layout P("y", "x") is 4y + x, so this is whom I have to send to
def beat_the_compiler__wrong_numbers_by_spec(v, *, mesh):
    def body(block):
        w, h = block.shape[1] // 2, block.shape[0]
        x = jax.lax.axis_index("x")
        out = jnp.zeros_like(block, shape=(2 * h, w))
        for j in range(2):
            half = (x + j) % 2
            pairs = []
            for sx in range(4):
                for sy in range(2):
                    to_x, to_y = 2 * sy + (sx + j) % 2, sx // 2
                    pairs.append((2 * sx + sy, 4 * to_y + to_x))
            got = jax.lax.ppermute(jax.lax.dynamic_slice_in_dim(block, half * w, w, axis=1), ("x", "y"), pairs)
            out = jax.lax.dynamic_update_slice_in_dim(out, got, half * h, axis=0)
        return out

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(v)


# thought: shard_map with other in_specs than v has cuts the blocks as I want them, and inside nothing is left to send
def beat_the_compiler__wrong_in_specs_do_it(v, *, mesh):
    same = jax.shard_map(lambda block: block, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))
    return same(v)
