"""Answers to lesson 01, twenty-fourth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- make_training_mesh ----


def make_training_mesh__right_by_hand(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    grid = np.array(jax.devices()[: n_data * n_model]).reshape(n_data, n_model)  # too few: NumPy's ValueError
    return Mesh(grid, ("data", "model"), axis_types=(kind, kind))


# The model axis should be the slow one, so this student swaps the lengths but leaves the names in the order asked for.
def make_training_mesh__wrong_swapped(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_model, n_data), ("data", "model"), axis_types=(kind,) * 2)


# Thought that "explicit" concerns the parallelism of the data only, and that the model axis stays with the compiler.
def make_training_mesh__wrong_one_explicit(n_data, n_model, explicit):
    kinds = (AxisType.Explicit if explicit else AxisType.Auto, AxisType.Auto)
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=kinds)


# Thought that a mesh always has all the devices, so that the second length follows from the first.
def make_training_mesh__wrong_uses_all(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    grid = np.array(jax.devices()).reshape(n_data, -1)
    return Mesh(grid, ("data", "model"), axis_types=(kind, kind))


# Like an MPI job whose communicator must be filled: anything but exactly as many places as devices is an error.
def make_training_mesh__wrong_must_fill(n_data, n_model, explicit):
    if n_data * n_model != jax.device_count():
        raise ValueError(f"{n_data} x {n_model} is not {jax.device_count()} devices")
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind, kind))


# ---- device_grid ----


def device_grid__right_ravel(shape, names):
    shape = tuple(shape)
    return np.ravel_multi_index(tuple(np.indices(shape)), shape)


# Thought that the grid always holds all eight devices, as on the lesson's mesh.
def device_grid__wrong_all_eight(shape, names):
    return np.arange(8).reshape(shape)


# Thought that ids grow by one along the first axis, x, as coordinates (column, row) on the TPU board do.
def device_grid__wrong_column_major(shape, names):
    return np.arange(np.prod(shape)).reshape(shape, order="F")


# Only ever thought of meshes with two axes, rows and columns.
def device_grid__wrong_two_axes(shape, names):
    rows, columns = shape[0], shape[1]
    return np.array([[columns * r + c for c in range(columns)] for r in range(rows)])


# Took the devices themselves for their ids, since mesh.devices prints numbers.
def device_grid__wrong_devices(shape, names):
    return np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape)


# ---- mesh_or_error ----

mesh_or_error__right_table = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 3 * 2,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': len(range(8)[4:]),
}

# Thought that "batch" without a comma is taken as five names, one for each letter, for a single axis.
mesh_or_error__wrong_five_letters = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': "error",
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# Thought that the devices must divide evenly among the places, and that no mesh may leave devices out unevenly.
mesh_or_error__wrong_must_divide = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': "error",
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# Thought that names may be fewer than axes, as the entries of a P may be fewer than dimensions.
mesh_or_error__wrong_like_a_spec = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': 8,
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# Thought that Mesh arranges a flat list of devices by its names, and needs its list to begin with device 0.
mesh_or_error__wrong_mesh_arranges = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': 8,
    'Mesh(np.array(jax.devices()[4:]), ("x",))': "error",
}
