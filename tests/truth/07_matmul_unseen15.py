"""Answers to lesson 07, fifteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

LAYER = (P(None, "x"), P("x", None), P())


def case3_layer__right_maximum(a, b, bias, *, mesh):
    def body(a, b, bias):
        c = bias[None, :] + jax.lax.psum(jnp.einsum("ij,jk->ik", a, b), "x")
        return jnp.maximum(c, 0)

    return jax.shard_map(body, mesh=mesh, in_specs=LAYER, out_specs=P(None, None))(a, b, bias)


# A sum may be added to in any order, so the bias goes with the product.
def case3_layer__wrong_bias(a, b, bias, *, mesh):
    body = lambda a, b, bias: jax.nn.relu(jax.lax.psum(a @ b + bias, "x"))
    return jax.shard_map(body, mesh=mesh, in_specs=LAYER, out_specs=P())(a, b, bias)


# relu works entry by entry, so each device can apply it to its product, and again at the end.
def case3_layer__wrong_relu(a, b, bias, *, mesh):
    body = lambda a, b, bias: jax.nn.relu(jax.lax.psum(jax.nn.relu(a @ b), "x") + bias)
    return jax.shard_map(body, mesh=mesh, in_specs=LAYER, out_specs=P())(a, b, bias)


# Four devices add the bias, so each adds a quarter of it.
def case3_layer__wrong_quarter(a, b, bias, *, mesh):
    body = lambda a, b, bias: jax.nn.relu(jax.lax.psum(a @ b + bias / 4, "x"))
    return jax.shard_map(body, mesh=mesh, in_specs=LAYER, out_specs=P())(a, b, bias)


# The result is to be whole on every device, so the sum runs over both axes.
def case3_layer__wrong_both(a, b, bias, *, mesh):
    body = lambda a, b, bias: jax.nn.relu(jax.lax.psum(a @ b, ("x", "y")) + bias)
    return jax.shard_map(body, mesh=mesh, in_specs=LAYER, out_specs=P(), check_vma=False)(a, b, bias)


def case2_gather__right_turned(a, b, *, mesh):
    def body(a, b):
        columns = all_gather(a.T, "x", axis=0, tiled=True, to="invarying")
        return columns.T @ b

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Gather one below the other, then give the whole its shape [I, J] back.
def case2_gather__wrong_reshape(a, b, *, mesh):
    def body(a, b):
        whole = all_gather(a, "x", axis=0, tiled=True, to="invarying").reshape(a.shape[0], -1)
        return whole @ b

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# in_specs of P() bring A whole to every device, which is the gather.
def case2_gather__wrong_inspecs(a, b, *, mesh):
    return jax.shard_map(jnp.matmul, mesh=mesh, in_specs=(P(), P()), out_specs=P())(a, b)


# Take as many rows of B as A has columns here, and add the products up.
def case2_gather__wrong_firstrows(a, b, *, mesh):
    body = lambda a, b: jax.lax.psum(a @ b[: a.shape[1]], "x")
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# A gathered value varies along x, so out_specs have to name x, where A had it.
def case2_gather__wrong_outspecs(a, b, *, mesh):
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P(None, "x"))(a, b)


def _gathered(a, b):
    return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b


def _added(a, b):
    width = a.shape[1]
    rows = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * width, width)
    return jax.lax.psum(a @ rows, "x")


def case2_cheapest__right_indexed(a, b, *, mesh):
    (_, J), (_, K), n = a.shape, b.shape, mesh.shape["x"]

    def added(a, b):
        return jax.lax.psum(a @ b.reshape(n, J // n, K)[jax.lax.axis_index("x")], "x")

    body = added if 2 * K < J else _gathered
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# The smaller array travels: A has I·J entries, C has I·K.
def case2_cheapest__wrong_notwo(a, b, *, mesh):
    body = _gathered if a.shape[1] <= b.shape[1] else _added
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# A sends its block, C is sent twice: compares a block of A, as the body sees it, with the whole of C.
def case2_cheapest__wrong_block(a, b, *, mesh):
    body = lambda a, b: _gathered(a, b) if a.shape[1] <= 2 * b.shape[1] else _added(a, b)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# The slice of B begins at the device's place (not place times length of a block).
def case2_cheapest__wrong_start(a, b, *, mesh):
    def added(a, b):
        rows = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x"), a.shape[1])
        return jax.lax.psum(a @ rows, "x")

    body = _gathered if a.shape[1] <= 2 * b.shape[1] else added
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Either A travels or B is cut: so it is the sizes of A and B that are to be compared.
def case2_cheapest__wrong_operands(a, b, *, mesh):
    body = _gathered if a.size <= b.size else _added
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)
