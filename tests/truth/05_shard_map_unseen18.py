"""Answers to lesson 05, eighteenth batch, written by a reader of the notebook only."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- block_sums
def block_sums__right_newaxis(x, *, mesh):
    def one_row(block):
        columns = jnp.einsum("ij->j", block)
        return columns[None, :]

    return jax.shard_map(one_row, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# "A column is cut over x, so its sum needs the psum anyway": every row of the result is the sum of the whole columns.
def block_sums__wrong_psum(x, *, mesh):
    body = lambda block: jax.lax.psum(block.sum(axis=0, keepdims=True), "x")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# "The sum of a block is one number, and keepdims lines the numbers up as the mesh": the columns are added up, too.
def block_sums__wrong_onenumber(x, *, mesh):
    return jax.shard_map(partial(jnp.sum, keepdims=True), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# "I do not promise anything if I name both axes; the body gives a vector, so both go into its one dimension": a flat result.
def block_sums__wrong_flat(x, *, mesh):
    def on_device(block):
        return block.sum(axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P(("x", "y")))(x)


# "There are four devices along x, so the rows fall into four groups": the number of this notebook's mesh, not of the mesh given.
def block_sums__wrong_four(x, *, mesh):
    groups = x.reshape(4, x.shape[0] // 4, x.shape[1]).sum(axis=1)
    return jax.device_put(groups, NamedSharding(mesh, P("x", "y")))


# -------------------------------------------------------------- pytree_specs
pytree_specs__right_table = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# "A list of two is as good as a tuple of two": only the number of entries counts.
pytree_specs__wrong_list = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "runs",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "too long",
    "(P(), P('z'))": "no such axis",
}

# "What a spec leaves out is replicated: a missing b, and a None at the end, say the same as P()".
pytree_specs__wrong_leftout = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "runs",
    "(P('x', None), P('x'))": "runs",
    "(P(), P('z'))": "no such axis",
}

# "params is a dict, so its spec has to be a dict": a single P for it is the wrong tree, whatever stands in it.
pytree_specs__wrong_dictneeded = {
    "(P(), P('x'))": "wrong tree",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "wrong tree",
    "(P(), P('z'))": "wrong tree",
}

# "The mesh has one axis only, so a spec with two entries, and one with another name, both name an axis that is not there".
pytree_specs__wrong_axisformesh = {
    "(P(), P('x'))": "runs",
    "({'w': P('x'), 'b': P()}, P('x'))": "runs",
    "[P(), P('x')]": "wrong tree",
    "({'w': P('x')}, P('x'))": "wrong tree",
    "(P('x', None), P('x'))": "no such axis",
    "(P(), P('z'))": "no such axis",
}


# --------------------------------------------------------------- column_sums
def column_sums__right_addreduce(x, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))
    def summed(block):
        mine = jnp.add.reduce(block, axis=0)
        return jax.lax.psum(mine, axis_name="x")

    return summed(x)


# "The device holds a piece in both directions, so it has to be added over both axes": different columns are mixed.
def column_sums__wrong_bothaxes(x, *, mesh):
    body = lambda block: jax.lax.psum(block.sum(axis=0), ("x", "y"))
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# "First bring the rows together, then sum": whole blocks go through the psum, where one row of sums would do.
def column_sums__wrong_latesum(x, *, mesh):
    def body(block):
        together = jax.lax.psum(block, "x")
        return together.sum(axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# "out_specs name y, so y is the axis along which the devices must agree": the psum over y, and the check off because it complained.
def column_sums__wrong_overy(x, *, mesh):
    body = lambda block: jax.lax.psum(block.sum(axis=0), "y")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"), check_vma=False)(x)


# "pmean makes the devices along x agree just as psum does": they agree on a number that is too small by the length of x.
def column_sums__wrong_pmean(x, *, mesh):
    def body(block):
        return jax.lax.pmean(block.sum(axis=0), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)
