"""Answers to lesson 07, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- cheapest
def cheapest__right_dicts(case, wanted, i, j, k, n, itemsize):
    A, B, C = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    part = (n - 1) / n
    reduce = part * C * (2 if wanted == "C[I, K]" else 1)
    if case == 2:
        costs = {"gather A": part * A, "reduce C": reduce}
    elif case == 3:
        costs = {"reduce C": reduce, "gather A and B": part * (A + B)}
    else:
        after = lambda left: 0 if left == wanted else part * C if wanted == "C[I, K]" else part * C / n
        costs = {"gather A": part * A + after("C[I, K_X]"), "gather B": part * B + after("C[I_X, K]")}
    return min(costs, key=costs.get)


def cheapest__right_ifs(case, wanted, i, j, k, n, itemsize):
    # everything times n²/(n-1): whole numbers
    a, b, c = n * i * j * itemsize["A"], n * j * k * itemsize["B"], n * i * k * itemsize["C"]
    whole = wanted == "C[I, K]"
    if case == 2:
        return "gather A" if a <= (2 * c if whole else c) else "reduce C"
    if case == 3:
        return "reduce C" if (2 * c if whole else c) <= a + b else "gather A and B"
    if not whole:
        if wanted == "C[I, K_X]":
            b += c // n
        else:
            a += c // n
    return "gather A" if a <= b else "gather B"


def cheapest__wrong_not_wanted(case, wanted, i, j, k, n, itemsize):
    # in case 4 what it takes to bring C to the wanted layout is left out
    A, B, C = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    reduce = C * (2 if wanted == "C[I, K]" else 1)
    costs = {
        2: {"gather A": A, "reduce C": reduce},
        3: {"reduce C": reduce, "gather A and B": A + B},
        4: {"gather A": A, "gather B": B},
    }[case]
    return min(costs, key=costs.get)


def cheapest__wrong_entries(case, wanted, i, j, k, n, itemsize):
    # entries are compared, not bytes
    return cheapest__right_dicts(case, wanted, i, j, k, n, {"A": 1, "B": 1, "C": 1})


def cheapest__wrong_always_all_reduce(case, wanted, i, j, k, n, itemsize):
    # reduce C is counted as an all_reduce, also where C stays cut
    A, B, C = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    if case == 2:
        costs = {"gather A": A, "reduce C": 2 * C}
    elif case == 3:
        costs = {"reduce C": 2 * C, "gather A and B": A + B}
    else:
        return cheapest__right_dicts(case, wanted, i, j, k, n, itemsize)
    return min(costs, key=costs.get)


def cheapest__wrong_exchanged(case, wanted, i, j, k, n, itemsize):
    # case 4: the layouts that the two strategies leave are exchanged
    if case != 4 or wanted == "C[I, K]":
        return cheapest__right_dicts(case, wanted, i, j, k, n, itemsize)
    other = {"C[I_X, K]": "C[I, K_X]", "C[I, K_X]": "C[I_X, K]"}[wanted]
    return cheapest__right_dicts(case, other, i, j, k, n, itemsize)


def cheapest__wrong_all_to_all(case, wanted, i, j, k, n, itemsize):
    # an all_to_all is counted like an all_gather, (n-1)/n · V
    if case != 4 or wanted == "C[I, K]":
        return cheapest__right_dicts(case, wanted, i, j, k, n, itemsize)
    A, B, C = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    costs = {"gather A": A + (C if wanted == "C[I_X, K]" else 0), "gather B": B + (C if wanted == "C[I, K_X]" else 0)}
    return min(costs, key=costs.get)


# --- case2_cheapest
def case2_cheapest__right_if(a, b, *, mesh):
    j, k = b.shape

    def gather(a, b):
        return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b

    def add(a, b):
        start = jax.lax.axis_index("x") * a.shape[1]
        return jax.lax.psum(a @ jax.lax.dynamic_slice_in_dim(b, start, a.shape[1]), "x")

    return jax.shard_map(gather if j <= 2 * k else add, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


def case2_cheapest__right_specs(a, b, *, mesh):
    # b is whole: to take it in as P("x") is the slice, and sends nothing
    if a.shape[1] > 2 * b.shape[1]:
        body, of_b = (lambda a, b: jax.lax.psum(a @ b, "x")), P("x", None)
    else:
        body, of_b = (lambda a, b: all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b), P(None, None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), of_b), out_specs=P(None, None))(a, b)


def case2_cheapest__wrong_always_gathers(a, b, *, mesh):
    # one way only: A is gathered whatever the shapes
    def body(a, b):
        return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


def case2_cheapest__wrong_no_two(a, b, *, mesh):
    # the factor 2 of the all_reduce forgotten in the comparison
    def body(a, b):
        if b.shape[0] <= b.shape[1]:
            return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b
        return jax.lax.psum(a @ jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * a.shape[1], a.shape[1]), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


def case2_cheapest__wrong_start(a, b, *, mesh):
    # the slice starts at the device's number, not at number times length
    def body(a, b):
        if b.shape[0] <= 2 * b.shape[1]:
            return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b
        return jax.lax.psum(a @ jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x"), a.shape[1]), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


def case2_cheapest__wrong_turned(a, b, *, mesh):
    # the choice the wrong way round
    def body(a, b):
        if b.shape[0] > 2 * b.shape[1]:
            return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b
        return jax.lax.psum(a @ jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * a.shape[1], a.shape[1]), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


def case2_cheapest__wrong_local_j(a, b, *, mesh):
    # J is taken from the block of A: a quarter of it on four devices
    def body(a, b):
        if a.shape[1] <= 2 * b.shape[1]:
            return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b
        return jax.lax.psum(a @ jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * a.shape[1], a.shape[1]), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# --- case3_layer
def case3_layer__right_order(a, b, bias, *, mesh):
    def body(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b, "x") + bias)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


def case3_layer__right_outside(a, b, bias, *, mesh):
    product = jax.shard_map(
        lambda a, b: jax.lax.psum(a @ b, "x"), mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P()
    )
    return jnp.maximum(product(a, b) + bias, 0)


def case3_layer__wrong_bias_first(a, b, bias, *, mesh):
    # the bias is added before the sum, once for each device
    def body(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b + bias, "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


def case3_layer__wrong_relu_first(a, b, bias, *, mesh):
    # relu of the parts
    def body(a, b, bias):
        return jax.lax.psum(jax.nn.relu(a @ b), "x") + bias

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


def case3_layer__wrong_no_relu(a, b, bias, *, mesh):
    # the relu is forgotten
    def body(a, b, bias):
        return jax.lax.psum(a @ b, "x") + bias

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


def case3_layer__wrong_relu_then_bias(a, b, bias, *, mesh):
    # the bias after the relu
    def body(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b, "x")) + bias

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


def case3_layer__wrong_mean(a, b, bias, *, mesh):
    # pmean for psum
    def body(a, b, bias):
        return jax.nn.relu(jax.lax.pmean(a @ b, "x") + bias)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# --- case4_gather_b
def case4_gather_b__right_columns(a, b, *, mesh):
    def body(a, b):
        return a @ jax.lax.all_gather(b, "x", axis=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


def case4_gather_b__right_stacked(a, b, *, mesh):
    def body(a, b):
        every = jax.lax.all_gather(b, "x")  # (n, J, K/n)
        return jnp.einsum("ij,njk->ink", a, every).reshape(a.shape[0], -1)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=P("x"))(a, b)


def case4_gather_b__wrong_a(a, b, *, mesh):
    # gathers A: that leaves C[I, K_X]
    def body(a, b):
        return jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


def case4_gather_b__wrong_axis0(a, b, *, mesh):
    # gathered along the wrong dimension, then reshaped so that it fits
    def body(a, b):
        return a @ jax.lax.all_gather(b, "x", axis=0, tiled=True).reshape(b.shape[0], -1)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


def case4_gather_b__wrong_diagonal(a, b, *, mesh):
    # nothing is gathered: only the blocks on the diagonal
    return jax.shard_map(jnp.matmul, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


def case4_gather_b__wrong_whole(a, b, *, mesh):
    # gathers A as well: C whole everywhere, more bytes, another layout
    def body(a, b):
        a = all_gather(a, "x", axis=0, tiled=True, to="invarying")
        return a @ all_gather(b, "x", axis=1, tiled=True, to="invarying")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P())(a, b)


def case4_gather_b__wrong_gathers_c(a, b, *, mesh):
    # puts the diagonal blocks of all devices side by side
    def body(a, b):
        return jax.lax.all_gather(a @ b, "x", axis=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# --- two_axis_scattered
def two_axis_scattered__right_scatter(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


def two_axis_scattered__right_transposed(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum_scatter(b.T @ a.T, "y", tiled=True).T

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x", "y"))(a, b)


def two_axis_scattered__wrong_over_x(a, b, *, mesh):
    # adds over x: different rows are added
    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("y", "x"))(a, b)


def two_axis_scattered__wrong_rows(a, b, *, mesh):
    # scatters rows: the columns stay whole
    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P(("x", "y"), None))(a, b)


def two_axis_scattered__wrong_psum(a, b, *, mesh):
    # that is two_axis: the columns whole, twice the bytes
    def body(a, b):
        return jax.lax.psum(a @ b, "y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


def two_axis_scattered__wrong_rows_as_columns(a, b, *, mesh):
    # rows are scattered, and out_specs say columns
    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


def two_axis_scattered__wrong_no_sum(a, b, *, mesh):
    # each keeps its columns of its own part: nothing is added
    def body(a, b):
        length = b.shape[1] // mesh.shape["y"]
        return jax.lax.dynamic_slice_in_dim(a @ b, jax.lax.axis_index("y") * length, length, axis=1)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)
