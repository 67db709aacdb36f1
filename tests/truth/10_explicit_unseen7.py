"""Answers to lesson 10, seventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

# ---- four_answers

four_answers__right_TABLE = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# Thinks that the parts of the result are blocks, which everybody has to collect for the whole.
four_answers__wrong_GATHER = {
    "P()": "all_gather",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# Thinks that where the result is cut by columns every device has its columns finished already: the right operand gives them.
four_answers__wrong_COLUMNS_FREE = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "none",
    'P(unreduced={"x"})': "none",
}

# Reads "unreduced" as: reduced, but not gathered again, so a reduce_scatter.
four_answers__wrong_HALF_WAY = dict(
    zip(
        ("P()", 'P("x", None)', 'P(None, "x")', 'P(unreduced={"x"})'),
        ("all_reduce", "reduce_scatter", "reduce_scatter", "reduce_scatter"),
    )
)

# Thinks that a cut result means gathering the operand that is cut the other way: rows need B whole, columns A whole.
four_answers__wrong_GATHER_OPERAND = {
    "P()": "all_reduce",
    'P("x", None)': "all_gather",
    'P(None, "x")': "all_gather",
    'P(unreduced={"x"})': "none",
}


# ---- lora


def lora__right_SHARD_MAP(x, W, A, B, *, mesh):
    def on_device(x, W, A, B):
        first = jax.lax.axis_index("x") * W.shape[0]
        own_x = jax.lax.dynamic_slice_in_dim(x, first, W.shape[0], axis=1)
        return jax.lax.psum(own_x @ W + (x @ A) @ B, "x")

    specs = P(None, None), P("x", None), P(None, "x"), P("x", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P(None, None))(x, W, A, B)


# the way of the hints, with einsum
def lora__right_EINSUM(x, W, A, B, *, mesh):
    on = lambda *spec, **more: NamedSharding(mesh, P(*spec, **more))
    apart = on(unreduced={"x"})
    big = jnp.einsum("ij,jk->ik", reshard(x, on(None, "x")), W, out_sharding=apart)
    small = jnp.einsum("ir,rk->ik", x @ A, B, out_sharding=apart)
    return reshard(big + small, on())


# Finishes each of the two products by itself and adds the results: two all-reduces.
def lora__wrong_EACH_FINISHED(x, W, A, B, *, mesh):
    whole = NamedSharding(mesh, P())
    x_cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(x_cut, W, out_sharding=whole) + jnp.dot(x @ A, B, out_sharding=whole)


# Merges the adapter into the weight first, x · (W + A · B): one product with x, but A · B has a sum over devices of its own.
def lora__wrong_MERGED(x, W, A, B, *, mesh):
    delta = jnp.dot(A, B, out_sharding=NamedSharding(mesh, P("x", None)))
    x_cut = reshard(x, NamedSharding(mesh, P(None, "x")))
    return jnp.dot(x_cut, W + delta, out_sharding=NamedSharding(mesh, P()))


# Thinks that an unreduced array counts as whole on every device, and leaves out the last reshard.
def lora__wrong_NEVER_SUMMED(x, W, A, B, *, mesh):
    later = NamedSharding(mesh, P(unreduced={"x"}))
    x = reshard(x, NamedSharding(mesh, P()))
    left = jnp.dot(reshard(x, NamedSharding(mesh, P(None, "x"))), W, out_sharding=later)
    right = jnp.dot(jnp.dot(x, A), B, out_sharding=later)
    return left + right


# By hand, and every device takes the first columns of x, as many as it has rows of W: forgets its own place along x.
def lora__wrong_FIRST_COLUMNS(x, W, A, B, *, mesh):
    def body(x, w, a, b):
        parts = x[:, : w.shape[0]] @ w
        parts += x @ a @ b
        return jax.lax.psum(parts, "x")

    return jax.shard_map(
        body,
        mesh=mesh,
        in_specs=(P(), P("x", None), P(None, "x"), P("x", None)),
        out_specs=P(),
    )(x, W, A, B)


# ---- embed


def embed__right_FROM_TYPES(table, ids, *, mesh):
    rows = jax.typeof(ids).sharding.spec[0]  # x: who has which ids
    features = jax.typeof(table).sharding.spec[1]  # y: who has which columns
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P(rows, None, features)))


# Thinks of the ids only: the result is cut as they are, and its last dimension is whole.
def embed__wrong_AS_THE_IDS(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=NamedSharding(mesh, P("x", None, None)))


# Puts y on the second dimension of the result, because the columns are the second dimension of the table.
def embed__wrong_SECOND_DIMENSION(table, ids, *, mesh):
    layout = NamedSharding(mesh, P("x", "y", None))
    return table.at[ids].get(out_sharding=layout)


# Writes the right spec, but as a bare P, although no mesh is set.
def embed__wrong_BARE(table, ids, *, mesh):
    return table.at[ids].get(out_sharding=P("x", None, "y"))


# Thinks that a lookup needs whole rows of the table: gathers them, looks up, and cuts the result again.
def embed__wrong_WHOLE_ROWS(table, ids, *, mesh):
    def on(*spec):
        return NamedSharding(mesh, P(*spec))

    whole_table = reshard(table, on(None, None))
    looked_up = whole_table.at[ids].get(out_sharding=on("x", None, None))
    return reshard(looked_up, on("x", None, "y"))
