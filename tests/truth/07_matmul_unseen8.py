"""Answers to lesson 07, eighth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader import all_gather  # `jax.lax.all_gather`, with `to=` in every version of JAX

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ----------------------------------------------------------------- bytes_sent
_n, _I, _J, _K = 4, 16, 32, 24


def _ring(rows, columns, rounds=1):
    block = rows * columns * 4 // _n
    return rounds * (_n - 1) * block


bytes_sent__right_by_blocks = {
    "all_gather of A[I, J_X]": _ring(_I, _J),
    "all_reduce of C[I, K]": _ring(_I, _K, rounds=2),
    "reduce_scatter of C[I, K]": _ring(_I, _K),
    "all_gather of B[J, K_X]": _ring(_J, _K),
}

# thought: V is what a device has of the cut array, so V of A and of B is a quarter, and three quarters of that are sent
bytes_sent__wrong_v_is_the_block = {
    "all_gather of A[I, J_X]": 384,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 576,
}

# thought: to add C up each device needs the three other C's, and they are not cut: so 3 V, and an all_reduce gathers after it
bytes_sent__wrong_whole_parts_travel = {
    "all_gather of A[I, J_X]": 3 * 16 * 8 * 4,
    "all_reduce of C[I, K]": 3 * 16 * 24 * 4 + 3 * 16 * 6 * 4,
    "reduce_scatter of C[I, K]": 3 * 16 * 24 * 4,
    "all_gather of B[J, K_X]": 3 * 32 * 6 * 4,
}

# thought: C comes of a contraction over J and is as large as I times J (K was read as the letter that is summed)
bytes_sent__wrong_c_as_large_as_a = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 3072,
    "reduce_scatter of C[I, K]": 1536,
    "all_gather of B[J, K_X]": 2304,
}

# thought: an all_reduce goes twice round over n devices: 2n - 1 blocks, for the last of the first round is the first of the next
bytes_sent__wrong_two_rounds_joined = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 7 * (16 * 24 * 4 // 4),
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 2304,
}

# --------------------------------------------------------------- local_shapes
local_shapes__right_by_jax = {
    name: NamedSharding(mesh, spec).shard_shape((16, 32))
    for name, spec in {
        "A[I_X, J]": P("x"),
        "A[I, J_X]": P(None, "x"),
        "A[I_X, J_Y]": P("x", "y"),
        "A[I_Y, J_X]": P("y", "x"),
        "A[I, J_XY]": P(None, ("x", "y")),
        "A[I, J]": P(),
    }.items()
}

# thought: the axis that no letter names cuts the other dimension, for all eight devices hold another block
local_shapes__wrong_all_eight_differ = {
    "A[I_X, J]": (4, 16),
    "A[I, J_X]": (8, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (16, 4),
    "A[I, J]": (16, 32),
}

# thought: J_XY: x and y both cut J, and where x has cut already y's cuts fall on the same places: the finer one counts, 4 pieces
local_shapes__wrong_larger_of_two = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (16, 8),
    "A[I, J]": (16, 32),
}

# thought: the letter says into blocks of which size, I_X: rows in blocks of 4, J_Y: columns in blocks of 2
local_shapes__wrong_size_of_blocks = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 4),
    "A[I_X, J_Y]": (4, 2),
    "A[I_Y, J_X]": (2, 4),
    "A[I, J_XY]": (16, 8),
    "A[I, J]": (16, 32),
}

# thought: X is always the axis of the rows: A[I_Y, J_X] is A written with its dimensions the other way round
local_shapes__wrong_x_is_rows = {**local_shapes__right_by_jax, "A[I_Y, J_X]": (4, 16)}


# ------------------------------------------------------------- case2_cheapest
def case2_cheapest__right_cut_by_specs(a, b, *, mesh):
    J, K = b.shape

    def gathering(columns, b):
        return all_gather(columns, "x", axis=1, tiled=True, to="invarying") @ b

    def adding(columns, rows):
        return jax.lax.psum(columns @ rows, "x")

    # B is whole everywhere: to let in_specs cut its rows costs nothing
    way, spec_of_b = (gathering, P(None, None)) if J <= 2 * K else (adding, P("x", None))
    return jax.shard_map(way, mesh=mesh, in_specs=(P(None, "x"), spec_of_b), out_specs=P(None, None))(a, b)


# thought: inside the function a.shape[1] is J, so the comparison can stand there
def case2_cheapest__wrong_compares_inside(a, b, *, mesh):
    def body(a, b):
        if a.shape[1] < 2 * b.shape[1]:
            return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b
        length = a.shape[1]
        mine = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * length, length)
        return jax.lax.psum(a @ mine, "x")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# thought: the place times the number of devices is where my rows begin
def case2_cheapest__wrong_start_times_devices(a, b, *, mesh):
    n = mesh.shape["x"]
    j, k = a.shape[1], b.shape[1]

    def gather(a_block, b):
        return all_gather(a_block, "x", axis=1, tiled=True, to="invarying") @ b

    def add(a_block, b):
        start = jax.lax.axis_index("x") * n
        return jax.lax.psum(a_block @ jax.lax.dynamic_slice_in_dim(b, start, j // n), "x")

    return jax.shard_map(gather if j <= 2 * k else add, mesh=mesh, in_specs=(P(None, "x"), P(None)), out_specs=P())(
        a, b
    )


# thought: what travels is compared with what would have to be stored: I times J against the whole of B and C together
def case2_cheapest__wrong_adds_b_to_the_bill(a, b, *, mesh):
    bytes_gather = a.size
    bytes_sum = b.size + a.shape[0] * b.shape[1]

    def by_gather(a, b):
        return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b

    def by_sum(a, b):
        blocks = b.reshape(-1, a.shape[1], b.shape[1])
        return jax.lax.psum(a @ blocks[jax.lax.axis_index("x")], "x")

    body = by_gather if bytes_gather <= bytes_sum else by_sum
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# thought: a reduce-scatter sends half of what a psum sends, so it is never worse to scatter; the rows of C come together outside
def case2_cheapest__wrong_scatters(a, b, *, mesh):
    def scattering(a, b):
        length = a.shape[1]
        mine = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * length, length, axis=0)
        return jax.lax.psum_scatter(a @ mine, "x", scatter_dimension=0, tiled=True)

    def gathering(a, b):
        return all_gather(a, "x", axis=1, tiled=True, to="invarying") @ b

    if a.shape[1] <= b.shape[1]:
        return jax.shard_map(gathering, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)
    return jax.shard_map(scattering, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P("x"))(a, b)
