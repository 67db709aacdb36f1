"""Answers to lesson 19, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


# ---------------------------------------------------------------- from_callback


def from_callback__right_nonlocal(process_id, num_processes, *, table):
    layout = NamedSharding(grid(process_id, num_processes), P("data", "model"))
    read = 0

    def load(index):
        nonlocal read
        block = table[index]
        read += block.size
        return block

    array = jax.make_array_from_callback(table.shape, layout, load)
    total = float(jnp.sum(array))
    return {"array": array, "sum": total, "read": read}


# This student wanted the size and the block, and cut the table once for each. (Written as wrong: the text said “each once”
# then, and the model solution did the same.)
def from_callback__right_cut_twice(process_id, num_processes, *, table):
    mesh = grid(process_id, num_processes)
    sizes = []

    def load(index):
        sizes.append(table[index].size)
        return table[index]

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": array, "sum": float(jnp.sum(array)), "read": sum(sizes)}


# This student added up the blocks on the way in, and took that for the sum of the array, though it is that of one process.
def from_callback__wrong_local_sum(process_id, num_processes, *, table):
    mesh = grid(process_id, num_processes)
    blocks = []

    def load(index):
        blocks.append(np.asarray(table[index]))
        return blocks[-1]

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {
        "array": array,
        "sum": float(sum(block.sum() for block in blocks)),
        "read": sum(block.size for block in blocks),
    }


# This student thought that processes differ along data only, so that cutting the rows is enough, and kept the rows once read.
def from_callback__wrong_rows_kept(process_id, num_processes, *, table):
    mesh = grid(process_id, num_processes)
    kept = {}

    def load(index):
        rows = index[0].start, index[0].stop
        if rows not in kept:
            kept[rows] = table[index]
        return kept[rows]

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data")), load)
    return {"array": array, "sum": float(jnp.sum(array)), "read": sum(block.size for block in kept.values())}


# This student read off the size of what the process holds from its first shard, as if a process had one device.
def from_callback__wrong_first_shard(process_id, num_processes, *, table):
    mesh = grid(process_id, num_processes)
    array = jax.make_array_from_callback(
        table.shape, NamedSharding(mesh, P("data", "model")), lambda index: table[index]
    )
    return {"array": array, "sum": float(jnp.sum(array)), "read": array.addressable_shards[0].data.size}


# ---------------------------------------------------------------- multihost_claims

multihost_claims__right_table = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student took device_count for the number of devices of this process.
multihost_claims__wrong_local_count = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 2,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student remembered TPU chips of two cores each, and counted cores as devices.
multihost_claims__wrong_two_cores = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 128,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student thought that `initialize` starts the other processes, and that collectives across hosts need other calls.
multihost_claims__wrong_jax_starts = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "JAX",
    "what is mainly written differently for many processes (data in and out / every collective)": "every collective",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student thought that touching any global array in a branch on process_index leaves the others waiting.
multihost_claims__wrong_never_branch = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "not safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# ---------------------------------------------------------------- batch_arithmetic

batch_arithmetic__right_table = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 1024 // 16,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 1024 // (16 * 4),
    "the same, the 4 devices of a process share a model: examples a device gets": 1024 // 16,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 16 * 48,
    "float32[1024, 256] by device_put: bytes each process reads": 1024 * 256 * 4,
    "float32[1024, 256] from process-local data: bytes each process reads": 1024 * 256 * 4 // 16,
}

# This student thought that the batch is always cut over all 64 devices, whatever these share.
batch_arithmetic__wrong_always_cut = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 16,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 1048576,
    "float32[1024, 256] from process-local data: bytes each process reads": 65536,
}

# This student counted numbers, and forgot the four bytes of each.
batch_arithmetic__wrong_numbers = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 1024 * 256,
    "float32[1024, 256] from process-local data: bytes each process reads": 1024 * 256 // 16,
}

# This student took "local data" to be a device's: 48 rows for each of 64 devices, and a 64th of the bytes.
batch_arithmetic__wrong_by_device = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 48 * 64,
    "float32[1024, 256] by device_put: bytes each process reads": 1048576,
    "float32[1024, 256] from process-local data: bytes each process reads": 1048576 // 64,
}

# This student thought that device_put reads only what the process's own devices will hold.
batch_arithmetic__wrong_put_cuts = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 65536,
    "float32[1024, 256] from process-local data: bytes each process reads": 65536,
}
