"""Answers to lesson 07, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh


def block_matmul__right_comprehensions(A, B):
    """The hints' way."""
    return [[sum(A[i][j] @ B[j][k] for j in range(len(B))) for k in range(len(B[0]))] for i in range(len(A))]


def block_matmul__right_split(A, B):
    """Joins, multiplies, and cuts again."""
    C = np.block(A) @ np.block(B)
    rows = np.cumsum([row[0].shape[0] for row in A])[:-1]
    columns = np.cumsum([b.shape[1] for b in B[0]])[:-1]
    return [np.split(r, columns, axis=1) for r in np.split(C, rows, axis=0)]


def block_matmul__wrong_elementwise(A, B):
    """Block by block."""
    return [[A[i][k] @ B[i][k] for k in range(len(B[0]))] for i in range(len(A))]


def block_matmul__wrong_star(A, B):
    """* for @."""
    return [[sum(A[i][j] * B[j][k] for j in range(len(B))) for k in range(len(B[0]))] for i in range(len(A))]


def block_matmul__wrong_two(A, B):
    """Two blocks in each direction."""
    return [[A[i][0] @ B[0][k] + A[i][1] @ B[1][k] for k in range(2)] for i in range(2)]


def block_matmul__wrong_transposed(A, B):
    """B's indices swapped."""
    return [[sum(A[i][j] @ B[k][j] for j in range(len(B))) for k in range(len(B))] for i in range(len(A))]


def block_matmul__wrong_last(A, B):
    """The last term only: = for +=."""
    C = [[None] * len(B[0]) for _ in A]
    for i in range(len(A)):
        for k in range(len(B[0])):
            for j in range(len(B)):
                C[i][k] = A[i][j] @ B[j][k]
    return C


def block_matmul__wrong_whole(A, B):
    """One matrix, no blocks."""
    return np.block(A) @ np.block(B)


def block_matmul__wrong_order(A, B):
    """B before A."""
    return [[sum(B[j][k] @ A[i][j] for j in range(len(B))) for k in range(len(B[0]))] for i in range(len(A))]


def block_matmul__wrong_turned(A, B):
    """The blocks of the product transposed."""
    return [[sum(A[i][j] @ B[j][k] for j in range(len(B))) for i in range(len(A))] for k in range(len(B[0]))]


local_shapes__right_divided = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (16, 4),
    "A[I, J]": (16, 32),
}
# the wrong dimension
local_shapes__wrong_dimension = local_shapes__right_divided | {"A[I, J_X]": (4, 32)}
# X and Y by their places
local_shapes__wrong_places = local_shapes__right_divided | {"A[I_Y, J_X]": (4, 16)}
# six devices
local_shapes__wrong_six = local_shapes__right_divided | {"A[I, J_XY]": (16, 5)}
# XY cuts both dimensions
local_shapes__wrong_both = local_shapes__right_divided | {"A[I, J_XY]": (4, 16)}
# everything is dealt out
local_shapes__wrong_dealt = local_shapes__right_divided | {"A[I, J]": (2, 32)}
# eight devices along x
local_shapes__wrong_eight = local_shapes__right_divided | {"A[I_X, J]": (2, 32)}

name_the_case__right_cases = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}
# J is cut in both
name_the_case__wrong_different = name_the_case__right_cases | {"A[I, J_X] · B[J_Y, K]": 3}
# any two axes
name_the_case__wrong_same = name_the_case__right_cases | {"A[I_Y, J] · B[J, K_Y]": 1}
# I before J
name_the_case__wrong_rows_first = name_the_case__right_cases | {"A[I_Y, J_X] · B[J_X, K]": 1}
# one is cut: case 2
name_the_case__wrong_one = name_the_case__right_cases | {"A[I_X, J] · B[J, K]": 2}
# both axes: none
name_the_case__wrong_none = name_the_case__right_cases | {"A[I, J_XY] · B[J_XY, K]": 4}
# B's rows
name_the_case__wrong_b = name_the_case__right_cases | {"A[I, J] · B[J_Y, K]": 1}

case1_out__right_read = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K_Y]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K_Y]",
}
# without the blank
case1_out__right_blanks = {key: value.replace(", ", ",") for key, value in case1_out__right_read.items()}
# whole
case1_out__wrong_whole = case1_out__right_read | {"A[I_X, J] · B[J, K]": "C[I, K]"}
# A only
case1_out__wrong_a = case1_out__right_read | {"A[I_X, J] · B[J, K_Y]": "C[I_X, K]"}
# J in the result
case1_out__wrong_j = case1_out__right_read | {"A[I, J] · B[J, K_Y]": "C[I, J_Y]"}
# swapped
case1_out__wrong_swapped = case1_out__right_read | {"A[I_X, J] · B[J, K_Y]": "C[I_Y, K_X]"}
# small letters: in a table capitals do not count
case1_out__right_small = case1_out__right_read | {"A[I_X, J] · B[J, K]": "C[I_x, K]"}
# without the C
case1_out__wrong_no_name = case1_out__right_read | {"A[I_X, J] · B[J, K]": "[I_X, K]"}


def _map(body, mesh, ins, outs, *arrays, check=True):
    return jax.shard_map(body, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=check)(*arrays)


def case2_gather__right_plain(a, b, *, mesh):
    """The plain way."""
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_gather__right_named(a, b, *, mesh):
    """Named functions, jnp.dot, under jit."""

    def on_device(part, whole_b):
        whole_a = jax.lax.all_gather(part, axis_name="x", axis=1, tiled=True)
        return jnp.dot(whole_a, whole_b)

    program = jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(None, "x"), P(None, None)), out_specs=P(None, None), check_vma=False
    )
    return jax.jit(program)(a, b)


def case2_gather__wrong_axis(a, b, *, mesh):
    """Along the rows."""
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b
    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_gather__wrong_gathers_b(a, b, *, mesh):
    """Gathers B."""
    body = lambda a, b: a @ jax.lax.all_gather(b, "x", axis=0, tiled=True)
    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_gather__wrong_untiled(a, b, *, mesh):
    """Forgot tiled."""
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=1) @ b
    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_gather__wrong_plain_product(a, b, *, mesh):
    """Just multiplies."""
    return _map(jnp.matmul, mesh, (P(None, "x"), P()), P(), a, b)


def case2_gather__wrong_in_specs(a, b, *, mesh):
    """Lets in_specs gather."""
    return _map(jnp.matmul, mesh, (P(), P()), P(), a, b)


def case2_gather__wrong_check(a, b, *, mesh):
    """Left the check on."""
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
    return _map(body, mesh, (P(None, "x"), P()), P(), a, b)


def case2_gather__wrong_psum(a, b, *, mesh):
    """Case 3: cuts B and adds."""
    body = lambda a, b: jax.lax.psum(a @ b, "x")
    return _map(body, mesh, (P(None, "x"), P("x")), P(), a, b)


def case2_gather__wrong_gather_and_psum(a, b, *, mesh):
    """Gathers, and sums on top."""
    body = lambda a, b: jax.lax.psum(jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b, "x")
    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_gather__wrong_y(a, b, *, mesh):
    """Over y."""
    body = lambda a, b: jax.lax.all_gather(a, "y", axis=1, tiled=True) @ b
    return _map(body, mesh, (P(None, "y"), P()), P(), a, b, check=False)


def case2_gather__wrong_out(a, b, *, mesh):
    """out_specs cut over x."""
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
    return _map(body, mesh, (P(None, "x"), P()), P(None, "x"), a, b, check=False)


bytes_sent__right_table = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 2304,
}
# the whole
bytes_sent__wrong_whole = bytes_sent__right_table | {"all_gather of A[I, J_X]": 2048}
# a block
bytes_sent__wrong_block = bytes_sent__right_table | {"all_gather of A[I, J_X]": 512}
# entries
bytes_sent__wrong_entries = bytes_sent__right_table | {"all_gather of B[J, K_X]": 576}
# once
bytes_sent__wrong_once = bytes_sent__right_table | {"all_reduce of C[I, K]": 1152}
# twice
bytes_sent__wrong_twice = bytes_sent__right_table | {"reduce_scatter of C[I, K]": 2304}
# 16 x 32 for C
bytes_sent__wrong_shape = bytes_sent__right_table | {"all_reduce of C[I, K]": 3072}


def case2_cheapest__right_if(a, b, *, mesh):
    """The plain way."""

    def body(a, b):
        if a.shape[1] * mesh.shape["x"] <= 2 * b.shape[1]:
            return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
        rows = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * a.shape[1], a.shape[1])
        return jax.lax.psum(a @ rows, "x")

    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_cheapest__right_in_specs(a, b, *, mesh):
    """B is cut by in_specs, which costs nothing."""
    j, k = b.shape
    if j > 2 * k:
        return _map(lambda a, b: jax.lax.psum(a @ b, "x"), mesh, (P(None, "x"), P("x")), P(), a, b)
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_cheapest__wrong_gather(a, b, *, mesh):
    """Gathers always."""
    return case2_gather__right_plain(a, b, mesh=mesh)


def case2_cheapest__wrong_reduce(a, b, *, mesh):
    """Adds up always."""
    return _map(lambda a, b: jax.lax.psum(a @ b, "x"), mesh, (P(None, "x"), P("x")), P(), a, b)


def _chosen(a, b, mesh, gather):
    def body(a, b):
        if gather:
            return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
        rows = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * a.shape[1], a.shape[1])
        return jax.lax.psum(a @ rows, "x")

    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_cheapest__wrong_no_two(a, b, *, mesh):
    """Forgot the factor 2."""
    return _chosen(a, b, mesh, b.shape[0] <= b.shape[1])


def case2_cheapest__wrong_local(a, b, *, mesh):
    """Compares with the block's columns."""
    return _chosen(a, b, mesh, b.shape[0] // mesh.shape["x"] <= 2 * b.shape[1])


def case2_cheapest__wrong_turned(a, b, *, mesh):
    """The comparison turned round."""
    return _chosen(a, b, mesh, b.shape[0] > 2 * b.shape[1])


def case2_cheapest__wrong_rows(a, b, *, mesh):
    """Compares I with K."""
    return _chosen(a, b, mesh, a.shape[0] <= 2 * b.shape[1])


def case2_cheapest__wrong_slice(a, b, *, mesh):
    """The slice starts at the place, not at place times length."""

    def body(a, b):
        if b.shape[0] <= 2 * b.shape[1]:
            return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
        rows = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x"), a.shape[1])
        return jax.lax.psum(a @ rows, "x")

    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_cheapest__wrong_no_psum(a, b, *, mesh):
    """Forgot the psum in the second way."""

    def body(a, b):
        if b.shape[0] <= 2 * b.shape[1]:
            return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
        return a @ jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * a.shape[1], a.shape[1])

    return _map(body, mesh, (P(None, "x"), P()), P(), a, b, check=False)


def case2_cheapest__wrong_scatter_gather(a, b, *, mesh):
    """Thinks that a scatter and a gather are cheaper than a psum, always."""

    def body(a, b):
        c = jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)
        return jax.lax.all_gather(c, "x", axis=0, tiled=True)

    return _map(body, mesh, (P(None, "x"), P("x")), P(), a, b, check=False)


def case3__right_plain(a, b, *, mesh):
    """The plain way."""
    return _map(lambda a, b: jax.lax.psum(a @ b, "x"), mesh, (P(None, "x"), P("x", None)), P(), a, b)


def case3__right_einsum(a, b, *, mesh):
    """einsum, a decorated body."""

    def part(p, q):
        return jax.lax.psum(jnp.einsum("ij,jk->ik", p, q), ("x",))

    return jax.jit(jax.shard_map(part, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(None, None)))(a, b)


def case3__wrong_no_psum(a, b, *, mesh):
    """Forgot the psum, check off."""
    return _map(jnp.matmul, mesh, (P(None, "x"), P("x", None)), P(), a, b, check=False)


def case3__wrong_refused(a, b, *, mesh):
    """Forgot the psum, check on."""
    return _map(jnp.matmul, mesh, (P(None, "x"), P("x", None)), P(), a, b)


def case3__wrong_y(a, b, *, mesh):
    """Adds over y."""
    return _map(lambda a, b: jax.lax.psum(a @ b, "y"), mesh, (P(None, "x"), P("x", None)), P(), a, b, check=False)


def case3__wrong_example(a, b, *, mesh):
    """The example, over y, as it stands."""
    return _map(lambda a, b: jax.lax.psum(a @ b, "y"), mesh, (P(None, "y"), P("y", None)), P(), a, b)


def case3__wrong_pmean(a, b, *, mesh):
    """pmean for psum."""
    return _map(lambda a, b: jax.lax.pmean(a @ b, "x"), mesh, (P(None, "x"), P("x", None)), P(), a, b)


def case3__wrong_both(a, b, *, mesh):
    """Adds over both axes."""
    return _map(
        lambda a, b: jax.lax.psum(a @ b, ("x", "y")), mesh, (P(None, "x"), P("x", None)), P(), a, b, check=False
    )


def case3__wrong_gather(a, b, *, mesh):
    """Gathers both."""

    def body(a, b):
        a = jax.lax.all_gather(a, "x", axis=1, tiled=True)
        return a @ jax.lax.all_gather(b, "x", axis=0, tiled=True)

    return _map(body, mesh, (P(None, "x"), P("x", None)), P(), a, b, check=False)


def case3__wrong_psum_operands(a, b, *, mesh):
    """Adds up the operands."""
    body = lambda a, b: jax.lax.psum(a, "x") @ jax.lax.psum(b, "x")
    return _map(body, mesh, (P(None, "x"), P("x", None)), P(), a, b)


def case3__wrong_notebook_mesh(a, b, *, mesh):
    """The notebook's mesh."""
    return _map(lambda a, b: jax.lax.psum(a @ b, "x"), MESH, (P(None, "x"), P("x", None)), P(), a, b)


def case3__wrong_unreturned(a, b, *, mesh):
    """Forgot to return."""
    c = _map(lambda a, b: jax.lax.psum(a @ b, "x"), mesh, (P(None, "x"), P("x", None)), P(), a, b)


def case3__wrong_out(a, b, *, mesh):
    """out_specs name x: a stack of equal ones."""
    return _map(lambda a, b: jax.lax.psum(a @ b, "x"), mesh, (P(None, "x"), P("x", None)), P("x"), a, b)


def _layer(body, a, b, bias, mesh, check=True):
    return _map(body, mesh, (P(None, "x"), P("x", None), P()), P(), a, b, bias, check=check)


def case3_layer__right_plain(a, b, bias, *, mesh):
    """The plain way."""
    return _layer(lambda a, b, bias: jax.nn.relu(jax.lax.psum(a @ b, "x") + bias), a, b, bias, mesh)


def case3_layer__right_first(a, b, bias, *, mesh):
    """The bias of device 0 only, before the sum: right, too."""

    def body(a, b, bias):
        own = jnp.where(jax.lax.axis_index("x") == 0, bias, 0)
        return jnp.maximum(jax.lax.psum(a @ b + own, "x"), 0)

    return _layer(body, a, b, bias, mesh)


def case3_layer__right_outside(a, b, bias, *, mesh):
    """Bias and relu outside of shard_map."""
    return jax.nn.relu(case3__right_plain(a, b, mesh=mesh) + bias)


def case3_layer__wrong_bias_early(a, b, bias, *, mesh):
    """The bias before the psum."""
    return _layer(lambda a, b, bias: jax.nn.relu(jax.lax.psum(a @ b + bias, "x")), a, b, bias, mesh)


def case3_layer__wrong_relu_early(a, b, bias, *, mesh):
    """The relu before the psum."""
    return _layer(lambda a, b, bias: jax.lax.psum(jax.nn.relu(a @ b), "x") + bias, a, b, bias, mesh)


def case3_layer__wrong_all_early(a, b, bias, *, mesh):
    """All before the psum."""
    return _layer(lambda a, b, bias: jax.lax.psum(jax.nn.relu(a @ b + bias), "x"), a, b, bias, mesh)


def case3_layer__wrong_no_bias(a, b, bias, *, mesh):
    """Forgot the bias."""
    return _layer(lambda a, b, bias: jax.nn.relu(jax.lax.psum(a @ b, "x")), a, b, bias, mesh)


def case3_layer__wrong_no_relu(a, b, bias, *, mesh):
    """Forgot the relu."""
    return _layer(lambda a, b, bias: jax.lax.psum(a @ b, "x") + bias, a, b, bias, mesh)


def case3_layer__wrong_bias_late(a, b, bias, *, mesh):
    """The bias after the relu."""
    return _layer(lambda a, b, bias: jax.nn.relu(jax.lax.psum(a @ b, "x")) + bias, a, b, bias, mesh)


def case3_layer__wrong_half_bias(a, b, bias, *, mesh):
    """Divides the bias by 4, hard-coded."""
    return _layer(lambda a, b, bias: jax.nn.relu(jax.lax.psum(a @ b + bias / 4, "x")), a, b, bias, mesh)


def case3_layer__wrong_mean(a, b, bias, *, mesh):
    """pmean for psum, so that the bias comes out right."""
    return _layer(lambda a, b, bias: jax.nn.relu(jax.lax.pmean(a @ b + bias, "x")), a, b, bias, mesh)


def case3_layer__wrong_no_sum(a, b, bias, *, mesh):
    """Forgot the psum, check off."""
    return _layer(lambda a, b, bias: jax.nn.relu(a @ b + bias), a, b, bias, mesh, check=False)


def case3_layer__wrong_cut_bias(a, b, bias, *, mesh):
    """Cuts the bias over x."""

    def body(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b, "x") + bias)

    return _map(body, mesh, (P(None, "x"), P("x", None), P("x")), P(), a, b, bias, check=False)


def _case3(body, a, b, mesh, out, check=True):
    return _map(body, mesh, (P(None, "x"), P("x", None)), out, a, b, check=check)


def case3_scatter_rows__right_plain(a, b, *, mesh):
    """The plain way."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)
    return _case3(body, a, b, mesh, P("x", None))


def case3_scatter_rows__right_untiled(a, b, *, mesh):
    """Untiled, by reshape."""

    def body(a, b):
        c = a @ b
        return jax.lax.psum_scatter(c.reshape(mesh.shape["x"], -1, c.shape[1]), "x")

    return _case3(body, a, b, mesh, P("x"))


def case3_scatter_rows__wrong_columns(a, b, *, mesh):
    """Scatters columns, says rows."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)
    return _case3(body, a, b, mesh, P("x", None))


def case3_scatter_rows__wrong_columns_out(a, b, *, mesh):
    """Scatters columns, and says so."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)
    return _case3(body, a, b, mesh, P(None, "x"))


def case3_scatter_rows__wrong_untiled(a, b, *, mesh):
    """Forgot tiled."""
    return _case3(lambda a, b: jax.lax.psum_scatter(a @ b, "x"), a, b, mesh, P("x", None))


def case3_scatter_rows__wrong_psum_slice(a, b, *, mesh):
    """psum, then a slice."""

    def body(a, b):
        c = jax.lax.psum(a @ b, "x")
        n = c.shape[0] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(c, n * jax.lax.axis_index("x"), n)

    return _case3(body, a, b, mesh, P("x", None))


def case3_scatter_rows__wrong_psum(a, b, *, mesh):
    """psum, whole: the layout wanted is cut."""
    return _case3(lambda a, b: jax.lax.psum(a @ b, "x"), a, b, mesh, P())


def case3_scatter_rows__wrong_stacked(a, b, *, mesh):
    """Nothing added; parts stacked."""
    return _case3(lambda a, b: a @ b, a, b, mesh, P("x", None))


def case3_scatter_rows__wrong_y(a, b, *, mesh):
    """Over y."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)
    return _map(body, mesh, (P(None, "y"), P("y", None)), P("y", None), a, b)


def case3_scatter_rows__wrong_out(a, b, *, mesh):
    """Scatters and claims that it is whole."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)
    return _case3(body, a, b, mesh, P(), check=False)


def case3_scatter_rows__wrong_twice(a, b, *, mesh):
    """A psum and a psum_scatter."""
    body = lambda a, b: jax.lax.psum_scatter(jax.lax.psum(a @ b, "x"), "x", scatter_dimension=0, tiled=True)
    return _case3(body, a, b, mesh, P("x", None), check=False)


def case3_scatter_columns__right_plain(a, b, *, mesh):
    """The plain way."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)
    return _case3(body, a, b, mesh, P(None, "x"))


def case3_scatter_columns__right_transposed(a, b, *, mesh):
    """Scatters the rows of the transpose."""
    body = lambda a, b: jax.lax.psum_scatter((a @ b).T, "x", tiled=True).T
    return _case3(body, a, b, mesh, P(None, "x"))


def case3_scatter_columns__wrong_rows(a, b, *, mesh):
    """Copied the example: rows."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)
    return _case3(body, a, b, mesh, P("x", None))


def case3_scatter_columns__wrong_mixed(a, b, *, mesh):
    """Scatters rows, says columns."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)
    return _case3(body, a, b, mesh, P(None, "x"))


def case3_scatter_columns__wrong_default(a, b, *, mesh):
    """Forgot the dimension."""
    return _case3(lambda a, b: jax.lax.psum_scatter(a @ b, "x", tiled=True), a, b, mesh, P(None, "x"))


def case3_scatter_columns__wrong_psum(a, b, *, mesh):
    """A psum, then the own columns."""

    def body(a, b):
        c = jax.lax.psum(a @ b, "x")
        n = c.shape[1] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(c, n * jax.lax.axis_index("x"), n, axis=1)

    return _case3(body, a, b, mesh, P(None, "x"))


def case3_scatter_columns__wrong_mean(a, b, *, mesh):
    """Divides by the devices."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True) / mesh.shape["x"]
    return _case3(body, a, b, mesh, P(None, "x"))


def case3_scatter_columns__wrong_exchange(a, b, *, mesh):
    """all_to_all for psum_scatter."""
    body = lambda a, b: jax.lax.all_to_all(a @ b, "x", 1, 0, tiled=True)
    return _case3(body, a, b, mesh, P(None, "x"))


def _case4(body, a, b, mesh, out, check=True):
    return _map(body, mesh, (P("x", None), P(None, "x")), out, a, b, check=check)


def case4_gather_a__right_plain(a, b, *, mesh):
    """The plain way."""
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b
    return _case4(body, a, b, mesh, P(None, "x"))


def case4_gather_a__right_late(a, b, *, mesh):
    """dot_general in disguise: tensordot, named."""

    def body(rows, columns):
        whole = jax.lax.all_gather(rows, "x", tiled=True)
        return jnp.tensordot(whole, columns, axes=1)

    return _case4(body, a, b, mesh, P(None, "x"))


def case4_gather_a__wrong_b(a, b, *, mesh):
    """Gathers B."""
    body = lambda a, b: a @ jax.lax.all_gather(b, "x", axis=1, tiled=True)
    return _case4(body, a, b, mesh, P("x", None))


def case4_gather_a__wrong_axis(a, b, *, mesh):
    """Gathers along J."""
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b
    return _case4(body, a, b, mesh, P(None, "x"))


def case4_gather_a__wrong_diagonal(a, b, *, mesh):
    """Sends nothing."""
    return _case4(jnp.matmul, a, b, mesh, P(None, "x"))


def case4_gather_a__wrong_both(a, b, *, mesh):
    """Gathers both."""

    def body(a, b):
        a = jax.lax.all_gather(a, "x", axis=0, tiled=True)
        return a @ jax.lax.all_gather(b, "x", axis=1, tiled=True)

    return _case4(body, a, b, mesh, P(), check=False)


def case4_gather_a__wrong_out(a, b, *, mesh):
    """out_specs by rows."""
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b
    return _case4(body, a, b, mesh, P("x", None))


def case4_gather_a__wrong_psum(a, b, *, mesh):
    """A psum besides."""
    body = lambda a, b: jax.lax.psum(jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b, "x")
    return _case4(body, a, b, mesh, P(None, "x"), check=False)


def case4_gather_a__wrong_y(a, b, *, mesh):
    """The text's axis y."""
    body = lambda a, b: jax.lax.all_gather(a, "y", axis=0, tiled=True) @ b
    return _map(body, mesh, (P("y", None), P(None, "y")), P(None, "y"), a, b)


def case4_gather_a__wrong_in_specs(a, b, *, mesh):
    """Lets in_specs gather."""
    return _map(jnp.matmul, mesh, (P(), P(None, "x")), P(None, "x"), a, b)


def case4_gather_b__right_plain(a, b, *, mesh):
    """The plain way."""
    body = lambda a, b: a @ jax.lax.all_gather(b, "x", axis=1, tiled=True)
    return _case4(body, a, b, mesh, P("x", None))


def case4_gather_b__right_transposed(a, b, *, mesh):
    """Gathers the rows of the transpose."""
    body = lambda a, b: a @ jax.lax.all_gather(b.T, "x", axis=0, tiled=True).T
    return _case4(body, a, b, mesh, P("x"))


def case4_gather_b__wrong_axis(a, b, *, mesh):
    """Joins B by rows."""
    body = lambda a, b: a @ jax.lax.all_gather(b, "x", axis=0, tiled=True)
    return _case4(body, a, b, mesh, P("x", None))


def case4_gather_b__wrong_a(a, b, *, mesh):
    """Gathers A."""
    body = lambda a, b: jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b
    return _case4(body, a, b, mesh, P(None, "x"))


def case4_gather_b__wrong_product(a, b, *, mesh):
    """Gathers products."""
    body = lambda a, b: jax.lax.all_gather(a @ b, "x", axis=1, tiled=True)
    return _case4(body, a, b, mesh, P("x", None))


def case4_gather_b__wrong_diagonal(a, b, *, mesh):
    """Sends nothing."""
    return _case4(jnp.matmul, a, b, mesh, P("x", None))


def case4_gather_b__wrong_untiled(a, b, *, mesh):
    """Forgot tiled."""
    body = lambda a, b: a @ jax.lax.all_gather(b, "x", axis=1)
    return _case4(body, a, b, mesh, P("x", None))


def case4_gather_b__wrong_whole(a, b, *, mesh):
    """out_specs=P(), check off."""
    body = lambda a, b: a @ jax.lax.all_gather(b, "x", axis=1, tiled=True)
    return _case4(body, a, b, mesh, P(), check=False)


def case4_gather_b__wrong_reshaped(a, b, *, mesh):
    """Stacked, then reshaped."""
    body = lambda a, b: a @ jax.lax.all_gather(b, "x").reshape(b.shape[0], -1)
    return _case4(body, a, b, mesh, P("x", None))


def _cheapest(case, wanted, i, j, k, n, itemsize, exchange=True, reduce=2, bring=True):
    A, B, C = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    f = (n - 1) / n
    reduced = reduce * f * C if wanted == "C[I, K]" else f * C
    if case == 2:
        costs = {"gather A": f * A, "reduce C": reduced}
    elif case == 3:
        costs = {"reduce C": reduced, "gather A and B": f * (A + B)}
    else:

        def bring_from(left):
            if wanted == left or not bring:
                return 0
            return f * C if wanted == "C[I, K]" else f * C / n if exchange else f * C

        costs = {"gather A": f * A + bring_from("C[I, K_X]"), "gather B": f * B + bring_from("C[I_X, K]")}
    return min(costs, key=costs.get)


def cheapest__right_costs(case, wanted, i, j, k, n, itemsize):
    """A dict of costs."""
    return _cheapest(case, wanted, i, j, k, n, itemsize)


def cheapest__right_ifs(case, wanted, i, j, k, n, itemsize):
    """Without the common factor, by comparison."""
    A, B, C = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    c = 2 * C if wanted == "C[I, K]" else C
    if case == 2:
        return "gather A" if A <= c else "reduce C"
    if case == 3:
        return "reduce C" if c <= A + B else "gather A and B"
    if wanted == "C[I, K_X]":
        return "gather A" if A <= B + C / n else "gather B"
    if wanted == "C[I_X, K]":
        return "gather B" if B <= A + C / n else "gather A"
    return "gather A" if A <= B else "gather B"


def cheapest__wrong_no_bring(case, wanted, i, j, k, n, itemsize):
    """Forgot to bring C to the wanted layout."""
    return _cheapest(case, wanted, i, j, k, n, itemsize, bring=False)


def cheapest__wrong_gather_exchange(case, wanted, i, j, k, n, itemsize):
    """An all_to_all as dear as a gather."""
    return _cheapest(case, wanted, i, j, k, n, itemsize, exchange=False)


def cheapest__wrong_reduce_once(case, wanted, i, j, k, n, itemsize):
    """An all_reduce as cheap as a reduce_scatter."""
    return _cheapest(case, wanted, i, j, k, n, itemsize, reduce=1)


def cheapest__wrong_itemsize(case, wanted, i, j, k, n, itemsize):
    """Ignores the item sizes."""
    return _cheapest(case, wanted, i, j, k, n, {"A": 1, "B": 1, "C": 1})


def cheapest__wrong_max(case, wanted, i, j, k, n, itemsize):
    """The dearest."""
    best = _cheapest(case, wanted, i, j, k, n, itemsize)
    pair = {2: ("gather A", "reduce C"), 3: ("reduce C", "gather A and B"), 4: ("gather A", "gather B")}[case]
    return pair[1 - pair.index(best)]


def cheapest__wrong_always_reduce(case, wanted, i, j, k, n, itemsize):
    """Case 3 never gathers."""
    return "reduce C" if case == 3 else _cheapest(case, wanted, i, j, k, n, itemsize)


def cheapest__wrong_swapped(case, wanted, i, j, k, n, itemsize):
    """Which layout a strategy leaves, swapped."""
    other = {"C[I, K_X]": "C[I_X, K]", "C[I_X, K]": "C[I, K_X]"}.get(wanted, wanted)
    return _cheapest(case, other if case == 4 else wanted, i, j, k, n, itemsize)


def cheapest__wrong_bytes(case, wanted, i, j, k, n, itemsize):
    """Returns the bytes too."""
    return _cheapest(case, wanted, i, j, k, n, itemsize), 0


def _two(body, a, b, mesh, out, check=True):
    return _map(body, mesh, (P("x", "y"), P("y", None)), out, a, b, check=check)


def two_axis__right_plain(a, b, *, mesh):
    """The plain way."""
    return _two(lambda a, b: jax.lax.psum(a @ b, "y"), a, b, mesh, P("x", None))


def two_axis__right_ring(a, b, *, mesh):
    """A scatter and a gather: as many bytes as one psum."""

    def body(a, b):
        share = jax.lax.psum_scatter(a @ b, "y", scatter_dimension=1, tiled=True)
        return jax.lax.all_gather(share, "y", axis=1, tiled=True)

    return _two(body, a, b, mesh, P("x", None), check=False)


def two_axis__wrong_x(a, b, *, mesh):
    """Adds over x."""
    return _two(lambda a, b: jax.lax.psum(a @ b, "x"), a, b, mesh, P("x", None), check=False)


def two_axis__wrong_both(a, b, *, mesh):
    """Adds over both."""
    return _two(lambda a, b: jax.lax.psum(a @ b, ("x", "y")), a, b, mesh, P("x", None), check=False)


def two_axis__wrong_none(a, b, *, mesh):
    """Forgot the psum."""
    return _two(lambda a, b: a @ b, a, b, mesh, P("x", None), check=False)


def two_axis__wrong_whole(a, b, *, mesh):
    """Gathers the rows too."""

    def body(a, b):
        return jax.lax.all_gather(jax.lax.psum(a @ b, "y"), "x", axis=0, tiled=True)

    return _two(body, a, b, mesh, P(), check=False)


def two_axis__wrong_gather(a, b, *, mesh):
    """Gathers both operands over y."""

    def body(a, b):
        return jax.lax.all_gather(a, "y", axis=1, tiled=True) @ jax.lax.all_gather(b, "y", axis=0, tiled=True)

    return _two(body, a, b, mesh, P("x", None), check=False)


def two_axis__wrong_specs(a, b, *, mesh):
    """case3's specs."""
    return _map(lambda a, b: jax.lax.psum(a @ b, "x"), mesh, (P(None, "x"), P("x", None)), P(), a, b)


def two_axis__wrong_mean(a, b, *, mesh):
    """pmean for psum."""
    return _two(lambda a, b: jax.lax.pmean(a @ b, "y"), a, b, mesh, P("x", None))


def two_axis__wrong_double(a, b, *, mesh):
    """Two sums over y."""
    return _two(lambda a, b: jax.lax.psum(jax.lax.psum(a @ b, "y"), "y"), a, b, mesh, P("x", None), check=False)


def two_axis_scattered__right_plain(a, b, *, mesh):
    """The plain way."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "y", scatter_dimension=1, tiled=True)
    return _two(body, a, b, mesh, P("x", "y"))


def two_axis_scattered__right_exchange(a, b, *, mesh):
    """An exchange, and the sum by hand: as many bytes."""

    def body(a, b):
        c = a @ b
        pieces = c.reshape(c.shape[0], mesh.shape["y"], -1)
        return jax.lax.all_to_all(pieces, "y", split_axis=1, concat_axis=1).sum(axis=1)

    return _two(body, a, b, mesh, P("x", "y"))


def two_axis_scattered__wrong_rows(a, b, *, mesh):
    """Scatters rows, says columns."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)
    return _two(body, a, b, mesh, P("x", "y"))


def two_axis_scattered__wrong_rows_out(a, b, *, mesh):
    """Rows over both axes."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)
    return _two(body, a, b, mesh, P(("x", "y"), None))


def two_axis_scattered__wrong_x(a, b, *, mesh):
    """Over x."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)
    return _two(body, a, b, mesh, P("y", "x"), check=False)


def two_axis_scattered__wrong_psum(a, b, *, mesh):
    """psum and slice."""

    def body(a, b):
        c = jax.lax.psum(a @ b, "y")
        n = c.shape[1] // mesh.shape["y"]
        return jax.lax.dynamic_slice_in_dim(c, n * jax.lax.axis_index("y"), n, axis=1)

    return _two(body, a, b, mesh, P("x", "y"))


def two_axis_scattered__wrong_not_scattered(a, b, *, mesh):
    """two_axis again."""
    return _two(lambda a, b: jax.lax.psum(a @ b, "y"), a, b, mesh, P("x", None))


def two_axis_scattered__wrong_hard_coded(a, b, *, mesh):
    """y has two, hard-coded."""

    def body(a, b):
        c = jax.lax.psum(a @ b, "y")
        n = c.shape[1] // 2
        return jax.lax.dynamic_slice_in_dim(c, n * jax.lax.axis_index("y"), n, axis=1)

    return _two(body, a, b, mesh, P("x", "y"))


def two_axis_scattered__wrong_untiled(a, b, *, mesh):
    """Forgot tiled."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "y", scatter_dimension=1)
    return _two(body, a, b, mesh, P("x", "y"))


find_the_mistake__right_found = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}
# believed the text
find_the_mistake__wrong_b = find_the_mistake__right_found | {"gathered": "B"}
# to be sure, both
find_the_mistake__wrong_both = find_the_mistake__right_found | {"gathered": "A and B"}
# believed the text
find_the_mistake__wrong_eight = find_the_mistake__right_found | {"replicated": 8}
# names do not care for capitals
find_the_mistake__wrong_name = find_the_mistake__right_found | {"axis_name": "a gather"}
# believed the text
find_the_mistake__wrong_holds = find_the_mistake__right_found | {"who_holds": [1, 3]}
# believed the text
find_the_mistake__wrong_nothing = find_the_mistake__right_found | {"computable": "nothing"}
# all columns
find_the_mistake__wrong_row = find_the_mistake__right_found | {"computable": "C[0:2, 0:4]"}


# Near misses: wrong at an edge that the text covers.


def _mapped(f, mesh, i, o, **k):
    return jax.shard_map(f, mesh=mesh, in_specs=i, out_specs=o, **k)


def _by_choice(choose):
    def f(a, b, *, mesh):
        n = mesh.shape["x"]

        def gather(a, b):
            return jax.lax.all_gather(a, "x", axis=1, tiled=True) @ b

        def add(a, b):
            k = a.shape[1]
            return jax.lax.psum(a @ jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * k, k), "x")

        way = gather if choose(*a.shape, b.shape[1], n) else add
        return _mapped(way, mesh, (P(None, "x"), P()), P(), check_vma=False)(a, b)

    return f


case2_cheapest__wrong_three = _by_choice(lambda i, j, k, n: j < 3 * k)


case2_cheapest__wrong_forgot_factor = _by_choice(lambda i, j, k, n: (n - 1) / n * j < 2 * k)


case2_cheapest__wrong_at_once = _by_choice(lambda i, j, k, n: j < 1.6 * k)


case2_cheapest__right_tie = _by_choice(lambda i, j, k, n: j <= 2 * k)


def _cost(
    gather=lambda v, n: (n - 1) / n * v, scatter=1, move=lambda v, n: (n - 1) / n**2 * v, to_whole=None, letters="ABC"
):
    def cheapest(case, wanted, i, j, k, n, itemsize):
        va, vb, vc = (s * itemsize[x] for s, x in zip((i * j, j * k, i * k), letters))
        red = gather(vc, n) * (2 if wanted == "C[I, K]" else scatter)
        if case == 2:
            costs = {"gather A": gather(va, n), "reduce C": red}
        elif case == 3:
            costs = {"reduce C": red, "gather A and B": gather(va, n) + gather(vb, n)}
        else:
            m = (to_whole or gather)(vc, n) if wanted == "C[I, K]" else move(vc, n)
            costs = {
                "gather A": gather(va, n) + m * (wanted != "C[I, K_X]"),
                "gather B": gather(vb, n) + m * (wanted != "C[I_X, K]"),
            }
        return min(costs, key=costs.get)

    return cheapest


cheapest__wrong_move_n_squared = _cost(move=lambda v, n: v / n**2)


def cheapest__wrong_always_moved(case, wanted, i, j, k, n, itemsize):
    """After A was gathered C always moves."""
    if (case, wanted) == (4, "C[I, K_X]"):
        return "gather A" if i * j * itemsize["A"] < j * k * itemsize["B"] else "gather B"
    return cheapest__right_costs(case, wanted, i, j, k, n, itemsize)


def cheapest__wrong_moved_after_b(case, wanted, i, j, k, n, itemsize):
    """After B was gathered C always moves."""
    if (case, wanted) == (4, "C[I_X, K]"):
        return "gather A" if i * j * itemsize["A"] < j * k * itemsize["B"] else "gather B"
    return cheapest__right_costs(case, wanted, i, j, k, n, itemsize)


def cheapest__wrong_scatters_rows_only(case, wanted, i, j, k, n, itemsize):
    """In case 2 C's rows can be scattered, and for its columns all of C is added up."""
    if (case, wanted) == (2, "C[I, K_X]"):
        return "gather A" if i * j * itemsize["A"] < 2 * i * k * itemsize["C"] else "reduce C"
    return cheapest__right_costs(case, wanted, i, j, k, n, itemsize)


def case2_gather__wrong_half(a, b, *, mesh):
    """Half the bytes: sent in bfloat16."""

    def body(a, b):
        return jax.lax.all_gather(a.astype(jnp.bfloat16), "x", axis=1, tiled=True).astype(a.dtype) @ b

    return _mapped(body, mesh, (P(None, "x"), P()), P(), check_vma=False)(a, b)


def case4_gather_a__wrong_half(a, b, *, mesh):
    """Half the bytes: sent in bfloat16."""

    def body(a, b):
        return jax.lax.all_gather(a.astype(jnp.bfloat16), "x", tiled=True).astype(a.dtype) @ b

    return _mapped(body, mesh, (P("x"), P(None, "x")), P(None, "x"))(a, b)


def case4_gather_b__wrong_half(a, b, *, mesh):
    """Half the bytes: sent in float16."""

    def body(a, b):
        return a @ jax.lax.all_gather(b.astype(jnp.float16), "x", axis=1, tiled=True).astype(b.dtype)

    return _mapped(body, mesh, (P("x"), P(None, "x")), P("x"))(a, b)


def case3_scatter_rows__wrong_half(a, b, *, mesh):
    """Half the bytes: sent in float16."""

    def body(a, b):
        return jax.lax.psum_scatter((a @ b).astype(jnp.float16), "x", tiled=True).astype(a.dtype)

    return _mapped(body, mesh, (P(None, "x"), P("x")), P("x"))(a, b)
