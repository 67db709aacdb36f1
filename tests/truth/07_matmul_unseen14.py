"""Answers to lesson 07, fourteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- case4_gather_b


def case4_gather_b__right_stacked_einsum(a, b, *, mesh):
    def body(rows, columns):
        slabs = jax.lax.all_gather(columns, "x")  # [device, J, its columns]
        products = jnp.einsum("ij,djk->idk", rows, slabs)
        return products.reshape(rows.shape[0], slabs.shape[0] * slabs.shape[2])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# What is missing are the blocks off the diagonal, and the others have them: multiply first, then gather the columns of C.
def case4_gather_b__wrong_gathers_products(a, b, *, mesh):
    def body(rows, columns):
        block = rows @ columns
        return jax.lax.all_gather(block, "x", axis=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# Both want the axis x, so both have to be freed from it; at the end each device keeps the rows that are wanted of it.
def case4_gather_b__wrong_gathers_both(a, b, *, mesh):
    def body(rows, columns):
        whole_a = jax.lax.all_gather(rows, "x", axis=0, tiled=True)
        whole_b = jax.lax.all_gather(columns, "x", axis=1, tiled=True)
        product = whole_a @ whole_b
        length = rows.shape[0]
        return jax.lax.dynamic_slice_in_dim(product, jax.lax.axis_index("x") * length, length, axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# C is to be cut by rows over x, so rows are what travels: gather A, and C comes out over x.
def case4_gather_b__wrong_other_operand(a, b, *, mesh):
    def body(rows, columns):
        whole_a = jax.lax.all_gather(rows, "x", axis=0, tiled=True)
        return whole_a @ columns

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


# Gathered from four devices, the product is made of four devices' parts, and parts are completed by a psum as in case 3.
def case4_gather_b__wrong_sum_as_in_case_3(a, b, *, mesh):
    def body(rows, columns):
        whole_b = all_gather(columns, "x", axis=1, tiled=True, to="invarying")
        return jax.lax.psum(rows @ whole_b, "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# --- bytes_sent


def _share(rows, columns, n=4, itemsize=4):
    return (n - 1) * rows * columns * itemsize // n


bytes_sent__right_by_share = {
    "all_gather of A[I, J_X]": _share(16, 32),
    "all_reduce of C[I, K]": 2 * _share(16, 24),
    "reduce_scatter of C[I, K]": _share(16, 24),
    "all_gather of B[J, K_X]": _share(32, 24),
}

# A sum sends (n-1)/n of C however much of the result is kept; keeping all of it costs nothing more.
bytes_sent__wrong_all_reduce_once = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 1152,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 2304,
}

# V is what a device holds, and of A and B that is a quarter; of C it has all.
bytes_sent__wrong_v_is_the_block = {
    "all_gather of A[I, J_X]": 384,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 576,
}

# For a sum whole C's go round, three of them; a reduce_scatter is half of that.
bytes_sent__wrong_whole_c_goes_round = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 4608,
    "reduce_scatter of C[I, K]": 2304,
    "all_gather of B[J, K_X]": 2304,
}

# A reduce_scatter ends with a quarter of C on each device, so one quarter is sent; the gather after it sends three.
bytes_sent__wrong_scatter_sends_what_it_keeps = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 384 + 1152,
    "reduce_scatter of C[I, K]": 384,
    "all_gather of B[J, K_X]": 2304,
}


# --- case3


def case3__right_einsum(a, b, *, mesh):
    def body(columns_of_a, rows_of_b):
        part = jnp.einsum("ij,jk->ik", columns_of_a, rows_of_b)
        return jax.lax.psum(part, axis_name="x")

    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, None))
    return mapped(a, b)


# A sum and a product can be exchanged: make A and B whole by a psum each, and multiply then.
def case3__wrong_sums_before_product(a, b, *, mesh):
    def body(columns_of_a, rows_of_b):
        whole_a = jax.lax.psum(columns_of_a, "x")
        whole_b = jax.lax.psum(rows_of_b, "x")
        return whole_a @ whole_b

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


# The parts are on different devices: gather them, one below the other, and add them up at home.
def case3__wrong_gathers_the_terms(a, b, *, mesh):
    def body(columns_of_a, rows_of_b):
        terms = all_gather(columns_of_a @ rows_of_b, "x", to="invarying")
        return terms.sum(axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


# The fewest bytes are those of a reduce-scatter; in the result of shard_map the rows stand together anyway, so C is whole.
def case3__wrong_left_cut(a, b, *, mesh):
    def body(columns_of_a, rows_of_b):
        part = columns_of_a @ rows_of_b
        return jax.lax.psum_scatter(part, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Every device has a C of the full shape, its own estimate of the result; the devices agree on the mean.
def case3__wrong_mean(a, b, *, mesh):
    def body(columns_of_a, rows_of_b):
        return jax.lax.pmean(columns_of_a @ rows_of_b, "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)
