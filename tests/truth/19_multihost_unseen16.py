"""Answers to lesson 19, sixteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


# ---- batch_arithmetic

batch_arithmetic__right_worked = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 1024 // 16,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 1024 // (16 * 4),
    "the same, the 4 devices of a process share a model: examples a device gets": 1024 // 16,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 48 * 16,
    "float32[1024, 256] by device_put: bytes each process reads": 1024 * 256 * 4,
    "float32[1024, 256] from process-local data: bytes each process reads": 1024 // 16 * 256 * 4,
}

# Thought that the four devices that share a model also share the process's examples out among themselves.
batch_arithmetic__wrong_shareddealt = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 16,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 1048576,
    "float32[1024, 256] from process-local data: bytes each process reads": 65536,
}

# Took the number of entries for the number of bytes.
batch_arithmetic__wrong_entries = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 1024 * 256,
    "float32[1024, 256] from process-local data: bytes each process reads": 64 * 256,
}

# Thought that what a process brings is a part for each of its devices: counted 64 devices where there are 16 processes.
batch_arithmetic__wrong_perdevice = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 48 * 64,
    "float32[1024, 256] by device_put: bytes each process reads": 1048576,
    "float32[1024, 256] from process-local data: bytes each process reads": 1048576 // 64,
}

# Thought that device_put with a sharding that cuts needs only this process's part, so that both ways read the same.
batch_arithmetic__wrong_putlocal = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 65536,
    "float32[1024, 256] from process-local data: bytes each process reads": 65536,
}


# ---- multihost_claims

multihost_claims__right_all = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 4 * 2,
    "a v5e slice of 16 hosts with 4 chips each: devices": 16 * 4,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# Thought that a process counts only the devices that it drives itself (device_count for local_device_count).
multihost_claims__wrong_localcount = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 2,
    "a v5e slice of 16 hosts with 4 chips each: devices": 4,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# Thought that initialize(num_processes=4) starts the other processes, and that each collective has to be told who takes part.
multihost_claims__wrong_jaxstarts = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "JAX",
    "what is mainly written differently for many processes (data in and out / every collective)": "every collective",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# Thought that a global array is one that every process can see, and that printing sums up only in the process that prints.
multihost_claims__wrong_globalseen = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "safe",
}

# Thought that to print any array of JAX in one process only leaves the others waiting, for its value has to be fetched.
multihost_claims__wrong_branchesbad = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "not safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}


# ---- from_callback


def from_callback__right_kept(process_id, num_processes, *, table):
    """The table over all devices, its sum, and how many of its entries this process read for that."""
    mesh = grid(process_id, num_processes)
    layout = NamedSharding(mesh, P("data", "model"))
    kept = {}

    def load(index):
        place = tuple((cut.start, cut.stop) for cut in index)
        if place not in kept:
            kept[place] = np.asarray(table[index])
        return kept[place]

    array = jax.make_array_from_callback(tuple(table.shape), layout, load)
    total = jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, P()))(array)
    return {"array": array, "sum": float(total), "read": sum(block.size for block in kept.values())}


# Thought that the sum of the array is the sum of the blocks which this process has read.
def from_callback__wrong_ownsum(process_id, num_processes, *, table):
    """The table over all devices, its sum, and how many of its entries this process read for that."""
    mesh = grid(process_id, num_processes)
    sizes, sums = [], []

    def load(index):
        block = table[index]
        sizes.append(int(block.size))
        sums.append(float(block.sum()))
        return block

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": array, "sum": sum(sums), "read": sum(sizes)}


# Thought that a process reads its rows once for both devices, and so laid the array out by rows only.
def from_callback__wrong_rowsonly(process_id, num_processes, *, table):
    """The table over all devices, its sum, and how many of its entries this process read for that."""
    mesh = grid(process_id, num_processes)
    kept = {}

    def load(index):
        first = index[0].start or 0
        if first not in kept:  # both devices ask for the same rows
            kept[first] = table[index]
        return kept[first]

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data")), load)
    return {"array": array, "sum": float(jnp.sum(array)), "read": sum(block.size for block in kept.values())}


# Counted bytes in place of entries.
def from_callback__wrong_bytes(process_id, num_processes, *, table):
    """The table over all devices, its sum, and how many of its entries this process read for that."""
    mesh = grid(process_id, num_processes)
    amounts = []

    def load(index):
        block = np.asarray(table[index])
        amounts.append(block.nbytes)
        return block

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": array, "sum": float(jnp.sum(array)), "read": sum(amounts)}


# Thought that each process's table begins with its own part, and counted the rows from there.
def from_callback__wrong_fromownstart(process_id, num_processes, *, table):
    """The table over all devices, its sum, and how many of its entries this process read for that."""
    mesh = grid(process_id, num_processes)
    rows = table.shape[0] // num_processes
    sizes = []

    def load(index):
        down, across = index
        begin = process_id * rows
        block = table[down.start - begin : down.stop - begin, across]
        sizes.append(block.size)
        return block

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": array, "sum": float(jnp.sum(array)), "read": sum(sizes)}
