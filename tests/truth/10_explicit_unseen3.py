"""Answers to lesson 10, third batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

# ---------------------------------------------------------------- modes

modes__right_all = {
    "a.shape is that of one device's block": "Manual",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Explicit",
    "you call jax.lax.psum": "Manual",
    "a is whole to you, and with_sharding_constraint moves it": "Auto",
    "rows-cut + columns-cut runs, and the compiler picks the layout": "Auto",
    "you overlap a ppermute with a product, step by step": "Manual",
}

# In Explicit mode I say where things go, so a constraint moves them there.
modes__wrong_constraint = {
    **modes__right_all,
    "a is whole to you, and with_sharding_constraint moves it": "Explicit",
}

# Explicit means that I write every communication myself, so psum and ppermute belong to it.
modes__wrong_myself = {
    **modes__right_all,
    "you call jax.lax.psum": "Explicit",
    "you overlap a ppermute with a product, step by step": "Explicit",
}

# Overlapping is what the compiler does with its scheduler.
modes__wrong_overlap = {
    **modes__right_all,
    "you overlap a ppermute with a product, step by step": "Auto",
}

# The type shows how it is cut, so its shape is that of the piece, in Explicit; and the whole array with its layout is what Auto has.
modes__wrong_shapes = {
    **modes__right_all,
    "a.shape is that of one device's block": "Explicit",
    "a.shape is that of the whole array, and jax.typeof(a) shows how it is cut": "Auto",
}

# ---------------------------------------------------------------- unreduced

unreduced__right_all = {
    "p + p": "yes",
    "jnp.cos(p)": "no",
    "p * p": "no",
    "p + N": "no",
    "reshard(p, whole)": "yes",
}

# N is the same on every device, so it cannot disturb the sum.
unreduced__wrong_whole = {**unreduced__right_all, "p + N": "yes"}

# p + p is allowed as both have the same type, so p * p is as well.
unreduced__wrong_product = {**unreduced__right_all, "p * p": "yes"}

# As long as a sum is not finished nothing may be computed with it: first reshard.
unreduced__wrong_nothing = {**unreduced__right_all, "p + p": "no"}

# reshard only moves data and adds nothing up; that is what psum is for.
unreduced__wrong_reshard = {**unreduced__right_all, "reshard(p, whole)": "no"}

# ---------------------------------------------------------------- half_mesh


def half_mesh__right_grid(second, sizes):
    mine = np.array([device for device in jax.devices()[:8] if (device.id >= 4) == bool(second)])
    grid = mine.reshape([length for length in sizes.values()])
    return jax.sharding.Mesh(grid, tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))


# make_mesh takes the first devices it finds, so for the second half I go four places further: [4:] or [:4] the wrong way for the flag.
def half_mesh__wrong_flag(second, sizes):
    half = jax.devices()[:4] if second else jax.devices()[4:8]
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=half
    )


# Every second device is also one half of the machine.
def half_mesh__wrong_every_other(second, sizes):
    half = jax.devices()[int(second) : 8 : 2]
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=half
    )


# Mesh makes it from the grid; the type of the axes is Explicit nowadays without my saying so.
def half_mesh__wrong_default_type(second, sizes):
    grid = np.array(jax.devices()[4:8] if second else jax.devices()[:4]).reshape(tuple(sizes.values()))
    return jax.sharding.Mesh(grid, tuple(sizes))


# A half is 2 x 2, with axes x and y.
def half_mesh__wrong_square(second, sizes):
    start = 4 if second else 0
    return jax.make_mesh(
        (2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2, devices=jax.devices()[start : start + 4]
    )
