"""Answers to lesson 10, fifteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


# ---- embed


def embed__right_on_each_device(table, ids, *, mesh):
    def look_up(columns, some_ids):
        return columns[some_ids]

    specs = P(None, "y"), P("x", None)
    return jax.shard_map(look_up, mesh=mesh, in_specs=specs, out_specs=P("x", None, "y"))(table, ids)


# The result is laid out as the ids are, and an embedding itself is always whole.
def embed__wrong_as_the_ids(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, None)))


# The table stands first in table[ids], so that its axis comes first in the result, too.
def embed__wrong_axes_in_order_of_arguments(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("y", None, "x")))


# A lookup gives one row for each number: a list of rows, and forgets to make B x 3 of it again.
def embed__wrong_list_of_rows(table, ids, *, mesh):
    return table.at[ids.reshape(-1)].get(out_sharding=NamedSharding(mesh, P("x", "y")))


# The looked-up dimension is whole in the table, so the rows found are whole as well; only y remains.
def embed__wrong_rows_whole(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P(None, None, "y")))


# ---- modes

_claims = (
    "a.shape is that of one device's block",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut",
    "you call jax.lax.psum",
    "a is whole to you, and with_sharding_constraint moves it",
    "rows-cut + columns-cut runs, and the compiler picks the layout",
    "you overlap a ppermute with a product, step by step",
)
modes__right_zipped = dict(zip(_claims, ("Manual", "Explicit", "Manual", "Auto", "Auto", "Manual")))

# Explicit means that I write explicitly what is sent, so also the psum and the ppermute.
modes__wrong_explicit_collectives = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Explicit",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Explicit",
}

# The type tells how the array is cut, so it tells the block's shape; the typeof with the whole shape is Auto's.
modes__wrong_type_is_the_block = {
    "a.shape is that of one device's block": "Explicit",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Auto",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# Whoever says how a value is laid out is in the mode where layouts are said: a constraint is Explicit.
modes__wrong_constraint_is_explicit = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Explicit",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# In Explicit mode the compiler writes the collectives, so it also reconciles the layouts; overlapping is the compiler's job.
modes__wrong_compiler_does_it = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Explicit",
    "you overlap a ppermute with a product, step by step": "Auto",
}


# ---- explicit_layer


def explicit_layer__right_put_off(a, b, *, mesh):
    parts = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P("x", None, unreduced={"y"})))
    return jax.nn.relu(reshard(parts, NamedSharding(mesh, P("x", None))))


# relu works entry by entry, so each device can apply it to its part before the parts are added.
def explicit_layer__wrong_relu_of_parts(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum(jax.nn.relu(a @ b), "y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# The two sides of the contraction are made whole, then nothing is ambiguous (but both operands are gathered).
def explicit_layer__wrong_gathered(a, b, *, mesh):
    a = reshard(a, NamedSharding(mesh, P("x", None)))
    b = reshard(b, NamedSharding(mesh, P(None, None)))
    return jax.nn.relu(a @ b)


# The product has an x from the rows of A and a y from B, so it is cut over both.
def explicit_layer__wrong_cut_over_y(a, b, *, mesh):
    product = jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(mesh, P("x", "y")))
    return jax.nn.relu(product)


# Every device along y has the product of its half, and the layer wants their mean.
def explicit_layer__wrong_mean_of_parts(a, b, *, mesh):
    def body(a, b):
        return jax.nn.relu(jax.lax.pmean(a @ b, "y"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)
