"""Answers to lesson 19, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


# ---------------------------------------------------------------- loader


def loader__right_pieces(process_id, num_processes, *, examples, step, batch):
    """Read once, a copy for each of the two devices, and the global array made of these pieces."""
    mesh = grid(process_id, num_processes)
    each = batch // num_processes
    first = (step * num_processes + process_id) * each
    mine = np.asarray(examples[first : first + each])
    pieces = [jax.device_put(mine, device) for device in jax.local_devices()]
    whole = jax.make_array_from_single_device_arrays((batch, *mine.shape[1:]), NamedSharding(mesh, P("data")), pieces)
    return {"batch": whole, "sum": float(jnp.sum(whole))}


# This student counts as used up only what this process itself has read in earlier steps, not what all have: right at step 0.
def loader__wrong_own_progress(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    each = batch // num_processes
    start = step * each + process_id * each
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), examples[start : start + each])
    return {"batch": x, "sum": float(jnp.sum(x))}


# This student deals the rows out as PyTorch's DistributedSampler does: every num_processes-th row from the process's number on.
def loader__wrong_round_robin(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    begin = step * batch
    mine = examples[begin + process_id : begin + batch : num_processes]
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return {"batch": x, "sum": float(jnp.sum(x))}


# This student sums what the process has read, as if that were the batch: an MPI rank that forgot the Allreduce.
def loader__wrong_local_sum(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    each = batch // num_processes
    start = step * batch + process_id * each
    mine = examples[start : start + each]
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return {"batch": x, "sum": float(np.sum(mine))}


# This student thinks that eight devices should have eight different parts, and so cuts the rows over both axes.
def loader__wrong_both_axes(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    each = batch // num_processes
    start = step * batch + process_id * each
    cut = NamedSharding(mesh, P(("data", "model")))
    x = jax.make_array_from_process_local_data(cut, examples[start : start + each])
    return {"batch": x, "sum": float(jnp.sum(x))}


# ---------------------------------------------------------------- who_has_what

who_has_what__right_table = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# This student answers for device 2 (or 1) where the row asks for process 2 (or 1), as with one GPU for each MPI rank.
who_has_what__wrong_process_is_device = {
    "P('data', 'model'): rows in process 2": (2, 4),
    "P('model', 'data'): columns in process 2": (1, 2),
    "P(('data', 'model')): rows in process 1": (1, 2),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# This student takes the first entry of a spec for that of the columns (x before y), so that 'model' cuts what is asked for.
who_has_what__wrong_first_is_columns = {
    "P('data', 'model'): rows in process 2": (0, 8),
    "P('model', 'data'): columns in process 2": (0, 4),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# This student writes the last row or column that is still held in place of `stop`.
who_has_what__wrong_inclusive = {
    "P('data', 'model'): rows in process 2": (4, 5),
    "P('model', 'data'): columns in process 2": (2, 2),
    "P(('data', 'model')): rows in process 1": (2, 3),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# This student thinks that devices of a process always hold different things: two blocks, and half of the devices are two processes.
who_has_what__wrong_no_copies_inside = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 2,
    "P('model'): processes that hold row 0": 2,
    "P(): shards that process 0 can read": 2,
}

# ---------------------------------------------------------------- cluster_faults

cluster_faults__right_table = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student thinks that a process takes all GPUs of its host on Slurm too, as it does elsewhere.
cluster_faults__wrong_all_gpus = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 16,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student mixes up the task's number on its node (which chooses the GPU) with its number in the job.
cluster_faults__wrong_local_number = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_LOCALID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student reasons about Kubernetes by names: GKE's worker id is the number, and `completions` is how many there are in all.
cluster_faults__wrong_kubernetes_names = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "TPU_WORKER_ID",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "completions",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student thinks of part 1's four times "number 0 of 1": a host of which the others hear nothing believes to be alone.
cluster_faults__wrong_alone = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "trains alone",
}
