"""Answers to lesson 05, seventh batch, written by a reader of the notebook only."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# --- flat_index --------------------------------------------------------------

_places = [divmod(k, 4) for k in range(8)]  # (x, y) of device k, on 2 × 4

flat_index__right_divmod = {
    "axis_index('x')": [x for x, y in _places],
    "axis_index('y')": [y for x, y in _places],
    "axis_index(('x', 'y'))": [4 * x + y for x, y in _places],
    "axis_index(('y', 'x'))": [2 * y + x for x, y in _places],
}

# "The mesh of this lesson." (answered for 4 × 2)
flat_index__wrong_four_by_two = {
    "axis_index('x')": [0, 0, 1, 1, 2, 2, 3, 3],
    "axis_index('y')": [0, 1, 0, 1, 0, 1, 0, 1],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}

# "First index times its own length: y has four, so 4 · y + x."
flat_index__wrong_own_length = {
    "axis_index('x')": [0] * 4 + [1] * 4,
    "axis_index('y')": [0, 1, 2, 3] * 2,
    "axis_index(('x', 'y'))": list(range(8)),
    "axis_index(('y', 'x'))": [4 * y + x for x in (0, 1) for y in (0, 1, 2, 3)],
}

# "x runs to the right and y downwards, as on paper."
flat_index__wrong_x_to_the_right = {
    "axis_index('x')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index('y')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 2, 4, 6, 1, 3, 5, 7],
}

# "Counting with x fastest I meet the devices 0, 4, 1, 5, …" (which device has index k, not which index device k has)
flat_index__wrong_devices_in_order = {
    "axis_index('x')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index('y')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}


# --- column_sums -------------------------------------------------------------


def column_sums__right_einsum(x, *, mesh):
    """The sums of the columns of x[I_X, J_Y], as [J_Y]."""

    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))
    def summed(block):
        return jax.lax.psum(jnp.einsum("ij->j", block), ("x",))

    return summed(x)


# "The result is laid out as P("y"), so the collective is over y." (and JAX complains about x, so the check goes off)
def column_sums__wrong_over_y(x, *, mesh):
    def body(block):
        return jax.lax.psum(block.sum(axis=0), "y")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"), check_vma=False)(x)


# "Make everybody agree on the block first, then each takes its own sums." (right sums; sends rows in place of one row)
def column_sums__wrong_psum_first(x, *, mesh):
    body = lambda block: jax.lax.psum(block, "x").sum(axis=0)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# "The array was cut over x and y, so the sum is over both."
def column_sums__wrong_both_axes(x, *, mesh):
    return jax.shard_map(
        lambda block: jax.lax.psum(block.sum(axis=0), ("x", "y")),
        mesh=mesh,
        in_specs=P("x", "y"),
        out_specs=P("y"),
    )(x)


# "Results need a dimension to be lined up in: keep it." (one row of sums, and not the vector)
def column_sums__wrong_kept_dimension(x, *, mesh):
    def on_device(block):
        own = block.sum(axis=0, keepdims=True)
        return jax.lax.psum(own, "x")

    f = jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
    return f(x)


# --- layer_by_hand -----------------------------------------------------------


def layer_by_hand__right_one_device_brings_the_bias(x, w, b, *, mesh):
    """sigmoid(x · w + b) for a batch cut over y and features cut over x."""

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("y", "x"), P("x", None), P(None)), out_specs=P("y", None))
    def layer(x, w, b):
        b_once = jnp.where(jax.lax.axis_index("x") == 0, b, jnp.zeros_like(b))
        return jax.nn.sigmoid(jax.lax.psum(x @ w + b_once, "x"))

    return layer(x, w, b)


# "Every device adds the bias, four of them along x, so each adds a quarter." (four, on any mesh)
def layer_by_hand__wrong_quarter_of_the_bias(x, w, b, *, mesh):
    def body(x, w, b):
        return jax.nn.sigmoid(jax.lax.psum(x @ w + b / 4, "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("y", "x"), P("x", None), P()), out_specs=P("y", None))(x, w, b)


# "Each device does the whole layer on what it has, and at the end the results are added up."
def layer_by_hand__wrong_sum_last(x, w, b, *, mesh):
    def body(x, w, b):
        h = jax.nn.sigmoid(x @ w + b)
        return jax.lax.psum(h, "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("y", "x"), P("x", None), P()), out_specs=P("y", None))(x, w, b)


# "x is cut over both axes, so the sum runs over both." (adds up different examples)
def layer_by_hand__wrong_sum_over_the_batch(x, w, b, *, mesh):
    def body(xs, ws, bs):
        z = jax.lax.psum(xs @ ws, ("x", "y"))
        return jax.nn.sigmoid(z + bs)

    specs = P("y", "x"), P("x", None), P(None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


# "If I ask in in_specs for whole rows and the whole of w, no collective is needed at all." (JAX gathers both, without a word)
def layer_by_hand__wrong_asks_for_the_whole(x, w, b, *, mesh):
    return jax.shard_map(
        lambda x, w, b: jax.nn.sigmoid(x @ w + b),
        mesh=mesh,
        in_specs=(P("y", None), P(None, None), P()),
        out_specs=P("y", None),
    )(x, w, b)
