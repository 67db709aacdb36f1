"""Answers to lesson 01, ninth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- axis_type

_new = tuple(int(part) for part in jax.__version__.split(".")[:2]) >= (0, 9)

axis_type__right_by_version = {
    'jax.make_mesh((8,), ("x",))': "Explicit" if _new else "Auto",
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# "The default changed in JAX 0.9" is about meshes in general, so the constructor Mesh changed along with make_mesh.
axis_type__wrong_default_for_all = {
    'jax.make_mesh((8,), ("x",))': "Explicit" if _new else "Auto",
    'Mesh(np.array(jax.devices()), ("x",))': "Explicit",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# make_mesh arranges the devices by itself, so it is automatic; Mesh keeps what I give it, so that one is explicit.
axis_type__wrong_arranges_itself = {
    'jax.make_mesh((8,), ("x",))': "Auto",
    'Mesh(np.array(jax.devices()), ("x",))': "Explicit",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# A mesh has its types from the day it was made, and shard_map was given our Auto mesh, so inside it is still Auto.
axis_type__wrong_mesh_keeps_type = {
    'jax.make_mesh((8,), ("x",))': "Explicit" if _new else "Auto",
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Auto",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# DTensor knows its placements and redistributes as it needs: if the layout is in the type, the product can just run.
axis_type__wrong_like_dtensor = {
    'jax.make_mesh((8,), ("x",))': "Explicit" if _new else "Auto",
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Explicit",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# ---------------------------------------------------------------- read_devices

_coords = [(0, 0, 0), (0, 0, 0), (1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, 0), (1, 1, 0), (1, 1, 0)]

read_devices__right_counted = {
    "devices": len(_coords),
    "chips": len(set(_coords)),
    "place of device 5": _coords[5],
    "on one chip with device 6": next(k for k, c in enumerate(_coords) if c == _coords[6] and k != 6),
    "processes": 1,
}

# torchrun starts one process per device, so eight devices are eight processes (process_index is just the local rank there).
read_devices__wrong_torchrun = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 8,
}

# The third number of the place is the core, as two cores sit one above the other on a chip.
read_devices__wrong_core_is_layer = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 1),
    "on one chip with device 6": 7,
    "processes": 1,
}

# core_on_chip says which chip, 0 or 1: so there are two chips, and device 6 shares chip 0 with 0, 2 and 4.
read_devices__wrong_core_names_chip = {
    "devices": 8,
    "chips": 2,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 4,
    "processes": 1,
}

# Places are (row, column, layer) as in NumPy, and the text wants column first, so I have to turn them round.
read_devices__wrong_numpy_order = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (1, 0, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# ---------------------------------------------------------------- setup_cells

setup_cells__right_guard_early = {
    "config": ["A", "C", "E", "B", "D"],
    "flag": ["A", "B", "C", "E", "D"],
}

# Eight must be asked for before the line that counts them; what is computed or looked at before that does not matter.
setup_cells__wrong_before_the_count = {
    "config": ["A", "B", "D", "C", "E"],
    "flag": ["A", "B", "D", "C", "E"],
}

# The config option is called jax_num_cpu_devices, so its environment variable is JAX_NUM_..., and the XLA one is the old way.
setup_cells__wrong_jax_variable = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "F", "B", "D", "E"],
}

# "Ask in the first cell": the asking cell has to stand before everything else, the imports too.
setup_cells__wrong_ask_first_of_all = {
    "config": ["C", "A", "B", "D", "E"],
    "flag": ["C", "A", "B", "E", "D"],
}

# D only uses JAX up for nothing and its result is never needed, so a clean notebook leaves it out of "config" (and F out of "flag").
setup_cells__wrong_tidied_up = {
    "config": ["A", "B", "C", "E"],
    "flag": ["A", "C", "B", "D", "E"],
}
