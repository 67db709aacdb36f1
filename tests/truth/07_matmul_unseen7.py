"""Answers to lesson 07, seventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- case3_scatter_rows ------------------------------------------------------


def case3_scatter_rows__right_untiled(a, b, *, mesh):
    """A[I, J_X] · B[J_X, K] → C[I_X, K]."""
    n = mesh.shape["x"]

    def body(p, q):
        terms = (p @ q).reshape(n, p.shape[0] // n, q.shape[1])  # part d is for device d
        return jax.lax.psum_scatter(terms, "x", scatter_dimension=0, tiled=False)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# "x cuts the second dimension of A, so it is dimension 1 that is scattered." (C[I, K_X])
def case3_scatter_rows__wrong_columns(a, b, *, mesh):
    def body(p, q):
        return jax.lax.psum_scatter(p @ q, "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(None, "x"))(a, b)


# "First the sum, then each device keeps its rows." (right, with twice the bytes)
def case3_scatter_rows__wrong_sum_then_slice(a, b, *, mesh):
    def rows_of_sum(part_of_a, part_of_b):
        c = jax.lax.psum(part_of_a @ part_of_b, "x")
        rows = c.shape[0] // mesh.shape["x"]
        me = jax.lax.axis_index("x")
        return jax.lax.dynamic_slice_in_dim(c, me * rows, rows)

    mapped = jax.shard_map(rows_of_sum, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))
    return mapped(a, b)


# "After the psum all have C, and out_specs=P("x") cuts it." (out_specs never cut: n copies, one below the other)
def case3_scatter_rows__wrong_out_specs_cut(a, b, *, mesh):
    return jax.shard_map(
        lambda p, q: jax.lax.psum(p @ q, "x"), mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(a, b)


# "psum_scatter cuts dimension 0 by itself, it is the default." (without tiled=True it must be as long as the axis, and disappears)
def case3_scatter_rows__wrong_not_tiled(a, b, *, mesh):
    def body(p, q):
        c = p @ q
        return jax.lax.psum_scatter(c, "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# --- find_the_mistake --------------------------------------------------------

find_the_mistake__right_tried = dict(
    gathered="A",
    replicated=len(jnp.ones((4, 4)).devices()),
    axis_name="an error",
    who_holds=[2, 3],
    computable="C[0:2, 0:2]",
)

# "Columns are cut, so I look at a column of the 2 × 2 grid: 1 and 3."
find_the_mistake__wrong_column_of_devices = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [1, 3],
    "computable": "C[0:2, 0:2]",
}

# "There is nothing said of a layout, so it is the same everywhere; all eight have it."
find_the_mistake__wrong_on_all_eight = {
    "gathered": "A",
    "replicated": 8,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}

# "Device 0 has rows 0 and 1 of A, so it has these rows of C."
find_the_mistake__wrong_its_rows = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:4]",
}

# "Both have J, so both have to be brought together; and names of axes are letters as in J_X, large or small."
find_the_mistake__wrong_large_or_small = {
    "gathered": "A and B",
    "replicated": 1,
    "axis_name": "a gather",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}


# --- case3 -------------------------------------------------------------------


def case3__right_tensordot(a, b, *, mesh):
    """A[I, J_X] · B[J_X, K] → C[I, K]."""

    def body(columns, rows):
        part = jnp.tensordot(columns, rows, axes=([1], [0]))
        return jax.lax.psum(part, ("x",))

    in_specs = tuple(P("x") if d == 0 else P(None, "x") for d in (1, 0))
    return jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=P())(a, b)


# "C is to be the same on all devices, so it is added over all of them." (once more over y, along which all have the same)
def case3__wrong_over_both(a, b, *, mesh):
    def body(p, q):
        return jax.lax.psum(p @ q, ("x", "y"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, None))(a, b)


# "Everything is linear: the sums over x of the operands first, then one product."
def case3__wrong_sums_of_operands(a, b, *, mesh):
    def body(p, q):
        p, q = jax.lax.psum((p, q), "x")
        return p @ q

    f = jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())
    return f(a, b)


# "The blocks match, so each device can multiply, and out_specs=P() makes one matrix of it." (the check was in the way)
def case3__wrong_not_summed(a, b, *, mesh):
    return jax.shard_map(jnp.matmul, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(), check_vma=False)(
        a, b
    )


# "J is cut, so gather it, as in case 2, in both." (right, and dear)
def case3__wrong_gathers_both(a, b, *, mesh):
    def body(p, q):
        whole_a = all_gather(p, "x", axis=1, tiled=True, to="invarying")
        whole_b = all_gather(q, "x", axis=0, tiled=True, to="invarying")
        return whole_a @ whole_b

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)
