"""Answers to lesson 01, twenty-first batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- array_facts

array_facts__right_ASKED = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": mesh.devices.size,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": mesh.devices.size,
}

# "y lives in pieces, so its shape is that of a piece: 64 / 4 rows and 64 / 2 columns."
array_facts__wrong_PIECE = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (16, 32),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# "device_put moves the array: afterwards x is where y is, both names mean the spread array."
array_facts__wrong_MOVED = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 8,
    "devices of z": 8,
}

# "The eight shards are addressable one by one, so y is a list of arrays; and what jit returns is new, and new arrays are on device 0."
array_facts__wrong_LIST = {
    "devices of x": 1,
    "type of y": "a list of arrays",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 1,
}

# "The rows are cut along x, x has four places, so y is on four devices, and the sine of it too (y only halves the columns there)."
array_facts__wrong_FOUR = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 4,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 4,
}

# ---------------------------------------------------------- make_training_mesh


def make_training_mesh__right_COUNTED(n_data, n_model, explicit):
    """A mesh with axes "data" and "model", of Explicit or of Auto type."""
    lengths = {"data": n_data, "model": n_model}
    kinds = {name: AxisType.Explicit if explicit else AxisType.Auto for name in lengths}
    there = jax.devices()
    needed = n_data * n_model
    if needed > len(there):
        raise ValueError(f"{needed} places and {len(there)} devices")
    return jax.make_mesh(
        tuple(lengths.values()), tuple(lengths), axis_types=tuple(kinds.values()), devices=there[:needed]
    )


# "Only the batch is cut explicitly, the model axis is the compiler's in any case."
def make_training_mesh__wrong_HALF(n_data, n_model, explicit):
    def kind(name):
        if explicit and name == "data":
            return AxisType.Explicit
        return AxisType.Auto

    names = ("data", "model")
    return jax.make_mesh((n_data, n_model), names, axis_types=tuple(kind(name) for name in names))


# "A mesh has a place for each device: when the product is not the number of devices there are too few or too many, and both are errors."
def make_training_mesh__wrong_EXACT(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    if n_data * n_model != jax.device_count():
        raise ValueError(f"{n_data} x {n_model} places, {jax.device_count()} devices")
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind, kind))


# "The names say which length is which, so the order does not matter; the model axis goes first because it is the one with the best wires."
def make_training_mesh__wrong_MODELFIRST(n_data, n_model, explicit):
    axes = [("model", n_model), ("data", n_data)]
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh(tuple(n for _, n in axes), tuple(name for name, _ in axes), axis_types=(kind,) * len(axes))


# "A good helper fits the mesh to the machine: with too few devices there is less data parallelism, JAX complains only if not even one model fits."
def make_training_mesh__wrong_SHRINK(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto

    def fitting(wanted):
        rows = wanted
        while rows > 1 and rows * n_model > jax.device_count():
            rows -= 1
        return rows

    return jax.make_mesh((fitting(n_data), n_model), ("data", "model"), axis_types=(kind, kind))


# -------------------------------------------------------------- topology_order

_grid = np.array([[0, 1], [2, 3], [6, 7], [4, 5]])  # as printed


def _row_of(device):
    return int(np.argwhere(_grid == device)[0, 0])


topology_order__right_GRID = {
    "the device in row 2, column 0": int(_grid[2, 0]),
    "who holds block 2 of P('x')": _grid[2].tolist(),
    "the block of device 4 under P('x')": _row_of(4),
    "after device 2 along x": int(_grid[_row_of(2) + 1, 0]),
    "along x from device 0": _grid[:, 0].tolist(),
}

# "One device holds a block: block 2 is with the device in row 2, column 0; the other columns belong to y, which P('x') does not use."
topology_order__wrong_ONECOPY = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# "Blocks are counted from one: the second block is that of the second row, and the last row has the fourth."
topology_order__wrong_FROMONE = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [2, 3],
    "the block of device 4 under P('x')": 4,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# "Along x is the way of the picture, the ring through all devices, line by line of the printed grid."
topology_order__wrong_RINGWALK = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 3,
    "along x from device 0": [0, 1, 2, 3, 6, 7, 4, 5],
}

# "One step along x passes over a row of two devices, so the id grows by two (though the blocks are read off the grid); device 4 comes after two such steps, in block 2."
topology_order__wrong_STEPSOFTWO = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 2,
    "after device 2 along x": 4,
    "along x from device 0": [0, 2, 4, 6],
}
