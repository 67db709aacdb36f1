"""Answers to lesson 19, thirteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- slurm_script


def slurm_script__right_regex(lines, hosts, gpus):
    """The script, repaired."""
    import re

    text = "\n".join(lines)
    text = re.sub(r"--ntasks-per-node=\d+", f"--ntasks-per-node={gpus}", text)
    text = re.sub(r"(?m)^python ", "srun --kill-on-bad-exit=1 --label python ", text)
    return [line for line in text.split("\n") if not line.startswith("export JAX_COORDINATOR_ADDRESS")]


# This student thought that "tasks" are counted for the whole job, so that there must be one for each of all GPUs.
def slurm_script__wrong_all_tasks(lines, hosts, gpus):
    """The script, repaired."""
    return [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={hosts * gpus}").replace("python ", "srun python ")
        for line in lines
        if "JAX_COORDINATOR_ADDRESS" not in line
    ]


# This student thought that every task has to be told an address on its own machine, and asks for the name where the task runs.
def slurm_script__wrong_own_name(lines, hosts, gpus):
    """The script, repaired."""
    return [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}").replace(
            "python train.py", "srun bash -c 'JAX_COORDINATOR_ADDRESS=$(hostname):12345 python train.py'"
        )
        for line in lines
        if not line.startswith("export")
    ]


# This student thought that one process on each node drives all of its GPUs, as on the other clusters, and only has to be started there.
def slurm_script__wrong_process_per_host(lines, hosts, gpus):
    """The script, repaired."""
    return [
        line.replace("python ", f"srun --nodes={hosts} --ntasks={hosts} python ")
        for line in lines
        if "localhost" not in line
    ]


# This student thought that the number of tasks is to be the number of GPUs that the script states, and forgot that those are a node's.
def slurm_script__wrong_tasks_of_one_node(lines, hosts, gpus):
    """The script, repaired."""
    mended = {"--ntasks-per-node=1": f"--ntasks={gpus}", "python ": "srun --kill-on-bad-exit=1 python "}
    kept = [line for line in lines if not line.startswith("export JAX")]
    for old, new in mended.items():
        kept = [line.replace(old, new) for line in kept]
    return kept


# ---------------------------------------------------------------- print_it


def print_it__right_jitted(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.asarray(rows))
    whole = jax.jit(lambda a: a, out_shardings=NamedSharding(mesh, P()))(x)
    (mine,) = [np.asarray(shard.data) for shard in x.addressable_shards if shard.replica_id == 0]
    return {"mine": mine, "whole": np.asarray(whole)}


# This student thought that gathering everybody's rows puts them one below the other by itself (it makes a new axis).
def print_it__wrong_stacked(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    mine = np.asarray(x.addressable_shards[0].data)
    return {"mine": mine, "whole": multihost_utils.process_allgather(mine)}


# This student thought that P() makes JAX collect what the processes bring, since every device then has the whole.
def print_it__wrong_replicated(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    cut = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    everywhere = jax.make_array_from_process_local_data(NamedSharding(mesh, P()), rows)
    return {"mine": np.asarray(cut.addressable_shards[0].data), "whole": np.asarray(everywhere)}


# This student thought that two rows on two devices are a row on each, cut over both axes, and then read only the first device's.
def print_it__wrong_both_axes(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P(("data", "model"))), rows)
    whole = jax.device_put(x, NamedSharding(mesh, P()))
    return {"mine": np.asarray(x.addressable_shards[0].data), "whole": np.asarray(whole)}


# This student took one shard for "mine", but thought that the whole is made of all shards of all processes.
def print_it__wrong_all_shards(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    shards = [np.asarray(shard.data) for shard in x.addressable_shards]
    return {"mine": shards[0], "whole": multihost_utils.process_allgather(np.concatenate(shards), tiled=True)}


# ---------------------------------------------------------------- subset_mesh


def subset_mesh__right_asks_devices(process_id, num_processes, *, rows):
    """The sum over the first half of the processes, in these."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    inside = [device for device in jax.devices() if device.process_index < num_processes // 2]
    if not any(device.process_index == process_id for device in inside):
        return "outside"
    half = jax.make_mesh((len(inside),), ("x",), axis_types=(AxisType.Auto,), devices=inside)
    x = jax.make_array_from_process_local_data(NamedSharding(half, P("x")), np.asarray(rows))
    return float(jax.jit(jnp.sum)(x))


# This student thought that the first half of the processes is the first `num_processes // 2` entries of the list of devices.
def subset_mesh__wrong_counted_devices(process_id, num_processes, *, rows):
    """The sum over the first half of the processes, in these."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    first = jax.devices()[: num_processes // 2]
    half = jax.make_mesh((len(first),), ("x",), axis_types=(AxisType.Auto,), devices=first)
    if process_id not in [device.process_index for device in first]:
        return "outside"
    x = jax.make_array_from_process_local_data(NamedSharding(half, P("x")), rows)
    return float(jnp.sum(x))


# This student thought that all have to make the collective, so that the mesh has everybody, and only the answer differs.
def subset_mesh__wrong_everybody(process_id, num_processes, *, rows):
    """The sum over the first half of the processes, in these."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    all_of_them = jax.make_mesh((len(jax.devices()),), ("x",), axis_types=(AxisType.Auto,))
    x = jax.make_array_from_process_local_data(NamedSharding(all_of_them, P("x")), rows)
    total = jnp.sum(x)
    return float(total) if process_id < num_processes // 2 else "outside"


# This student thought that a sum which all of the half should have needs rows which all of them hold, so P().
def subset_mesh__wrong_replicated(process_id, num_processes, *, rows):
    """The sum over the first half of the processes, in these."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    first = jax.devices()[: len(jax.devices()) // 2]
    half = jax.make_mesh((len(first),), ("x",), axis_types=(AxisType.Auto,), devices=first)
    if process_id >= num_processes // 2:
        return "outside"
    x = jax.make_array_from_process_local_data(NamedSharding(half, P()), rows)
    return float(jnp.sum(x))


# This student gave each device of the process all of its rows, where each should have had its part of them.
def subset_mesh__wrong_rows_on_each(process_id, num_processes, *, rows):
    """The sum over the first half of the processes, in these."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    first = [device for device in jax.devices() if device.process_index < num_processes // 2]
    half = jax.make_mesh((len(first),), ("x",), axis_types=(AxisType.Auto,), devices=first)
    if process_id >= num_processes // 2:
        return "outside"
    pieces = [jax.device_put(rows, device) for device in jax.local_devices()]
    whole = (len(first) * len(rows), *np.shape(rows)[1:])
    x = jax.make_array_from_single_device_arrays(whole, NamedSharding(half, P("x")), pieces)
    return float(jnp.sum(x))
