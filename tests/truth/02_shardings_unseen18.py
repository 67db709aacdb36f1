"""Answers to lesson 02, eighteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import put

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
wide = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- tutorial_faults

# tuples of one name, and what can be asked is asked
tutorial_faults__right_asked = {
    "figure": P(("y",), ("x",)),
    "type": type(mesh).__name__,
    "replicate": "the same block",
    "equal": P("x", None) == P("x"),
    "nbytes": mesh.size,
    "in_order": int(mesh.device_ids[1, 0]),
}

# Block 1 belongs to device 1's place with y slow: 4 * 1 + 0 = 4 (the block that device 1 holds, not who holds block 1).
tutorial_faults__wrong_inverse = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 4,
}

# Devices along an axis that is not named share what they hold between them, so nothing is ever stored twice.
tutorial_faults__wrong_shared = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "half of a block each",
    "equal": False,
    "nbytes": 1,
    "in_order": 2,
}

# The figure has eight different blocks and the even devices come first, so that it is the tuple with y slow.
tutorial_faults__wrong_eight_blocks = {
    "figure": P(("y", "x")),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 2,
}

# Both specs are the same layout (is_equivalent_to says True), so they are equal.
tutorial_faults__wrong_equivalent = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": True,
    "nbytes": 8,
    "in_order": 2,
}

# ---------------------------------------------------------------- count_layouts


# k of the axes cut something: they go one by one into `rank` rows, the next one has one gap more to go to
def count_layouts__right_gaps(rank, axes):
    import math

    return sum(math.comb(axes, k) * math.prod(range(rank, rank + k)) for k in range(axes + 1))


# Each choice once, and for each dimension and each pair of axes the one layout more with the pair turned round.
def count_layouts__wrong_pairs(rank, axes):
    return (rank + 1) ** axes + rank * (axes * (axes - 1) // 2)


# The orders are counted in every group, also in the group of axes that cut nothing.
def count_layouts__wrong_idle_orders(rank, axes):
    import itertools
    import math

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        total += math.prod(math.factorial(choice.count(d)) for d in range(rank + 1))
    return total


# The k axes that cut anything stand in some order in the spec: k! orders, wherever they stand.
def count_layouts__wrong_all_orders(rank, axes):
    import math

    return sum(math.comb(axes, k) * rank**k * math.factorial(k) for k in range(axes + 1))


# Every axis of the mesh has to cut one of the dimensions, since each device must have a part of its own.
def count_layouts__wrong_no_copies(rank, axes):
    import itertools
    import math

    total = 0
    for choice in itertools.product(range(rank), repeat=axes):
        total += math.prod(math.factorial(choice.count(d)) for d in range(rank))
    return total


# ---------------------------------------------------------------- attributes

ones = jnp.ones((16, 8))
cut = put(ones, P("y"), mesh)

# made, and asked
attributes__right_asked = {
    "len(cut.devices())": len(cut.devices()),
    "cut.shape": cut.shape,
    "len(cut.addressable_shards)": len(cut.addressable_shards),
    "cut.addressable_shards[5].data.shape": cut.sharding.shard_shape(cut.shape),
    "cut.is_fully_replicated": cut.is_fully_replicated,
    "jnp.sin(cut).addressable_shards[5].data.shape": jnp.sin(cut).addressable_shards[5].data.shape,
}

# A shard is a different part of the array, and copies are not counted: over y there are two.
attributes__wrong_two_parts = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 2,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# y is the second axis, so it cuts the second dimension, the columns, into two.
attributes__wrong_columns = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (16, 4),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 4),
}

# Each block is on four devices: there are copies, so the array is replicated.
attributes__wrong_replicated = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": True,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# The argument is cut, but a result is an array of its own, whole where nobody has given it a sharding.
attributes__wrong_sin_whole = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 8),
}
