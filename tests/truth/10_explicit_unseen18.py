"""Answers to lesson 10, eighteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, auto_axes, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def differences(series):
    """Each row minus the one before it, the first minus the last."""
    return series - jnp.roll(series, 1, axis=0)


# --------------------------------------------------------------------- embed


def embed__right_FROMTYPES(table, ids, *, mesh):
    batch, three = jax.typeof(ids).sharding.spec
    columns = jax.typeof(table).sharding.spec[1]
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P(batch, three, columns)))


# The rows of the result come from ids, so they are cut over x; an embedding vector has to be whole to be of use.
def embed__wrong_WHOLEVECTORS(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, None)))


# What is looked up is laid out as the table is: its last dimension over y, and the ids' dimensions are whole.
def embed__wrong_ASTABLE(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P(None, None, "y")))


# The ids bring x and the table brings y, so the spec is P("x", "y"), and what is left out at the end is whole.
def embed__wrong_TWOENTRIES(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", "y")))


# In table[ids] the table comes first, so its axis y comes first in the result, and x of ids goes to what is behind.
def embed__wrong_TABLEFIRST(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("y", None, "x")))


# -------------------------------------------------------------- four_answers

four_answers__right_MIXED = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "all_reduce",
    'P(unreduced={"x"})': "none",
}

# To have the result whole on every device one gathers what the devices have.
four_answers__wrong_GATHERWHOLE = {
    "P()": "all_gather",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# A sum that stays cut over x needs nobody else: every device keeps the block that it has computed.
four_answers__wrong_KEEPS = {
    "P()": "all_reduce",
    'P("x", None)': "none",
    'P(None, "x")': "none",
    'P(unreduced={"x"})': "none",
}

# For cut rows each device needs whole rows of the left one, so gather that; only the right one's columns can be scattered.
four_answers__wrong_ROWSGATHER = {
    "P()": "all_reduce",
    'P("x", None)': "all_gather",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# Unreduced means that the parts are spread over the devices, and spreading a sum's parts is a reduce_scatter.
four_answers__wrong_UNREDUCED = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "reduce_scatter",
}


# ------------------------------------------------------------------ borrowed


def borrowed__right_PERMUTE(series, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        before = jax.lax.ppermute(block[-1:], "x", [(k, (k + 1) % n) for k in range(n)])
        return block - jnp.concatenate([before, block[:-1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# Inside shard_map no rule about types applies, so the borrowed function can run there as it is.
def borrowed__wrong_OWNBLOCK(series, *, mesh):
    cut = P("x", None)
    return jax.shard_map(differences, mesh=mesh, in_specs=cut, out_specs=cut)(series)


# Roll stops along a cut dimension, so make it whole first, and cut the result again.
def borrowed__wrong_WHOLEFIRST(series, *, mesh):
    whole = reshard(series, NamedSharding(mesh, P(None, None)))
    return reshard(differences(whole), NamedSharding(mesh, P("x", None)))


# Each device gets the last row of the one before it; the first device has none before it.
def borrowed__wrong_NOWRAP(series, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        before = jax.lax.ppermute(block[-1:], "x", [(k, k + 1) for k in range(n - 1)])
        return block - jnp.concatenate([before, block[:-1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# All devices of the mesh should have something of the result, so the rows are cut over both axes when it comes out.
def borrowed__wrong_BOTHAXES(series, *, mesh):
    return auto_axes(differences)(series, out_sharding=NamedSharding(mesh, P(("x", "y"), None)))
