"""Answers to lesson 10, twentieth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


# ---- modes

modes__right_SORTED = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# Explicit means that I write everything out myself, the collectives too.
modes__wrong_COLLECTIVES = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Explicit",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Explicit",
}

# Whoever writes a constraint says explicitly how the array is to be laid out.
modes__wrong_CONSTRAINT = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Explicit",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# Where the layout is in the type, the shape is the block's; the whole array's shape belongs to Auto.
modes__wrong_TYPEOFBLOCK = {
    "a.shape is that of one device's block": "Explicit",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Auto",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# On Explicit axes the compiler still writes the collectives, so it can also settle a sum of two layouts.
modes__wrong_SETTLED = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Explicit",
    "you overlap a ppermute with a product, step by step": "Manual",
}


# ---- relaid


def relaid__right_MOVEDFIRST(a, *, mesh):
    """Moved first, and then added to."""
    return reshard(a, NamedSharding(mesh, P("y", "x"))) + 1


# Exchanging the axes of the layout is a transpose: the type comes out as P("y", "x").
def relaid__wrong_TRANSPOSED(a, *, mesh):
    return (a + 1).T


# reshard changes the layout of the array that it is given, in place.
def relaid__wrong_INPLACE(a, *, mesh):
    b = a + 1
    reshard(b, NamedSharding(mesh, P("y", "x")))
    return b


# P takes the two axes as a tuple, as a shape does (and so cuts the rows over both).
def relaid__wrong_TUPLE(a, *, mesh):
    return reshard(a + 1, NamedSharding(mesh, P(("y", "x"))))


# The layout of a result is said with out_shardings, which jit has for that.
def relaid__wrong_OUTSHARDINGS(a, *, mesh):
    return jax.jit(lambda v: v + 1, out_shardings=NamedSharding(mesh, P("y", "x")))(a)


# ---- half_mesh


def half_mesh__right_RESHAPED(second, sizes):
    """Two halves of the shape asked for; take one."""
    halves = np.array(jax.devices()).reshape(2, *sizes.values())
    return jax.sharding.Mesh(halves[1 if second else 0], tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))


# Meshes are Explicit today when one does not ask (but that is make_mesh; Mesh gives Auto).
def half_mesh__wrong_AUTO(second, sizes):
    devices = np.array(jax.devices()[4:] if second else jax.devices()[:4])
    return jax.sharding.Mesh(devices.reshape(tuple(sizes.values())), tuple(sizes))


# All of the mesh is Explicit, so one type is enough for all axes (right for one axis only).
def half_mesh__wrong_ONETYPE(second, sizes):
    first = 4 if second else 0
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,), devices=jax.devices()[first : first + 4]
    )


# The second half are the last four, so take the first four of the list from behind (7, 6, 5, 4).
def half_mesh__wrong_FROMBEHIND(second, sizes):
    devices = jax.devices()[::-1][:4] if second else jax.devices()[:4]
    return jax.sharding.Mesh(
        np.array(devices).reshape(tuple(sizes.values())), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes)
    )


# A dict has no order that counts; "in their order" is x before y, so sort the names.
def half_mesh__wrong_ALPHABET(second, sizes):
    names = tuple(sorted(sizes))
    devices = jax.devices()[4:] if second else jax.devices()[:4]
    return jax.make_mesh(
        tuple(sizes[name] for name in names), names, axis_types=(AxisType.Explicit,) * len(names), devices=devices
    )
