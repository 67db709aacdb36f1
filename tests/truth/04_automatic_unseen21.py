"""Answers to lesson 04, twenty-first batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ------------------------------------------------------------- same_everywhere


def same_everywhere__right_BYDEVICE(a, b):
    """Whether a and b have the same values and layout, and every copy agrees."""
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False

    def place(shard):
        return tuple(part.indices(length)[:2] for part, length in zip(shard.index, a.shape))

    held_by_b = {shard.device.id: np.asarray(shard.data) for shard in b.addressable_shards}
    found = {}  # by place: the first block of a that stands there
    for shard in a.addressable_shards:
        block = np.asarray(shard.data)
        if not np.array_equal(block, held_by_b[shard.device.id]):
            return False
        if not np.array_equal(block, found.setdefault(place(shard), block)):
            return False
    return True


# "If on every device a and b hold the same, they are the same everywhere: device by device is the strictest test that there is."
def same_everywhere__wrong_PAIRWISE(a, b):
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    of_b = {shard.device.id: shard.data for shard in b.addressable_shards}
    return all(
        np.array_equal(np.asarray(shard.data), np.asarray(of_b[shard.device.id])) for shard in a.addressable_shards
    )


# "b is the reference: a's copies must agree with it, and its values are those that NumPy shows."
def same_everywhere__wrong_REFERENCE(a, b):
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    reference = np.asarray(b)

    def agrees(shard):
        return np.array_equal(np.asarray(shard.data), reference[shard.index])

    return all(agrees(shard) for shard in a.addressable_shards)


# "Laid out alike: on the same devices, and with blocks of the same shape."
def same_everywhere__wrong_BLOCKSHAPES(a, b):
    def layout(array):
        return array.devices(), array.sharding.shard_shape(array.shape)

    def honest(array, values):
        return all(np.array_equal(np.asarray(s.data), values[s.index]) for s in array.addressable_shards)

    if a.shape != b.shape or layout(a) != layout(b):
        return False
    values = np.asarray(a)
    return bool(np.array_equal(values, np.asarray(b))) and honest(a, values) and honest(b, values)


# "The layouts are alike if they print alike: mesh, types and spec stand in it."
def same_everywhere__wrong_PRINTED(a, b):
    if a.shape != b.shape or str(a.sharding) != str(b.sharding):
        return False
    values = np.asarray(a)
    for array in (a, b):
        for shard in array.addressable_shards:
            if not np.array_equal(np.asarray(shard.data), values[shard.index]):
                return False
    return True


# ------------------------------------------------------------- follow_the_mesh

_wired = np.array([0, 1, 4, 5, 2, 3, 6, 7]).reshape(4, 2)  # rows along a, columns along b
_row, _column = 8 // (32 // 4), 8 // (16 // 2)  # block 1 of four, and block 1 of two

follow_the_mesh__right_GRID = {
    "who holds x[8, 0]": [int(_wired[_row, 0])],
    "who holds y[8, 0]": _wired[:, _column].tolist(),
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [k for k in _wired[1].tolist() if k != 4],
    "who holds relu(x @ y)[8, 0]": _wired[_row].tolist(),
}

# "Devices that add up stand in the same column of the grid: the sum runs over a, the axis along which the rows of x are cut."
follow_the_mesh__wrong_OVERA = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 5, 3, 7],
    "layout of relu(x @ y)": P("a", None),
    "over": "a",
    "adds up with device 4": [0, 2, 6],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# "The result has the cut of x: rows over a, columns over b; after the sum each of the two keeps its half of the columns."
follow_the_mesh__wrong_KEEPSHALF = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 5, 3, 7],
    "layout of relu(x @ y)": P("a", "b"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4],
}

# "Row 8 of y is in block 1, and block 1 of rows belongs to row 1 of the mesh (as it does for x)."
follow_the_mesh__wrong_ROWONE = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [4, 5],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# "The blocks have eight rows, so that row 8 is the last row of the first block."
follow_the_mesh__wrong_LASTOFFIRST = {
    "who holds x[8, 0]": [0],
    "who holds y[8, 0]": [0, 4, 2, 6],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [0, 1],
}

# ------------------------------------------------------------- constrain_whole


def constrain_whole__right_NONES(v, *, mesh):
    """v + 1, from P("x", "y") to whole on every device."""
    uncut = P(*(None for _ in v.shape))
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, uncut))


# "Whole means that I name no axis and ask for no cut: P.UNCONSTRAINED in every dimension."
def constrain_whole__wrong_UNCONSTRAINED(v, *, mesh):
    free = P(*[P.UNCONSTRAINED] * v.ndim)
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, free))


# "The rows are what is dealt out over the mesh; once they are put together along x everybody has the array, and y is only where the copies are."
def constrain_whole__wrong_ALONGX(v, *, mesh):
    def gathered(value):
        return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(None, "y")))

    return gathered(v + 1)


# "On every device: so every axis of the mesh has to be named, in one tuple, and the rows come whole."
def constrain_whole__wrong_EVERYAXIS(v, *, mesh):
    everybody = P(tuple(mesh.axis_names), None)
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, everybody))


# "I know what has to be sent, so I write it: gather along y, then along x" (the exercise wants no collective and no shard_map).
def constrain_whole__wrong_BYHAND(v, *, mesh):
    def gather(block):
        lines = jax.lax.all_gather(block + 1, "y", axis=1, tiled=True)
        return jax.lax.all_gather(lines, "x", axis=0, tiled=True)

    return jax.shard_map(gather, mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False)(v)
