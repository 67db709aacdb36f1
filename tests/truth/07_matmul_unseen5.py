"""Answers to lesson 07, fifth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- name_the_case

name_the_case__right_j_first = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# Thought that J cut in both operands makes parts of a sum, whatever the axes.
name_the_case__wrong_bothcut = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 3,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# Thought that where J is whole nothing is missing, and did not look at I and K.
name_the_case__wrong_jwhole = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 1,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# Thought that one operand that is cut, and one that is whole, is case 2.
name_the_case__wrong_onecut = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 2,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# Thought that two different axes in one product get in each other's way: a device is on the diagonal only.
name_the_case__wrong_twoaxes = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 4,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 4,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}


# ---- two_axis


def two_axis__right_tensordot(a, b, *, mesh):
    def row_of_devices(p, q):
        terms = jnp.tensordot(p, q, axes=1)
        return jax.lax.psum(terms, axis_name="y")

    return jax.shard_map(row_of_devices, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))(a, b)


# Copied case3 and its sum over x; JAX complained about what varies, and so the check was turned off.
def two_axis__wrong_overx(a, b, *, mesh):
    def on_device(p, q):
        return jax.lax.psum(p @ q, "x")

    specs = P("x", "y"), P("y", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("x", None), check_vma=False)(a, b)


# Thought that out_specs cut the columns of C over y, which they do not: they put the copies side by side.
def two_axis__wrong_outspecs(a, b, *, mesh):
    def on_device(p, q):
        return jax.lax.psum(p @ q, "y")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# Thought that with two axes in the operands the sum runs over both.
def two_axis__wrong_both(a, b, *, mesh):
    def on_device(p, q):
        return jax.lax.psum(p @ q, ("x", "y"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# Brought whole rows of A and the whole of B to each device, so that it is case 1: right numbers, and too many bytes.
def two_axis__wrong_case1(a, b, *, mesh):
    return jax.shard_map(jnp.matmul, mesh=mesh, in_specs=(P("x", None), P()), out_specs=P("x", None))(a, b)


# ---- case3


def case3__right_transposed(a, b, *, mesh):
    def on_device(p, q):
        return jax.lax.psum(q.T @ p.T, "x").T

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P())(a, b)


# Thought that the parts are averaged.
def case3__wrong_mean(a, b, *, mesh):
    def on_device(p, q):
        return jax.lax.pmean(p @ q, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


# Thought that C has to be added up over all devices to be whole everywhere: counts each part once for every device along y.
def case3__wrong_alldevices(a, b, *, mesh):
    def on_device(p, q):
        return jax.lax.psum(p @ q, mesh.axis_names)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


# Thought to save bytes with a reduce-scatter, and left C cut by rows.
def case3__wrong_scattered(a, b, *, mesh):
    def on_device(p, q):
        return jax.lax.psum_scatter(p @ q, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Turned it into case 1: gathers A and B, and every device multiplies everything.
def case3__wrong_gathered(a, b, *, mesh):
    def on_device(p, q):
        whole_a = jax.lax.all_gather(p, "x", axis=1, tiled=True)
        whole_b = jax.lax.all_gather(q, "x", axis=0, tiled=True)
        return whole_a @ whole_b

    specs = P(None, "x"), P("x", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(a, b)
