"""Answers to lesson 19, second batch, written by a reader of the notebook only."""

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


# examples by processes, devices, and groups that share a model
batch_arithmetic__right_counts = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 1_048_576,
    "float32[1024, 256] from process-local data: bytes each process reads": 65_536,
}

# thinks that devices which share a model divide its examples, too
batch_arithmetic__wrong_shared_model = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 16,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 1_048_576,
    "float32[1024, 256] from process-local data: bytes each process reads": 65_536,
}

# thinks that local data are the whole array
batch_arithmetic__wrong_global_rows = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 48,
    "float32[1024, 256] by device_put: bytes each process reads": 1_048_576,
    "float32[1024, 256] from process-local data: bytes each process reads": 65_536,
}

# entries, not bytes
batch_arithmetic__wrong_entries = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 262_144,
    "float32[1024, 256] from process-local data: bytes each process reads": 16_384,
}

# thinks that device_put reads a part only, too
batch_arithmetic__wrong_device_put = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 65_536,
    "float32[1024, 256] from process-local data: bytes each process reads": 65_536,
}


def same_order__right_one_program(process_id, num_processes, *, rows):
    """One jitted function with two results."""
    line = grid(process_id, num_processes, (2 * num_processes,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), np.asarray(rows))
    both = jax.jit(lambda a: (jnp.sum(a), jnp.max(a)))
    total, largest = both(numbers)
    return float(total), float(largest)


def same_order__wrong_still_mixed(process_id, num_processes, *, rows):
    """The last process still asks for the maximum first."""
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    questions = {"sum": jax.jit(jnp.sum), "max": jax.jit(jnp.max)}
    order = ["max", "sum"] if process_id == num_processes - 1 else ["sum", "max"]
    answers = {name: float(questions[name](numbers)) for name in order}
    return answers["sum"], answers["max"]


def same_order__wrong_own_rows(process_id, num_processes, *, rows):
    """Sum and maximum of the own two numbers only."""
    grid(process_id, num_processes, (8,), ("x",))
    return float(np.sum(rows)), float(np.max(rows))


def same_order__wrong_turned_round(process_id, num_processes, *, rows):
    """Returns (max, sum)."""
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    largest = float(jnp.max(numbers))
    total = float(jnp.sum(numbers))
    return largest, total


def same_order__wrong_no_copies(process_id, num_processes, *, rows):
    """The rows as copies, P(): each process has another array under the name."""
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P()), rows)
    return float(jnp.sum(numbers)), float(jnp.max(numbers))


def print_it__right_device_put(process_id, num_processes, *, rows):
    """The whole by a device_put to P(), in all processes; the own by the first shard."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    copies = jax.device_put(x, NamedSharding(mesh, P()))
    return {"mine": np.asarray(x.addressable_shards[0].data), "whole": np.asarray(copies)}


def print_it__wrong_both_shards(process_id, num_processes, *, rows):
    """Joins both of the process's shards, which are copies: its rows come twice."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    mine = np.concatenate([np.asarray(shard.data) for shard in x.addressable_shards])
    return {"mine": mine, "whole": multihost_utils.process_allgather(x, tiled=True)}


def print_it__wrong_local_whole(process_id, num_processes, *, rows):
    """Makes the array as copies: the whole is only the own rows."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P()), rows)
    return {"mine": np.asarray(x.addressable_shards[0].data), "whole": np.asarray(x)}


def print_it__wrong_stacked(process_id, num_processes, *, rows):
    """Gathers the NumPy rows without tiled: a dimension more than the array has."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    return {"mine": np.asarray(x.addressable_shards[0].data), "whole": multihost_utils.process_allgather(rows)}


def print_it__wrong_first_only(process_id, num_processes, *, rows):
    """The whole for process 0 alone: the others do not make the call, and 0 waits."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    mine = np.asarray(x.addressable_shards[0].data)
    whole = mine
    if process_id == 0:
        whole = np.asarray(jax.device_put(x, NamedSharding(mesh, P())))
    return {"mine": mine, "whole": whole}


def slurm_script__right_loop(lines, hosts, gpus):
    """Line by line."""
    repaired = []
    for line in lines:
        if "JAX_COORDINATOR_ADDRESS" in line:
            continue
        if line.startswith("#SBATCH --ntasks-per-node="):
            line = f"#SBATCH --ntasks-per-node={gpus}"
        elif line.startswith("python "):
            line = "srun " + line
        repaired.append(line)
    return repaired


def slurm_script__wrong_all_tasks(lines, hosts, gpus):
    """Tasks of all nodes together, where a node's are asked for."""
    return [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={hosts * gpus}").replace("python", "srun python")
        for line in lines
        if "COORDINATOR" not in line
    ]


def slurm_script__wrong_address_stays(lines, hosts, gpus):
    """The address stays: the tasks of the other node look for the coordinator on their own."""
    return [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}").replace("python", "srun python")
        for line in lines
    ]


def slurm_script__wrong_no_srun(lines, hosts, gpus):
    """Without srun the program is started once, on the first node."""
    return [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}") for line in lines if "COORDINATOR" not in line
    ]


def slurm_script__wrong_gpu_per_task(lines, hosts, gpus):
    """One GPU for each task in place of the node's: each task sees a single GPU, called 0."""
    lines = [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}").replace("python", "srun python")
        for line in lines
        if "COORDINATOR" not in line
    ]
    return [line.replace(f"--gpus-per-node={gpus}", "--gpus-per-task=1") for line in lines]
