"""Answers to lesson 07, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ----------------------------------------------------------------- case3_layer


def case3_layer__right_once(a, b, bias, *, mesh):
    def body(a, b, bias):
        first = jax.lax.axis_index("x") == 0  # the bias counts once: on one device of the sum
        return jax.nn.relu(jax.lax.psum(a @ b + jnp.where(first, bias, 0), "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# The bias must count once, so every device takes an n-th of it; then the layer is done on each device, and the results are added.
def case3_layer__wrong_shares(a, b, bias, *, mesh):
    def body(a, b, bias):
        return jax.lax.psum(jax.nn.relu(a @ b + bias / mesh.shape["x"]), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# relu belongs to the product, the bias comes on top: what counts once comes last of all.
def case3_layer__wrong_last(a, b, bias, *, mesh):
    def body(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b, "x")) + bias

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# C is wanted on all devices, so the sum goes over all devices, over every axis of the mesh.
def case3_layer__wrong_all_axes(a, b, bias, *, mesh):
    def body(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b, mesh.axis_names) + bias)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# Half of the bytes: scatter the sum by columns, cut the bias alike, and the array is [I, K] for everybody outside anyway.
def case3_layer__wrong_columns(a, b, bias, *, mesh):
    def body(a, b, bias):
        c = jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)
        return jax.nn.relu(c + bias)

    specs = (P(None, "x"), P("x", None), P("x"))
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(None, "x"))(a, b, bias)


# ---------------------------------------------------------------- local_shapes

local_shapes__right_quotients = {
    "A[I_X, J]": (16 // 4, 32),
    "A[I, J_X]": (16, 32 // 4),
    "A[I_X, J_Y]": (16 // 4, 32 // 2),
    "A[I_Y, J_X]": (16 // 2, 32 // 4),
    "A[I, J_XY]": (16, 32 // (4 * 2)),
    "A[I, J]": (16, 32),
}

# The grid is 4 x 2: rows are cut in 4 and columns in 2, whichever letters are used.
local_shapes__wrong_grid = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (4, 16),
    "A[I, J_XY]": (16, 4),
    "A[I, J]": (16, 32),
}

# XY is the whole grid, and the grid cuts both dimensions: x the first, y the second.
local_shapes__wrong_whole_grid = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (4, 16),
    "A[I, J]": (16, 32),
}

# Eight devices share one matrix, so the axis that is not named takes the dimension that is left.
local_shapes__wrong_left_over = {
    "A[I_X, J]": (4, 16),
    "A[I, J_X]": (8, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (16, 4),
    "A[I, J]": (16, 32),
}

# Over x and over y: each axis makes its own cut of J into blocks, and the block of a device is that of the first, y makes copies.
local_shapes__wrong_first_letter = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (16, 8),
    "A[I, J]": (16, 32),
}


# -------------------------------------------------------------------- cheapest


def cheapest__right_units(case, wanted, i, j, k, n, itemsize):
    # everything in units of (n-1)/n, which all collectives share
    A, B, C = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    reduce_c = 2 * C if wanted == "C[I, K]" else C

    def relaid(left):
        return 0 if wanted == left else C if wanted == "C[I, K]" else C / n

    ways = {
        2: [(A, "gather A"), (reduce_c, "reduce C")],
        3: [(reduce_c, "reduce C"), (A + B, "gather A and B")],
        4: [(A + relaid("C[I, K_X]"), "gather A"), (B + relaid("C[I_X, K]"), "gather B")],
    }
    return min(ways[case])[1]


# A sum over a ring sends (n-1)/n of C, whether it is dealt out or not: the factor 2 is forgotten.
def cheapest__wrong_one_round(case, wanted, i, j, k, n, itemsize):
    f = (n - 1) / n
    A, B, C = f * i * j * itemsize["A"], f * j * k * itemsize["B"], f * i * k * itemsize["C"]
    extra = {"C[I, K]": C, "C[I_X, K]": C / n, "C[I, K_X]": C / n}[wanted]
    costs = {
        2: {"gather A": A, "reduce C": C},
        3: {"reduce C": C, "gather A and B": A + B},
        4: {
            "gather A": A + (0 if wanted == "C[I, K_X]" else extra),
            "gather B": B + (0 if wanted == "C[I_X, K]" else extra),
        },
    }[case]
    return min(costs, key=costs.get)


# From a layout to another one all of C is on the move, so whatever is not there yet costs (n-1)/n of C, the all_to_all too.
def cheapest__wrong_moves(case, wanted, i, j, k, n, itemsize):
    f = (n - 1) / n
    A, B, C = f * i * j * itemsize["A"], f * j * k * itemsize["B"], f * i * k * itemsize["C"]
    reduce_c = C * (2 if wanted == "C[I, K]" else 1)
    costs = {
        2: {"gather A": A, "reduce C": reduce_c},
        3: {"reduce C": reduce_c, "gather A and B": A + B},
        4: {"gather A": A + C * (wanted != "C[I, K_X]"), "gather B": B + C * (wanted != "C[I_X, K]")},
    }[case]
    return min(costs, key=costs.get)


# In case 4 the cut of the operand that was gathered is the cut that C has: A is by rows, so "gather A" leaves rows.
def cheapest__wrong_left(case, wanted, i, j, k, n, itemsize):
    f = (n - 1) / n
    A, B, C = f * i * j * itemsize["A"], f * j * k * itemsize["B"], f * i * k * itemsize["C"]
    whole = wanted == "C[I, K]"

    def then(left):
        return C if whole else 0 if left == wanted else C / n

    costs = {
        2: {"gather A": A, "reduce C": (1 + whole) * C},
        3: {"reduce C": (1 + whole) * C, "gather A and B": A + B},
        4: {"gather A": A + then("C[I_X, K]"), "gather B": B + then("C[I, K_X]")},
    }[case]
    return min(costs, key=costs.get)


# A device has only an n-th of A or B to give, so V is that block in a gather; C is full-sized on every device.
def cheapest__wrong_block(case, wanted, i, j, k, n, itemsize):
    f = (n - 1) / n
    A, B = f * i * j / n * itemsize["A"], f * j * k / n * itemsize["B"]
    C = f * i * k * itemsize["C"]
    whole = wanted == "C[I, K]"

    def then(left):
        return C if whole else 0 if left == wanted else C / n

    costs = {
        2: {"gather A": A, "reduce C": (1 + whole) * C},
        3: {"reduce C": (1 + whole) * C, "gather A and B": A + B},
        4: {"gather A": A + then("C[I, K_X]"), "gather B": B + then("C[I_X, K]")},
    }[case]
    return min(costs, key=costs.get)
