"""Answers to lesson 07, thirteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- case2_gather


def case2_gather__right_block_product(a, b, *, mesh):
    """A[I, J_X] · B[J, K] → C[I, K], A gathered."""
    n = mesh.shape["x"]

    def on_device(columns, b):
        blocks = all_gather(columns, "x", axis=0, tiled=False, to="invarying")  # [n, I, J/n]
        return jnp.einsum("nij,njk->ik", blocks, b.reshape(n, -1, b.shape[1]))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Copied the gather of B with its axis=0, though A's blocks belong side by side.
def case2_gather__wrong_axis_zero(a, b, *, mesh):
    def on_device(a, b):
        return all_gather(a, "x", axis=0, tiled=True, to="invarying") @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Asked for the whole of A in in_specs, so that JAX gathers it before the body begins, and wrote no gather.
def case2_gather__wrong_in_specs_gather(a, b, *, mesh):
    return jax.shard_map(jnp.matmul, mesh=mesh, in_specs=(P(), P()), out_specs=P())(a, b)


# Was told that the gathered value varies over x, and so named x in out_specs: the same C, n times one below the other.
def case2_gather__wrong_named_in_out_specs(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P("x", None))(a, b)


# Stacked the blocks in front and reshaped to I rows: the shape is right, the order of the entries is not.
def case2_gather__wrong_stacked_reshaped(a, b, *, mesh):
    def on_device(a, b):
        stacked = all_gather(a, "x", axis=0, tiled=False, to="invarying")
        return stacked.reshape(a.shape[0], -1) @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# ---------------------------------------------------------------- case2_cheapest


def case2_cheapest__right_specs_slice(a, b, *, mesh):
    """A[I, J_X] · B[J, K] → C[I, K], the cheaper of two ways."""

    def add_up(a, rows):
        return jax.lax.psum(a @ rows, "x")

    def bring_together(a, b):
        return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b

    (i, j), k = a.shape, b.shape[1]
    body, spec_of_b = (add_up, P("x", None)) if i * j > 2 * i * k else (bring_together, P(None, None))
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), spec_of_b), out_specs=P(None, None))(a, b)


# Compared the entries of A with those of C, and forgot that an all-reduce sends its array twice: too dear where K < J < 2K.
def case2_cheapest__wrong_sum_sent_once(a, b, *, mesh):
    gather = a.shape[1] <= b.shape[1]

    def on_device(a, b):
        if gather:
            return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b
        length = a.shape[1]
        rows = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * length, length)
        return jax.lax.psum(a @ rows, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Compared J with 2K inside the body, where a.shape[1] is the length of a block, J/n: gathers far too often.
def case2_cheapest__wrong_compares_the_block(a, b, *, mesh):
    def on_device(a, b):
        j, k = a.shape[1], b.shape[1]
        if j <= 2 * k:
            return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b
        rows = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * j, j)
        return jax.lax.psum(a @ rows, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Took the place along x for the row at which the slice of B begins, without the length of a block.
def case2_cheapest__wrong_start_is_the_place(a, b, *, mesh):
    gather = a.shape[1] <= 2 * b.shape[1]

    def on_device(a, b):
        if gather:
            return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b
        me = jax.lax.axis_index("x")
        rows = jax.lax.dynamic_slice_in_dim(b, me, a.shape[1])
        return jax.lax.psum(a @ rows, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Weighed A against B, the smaller operand is to travel; but B never does, and C in its place does.
def case2_cheapest__wrong_smaller_operand(a, b, *, mesh):
    gather = a.size <= b.size

    def on_device(a, b):
        if gather:
            return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b
        length = a.shape[1]
        rows = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * length, length)
        return jax.lax.psum(a @ rows, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# ---------------------------------------------------------------- case3_scatter_rows


def case3_scatter_rows__right_transposed(a, b, *, mesh):
    """A[I, J_X] · B[J_X, K] → C[I_X, K]."""

    def on_device(a, b):
        part = b.T @ a.T  # a part of C transposed, [K, I]
        return jax.lax.psum_scatter(part, "x", scatter_dimension=1, tiled=True).T

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Thought that what is scattered is the dimension that runs along a row, so that dimension 1 deals out rows.
def case3_scatter_rows__wrong_dimension(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Thought that out_specs=P("x", None) cuts the whole sum into rows; it puts n whole sums one below the other.
def case3_scatter_rows__wrong_out_specs_cut(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.psum(a @ b, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Added everything up everywhere and then kept the own rows: right numbers, twice the bytes.
def case3_scatter_rows__wrong_sum_then_slice(a, b, *, mesh):
    def on_device(a, b):
        whole = jax.lax.psum(a @ b, "x")
        rows = whole.shape[0] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * rows, rows)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Thought that a device which keeps only its rows of C has to multiply only its rows of A: the other devices' terms are missing.
def case3_scatter_rows__wrong_only_own_term(a, b, *, mesh):
    def on_device(a, b):
        rows = a.shape[0] // mesh.shape["x"]
        mine = jax.lax.dynamic_slice_in_dim(a, jax.lax.axis_index("x") * rows, rows)
        return mine @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)
