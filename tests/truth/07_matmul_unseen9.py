"""Answers to lesson 07, ninth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- case2_gather


def case2_gather__right_stacked_second(a, b, *, mesh):
    def product(a, b):
        stacked = all_gather(a, "x", axis=1, to="invarying")  # [I, device, J of the device]
        return stacked.reshape(a.shape[0], -1) @ b

    return jax.shard_map(product, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Stacked blocks have the device in front; permute it to the end, next to the columns, then flatten the two.
def case2_gather__wrong_permute(a, b, *, mesh):
    def product(a, b):
        stacked = all_gather(a, "x", to="invarying")
        whole = jnp.transpose(stacked, (1, 2, 0)).reshape(a.shape[0], -1)
        return whole @ b

    return jax.shard_map(product, mesh=mesh, in_specs=(P(None, "x"), P(None, None)), out_specs=P(None, None))(a, b)


# The error says that out_specs must name x, as the gathered value varies over it; so they do.
def case2_gather__wrong_names_x(a, b, *, mesh):
    def product(a, b):
        a = jax.lax.all_gather(a, "x", axis=1, tiled=True)
        return a @ b

    return jax.shard_map(product, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P("x", None))(a, b)


# pmean takes the axis away from the type, and the mean of equal things is the same thing.
def case2_gather__wrong_pmean_for_types(a, b, *, mesh):
    def product(a, b):
        whole = jax.lax.all_gather(a, "x", axis=1, tiled=True)
        c = whole @ b
        return jax.lax.pmean(c, "x")

    return jax.shard_map(product, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# An empty matrix, everybody writes its columns into its place, and the sum of all of them is A (no `to=` needed).
def case2_gather__wrong_padded_sum(a, b, *, mesh):
    def product(a, b):
        width = a.shape[1]
        me = jax.lax.axis_index("x")
        buffer = jnp.zeros((a.shape[0], width * mesh.shape["x"]), a.dtype)
        columns = me * width + jnp.arange(width)
        buffer = buffer.at[:, columns].set(a)
        return jax.lax.psum(buffer, "x") @ b

    return jax.shard_map(product, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# ---------------------------------------------------------------- cheapest


def cheapest__right_one_table(case, wanted, i, j, k, n, itemsize):
    a, b, c = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    # everything in units of (n - 1) / n bytes
    reduce_c = 2 * c if wanted == "C[I, K]" else c

    def from_layout(left):
        if wanted == left:
            return 0
        return c if wanted == "C[I, K]" else c / n

    costs = {
        2: [(a, "gather A"), (reduce_c, "reduce C")],
        3: [(reduce_c, "reduce C"), (a + b, "gather A and B")],
        4: [(a + from_layout("C[I, K_X]"), "gather A"), (b + from_layout("C[I_X, K]"), "gather B")],
    }[case]
    return min(costs)[1]


# V in a gather is the block that a device holds, (n-1)/n of it are sent; C in a sum is whole on each device.
def cheapest__wrong_gathers_blocks(case, wanted, i, j, k, n, itemsize):
    part = (n - 1) / n
    A = i * j * itemsize["A"] / n
    B = j * k * itemsize["B"] / n
    C = i * k * itemsize["C"]
    reduce_C = part * C * (2 if wanted == "C[I, K]" else 1)
    if case == 2:
        costs = {"gather A": part * A, "reduce C": reduce_C}
    elif case == 3:
        costs = {"reduce C": reduce_C, "gather A and B": part * (A + B)}
    else:
        costs = {"gather A": part * A, "gather B": part * B}
        leaves = {"gather A": "C[I, K_X]", "gather B": "C[I_X, K]"}
        for name in costs:
            if wanted == "C[I, K]":
                costs[name] += part * C / n
            elif wanted != leaves[name]:
                costs[name] += part * C / n
    return min(costs, key=costs.get)


# What was cut stays cut: if A is gathered, C keeps the cut of the rows, as I_X belongs to A.
def cheapest__wrong_own_cut_stays(case, wanted, i, j, k, n, itemsize):
    f = (n - 1) / n
    A, B, C = i * j * itemsize["A"] * f, j * k * itemsize["B"] * f, i * k * itemsize["C"] * f
    sum_of_c = 2 * C if wanted == "C[I, K]" else C
    if case == 2:
        costs = {"gather A": A, "reduce C": sum_of_c}
    elif case == 3:
        costs = {"reduce C": sum_of_c, "gather A and B": A + B}
    else:
        after_a = {"C[I, K]": C, "C[I_X, K]": 0, "C[I, K_X]": C / n}
        after_b = {"C[I, K]": C, "C[I_X, K]": C / n, "C[I, K_X]": 0}
        costs = {"gather A": A + after_a[wanted], "gather B": B + after_b[wanted]}
    return min(costs, key=costs.get)


# An all_to_all of C sends all pieces but its own: (n-1)/n of the array, like the others in the table.
def cheapest__wrong_exchange_sends_all(case, wanted, i, j, k, n, itemsize):
    A, B, C = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    share = (n - 1) / n
    all_gather = lambda v: share * v
    all_to_all = lambda v: share * v
    reduce_scatter = lambda v: share * v
    all_reduce = lambda v: 2 * share * v
    reduce = all_reduce(C) if wanted == "C[I, K]" else reduce_scatter(C)
    if case == 2:
        options = {"gather A": all_gather(A), "reduce C": reduce}
    if case == 3:
        options = {"reduce C": reduce, "gather A and B": all_gather(A) + all_gather(B)}
    if case == 4:
        move = {"C[I, K]": all_gather(C)}
        options = {
            "gather A": all_gather(A) + move.get(wanted, 0 if wanted == "C[I, K_X]" else all_to_all(C)),
            "gather B": all_gather(B) + move.get(wanted, 0 if wanted == "C[I_X, K]" else all_to_all(C)),
        }
    return min(options, key=options.get)


# A matmul has one dtype, that of its operands; the bytes of an entry are those of A throughout.
def cheapest__wrong_one_dtype(case, wanted, i, j, k, n, itemsize):
    size = itemsize["A"]
    a, b, c = size * i * j, size * j * k, size * i * k
    whole = wanted == "C[I, K]"
    if case == 2:
        costs = {"gather A": a, "reduce C": 2 * c if whole else c}
    elif case == 3:
        costs = {"gather A and B": a + b, "reduce C": 2 * c if whole else c}
    else:
        costs = {
            "gather A": a + (c if whole else 0 if wanted == "C[I, K_X]" else c / n),
            "gather B": b + (c if whole else 0 if wanted == "C[I_X, K]" else c / n),
        }
    return min(costs, key=costs.get)


# ---------------------------------------------------------------- case1_out

case1_out__right_side_by_side = {
    f"A[{rows}, J] · B[J, {columns}]": f"C[{rows}, {columns}]"
    for rows, columns in [("I", "K"), ("I_X", "K"), ("I", "K_Y"), ("I_X", "K_Y")]
}

# The mesh has x and y, and a product's rows go over x and its columns over y, so that the devices share the work.
case1_out__wrong_work_is_shared = {
    "A[I, J] · B[J, K]": "C[I_X, K_Y]",
    "A[I_X, J] · B[J, K]": "C[I_X, K_Y]",
    "A[I, J] · B[J, K_Y]": "C[I_X, K_Y]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K_Y]",
}

# Where one operand is whole on every device, so is the result: a cut only survives if both are cut.
case1_out__wrong_whole_wins = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K_Y]",
}

# Lesson 04: where two operands disagree, the first one's cut is taken; so B's letters do not show up in C.
case1_out__wrong_first_operands_cut = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K]",
}

# Each device needs a row of A for its column of C: A's cut goes to the columns and B's to the rows, as with nn.Linear's transposed weight.
case1_out__wrong_letters_cross = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I, K_X]",
    "A[I, J] · B[J, K_Y]": "C[I_Y, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_Y, K_X]",
}
