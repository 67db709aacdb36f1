"""Answers to lesson 19, fifth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


# ---------------------------------------------------------------- from_single_devices


def from_single_devices__right_concatenated_shape(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    rows, *others = parts[0].shape
    shape = (rows * jax.device_count(), *others)
    pieces = list(map(jax.device_put, parts, jax.local_devices()))
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# Processes differ along data, so the student cuts over data only: the two pieces of a process lie in the same place.
def from_single_devices__wrong_cut_over_data(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (num_processes * len(parts[0]), *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P("data")), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# The sum is that of what this process has brought: the student adds up its own two parts.
def from_single_devices__wrong_own_sum(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (jax.device_count() * len(parts[0]), *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(sum(part.sum() for part in parts))}


# The two axes are named in the other order: the blocks lie where P(("model", "data")) has them.
def from_single_devices__wrong_axes_turned(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (jax.device_count() * len(parts[0]), *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("model", "data"))), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# jax.devices() is taken for the list of this process's devices, which is true in process 0.
def from_single_devices__wrong_devices_of_process_0(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.devices())]
    shape = (mesh.size * len(parts[0]), *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# ---------------------------------------------------------------- slurm_script


def slurm_script__right_line_by_line(lines, hosts, gpus):
    repaired = []
    for line in lines:
        if "JAX_COORDINATOR_ADDRESS" in line:
            continue
        if line.startswith("#SBATCH --ntasks-per-node"):
            line = f"#SBATCH --ntasks-per-node={gpus}"
        elif line.startswith("python "):
            line = f"srun {line}"
        repaired.append(line)
    return repaired


# A process for each GPU: the student writes the number of all tasks where Slurm wants those of one node.
def slurm_script__wrong_tasks_of_all_nodes(lines, hosts, gpus):
    tasks = f"--ntasks-per-node={hosts * gpus}"
    return [
        line.replace("--ntasks-per-node=1", tasks).replace("python", "srun python")
        for line in lines
        if "JAX_COORDINATOR_ADDRESS" not in line
    ]


# All processes need a coordinator's address, thinks the student, and leaves the line as it is.
def slurm_script__wrong_address_stays(lines, hosts, gpus):
    return [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}").replace("python", "srun python")
        for line in lines
    ]


# The example has four GPUs a node, and the student writes a 4 for every script.
def slurm_script__wrong_always_four(lines, hosts, gpus):
    return [
        line.replace("--ntasks-per-node=1", "--ntasks-per-node=4").replace("python", "srun python")
        for line in lines
        if "JAX_COORDINATOR_ADDRESS" not in line
    ]


# "Each task is to have its GPU": the student asks for one GPU for each task, and so no task sees the others.
def slurm_script__wrong_a_gpu_for_each_task(lines, hosts, gpus):
    repaired = []
    for line in lines:
        line = line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}")
        line = line.replace(f"--gpus-per-node={gpus}", "--gpus-per-task=1")
        if "JAX_COORDINATOR_ADDRESS" not in line:
            repaired.append(line.replace("python", "srun python"))
    return repaired


# ---------------------------------------------------------------- multihost_claims

multihost_claims__right_all = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 4 * 2,
    "a v5e slice of 16 hosts with 4 chips each: devices": 16 * 4,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# device_count() is what the process itself drives, the student thinks: that would be local_device_count().
multihost_claims__wrong_local_count = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 2,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# A sum gives one number, and one number can be printed by anybody: that it has still to be computed is overlooked.
multihost_claims__wrong_a_sum_is_one_number = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "safe",
}

# Every branch on process_index hangs, this student has learned; and whatever crosses hosts has to be written anew.
multihost_claims__wrong_no_branch_ever = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "every collective",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "not safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# A TPU chip has two cores, the student remembers from older ones, and initialize() is thought to start the other processes.
multihost_claims__wrong_two_cores_a_chip = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 128,
    "who starts the processes (you, or a scheduler / JAX)": "JAX",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}
