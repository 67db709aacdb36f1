"""Answers to lesson 10, fifth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


# ---- explicit_layer


def explicit_layer__right_einsum(a, b, *, mesh):
    rows = NamedSharding(mesh, P("x", None))
    product = jnp.einsum("ij,jk->ik", a, b, out_sharding=rows)
    return jnp.where(product > 0, product, 0)


# Thought that the sum over y makes the result whole, on all devices.
def explicit_layer__wrong_whole(a, b, *, mesh):
    return jax.nn.relu(jnp.dot(a, b, out_sharding=NamedSharding(mesh, P())))


# Gathered along y first, so that no rule stops: right numbers and layout, but gathers in place of the all-reduce.
def explicit_layer__wrong_gathered(a, b, *, mesh):
    a = reshard(a, NamedSharding(mesh, P("x", None)))
    b = reshard(b, NamedSharding(mesh, P()))
    return jax.nn.relu(a @ b)


# Went on by hand, and took relu of each device's part before the parts are added.
def explicit_layer__wrong_parts(a, b, *, mesh):
    def on_device(p, q):
        return jax.lax.psum(jax.nn.relu(p @ q), "y")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# Thought that a constraint on the product says what is missing, as on an Auto mesh.
def explicit_layer__wrong_constraint(a, b, *, mesh):
    product = jax.lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", None)))
    return jax.nn.relu(product)


# ---- modes

modes__right_table = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# Thought that a constraint is the explicit way to say a layout.
modes__wrong_constraint = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Explicit",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# Thought that to write a collective is to be explicit.
modes__wrong_collectives = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Explicit",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Explicit",
}

# Thought that on Explicit axes the compiler settles a disagreement, since it writes the collectives there.
modes__wrong_compiler = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Explicit",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# Thought that a type that names axes is the type of a block, and that the whole array is seen in Auto only.
modes__wrong_typeofblock = {
    "a.shape is that of one device's block": "Explicit",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Auto",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}


# ---- embed


def embed__right_by_hand(table, ids, *, mesh):
    look_up = jax.shard_map(
        lambda part, rows: part[rows], mesh=mesh, in_specs=(P(None, "y"), P("x", None)), out_specs=P("x", None, "y")
    )
    return look_up(table, ids)


# Thought of the batch only: the columns are gathered.
def embed__wrong_batch(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, None)))


# Thought that what is looked up is laid out as the table is: every device looks up all ids.
def embed__wrong_astable(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P(None, None, "y")))


# Put the axes in the order of the arguments, the table's first.
def embed__wrong_order(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("y", None, "x")))


# Flattened the ids and left the result as a matrix, one row for each id.
def embed__wrong_flat(table, ids, *, mesh):
    return table.at[ids.reshape(-1)].get(out_sharding=NamedSharding(mesh, P("x", "y")))
