"""Answers to lesson 10, sixth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, auto_axes, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def differences(series):
    """Each row minus the one before it, the first minus the last."""
    return series - jnp.roll(series, 1, axis=0)


# -------------------------------------------------------------------- relaid


# Right: move first, add afterwards; the sum keeps the type.
def relaid__right_move_first(a, *, mesh):
    target = NamedSharding(mesh, P("y", "x"))
    return reshard(a, target) + 1


# This student thinks that y, x in place of x, y is a transposition: the type is right, the matrix is another.
def relaid__wrong_transposed(a, *, mesh):
    return (a + 1).T


# This student believes that reshard changes the array in place.
def relaid__wrong_in_place(a, *, mesh):
    result = a + 1
    reshard(result, NamedSharding(mesh, P("y", "x")))
    return result


# This student keeps the constraint of the tutorial and only hands over the mesh as well.
def relaid__wrong_constraint(a, *, mesh):
    return jax.lax.with_sharding_constraint(a + 1, NamedSharding(mesh, P("y", "x")))


# This student writes the two axes as a tuple: rows cut over both, columns whole.
def relaid__wrong_tuple(a, *, mesh):
    axes = ("y", "x")
    return reshard(a + 1, NamedSharding(mesh, P(axes)))


# -------------------------------------------------------------------- typeof

typeof__right_as_printed = {
    "jnp.sin(a).T": "float32[8@y, 16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x, 8@y]",
    "v[:, None] * w": "float32[16@x, 8@y]",
    "r @ s": "float32[32@x, 24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x, 8@y]",
}

# This student thinks that the axes belong to the places (first x, then y), and that only the lengths change places.
typeof__wrong_axes_stay = {
    "jnp.sin(a).T": "float32[8@x,16@y]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# This student thinks that where one operand is whole along a dimension (or stretched) the result is whole there.
typeof__wrong_whole_wins = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8]",
    "v[:, None] * w": "float32[16,8]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# This student takes sum(0) for "a sum in each row", and so keeps the rows.
typeof__wrong_other_dimension = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[16@x]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# This student thinks that after a sum over devices everything is whole: the reduced array, and a gradient (of a sum) too.
typeof__wrong_summed_is_whole = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16,8]",
}

# ------------------------------------------------------------------ borrowed


# Right: by hand; every device gets the last row of the one before it.
def borrowed__right_neighbour(series, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        from_before = jax.lax.ppermute(block[-1:], "x", [(d, (d + 1) % n) for d in range(n)])
        return block - jnp.concatenate([from_before, block[:-1]], axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# This student lets every device call the function on its own rows: the first row of a block meets the block's own last row.
def borrowed__wrong_local(series, *, mesh):
    spec = P("x", None)
    return jax.shard_map(differences, mesh=mesh, in_specs=spec, out_specs=spec)(series)


# This student thinks that what comes out of Auto axes has to be whole.
def borrowed__wrong_whole(series, *, mesh):
    return auto_axes(differences)(series, out_sharding=NamedSharding(mesh, P()))


# This student hands rows on, but only from 0 to n - 1: device 0 gets zeros, so that the first row is not "minus the last".
def borrowed__wrong_not_round(series, *, mesh):
    devices = mesh.shape["x"]

    def on_device(block):
        pairs = [(d, d + 1) for d in range(devices - 1)]
        before = jax.lax.ppermute(block[-1:], "x", pairs)
        shifted = jnp.concatenate([before, block[:-1]])
        return block - shifted

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# This student wraps only the roll, since that is what stops, and rolls the other way: each row minus the one *behind* it.
def borrowed__wrong_behind(series, *, mesh):
    here = NamedSharding(mesh, P("x", None))
    moved = auto_axes(lambda s: jnp.roll(s, -1, axis=0))(series, out_sharding=here)
    return series - moved
