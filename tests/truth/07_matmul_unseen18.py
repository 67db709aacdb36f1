"""Answers to lesson 07, eighteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --------------------------------------------------------------------- case3
def case3__right_tensordot(a, b, *, mesh):
    def part_then_sum(columns_of_a, rows_of_b):
        part = jnp.tensordot(columns_of_a, rows_of_b, axes=1)
        return jax.lax.psum(part, "x")

    return jax.shard_map(part_then_sum, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, None))(a, b)


# "The sum over J may be taken first": the operands are added over x, and then multiplied.
def case3__wrong_sumfirst(a, b, *, mesh):
    def body(p, q):
        return jax.lax.psum(p, "x") @ jax.lax.psum(q, "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


# "Collect everybody's part, then each adds them up itself": a gather of n whole products instead of a psum.
def case3__wrong_gatherparts(a, b, *, mesh):
    def body(p, q):
        parts = all_gather(p @ q, "x", to="invarying")
        return parts.sum(axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


# "A sum dealt out is half of the price": right numbers, but as C[I_X, K], each device with its rows only.
def case3__wrong_dealtout(a, b, *, mesh):
    body = lambda p, q: jax.lax.psum_scatter(p @ q, "x", scatter_dimension=0, tiled=True)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# "C is to be the same on all devices, so the sum goes over all of them": the copies along y are added as well.
def case3__wrong_allaxes(a, b, *, mesh):
    def body(p, q):
        return jax.lax.psum(p @ q, mesh.axis_names)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(), check_vma=False)(a, b)


# ------------------------------------------------------------------ cheapest
def cheapest__right_units(case, wanted, i, j, k, n, itemsize):
    # everything in units of (n - 1) / n² bytes, so that there are only whole numbers
    a, b, c = (n * size for size in (i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]))
    if case in (2, 3):
        sums = 2 * c if wanted == "C[I, K]" else c
        other, price = ("gather A", a) if case == 2 else ("gather A and B", a + b)
        return "reduce C" if sums < price else other
    to_rows = {"C[I_X, K]": 0, "C[I, K_X]": c // n, "C[I, K]": c}[wanted]
    to_columns = {"C[I_X, K]": c // n, "C[I, K_X]": 0, "C[I, K]": c}[wanted]
    return "gather A" if a + to_columns < b + to_rows else "gather B"


# "To reduce C is an all_reduce; what is not wanted of it is sliced off, for free": twice the bytes where C is wanted cut.
def cheapest__wrong_reducethenslice(case, wanted, i, j, k, n, itemsize):
    ring = (n - 1) / n
    a = ring * i * j * itemsize["A"]
    b = ring * j * k * itemsize["B"]
    c = ring * i * k * itemsize["C"]
    if case == 2:
        bytes_of = {"gather A": a, "reduce C": 2 * c}
    elif case == 3:
        bytes_of = {"gather A and B": a + b, "reduce C": 2 * c}
    else:
        bytes_of = {"gather A": a, "gather B": b}
        if wanted == "C[I_X, K]":
            bytes_of["gather A"] += c / n
        elif wanted == "C[I, K_X]":
            bytes_of["gather B"] += c / n
        else:
            bytes_of["gather A"] += c
            bytes_of["gather B"] += c
    return min(bytes_of, key=bytes_of.get)


# "A gather sends n - 1 blocks, and one block is so many bytes": numbers of entries are compared, the item sizes never looked at.
def cheapest__wrong_entries(case, wanted, i, j, k, n, itemsize):
    f = (n - 1) / n
    A, B, C = i * j, j * k, i * k
    add_up = f * C * (2 if wanted == "C[I, K]" else 1)
    change = {
        ("gather A", "C[I, K]"): f * C,
        ("gather A", "C[I_X, K]"): f * C / n,
        ("gather A", "C[I, K_X]"): 0,
        ("gather B", "C[I, K]"): f * C,
        ("gather B", "C[I_X, K]"): 0,
        ("gather B", "C[I, K_X]"): f * C / n,
    }
    options = {
        2: {"gather A": f * A, "reduce C": add_up},
        3: {"reduce C": add_up, "gather A and B": f * (A + B)},
        4: {"gather A": f * A + change["gather A", wanted], "gather B": f * B + change["gather B", wanted]},
    }[case]
    return min(options, key=options.get)


# "Gathering A makes the rows whole, and they are what is then cut over x": gather A is thought to leave C[I_X, K], gather B C[I, K_X].
def cheapest__wrong_leaves(case, wanted, i, j, k, n, itemsize):
    f = (n - 1) / n
    V = {"A": i * j * itemsize["A"], "B": j * k * itemsize["B"], "C": i * k * itemsize["C"]}
    if case != 4:
        reduce = f * V["C"]
        if wanted == "C[I, K]":
            reduce *= 2
        if case == 2:
            return "reduce C" if reduce < f * V["A"] else "gather A"
        return "reduce C" if reduce < f * (V["A"] + V["B"]) else "gather A and B"
    leaves = {"gather A": "C[I_X, K]", "gather B": "C[I, K_X]"}
    costs = {}
    for strategy, left in leaves.items():
        cost = f * V[strategy[-1]]
        if wanted == "C[I, K]":
            cost += f * V["C"]
        elif wanted != left:
            cost += f / n * V["C"]
        costs[strategy] = cost
    return min(costs, key=costs.get)


# "Two gathers run side by side, so the larger one is the price": in case 3 the maximum stands where the sum should.
def cheapest__wrong_largerofboth(case, wanted, i, j, k, n, itemsize):
    def gather(size):
        return (n - 1) / n * size

    def all_to_all(size):
        return (n - 1) / n**2 * size

    a, b, c = i * j * itemsize["A"], j * k * itemsize["B"], i * k * itemsize["C"]
    reduce_c = 2 * gather(c) if wanted == "C[I, K]" else gather(c)
    if case == 2:
        costs = {"gather A": gather(a), "reduce C": reduce_c}
    elif case == 3:
        costs = {"reduce C": reduce_c, "gather A and B": max(gather(a), gather(b))}
    else:
        costs = {"gather A": gather(a), "gather B": gather(b)}
        if wanted == "C[I_X, K]":
            costs["gather A"] += all_to_all(c)
        if wanted == "C[I, K_X]":
            costs["gather B"] += all_to_all(c)
    return min(costs, key=costs.get)


# ---------------------------------------------------------- find_the_mistake
find_the_mistake__right_values = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}

# "Without a sharding an array is P(), and P() is replicated": on all eight.
find_the_mistake__wrong_eight = {
    "gathered": "A",
    "replicated": 8,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}

# "Columns go across, and x goes across: in the 2 x 2 grid 0 1 / 2 3 the right half is 1 and 3".
find_the_mistake__wrong_xacross = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [1, 3],
    "computable": "C[0:2, 0:2]",
}

# "A device multiplies only when it has both matrices whole": both are gathered, and before that nothing can be computed.
find_the_mistake__wrong_bothwhole = {
    "gathered": "A and B",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "nothing",
}

# "Device 0 has its rows of A, and a row of A makes a row of C": its columns of B are forgotten.
find_the_mistake__wrong_wholerows = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:4]",
}
