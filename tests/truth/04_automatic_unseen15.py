"""Answers to lesson 04, fifteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

_NOISE = "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)"
_FIRST = "the first call is slowest, because (it is compiled / the devices warm up)"
_BLOCK = "without block_until_ready one times (the dispatch / the whole work)"
_SIMUL = "simulated devices gain nothing, because (they share a processor / they communicate)"

read_the_benchmark__right_computed = {
    "speed-up of sin": 25.2 / 2.4,
    "efficiency of matmul": 49.7 / (8 * 7.47),
    _NOISE: "25.2 ± 30.9 is noise",
    _FIRST: "it is compiled",
    _BLOCK: "the dispatch",
    _SIMUL: "they share a processor",
}
# Thought: efficiency is how much faster it got; forgets to divide by the number of cores.
read_the_benchmark__wrong_nocores = {**read_the_benchmark__right_computed, "efficiency of matmul": 49.7 / 7.47}
# Thought: what is sent explains everything, the good result and the bad one.
read_the_benchmark__wrong_sending = {
    **read_the_benchmark__right_computed,
    _NOISE: "sin sends nothing",
    _SIMUL: "they communicate",
}
# Thought: speed-up and efficiency are the part of the time that was saved.
read_the_benchmark__wrong_saved = {
    **read_the_benchmark__right_computed,
    "speed-up of sin": (25.2 - 2.4) / 25.2,
    "efficiency of matmul": (49.7 - 7.47) / 49.7,
}
# Thought: the call has returned an array, so the whole work is in the time; block_until_ready only makes sure.
read_the_benchmark__wrong_wholework = {**read_the_benchmark__right_computed, _BLOCK: "the whole work"}

_sums = [sum(8 * row + column for row in range(6)) for column in range(8)]  # 120, 126, 132, ...
_brought = 2 * 4  # each device brings the sums of its two columns, float32
contract__right_ring = {
    "layout": P("y"),
    "device 0": _sums[0:2],
    "device 4": _sums[0:2],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 2 * (2 - 1) * _brought // 2,
}
# Thought: each device keeps the sum of the three rows that it has itself; the collective only makes the total known.
contract__wrong_parts = {**contract__right_ring, "device 0": [24, 27], "device 4": [96, 99]}
# Thought: sum(0) goes along a row of the mesh, so that it runs over y, and x is left.
contract__wrong_axis = {**contract__right_ring, "layout": P("x"), "over": "y", "bytes sent": 12}
# Thought: b is the block that a device has before it adds up: 3 rows of 2 numbers, 24 bytes.
contract__wrong_block = {**contract__right_ring, "bytes sent": 24}
# Thought: the numbers of the devices run along x first, so device 4 stands at (0, 2) and has columns 4 and 5.
contract__wrong_place = {**contract__right_ring, "device 4": [144, 150]}


def constrain__right_movefirst(v, *, mesh):
    """Bring it to the other layout, add there, and pin the result to the same layout."""
    across = NamedSharding(mesh, P("y", "x"))
    moved = jax.lax.with_sharding_constraint(v, across)
    return jax.lax.with_sharding_constraint(moved + 1, across)


# Thought: "y, then x" is one tuple of names (cuts the rows over both axes).
def constrain__wrong_tuple(v, *, mesh):
    names = ("y", "x")
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(names)))


# Thought: to exchange the axes of the spec is to transpose the array.
def constrain__wrong_transposed(v, *, mesh):
    return jax.lax.with_sharding_constraint((v + 1).T, NamedSharding(mesh, P("y", "x")))


# Thought: blocks can be dealt out anew only by somebody who has everything, so first whole, then cut.
def constrain__wrong_viawhole(v, *, mesh):
    whole = jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P())) + 1
    whole = jax.lax.with_sharding_constraint(whole, NamedSharding(mesh, P()))
    return jax.lax.with_sharding_constraint(whole, NamedSharding(mesh, P("y", "x")))


# Thought: a constraint is a remark to the compiler about a value; what it returns is not needed.
def constrain__wrong_dropped(v, *, mesh):
    result = v + 1
    jax.lax.with_sharding_constraint(result, NamedSharding(mesh, P("y", "x")))
    return result
