"""Answers to lesson 07, twenty-third batch, written by a reader of the notebook only."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- name_the_case

name_the_case__right_byj = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# This student calls it case 3 whenever J carries a letter in both operands, whichever letters they are.
name_the_case__wrong_bothcut = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 3,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# This student thinks that a device which holds all of J can finish, and never looks at I and K.
name_the_case__wrong_jwhole = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 1,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# This student takes case 2 for "one operand is cut and the other whole", wherever the cut is.
name_the_case__wrong_onecut = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 2,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# This student slices the whole operand for free and so sees a part of the sum in row 1; and finds that A over two axes cannot match B over one.
name_the_case__wrong_slices = {
    "A[I, J] · B[J_Y, K]": 3,
    "A[I_Y, J_X] · B[J_X, K]": 2,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}


# ---------------------------------------------------------------- case4_gather_b


def case4_gather_b__right_stacked(a, b, *, mesh):
    def on_device(a, b):
        columns = jax.lax.all_gather(b, "x")  # [n, J, K/n]
        c = jnp.einsum("ij,njk->ink", a, columns)
        return c.reshape(a.shape[0], -1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# This student gathers without `tiled` and reshapes to the right shape, by which columns of B end up as pieces of rows.
def case4_gather_b__wrong_reshaped(a, b, *, mesh):
    def on_device(a, b):
        whole = jax.lax.all_gather(b, "x").reshape(b.shape[0], -1)
        return a @ whole

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# This student thinks that for C cut by rows the rows, so A, have to be gathered; C comes out as C[I, K_X].
def case4_gather_b__wrong_othercut(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


# This student holds every product on several devices for a part of a sum, and adds the rows of different devices.
def case4_gather_b__wrong_added(a, b, *, mesh):
    def on_device(a, b):
        whole = jax.lax.all_gather(b, "x", axis=1, tiled=True)
        return jax.lax.psum(a @ whole, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# This student gathers both operands to be safe, computes all of C everywhere, and keeps the device's own rows.
def case4_gather_b__wrong_bothgathered(a, b, *, mesh):
    def on_device(a, b):
        rows = a.shape[0]
        c = jax.lax.all_gather(a, "x", axis=0, tiled=True) @ jax.lax.all_gather(b, "x", axis=1, tiled=True)
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("x") * rows, rows, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# ---------------------------------------------------------------- find_the_mistake

find_the_mistake__right_looked = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}

# This student draws x across and y down, so that devices 1 and 3 stand at x = 1.
find_the_mistake__wrong_across = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [1, 3],
    "computable": "C[0:2, 0:2]",
}

# This student thinks that whoever has rows of A has what it takes for these rows of C.
find_the_mistake__wrong_rowsofc = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:4]",
}

# This student thinks that an array without a layout is like P(): a copy on each device of the process.
find_the_mistake__wrong_nolayout = {
    "gathered": "A",
    "replicated": 8,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}

# This student believes that axis names do not care for capitals, and that a contraction needs J of both operands to travel.
find_the_mistake__wrong_capitals = {
    "gathered": "A and B",
    "replicated": 1,
    "axis_name": "a gather",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}
