"""Answers to lesson 05, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def varying(value, axes):
    """The value, typed as one that may differ along `axes`."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axes, to="varying")
    return jax.lax.pvary(value, axes)


# ---------------------------------------------------------------- pytree_specs

pytree_specs__right_read = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# A list of two specs for two arguments: list or tuple is only a matter of brackets.
pytree_specs__wrong_list = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "runs",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# What a dict of specs does not mention is not cut, just as a dimension that P does not mention.
pytree_specs__wrong_default = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "runs",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# A None at the end of a spec says nothing, so it cannot be too much for b; and x is 8 long, P('x', None) is P('x').
pytree_specs__wrong_none = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "runs",
    "(P(), P('z'))": "no such axis",
}

# params is a dict, so its specs must be a dict as well; one single spec in its place is another tree.
pytree_specs__wrong_exact = {
    "(P(), P('x'))": "wrong tree",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "wrong tree",
    "(P(), P('z'))": "wrong tree",
}


# ------------------------------------------------------------------ polynomial


def polynomial__right_scan(c, x, *, mesh):
    def horner(c, block):
        start = 0 * block * c[0]  # zero, but it varies as the block does
        return jax.lax.scan(lambda y, ck: (y * block + ck, None), start, c)[0]

    return jax.shard_map(horner, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# Began with the highest coefficient instead of 0 (which also varies nicely), and let the loop take all coefficients again.
def polynomial__wrong_twice(c, x, *, mesh):
    def horner(c, block):
        start = c[0] + 0 * block
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: y * block + c[k], start)

    return jax.shard_map(horner, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# Degree n needs n turns, and n = len(c) - 1; but that count is for a start with c[0], and this one starts with 0.
def polynomial__wrong_degree(c, x, *, mesh):
    def horner(c, block):
        n = c.shape[0] - 1
        start = varying(jnp.zeros(block.shape, block.dtype), "x")
        return jax.lax.fori_loop(0, n, lambda k, y: y * block + c[k], start)

    return jax.shard_map(horner, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# "For each coefficient multiply by x and add": added first and multiplied the lot, so every power is one too high.
def polynomial__wrong_order(c, x, *, mesh):
    def horner(c, block):
        start = varying(jnp.zeros(block.shape, block.dtype), "x")
        return jax.lax.fori_loop(0, c.shape[0], lambda k, y: (y + c[k]) * block, start)

    return jax.shard_map(horner, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# The carry comes out varying and went in the same for all: so take the axis away in each turn, with a psum.
def polynomial__wrong_psum(c, x, *, mesh):
    def horner(c, block):
        turn = lambda k, y: jax.lax.psum(y * block, "x") + c[k]
        return jax.lax.fori_loop(0, c.shape[0], turn, jnp.zeros(block.shape, block.dtype))

    return jax.shard_map(horner, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(c, x)


# ----------------------------------------------------------------- column_sums


def column_sums__right_einsum(x, *, mesh):
    body = lambda block: jax.lax.psum(jnp.einsum("ij->j", block), "x")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# x is cut over both axes, so the sum has to go over both axes; out_specs then deal it out over y.
def column_sums__wrong_both(x, *, mesh):
    body = lambda block: jax.lax.psum(block.sum(axis=0), ("x", "y"))
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# The devices along x must agree, and pmean is what makes them agree (it made global_mean agree).
def column_sums__wrong_agree(x, *, mesh):
    body = lambda block: jax.lax.pmean(block.sum(axis=0), "x")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# To sum a column one needs the column: gather the rows first, then sum (right numbers, rows travel instead of sums).
def column_sums__wrong_rows(x, *, mesh):
    def body(block):
        columns = jax.lax.all_gather(block, "x", axis=0, tiled=True, to="invarying")
        return columns.sum(axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# "Keep the promise": all devices hold the same, so every device gets the sums of all columns, and out_specs promise everything.
def column_sums__wrong_whole(x, *, mesh):
    def body(block):
        mine = jax.lax.psum(block.sum(axis=0), "x")
        return jax.lax.all_gather(mine, "y", tiled=True, to="invarying")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P())(x)
