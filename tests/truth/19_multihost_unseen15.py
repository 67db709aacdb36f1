"""Answers to lesson 19, fifteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


def from_single_devices__right_treemap(process_id, num_processes, *, parts):
    cut = NamedSharding(grid(process_id, num_processes), P(("data", "model")))
    here = jax.tree.map(jax.device_put, list(parts), jax.local_devices())
    rows = num_processes * sum(len(part) for part in parts)
    whole = jax.make_array_from_single_device_arrays((rows, *parts[0].shape[1:]), cut, here)
    return {"array": whole, "sum": float(jnp.sum(whole))}


# Thought: the shape is the one of what I have here, two parts on top of each other; JAX multiplies by the processes.
def from_single_devices__wrong_local_shape(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = np.concatenate(parts).shape
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# Thought: a process can only add up what it holds, so the sum is that of my addressable shards.
def from_single_devices__wrong_own_sum(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (8 * parts[0].shape[0], *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(sum(shard.data.sum() for shard in array.addressable_shards))}


# Thought: as with cuda:0 and cuda:1, my devices are numbers 0 and 1 of jax.devices() in every process.
def from_single_devices__wrong_first_devices(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, jax.devices()[k]) for k, part in enumerate(parts)]
    shape = (8 * parts[0].shape[0], *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# Thought: both axes cut the rows, so the order of the two names in the tuple says nothing.
def from_single_devices__wrong_model_first(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (8 * parts[0].shape[0], *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("model", "data"))), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


def subset_mesh__right_pieces(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    half = num_processes // 2
    chosen = [device for device in jax.devices() if device.process_index < half]
    small = jax.make_mesh((len(chosen),), ("x",), axis_types=(AxisType.Auto,), devices=chosen)
    if process_id >= half:
        return "outside"
    pieces = [jax.device_put(part, device) for part, device in zip(np.split(np.asarray(rows), 2), jax.local_devices())]
    x = jax.make_array_from_single_device_arrays((half * len(rows),), NamedSharding(small, P("x")), pieces)
    return float(jnp.sum(x))


# Thought: all have to make the same calls, so sum over the whole mesh, and only hide the result outside.
def subset_mesh__wrong_sum_of_all(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes, (2 * num_processes,), ("x",))
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), rows)
    total = float(jnp.sum(x))
    return total if process_id < num_processes // 2 else "outside"


# Thought: the first half is the first four devices, as in the example above.
def subset_mesh__wrong_four_devices(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    small = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    if process_id >= num_processes // 2:
        return "outside"
    x = jax.make_array_from_process_local_data(NamedSharding(small, P("x")), rows)
    return float(jnp.sum(x))


# Thought: an outsider has joined, that is all it has to do; it can go before anybody asks for devices.
def subset_mesh__wrong_leaves_early(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    if process_id >= num_processes // 2:
        return "outside"
    devices = jax.devices()[:num_processes]
    small = jax.make_mesh((len(devices),), ("x",), axis_types=(AxisType.Auto,), devices=devices)
    x = jax.make_array_from_process_local_data(NamedSharding(small, P("x")), rows)
    return float(jnp.sum(x))


# Thought: each process sums its own part on its own devices; a mesh of my local devices is the mesh of the half.
def subset_mesh__wrong_local_mesh(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    jax.devices()
    if process_id >= num_processes // 2:
        return "outside"
    small = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,), devices=jax.local_devices())
    return float(jnp.sum(jax.device_put(rows, NamedSharding(small, P("x")))))


def same_order__right_one_program(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    x = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), np.asarray(rows))

    def both(v):
        return jax.lax.psum(v.sum(), "x"), jax.lax.pmax(v.max(), "x")

    found = jax.jit(jax.shard_map(both, mesh=line, in_specs=P("x"), out_specs=(P(), P())))(x)
    return tuple(float(number) for number in found)


# Thought: process 3 may ask in its own order, if only it puts the results back into the right places.
def same_order__wrong_sorts_results(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    x = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    questions = {"sum": jax.jit(jnp.sum), "max": jax.jit(jnp.max)}
    order = ["max", "sum"] if process_id == 3 else ["sum", "max"]
    found = {name: float(questions[name](x)) for name in order}
    return found["sum"], found["max"]


# Thought: everybody needs to know all numbers, so the array has to be replicated, P().
def same_order__wrong_replicated(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    x = jax.make_array_from_process_local_data(NamedSharding(line, P()), rows)
    return float(jnp.sum(x)), float(jnp.max(x))


# Thought: gather the sums of all processes once, then both answers come from them.
def same_order__wrong_max_of_sums(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    sums = multihost_utils.process_allgather(np.float32(np.sum(rows)))
    return float(sums.sum()), float(sums.max())


# Thought: an all-reduce goes over all devices; that two of them have copies of the same rows does no harm.
def same_order__wrong_counts_copies(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    axes = ("data", "model")
    both = lambda v: (jax.lax.psum(v.sum(), axes), jax.lax.pmax(v.max(), axes))
    total, top = jax.jit(jax.shard_map(both, mesh=mesh, in_specs=P("data"), out_specs=(P(), P()), check_vma=False))(x)
    return float(total), float(top)
