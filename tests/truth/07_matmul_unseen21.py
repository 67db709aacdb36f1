"""Answers to lesson 07, twenty-first batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- case3_layer
def case3_layer__right_oneaddsbias(a, b, bias, *, mesh):
    """relu(A[I, J_X] · B[J_X, K] + bias[K]) → [I, K]."""

    def on_device(a, b, bias):
        once = jnp.where(jax.lax.axis_index("x") == 0, bias, 0)  # exactly one term of the sum has the bias
        return jnp.maximum(jax.lax.psum(a @ b + once, "x"), 0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# This student adds the bias where the product is made, on every device, so that the psum adds it n times.
def case3_layer__wrong_biasoneach(a, b, bias, *, mesh):
    def on_device(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b + bias, "x"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# This student shares the bias out fairly, but then takes the whole layer, relu included, for a sum over devices.
def case3_layer__wrong_reluofparts(a, b, bias, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b, bias):
        return jax.lax.psum(jax.nn.relu(a @ b + bias / n), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# This student waits with bias and relu for the sum, but takes them in the wrong order: relu(A·B) + bias.
def case3_layer__wrong_biaslast(a, b, bias, *, mesh):
    def on_device(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b, "x")) + bias

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# This student wants the result whole on every device and so adds over all axes; along y there are copies, no parts.
def case3_layer__wrong_allaxes(a, b, bias, *, mesh):
    def on_device(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b, tuple(mesh.axis_names)) + bias)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# ---------------------------------------------------------------- local_shapes
_I, _J, _X, _Y = 16, 32, 4, 2

local_shapes__right_divided = {
    "A[I_X, J]": (_I // _X, _J),
    "A[I, J_X]": (_I, _J // _X),
    "A[I_X, J_Y]": (_I // _X, _J // _Y),
    "A[I_Y, J_X]": (_I // _Y, _J // _X),
    "A[I, J_XY]": (_I, _J // (_X * _Y)),
    "A[I, J]": (_I, _J),
}

# This student thinks that the first dimension always goes with the mesh's first axis, whatever the letter.
local_shapes__wrong_byposition = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (4, 16),
    "A[I, J_XY]": (16, 4),
    "A[I, J]": (16, 32),
}

# This student reads the letters XY below J as the cuts of the whole matrix: x for its rows, y for its columns.
local_shapes__wrong_xyforboth = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (4, 16),
    "A[I, J]": (16, 32),
}

# This student lets the axis that is not named cut the other dimension: there are eight devices, so eight blocks.
local_shapes__wrong_restaxis = {
    "A[I_X, J]": (4, 16),
    "A[I, J_X]": (8, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (16, 4),
    "A[I, J]": (4, 16),
}

# This student lets only the last letter count: J_XY is cut by y, the axis that runs fastest.
local_shapes__wrong_lastletter = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (16, 16),
    "A[I, J]": (16, 32),
}

# ---------------------------------------------------------------- name_the_case
name_the_case__right_lookatJ = dict(
    zip(
        [
            "A[I, J] · B[J_Y, K]",
            "A[I_Y, J_X] · B[J_X, K]",
            "A[I_Y, J] · B[J, K_Y]",
            "A[I, J_X] · B[J_Y, K]",
            "A[I_X, J] · B[J, K]",
            "A[I, J_XY] · B[J_XY, K]",
        ],
        [2, 3, 4, 2, 1, 3],
    )
)

# This student sees J cut in both operands, and takes that for case 3 whichever the axes are.
name_the_case__wrong_cutinboth = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 3,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# This student stops after the look at J: if it is whole in both, nothing is missing.
name_the_case__wrong_onlyJ = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 1,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# This student counts the operands that are cut: one is case 2, both over the same axis is case 3.
name_the_case__wrong_countscut = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 3,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 2,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# This student asks only whether two dimensions want the same axis: x and y do not get in each other's way, so case 1; two axes on J do (4).
name_the_case__wrong_clashonly = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 1,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 4,
}
