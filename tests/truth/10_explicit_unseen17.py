"""Answers to lesson 10, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


# ---------------------------------------------------------------- modes

modes__right_table = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# This student thought that whoever writes a layout down is explicit, so that a constraint belongs to Explicit.
modes__wrong_constraint = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Explicit",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# This student thought that a collective which one calls by name is explicit communication.
modes__wrong_collectives = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Explicit",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Explicit",
}

# This student mixed up Auto and Explicit: "the compiler knows the types by itself, and I say them where I want it explicit".
modes__wrong_exchanged = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Auto",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Explicit",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Explicit",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# This student read 16@x as "16 rows on each device along x", so that an Explicit array has its block's shape.
modes__wrong_per_device = {
    "a.shape is that of one device's block": "Explicit",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}


# ---------------------------------------------------------------- explicit_layer


def explicit_layer__right_manual(a, b, *, mesh):
    def on_device(a_block, b_block):
        return jax.nn.relu(jax.lax.psum(a_block @ b_block, "y"))

    specs = P("x", "y"), P("y", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("x", None))(a, b)


# This student thought that relu may be taken of the parts, and the parts added afterwards.
def explicit_layer__wrong_parts(a, b, *, mesh):
    def on_device(a_block, b_block):
        return jax.lax.psum(jax.nn.relu(a_block @ b_block), "y")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# This student thought that a finished sum is whole on every device, and forgot the rows' cut over x.
def explicit_layer__wrong_everywhere(a, b, *, mesh):
    product = jnp.dot(a, b, out_sharding=NamedSharding(mesh, P()))
    return jax.nn.relu(product)


# This student thought that the cut of the contracted dimension must go before the product, and gathered both operands.
def explicit_layer__wrong_gathered(a, b, *, mesh):
    a = reshard(a, NamedSharding(mesh, P("x", None)))
    b = reshard(b, NamedSharding(mesh, P(None, None)))
    return jax.nn.relu(a @ b)


# This student thought that it is enough to say the layout of the product after it has been made.
def explicit_layer__wrong_afterwards(a, b, *, mesh):
    return jax.nn.relu(reshard(a @ b, NamedSharding(mesh, P("x", None))))


# ---------------------------------------------------------------- lora


def lora__right_manual(x, W, A, B, *, mesh):
    def on_device(x_columns, x, w_rows, a_columns, b_rows):
        part = x_columns @ w_rows + (x @ a_columns) @ b_rows
        return jax.lax.psum(part, "x")

    x_cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    specs = P(None, "x"), P(None, None), P("x", None), P(None, "x"), P("x", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P(None, None))(x_cut, x, W, A, B)


# This student finished each of the two products by itself, and then added: two all-reduces.
def lora__wrong_each(x, W, A, B, *, mesh):
    whole = NamedSharding(mesh, P())
    x_cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    base = jnp.dot(x_cut, W, out_sharding=whole)
    adapter = jnp.dot(x @ A, B, out_sharding=whole)
    return base + adapter


# This student thought that x, being whole, needs a whole W, so that only the adapter has a sum over devices.
def lora__wrong_gathered(x, W, A, B, *, mesh):
    whole = NamedSharding(mesh, P())
    return x @ reshard(W, whole) + jnp.dot(x @ A, B, out_sharding=whole)


# This student left both unreduced as one should, but ended with the sum cut by columns, as it is cheaper.
def lora__wrong_cut(x, W, A, B, *, mesh):
    later = NamedSharding(mesh, P(unreduced={"x"}))
    columns = NamedSharding(mesh, P(None, "x"))
    total = jnp.dot(reshard(x, columns), W, out_sharding=later)
    total = total + jnp.dot(x @ A, B, out_sharding=later)
    return reshard(total, columns)


# This student took the columns of x · A, cut along the rank, for parts of a sum, and added them up before B.
def lora__wrong_rank(x, W, A, B, *, mesh):
    def on_device(x_columns, x, w, a, b):
        low = jax.lax.psum(x @ a, "x")
        return jax.lax.psum(x_columns @ w + low @ b, "x")

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(None, "x"), P(), P("x", None), P(None, "x"), P("x", None)),
        out_specs=P(),
    )(reshard(x, NamedSharding(mesh, P(None, "x"))), x, W, A, B)
