"""Right answers to 07_matmul, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what a program does, not how it is written.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P


def manual(mesh, ins, out):
    return partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=out, check_vma=False)


def case2_gather__by_blocks(a, b, *, mesh):
    """Untiled gather; the blocks are multiplied one by one."""

    @manual(mesh, (P(None, "x"), P(None, None)), P(None, None))
    def go(a_block, whole_b):
        blocks = lax.all_gather(a_block, "x")
        return jnp.einsum("nij,njk->ik", blocks, whole_b.reshape(*blocks.shape[::2], -1))

    return go(a, b)


def case2_gather__transposed(a, b, *, mesh):
    @manual(mesh, (P(None, "x"), P()), P())
    def go(a_block, whole_b):
        return lax.all_gather(a_block.T, "x", tiled=True).T @ whole_b

    return jax.jit(go)(a, b)


def case2_cheapest__from_outside(a, b, *, mesh):
    """The choice is made before shard_map, on global shapes."""
    n = mesh.shape["x"]
    if a.shape[1] < 2 * b.shape[1]:

        def body(mine, everything):
            return jnp.einsum("ij,jk", lax.all_gather(mine, "x", axis=1, tiled=True), everything)
    else:

        def body(mine, everything):
            parts = everything.reshape(n, -1, everything.shape[1])
            return lax.psum(mine @ parts[lax.axis_index("x")], ("x",))

    return manual(mesh, (P(None, "x"), P()), P())(body)(a, b)


def case3__scatter_and_gather(a, b, *, mesh):
    """An all-reduce is a reduce-scatter and an all-gather: the same bytes."""

    @manual(mesh, (P(None, "x"), P("x")), P())
    def go(columns, rows):
        share = lax.psum_scatter(jnp.dot(columns, rows), "x", tiled=True)
        return lax.all_gather(share, "x", tiled=True)

    return go(a, b)


def case3__checked(a, b, *, mesh):
    def go(columns, rows):
        return lax.psum(jnp.einsum("ij,jk->ik", columns, rows), axis_name="x")

    return jax.shard_map(go, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P())(a, b)


def case3__with_prints(a, b, *, mesh):
    def go(columns, rows):
        jax.debug.print("block {}", columns.sum())
        return lax.psum(columns @ rows, "x")

    return jax.shard_map(go, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P())(a, b)


def case3_layer__outside(a, b, bias, *, mesh):
    """Bias and relu after the shard_map, where C is an ordinary array."""
    c = jax.shard_map(
        lambda p, q: lax.psum(p @ q, "x"), mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P()
    )(a, b)
    return jnp.maximum(0, c + bias)


def case3_layer__divided_bias(a, b, bias, *, mesh):
    """A share of the bias in each part: right, if unusual."""

    def go(p, q, r):
        return jax.nn.relu(lax.psum(p @ q + r / lax.psum(1, "x"), "x"))

    return manual(mesh, (P(None, "x"), P("x"), P()), P())(go)(a, b, bias)


def case3_scatter_rows__all_to_all(a, b, *, mesh):
    """Send each device its rows of every part, and add up there."""

    @manual(mesh, (P(None, "x"), P("x")), P("x"))
    def go(columns, rows):
        n = lax.psum(1, "x")
        parts = (columns @ rows).reshape(n, columns.shape[0] // n, -1)
        return lax.all_to_all(parts, "x", split_axis=0, concat_axis=0, tiled=True).sum(0)

    return go(a, b)


def case3_scatter_columns__transposed(a, b, *, mesh):
    @manual(mesh, (P(None, "x"), P("x")), P(None, "x"))
    def go(columns, rows):
        return lax.psum_scatter((columns @ rows).T, "x", tiled=True).T

    return go(a, b)


def case4_gather_a__in_turns(a, b, *, mesh):
    """One block of rows after the other."""

    @manual(mesh, (P("x"), P(None, "x")), P(None, "x"))
    def go(rows, columns):
        every = lax.all_gather(rows, "x")
        return jnp.concatenate([every[k] @ columns for k in range(every.shape[0])])

    return go(a, b)


def case4_gather_b__untiled(a, b, *, mesh):
    @manual(mesh, (P("x"), P(None, "x")), P("x"))
    def go(rows, columns):
        every = lax.all_gather(columns, "x")
        return jnp.einsum("ij,njk->ink", rows, every).reshape(rows.shape[0], -1)

    return go(a, b)


def two_axis__jitted(a, b, *, mesh):
    go = jax.shard_map(
        lambda p, q: lax.psum(p @ q, ("y",)), mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x", None)
    )
    return jax.jit(go)(a, b)


def two_axis_scattered__moved(a, b, *, mesh):
    @manual(mesh, (P("x", "y"), P("y")), P("x", "y"))
    def go(block, rows):
        return lax.psum_scatter(rows.T @ block.T, "y", scatter_dimension=0, tiled=True).T

    return go(a, b)
