"""Answers to lesson 19, twenty-second batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


# ---------------------------------------------------------------- multihost_claims

multihost_claims__right_table = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 4 * 2,
    "a v5e slice of 16 hosts with 4 chips each: devices": 16 * 4,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student thought that device_count counts what the asking process drives (as local_device_count does).
multihost_claims__wrong_local = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 2,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student thought that every TPU chip has two cores, each of them a device, as on a v3.
multihost_claims__wrong_cores = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 128,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student thought of MPI: `initialize` launches the ranks, and each collective has to be written out for them.
multihost_claims__wrong_mpi = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "JAX",
    "what is mainly written differently for many processes (data in and out / every collective)": "every collective",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student thought that to read any global array is a collective, so that nothing of one may stand under the `if`.
multihost_claims__wrong_never = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "not safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}


# ---------------------------------------------------------------- print_it


def print_it__right_replica(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    once = [shard for shard in x.addressable_shards if shard.replica_id == 0]
    once.sort(key=lambda shard: shard.index[0].start or 0)
    mine = np.concatenate([np.asarray(shard.data) for shard in once])
    everywhere = jax.device_put(x, NamedSharding(mesh, P()))
    return {"mine": mine, "whole": np.asarray(everywhere)}


# This student thought that a process's rows are what all of its shards hold, put together (they are copies).
def print_it__wrong_copies(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    pieces = [np.asarray(shard.data) for shard in x.addressable_shards]
    return {
        "mine": np.concatenate(pieces, axis=0),
        "whole": np.asarray(multihost_utils.process_allgather(x, tiled=True)),
    }


# This student thought that gathering every process's rows puts them one below the other (they are stacked: [4, 2, W]).
def print_it__wrong_stacked(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    mine = np.asarray(x.addressable_shards[0].data)
    whole = multihost_utils.process_allgather(mine)
    return {"mine": mine, "whole": np.asarray(whole)}


# This student thought: eight rows and eight devices, so cut over both axes; then the first shard is only one of the two rows.
def print_it__wrong_one_row(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    layout = NamedSharding(mesh, P(("data", "model")))
    x = jax.make_array_from_process_local_data(layout, rows)
    whole = np.asarray(jax.device_put(x, NamedSharding(mesh, P())))
    mine = np.asarray(x.addressable_shards[0].data)
    return {"mine": mine, "whole": whole}


# This student thought that addressable_shards is a list over all processes, to be asked with one's own number.
def print_it__wrong_by_number(process_id, num_processes, *, rows):
    """What this process has, and what all have together."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    whole = multihost_utils.process_allgather(x, tiled=True)
    mine = x.addressable_shards[process_id].data
    return {"mine": np.asarray(mine), "whole": np.asarray(whole)}


# ---------------------------------------------------------------- cluster_faults

cluster_faults__right_table = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student thought that a process drives all GPUs of its node, also under Slurm.
cluster_faults__wrong_whole_node = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 16,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student took the number inside of the node (which chooses the GPU) for the number of the process.
cluster_faults__wrong_local_number = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_LOCALID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student thought: on Kubernetes the pods are counted by those that have to complete; and GKE's variable is that of all.
cluster_faults__wrong_completions = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "TPU_WORKER_ID",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "completions",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student thought that initialize() looks round who is there: by ssh it finds four, and on the slice nobody but itself.
cluster_faults__wrong_looks_round = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "finds the others",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "trains alone",
}
