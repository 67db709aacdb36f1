"""Answers to lesson 19, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


# ---------------------------------------------------------------- slurm_script


def slurm_script__right_line_by_line(lines, hosts, gpus):
    def mended(line):
        if line.startswith("#SBATCH --ntasks-per-node"):
            return f"#SBATCH --ntasks-per-node={gpus}"
        return f"srun --kill-on-bad-exit=1 --label {line}" if line.startswith("python ") else line

    return [mended(line) for line in lines if "JAX_COORDINATOR_ADDRESS" not in line]


# A process of its own for each GPU means that each task is given one GPU, so Slurm should be asked for one per task.
def slurm_script__wrong_gpu_per_task(lines, hosts, gpus):
    new = {
        "#SBATCH --ntasks-per-node=1": f"#SBATCH --ntasks-per-node={gpus}",
        f"#SBATCH --gpus-per-node={gpus}": "#SBATCH --gpus-per-task=1",
        "python train.py": "srun python train.py",
    }
    return [new.get(line, line) for line in lines if "JAX_COORDINATOR_ADDRESS" not in line]


# The number of tasks is the number of all processes, hosts times GPUs, and that is what goes into the line about tasks.
def slurm_script__wrong_all_tasks_on_each_node(lines, hosts, gpus):
    tasks = hosts * gpus
    return [
        line.replace("ntasks-per-node=1", f"ntasks-per-node={tasks}").replace("python train.py", "srun python train.py")
        for line in lines
        if not line.startswith("export JAX_COORDINATOR_ADDRESS")
    ]


# localhost is too narrow, since it listens to its own machine only; 0.0.0.0 is the address that everybody can reach.
def slurm_script__wrong_any_address(lines, hosts, gpus):
    return [
        line.replace("ntasks-per-node=1", f"ntasks-per-node={gpus}")
        .replace("localhost", "0.0.0.0")
        .replace("python train.py", "srun python train.py")
        for line in lines
    ]


# The header reserves a task for each GPU; srun has to start the program once on every host, and it takes the host's GPUs.
def slurm_script__wrong_srun_once_a_host(lines, hosts, gpus):
    found = [line for line in lines if "JAX_COORDINATOR_ADDRESS" not in line]
    found = [f"#SBATCH --ntasks-per-node={gpus}" if "ntasks-per-node" in line else line for line in found]
    return [
        f"srun --ntasks={hosts} --ntasks-per-node=1 {line}" if line.startswith("python") else line for line in found
    ]


# ------------------------------------------------------------------------ join


def join__right_counted_by_process(process_id, num_processes, *, ticket):
    from collections import Counter

    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    me, devices_of = jax.process_index(), Counter(device.process_index for device in jax.devices())
    tickets = multihost_utils.process_allgather(np.int32(ticket))
    return me, len(devices_of), devices_of[me], sum(devices_of.values()), int(np.sum(tickets))


# How many devices are mine I have to ask before I join: afterwards JAX would count everybody's.
def join__wrong_counts_before_it_joins(process_id, num_processes, *, ticket):
    mine = len(jax.devices())
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    tickets = multihost_utils.process_allgather(np.int32(ticket))
    return jax.process_index(), jax.process_count(), mine, len(jax.devices()), int(tickets.sum())


# jax.devices() are the devices that this process sees, its own; all together are as many times that as there are processes.
def join__wrong_devices_are_mine(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    tickets = multihost_utils.process_allgather(np.int32(ticket))
    mine, many = len(jax.devices()), jax.process_count()
    return jax.process_index(), many, mine, many * mine, int(tickets.sum())


# Once we are joined, jnp.sum goes over all processes, as it did with the sum of sines; nothing has to be gathered.
def join__wrong_sum_of_my_own(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = int(jnp.sum(jnp.array([ticket], jnp.int32)))
    return jax.process_index(), jax.process_count(), jax.local_device_count(), jax.device_count(), total


# Devices are numbered 0, 1, 2, ... over all processes, so that the last one's number plus one says how many there are.
def join__wrong_last_id_plus_one(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = sum(int(t) for t in multihost_utils.process_allgather(np.int32(ticket)))
    everybody = 1 + max(device.id for device in jax.devices())
    return jax.process_index(), jax.process_count(), len(jax.local_devices()), everybody, total


# ---------------------------------------------------------------- order_puzzle

_pairs = [(2, 3), (1, 4), (6, 5), (8, 7)]
_first = sum(sum(p) for p in _pairs[:3]) + max(_pairs[3])  # 5 + 5 + 11 + 8 = 29
_second = max([max(p) for p in _pairs[:3]] + [sum(_pairs[3])])  # max of 3, 4, 6, 15

order_puzzle__right_two_exchanges = {
    "sum, all in the same order": sum(map(sum, _pairs)),
    "process 3, its first collective: what it contributes": max(_pairs[3]),
    "what process 0 takes for the sum": _first,
    "what process 0 takes for the max": _second,
    "what process 3 takes for the max": _first,
    "what process 3 takes for the sum": _second,
}

# Each process reduces what it has heard by the operation that it called itself: process 3 takes max(5, 5, 11, 8), and adds 3 + 4 + 6 + 15.
order_puzzle__wrong_each_reduces_by_its_own = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 11,
    "what process 3 takes for the sum": 28,
}

# As in the example, the maximum of process 3 is what its last device holds, 7.
order_puzzle__wrong_last_device_is_the_largest = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 7,
    "what process 0 takes for the sum": 28,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 28,
    "what process 3 takes for the sum": 15,
}

# What comes back knows what it is: the sum that was made is taken by process 3 for its sum, too, and the maximum for its maximum.
order_puzzle__wrong_names_travel_along = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 15,
    "what process 3 takes for the sum": 29,
}

# In the second exchange they look for the largest, and the largest that process 3 has is its 8 again.
order_puzzle__wrong_brings_its_max_twice = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 8,
    "what process 3 takes for the max": 29,
    "what process 3 takes for the sum": 8,
}
