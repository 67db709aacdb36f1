"""Answers to lesson 10, tenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, auto_axes, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


def differences(series):
    """Each row minus the one before it, the first minus the last."""
    return series - jnp.roll(series, 1, axis=0)


# -------------------------------------------------------------------- typeof

typeof__right_traced = {
    "jnp.sin(a).T": "float32[8@y, 16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x, 8@y]",
    "v[:, None] * w": "float32[16@x, 8@y]",
    "r @ s": "float32[32@x, 24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x, 8@y]",
}

# Thought: the summed dimension was cut over x, so every device has a part only, and the type must say that the sum over x is not made.
typeof__wrong_left_unreduced = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]{U:x}",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# Thought: where a whole dimension (the new one of length 1) meets a cut one, they agree on whole.
typeof__wrong_whole_wins = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8]",
    "v[:, None] * w": "float32[16,8]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# Thought: a transpose exchanges the lengths; the mesh's first axis still cuts the first dimension, so that nothing is sent.
typeof__wrong_axes_stay = {
    "jnp.sin(a).T": "float32[8@x,16@y]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# Thought: the sum is one whole number that is the same on all devices, and so the gradient that starts from it is whole on all devices.
typeof__wrong_gradient_whole = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16,8]",
}


# ------------------------------------------------------------------ borrowed


def borrowed__right_wrapped(series, *, mesh):
    as_it_came = NamedSharding(mesh, P("x", None))
    without_types = auto_axes(lambda rows: differences(rows))
    return without_types(series, out_sharding=as_it_came)


# Thought: roll needs its dimension whole, so lay the series out whole, take the differences, and cut the result again.
def borrowed__wrong_whole_in_between(series, *, mesh):
    whole = reshard(series, NamedSharding(mesh, P()))
    return reshard(differences(whole), NamedSharding(mesh, P("x", None)))


# Thought: in a shard_map there are no types to stop the roll, and the specs say that rows stay where they are.
def borrowed__wrong_block_by_block(series, *, mesh):
    return jax.shard_map(differences, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# Thought: each device lacks the row before its first one, and gets it from its neighbour; device 0 has nobody before it.
def borrowed__wrong_nobody_before_the_first(series, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        before = jax.lax.ppermute(block[-1:], "x", [(k, k + 1) for k in range(n - 1)])
        return block - jnp.concatenate([before, block[:-1]])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(series)


# Thought: those are the differences of neighbouring rows, closed to a circle: jnp.diff with the first row once more at the end.
def borrowed__wrong_next_minus_this(series, *, mesh):
    def around(rows):
        return jnp.diff(rows, axis=0, append=rows[:1])

    return auto_axes(around)(series, out_sharding=NamedSharding(mesh, P("x", None)))


# ----------------------------------------------------------------- half_mesh


def half_mesh__right_reshaped(second, sizes):
    halves = np.array(jax.devices()).reshape(2, *sizes.values())
    return jax.sharding.Mesh(halves[1 if second else 0], tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))


# Thought: make_mesh takes the first devices of the list, so for the second half the list is handed over from its end.
def half_mesh__wrong_from_the_end(second, sizes):
    devices = jax.devices()[::-1] if second else jax.devices()
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=devices
    )


# Thought: a half is what one place along the 4 x 2 mesh's y axis holds: every other device.
def half_mesh__wrong_every_other(second, sizes):
    half = jax.devices()[int(second) :: 2]
    return jax.make_mesh(
        tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes), devices=half
    )


# Thought: Explicit is what a mesh is when nobody says anything, and Mesh keeps the devices' order better than make_mesh.
def half_mesh__wrong_by_default(second, sizes):
    start = 4 if second else 0
    devices = np.array(jax.devices()[start : start + 4]).reshape(tuple(sizes.values()))
    return jax.sharding.Mesh(devices, tuple(sizes))


# Thought: the first axis is counted first, so the devices in their order run along x before y goes on.
def half_mesh__wrong_first_axis_fastest(second, sizes):
    half = np.array(jax.devices()[4:] if second else jax.devices()[:4])
    return jax.sharding.Mesh(
        half.reshape(tuple(sizes.values()), order="F"), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes)
    )
