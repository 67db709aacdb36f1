"""Answers to lesson 01, fourteenth batch, written by a reader of the notebook only."""

import math

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---- setup_cells

setup_cells__right_GUARDED = {
    "config": ["B", "A", "C", "E", "D"],
    "flag": ["B", "A", "C", "E", "D"],
}

# Thought that `import jax.numpy as jnp` also binds the name `jax`, so that the config line may stand right after it.
setup_cells__wrong_JNPBINDSJAX = {
    "config": ["B", "C", "A", "D", "E"],
    "flag": ["A", "C", "B", "D", "E"],
}

# Thought that only computing starts JAX, and that asking for one device (D of "flag") is as harmless as an import.
setup_cells__wrong_ASKINGISFREE = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "B", "D", "C", "E"],
}

# Took the variable with JAX in its name for the one that JAX reads, and left XLA_FLAGS out.
setup_cells__wrong_OTHERVARIABLE = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "F", "B", "D", "E"],
}

# Thought that a guard belongs right after the imports, before anything is configured.
setup_cells__wrong_GUARDFIRST = {
    "config": ["A", "B", "E", "C", "D"],
    "flag": ["A", "C", "B", "E", "D"],
}

# ---- device_grid


def device_grid__right_RAVEL(shape, names):
    return np.ravel_multi_index(tuple(np.indices(shape)), shape)


# Thought that the first axis of a mesh is the fast one, so that ids grow by one along x.
def device_grid__wrong_FIRSTISFAST(shape, names):
    return np.arange(np.prod(shape)).reshape(shape, order="F")


# Thought that a mesh always has all the devices that there are.
def device_grid__wrong_ALLDEVICES(shape, names):
    return np.arange(jax.device_count()).reshape(shape)


# Thought of the array inside a mesh (mesh.devices) and returns Device objects where ids were asked for.
def device_grid__wrong_DEVICEOBJECTS(shape, names):
    count = math.prod(shape)
    return np.array(jax.devices()[:count]).reshape(shape)


# Thought of a grid as rows and columns only, since every mesh so far had an x and a y.
def device_grid__wrong_TWOAXES(shape, names):
    rows, columns = shape
    return np.array([[r * columns + c for c in range(columns)] for r in range(rows)])


# ---- array_facts

array_facts__right_ASKED = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# Thought as in torch.distributed: the shape of a spread array is that of the local block.
array_facts__wrong_LOCALSHAPE = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (16, 32),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# Thought that device_put moves the array itself, as module.to(device) does, so that x is spread afterwards, too.
array_facts__wrong_INPLACE = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 8,
    "devices of z": 8,
}

# Thought that jit collects its result on the default device, device 0.
array_facts__wrong_GATHERED = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 1,
}

# Thought that y is its pieces: a list with one array for each device (and z likewise).
array_facts__wrong_LISTOFPIECES = {
    "devices of x": 1,
    "type of y": "a list of arrays",
    "devices of y": 8,
    "shape of y": (8, 16, 32),
    "devices of x afterwards": 1,
    "devices of z": 8,
}
