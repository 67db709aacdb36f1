"""Answers to lesson 10, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


# ---------------------------------------------------------------- relaid


def relaid__right_moved_first(a, *, mesh):
    return reshard(a, NamedSharding(mesh, P("y", "x"))) + 1


# This student thought that the constraint only lacked its mesh, and that with a NamedSharding it holds on Explicit axes too.
def relaid__wrong_constraint(a, *, mesh):
    return jax.lax.with_sharding_constraint(a + 1, NamedSharding(mesh, P("y", "x")))


# This student looked at the types alone: transposing turns [@x, @y] into [@y, @x] (and the array with it).
def relaid__wrong_transposed(a, *, mesh):
    return (a + 1).T


# This student thought that reshard changes the array that it is given.
def relaid__wrong_in_place(a, *, mesh):
    result = a + 1
    reshard(result, NamedSharding(mesh, P("y", "x")))
    return result


# This student read "y and x" as two axes for the first dimension.
def relaid__wrong_rows_over_both(a, *, mesh):
    return reshard(a + 1, NamedSharding(mesh, P(("y", "x"), None)))


# ---------------------------------------------------------------- explicit_layer


def explicit_layer__right_manual(a, b, *, mesh):
    def on_device(block, rows):
        return jax.nn.relu(jax.lax.psum(block @ rows, "y"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# This student takes relu on each device and adds afterwards: relu of the parts instead of relu of the sum.
def explicit_layer__wrong_relu_of_parts(a, b, *, mesh):
    def on_device(block, rows):
        return jax.lax.psum(jax.nn.relu(block @ rows), "y")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# This student thought that a finished sum is whole everywhere, as in the example above the exercise: P().
def explicit_layer__wrong_whole(a, b, *, mesh):
    return jax.nn.relu(jnp.dot(a, b, out_sharding=NamedSharding(mesh, P())))


# This student makes the contracted dimension whole first, so that no rule objects: all_gathers in place of the all_reduce.
def explicit_layer__wrong_gathered(a, b, *, mesh):
    a = reshard(a, NamedSharding(mesh, P("x", None)))
    b = reshard(b, NamedSharding(mesh, P(None, None)))
    return jax.nn.relu(a @ b)


# This student thought that the open layout can be settled afterwards, by a reshard of the result (the product has none).
def explicit_layer__wrong_reshard_after(a, b, *, mesh):
    return reshard(jax.nn.relu(a @ b), NamedSharding(mesh, P("x", None)))


# ---------------------------------------------------------------- embed


def embed__right_manual(table, ids, *, mesh):
    def look_up(columns, numbers):
        return columns[numbers]

    specs = P(None, "y"), P("x", None)
    return jax.shard_map(look_up, mesh=mesh, in_specs=specs, out_specs=P("x", None, "y"))(table, ids)


# This student thought that a looked-up row is a whole row of the table: the columns come out whole, and are gathered.
def embed__wrong_whole_columns(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, None)))


# This student thought "rows from ids, columns from the table", and forgot the 3: y stands at the second dimension of three.
def embed__wrong_two_entries(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", "y")))


# This student thought that what the devices along y look up are parts of a sum, as where a table is cut by rows.
def embed__wrong_added_up(table, ids, *, mesh):
    def look_up(columns, numbers):
        return jax.lax.psum(columns[numbers], "y")

    specs = P(None, "y"), P("x", None)
    return jax.shard_map(look_up, mesh=mesh, in_specs=specs, out_specs=P("x", None, None))(table, ids)


# This student made one long list of the ids so that a spec of two entries fits, and forgot to give B x 3 back.
def embed__wrong_flattened(table, ids, *, mesh):
    return table.at[ids.reshape(-1)].get(out_sharding=NamedSharding(mesh, P("x", "y")))
