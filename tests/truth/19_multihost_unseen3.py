"""Answers to lesson 19, third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


# ---------------------------------------------------------------- from_single_devices


def from_single_devices__right_all_pieces(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    here = [device for device in mesh.devices.flat if device.process_index == jax.process_index()]
    pieces = [jax.device_put(part, device) for part, device in zip(parts, here, strict=True)]
    rows, *others = parts[0].shape
    everywhere = NamedSharding(mesh, P(("data", "model")))
    array = jax.make_array_from_single_device_arrays((rows * mesh.size, *others), everywhere, pieces)
    total = jnp.sum(array)
    return {"array": array, "sum": float(total)}


# There are four parts of the whole along data, one for each process, so the whole has four times the rows of a part.
def from_single_devices__wrong_rows(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (num_processes * len(parts[0]), *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# A process sums what it has: the array of all cannot be read by anybody alone.
def from_single_devices__wrong_own_sum(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (mesh.size * len(parts[0]), *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(sum(piece.sum() for piece in pieces))}


# Rows over the processes are P("data"): each process stacks its two parts and puts the stack on both of its devices.
def from_single_devices__wrong_stacked(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    mine = np.concatenate(parts)
    pieces = [jax.device_put(mine, device) for device in jax.local_devices()]
    shape = (num_processes * len(mine), *mine.shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P("data")), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# With ("data", "model") data counts fastest, so a process's parts belong to its devices in the reverse order: I fill from the last one.
def from_single_devices__wrong_reversed(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, reversed(jax.local_devices()))]
    shape = (mesh.size * len(parts[0]), *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# ---------------------------------------------------------------- subset_mesh


def subset_mesh__right_by_process(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    half = [device for device in jax.devices() if device.process_index < num_processes // 2]
    if all(device.process_index != process_id for device in half):
        return "outside"
    line = jax.make_mesh((len(half),), ("x",), axis_types=(AxisType.Auto,), devices=half)
    array = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    return float(jnp.sum(array))


# An outsider has nothing to do with it, so it returns at once.
def subset_mesh__wrong_leaves_at_once(process_id, num_processes, *, rows):
    if process_id >= num_processes // 2:
        return "outside"
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    half = jax.devices()[: len(jax.devices()) // 2]
    line = jax.make_mesh((len(half),), ("x",), axis_types=(AxisType.Auto,), devices=half)
    array = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    return float(jnp.sum(array))


# Half of the processes are half of my own devices too: each process takes the first half of its local devices.
def subset_mesh__wrong_local_half(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    jax.devices()
    if process_id >= num_processes // 2:
        return "outside"
    half = jax.local_devices()[: max(1, len(jax.local_devices()) // 2)]
    line = jax.make_mesh((len(half),), ("x",), axis_types=(AxisType.Auto,), devices=half)
    return float(jnp.sum(jax.device_put(rows, NamedSharding(line, P("x")))))


# The rows belong to every device of the half, so they are laid out whole: P().
def subset_mesh__wrong_copies(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    half = jax.devices()[: len(jax.devices()) // 2]
    line = jax.make_mesh((len(half),), ("x",), axis_types=(AxisType.Auto,), devices=half)
    if process_id >= num_processes // 2:
        return "outside"
    array = jax.make_array_from_process_local_data(NamedSharding(line, P()), rows)
    return float(jnp.sum(array))


# Numbers up to num_processes // 2 are in the first half, this one included.
def subset_mesh__wrong_one_more(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    half = [device for device in jax.devices() if device.process_index <= num_processes // 2]
    if process_id > num_processes // 2:
        return "outside"
    line = jax.make_mesh((len(half),), ("x",), axis_types=(AxisType.Auto,), devices=half)
    array = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    return float(jnp.sum(array))


# ---------------------------------------------------------------- pipeline_calls

pipeline_calls__right_backwards = {
    "x = jax.device_put(batch, on_first)": [0, 1, 2, 3],
    "y = f(x)": [0, 1, 2, 3],
    "y = jax.device_put(y, on_second)": [0, 1, 2, 3],
    "z = g(y)": [2, 3],
    "print(jnp.sum(z))": [2, 3],
}

# Each line is run by those on whose devices it computes; the transfer by both halves.
pipeline_calls__wrong_where_it_computes = {
    **pipeline_calls__right_backwards,
    "x = jax.device_put(batch, on_first)": [0, 1],
    "y = f(x)": [0, 1],
}

# The second half receives, so it is the second half that calls the transfer; the first has handed its y over by then.
pipeline_calls__wrong_receivers = {
    **pipeline_calls__right_backwards,
    "x = jax.device_put(batch, on_first)": [0, 1],
    "y = f(x)": [0, 1],
    "y = jax.device_put(y, on_second)": [2, 3],
}

# All run the same program, always, in the same order: every line in all four.
pipeline_calls__wrong_everybody = {line: [0, 1, 2, 3] for line in pipeline_calls__right_backwards}

# A print is for one process only: the sum is whole there, so process 2 prints.
pipeline_calls__wrong_one_prints = {**pipeline_calls__right_backwards, "print(jnp.sum(z))": [2]}
