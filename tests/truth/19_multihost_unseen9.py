"""Answers to lesson 19, ninth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


# ---------------------------------------------------------------- who_has_what

who_has_what__right_plain = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# A process has both halves of `model`, and model cuts columns, so it has all columns, in whatever order the axes are named.
who_has_what__wrong_names_not_places = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (0, 4),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# Eight pieces are numbered like the processes: process 1 gets piece 1 (forgets that it drives two devices), and reads one copy.
who_has_what__wrong_piece_of_one_device = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (1, 2),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 1,
}

# Thinks that `model` cuts the processes into halves: row 0 is then in the first two of them.
who_has_what__wrong_model_halves_processes = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 2,
    "P(): shards that process 0 can read": 2,
}

# Counts shards wherever they are: a replicated array can be read, so all eight copies can; and each device is a block.
who_has_what__wrong_every_device_counts = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 2,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 8,
}

# ---------------------------------------------------------------- pipeline_calls

pipeline_calls__right_references = {
    "x = jax.device_put(batch, on_first)": list(range(4)),
    "y = f(x)": list(range(4)),
    "y = jax.device_put(y, on_second)": list(range(4)),
    "z = g(y)": [2, 3],
    "print(jnp.sum(z))": [2, 3],
}

# The sum is replicated over the second half, so one process of it is enough to print it.
pipeline_calls__wrong_one_prints = {
    "x = jax.device_put(batch, on_first)": [0, 1, 2, 3],
    "y = f(x)": [0, 1, 2, 3],
    "y = jax.device_put(y, on_second)": [0, 1, 2, 3],
    "z = g(y)": [2, 3],
    "print(jnp.sum(z))": [2],
}

# Processes 2 and 3 need the name y for the transfer, but nobody passes x to them: forgets where their y comes from.
pipeline_calls__wrong_only_y_is_needed = {
    "x = jax.device_put(batch, on_first)": [0, 1],
    "y = f(x)": [0, 1, 2, 3],
    "y = jax.device_put(y, on_second)": [0, 1, 2, 3],
    "z = g(y)": [2, 3],
    "print(jnp.sum(z))": [2, 3],
}

# A sum over everything is replicated, so "every process can print it" (part 1), also those that have no z.
pipeline_calls__wrong_everybody_prints = {
    "x = jax.device_put(batch, on_first)": [0, 1, 2, 3],
    "y = f(x)": [0, 1, 2, 3],
    "y = jax.device_put(y, on_second)": [0, 1, 2, 3],
    "z = g(y)": [2, 3],
    "print(jnp.sum(z))": [0, 1, 2, 3],
}

# Takes "in practice all processes run the whole loop" for what they have to do.
pipeline_calls__wrong_all_of_it = {
    "x = jax.device_put(batch, on_first)": [0, 1, 2, 3],
    "y = f(x)": [0, 1, 2, 3],
    "y = jax.device_put(y, on_second)": [0, 1, 2, 3],
    "z = g(y)": [0, 1, 2, 3],
    "print(jnp.sum(z))": [0, 1, 2, 3],
}

# ---------------------------------------------------------------- cluster_faults

cluster_faults__right_tables = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# A process drives all devices of its host, as on TPUs and by ssh, so two tasks have sixteen.
cluster_faults__wrong_whole_hosts = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 16,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# Mixed up the number of the task on its node, which chooses the GPU, with the number of the task in the job.
cluster_faults__wrong_local_number = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_LOCALID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# Read the row of GKE as that of Kubernetes, and counts the pods that have to complete.
cluster_faults__wrong_gke_row = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "TPU_WORKER_ID",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "completions",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# Has the cell `never` in mind: a program that is started alone is "process 0 of 1" and trains on without a message.
cluster_faults__wrong_sure_to_be_alone = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "trains alone",
}
