"""Answers to lesson 05, second batch, written by a reader of the notebook only."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
MESH = mesh


def column_sums__right_einsum(x, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))
    def add(block):
        mine = jnp.einsum("ij->j", block)
        return jax.lax.psum(mine, "x")

    return add(x)


def column_sums__wrong_over_both(x, *, mesh):
    """Adds over y as well: the sums of different columns."""
    body = lambda block: jax.lax.psum(block.sum(axis=0), ("x", "y"))
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


def column_sums__wrong_mean(x, *, mesh):
    """pmean: a sum divided by the devices along x."""
    body = lambda block: jax.lax.pmean(block.sum(axis=0), "x")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


def column_sums__wrong_over_y(x, *, mesh):
    """Adds over the axis that out_specs name."""
    body = lambda block: jax.lax.psum(block.sum(axis=0), "y")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


def column_sums__wrong_no_promise(x, *, mesh):
    """Makes no promise instead of keeping it: a row of sums for each device along x."""
    body = lambda block: block.sum(axis=0, keepdims=True)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


def centred_columns__right_psum(x, *, mesh):
    """The sum of all rows, divided by how many there are."""
    rows = x.shape[0]

    def on_device(block):
        return block - jax.lax.psum(block.sum(0), "x") / rows

    return jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


def centred_columns__wrong_own_mean(x, *, mesh):
    """The mean of the device's own rows."""
    body = lambda block: block - block.mean(0)
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


def centred_columns__wrong_block_length(x, *, mesh):
    """Divides the sum of all rows by the rows of one block."""
    body = lambda block: block - jax.lax.psum(block.sum(0), "x") / block.shape[0]
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


def centred_columns__wrong_one_mean(x, *, mesh):
    """One mean of everything, not one for each column."""
    body = lambda block: block - jax.lax.pmean(block.mean(), "x")
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


def centred_columns__wrong_names_y(x, *, mesh):
    """The specs name y, which is not manual."""
    body = lambda block: block - jax.lax.pmean(block.mean(0), "x")
    specs = P("x", "y")
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=specs, axis_names={"x"}))(x)


def layer_by_hand__right_written_out(x, w, b, *, mesh):
    def on_device(x, w, b):
        z = jax.lax.psum(jnp.einsum("nf,fk->nk", x, w), "x") + b[None, :]
        return jax.nn.sigmoid(z)

    specs = P("y", "x"), P("x"), P()
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


def layer_by_hand__wrong_bias_early(x, w, b, *, mesh):
    """Every device adds the bias."""
    body = lambda x, w, b: jax.nn.sigmoid(jax.lax.psum(x @ w + b, "x"))
    specs = P("y", "x"), P("x", None), P()
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


def layer_by_hand__wrong_sigmoid_early(x, w, b, *, mesh):
    """The sigmoid of parts."""
    body = lambda x, w, b: jax.lax.psum(jax.nn.sigmoid(x @ w), "x") + b
    specs = P("y", "x"), P("x", None), P()
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


def layer_by_hand__wrong_over_both(x, w, b, *, mesh):
    """Adds up different examples, too."""
    body = lambda x, w, b: jax.nn.sigmoid(jax.lax.psum(x @ w, ("x", "y")) + b)
    specs = P("y", "x"), P("x", None), P()
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


def layer_by_hand__wrong_mean(x, w, b, *, mesh):
    """pmean for psum."""
    body = lambda x, w, b: jax.nn.sigmoid(jax.lax.pmean(x @ w, "x") + b)
    specs = P("y", "x"), P("x", None), P()
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


vma_types__right_rules = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# a gather makes the copies agree, so its axis is taken away
vma_types__wrong_gather = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# b stays as it came in: no cast
vma_types__wrong_no_cast = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": set(),
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# a psum takes everything away
vma_types__wrong_psum_all = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": set(),
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# the axis that a collective names is the axis it varies over; what is made inside varies
vma_types__wrong_named = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"x"},
    "all_gather(block, 'y')": {"y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": {"x", "y"},
}
