"""Answers to lesson 10, ninth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, auto_axes, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


# ---- explicit_layer


def explicit_layer__right_einsum(a, b, *, mesh):
    rows_only = NamedSharding(mesh, P("x", None))
    finished = jnp.einsum("ij,jk->ik", a, b, out_sharding=rows_only)
    return jnp.maximum(finished, 0)


# Thought: rule 2 stops because both sides of the contraction are cut, so I make them whole first, and then the product needs no out_sharding.
def explicit_layer__wrong_whole_before(a, b, *, mesh):
    a = reshard(a, NamedSharding(mesh, P("x", None)))
    b = reshard(b, NamedSharding(mesh, P(None, None)))
    return jax.nn.relu(a @ b)


# Thought: an all_reduce is a reduce_scatter and an all_gather, so I let the product be scattered over y and gather it at the end, relu on the small blocks is cheaper.
def explicit_layer__wrong_scatter_then_gather(a, b, *, mesh):
    blocks = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", "y")))
    return reshard(jax.nn.relu(blocks), NamedSharding(mesh, P("x", None)))


# Thought: relu does not mix entries, so each device along y may do it to its own part, and the sum is made last (unreduced is refused by relu, so I write it per device).
def explicit_layer__wrong_relu_of_parts(a, b, *, mesh):
    def on_device(a_block, b_block):
        part = jax.nn.relu(a_block @ b_block)
        return jax.lax.psum(part, "y")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# Thought: out_sharding says how the sum is to be laid out when it is made, so it must be whole for an all-reduce; afterwards cutting over x costs nothing.
def explicit_layer__wrong_everywhere_then_cut(a, b, *, mesh):
    product = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P()))
    activated = jax.nn.relu(product)
    return reshard(activated, NamedSharding(mesh, P("x", None)))


# ---- embed


def embed__right_spec_of_types(table, ids, *, mesh):
    batch = jax.typeof(ids).sharding.spec[0]
    features = jax.typeof(table).sharding.spec[1]
    layout = NamedSharding(mesh, P(batch, None, features))
    return table.at[ids, :].get(out_sharding=layout)


# Thought: what a lookup picks is whole rows of the table, so the rows must come out whole first, and then I cut them over y for the asked layout.
def embed__wrong_whole_rows_first(table, ids, *, mesh):
    picked = table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, None)))
    return reshard(picked, NamedSharding(mesh, P("x", None, "y")))


# Thought: the result keeps the table's layout, and the ids are small, so everybody gets all of them.
def embed__wrong_ids_everywhere(table, ids, *, mesh):
    everyone = reshard(ids, NamedSharding(mesh, P(None, None)))
    return table.at[everyone].get(out_sharding=NamedSharding(mesh, P(None, None, "y")))


# Thought: an embedding of three numbers is the sum of their three vectors, and the sum runs over a dimension that is not cut, so nothing is sent.
def embed__wrong_sum_of_the_three(table, ids, *, mesh):
    vectors = table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, "y")))
    return vectors.sum(axis=1)


# Thought: out_sharding is an answer for the batch only; x cuts the rows and y the columns of one mesh, so the rows of the result can be cut over both together.
def embed__wrong_rows_over_both(table, ids, *, mesh):
    layout = NamedSharding(mesh, P(("x", "y"), None, None))
    return auto_axes(lambda t, i: t[i])(table, ids, out_sharding=layout)


# ---- relaid


def relaid__right_move_before(a, *, mesh):
    target = NamedSharding(mesh, P("y", "x"))
    return jnp.add(reshard(a, target), 1)


# Thought: a type of P("x","y") becomes P("y","x") by a transposition, and that sends nothing at all.
def relaid__wrong_transposed(a, *, mesh):
    return (a + 1).T


# Thought: the tutorial's line only lacks the mesh for its bare P, so I set one around it.
def relaid__wrong_constraint_with_mesh(a, *, mesh):
    with jax.set_mesh(mesh):
        return jax.lax.with_sharding_constraint(a + 1, P("y", "x"))


# Thought: reshard changes the type of the array that it gets, so I can go on with the same name.
def relaid__wrong_result_dropped(a, *, mesh):
    result = a + 1
    reshard(result, NamedSharding(mesh, P("y", "x")))
    return result


# Thought: the rows go to y first and then the columns to x, one move after the other; the entry that I do not name stays as it is, so the last spec only names x.
def relaid__wrong_two_moves(a, *, mesh):
    moved = reshard(a + 1, NamedSharding(mesh, P("y", None)))
    return reshard(moved, NamedSharding(mesh, P(None, "x")))
