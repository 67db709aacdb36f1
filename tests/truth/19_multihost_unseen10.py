"""Answers to lesson 19, tenth batch, written by a reader of the notebook only."""

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


# ---- same_order -------------------------------------------------------------------------------------------------


def same_order__right_brought_whole(process_id, num_processes, *, rows):
    """The sum and the maximum of the rows of all processes."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    everybodys = multihost_utils.process_allgather(np.asarray(rows, np.float32))  # the only collective
    return float(everybodys.sum()), float(everybodys.max())


# This student thinks that P() means "one array that everybody knows", and that jnp.sum over it is a sum over all processes.
def same_order__wrong_known_to_all(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P()), np.asarray(rows))
    return float(jnp.sum(numbers)), float(jnp.max(numbers))


# This student keeps the mesh of 4 x 2 and adds up over both axes, though the two devices of a process hold copies.
def same_order__wrong_both_axes(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes)
    numbers = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.asarray(rows))

    def both(block):
        everywhere = ("data", "model")
        return jax.lax.psum(block.sum(), everywhere), jax.lax.pmax(block.max(), everywhere)

    total, largest = jax.shard_map(both, mesh=mesh, in_specs=P("data"), out_specs=(P(), P()))(numbers)
    return float(total), float(largest)


# This student thinks that the order cannot be mixed up if only process 0 asks, and then tells the others.
def same_order__wrong_one_asks(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), np.asarray(rows))
    found = np.zeros(2, np.float32)
    if process_id == 0:
        found = np.array([float(jnp.sum(numbers)), float(jnp.max(numbers))], np.float32)
    found = multihost_utils.broadcast_one_to_all(found)
    return float(found[0]), float(found[1])


# This student lets every process add up its own two first, and takes sum and maximum of those four sums.
def same_order__wrong_of_sums(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    sums = multihost_utils.process_allgather(np.float32(np.sum(rows)))
    return float(np.sum(sums)), float(np.max(sums))


# ---- multihost_claims -------------------------------------------------------------------------------------------

multihost_claims__right_all = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 4 * 2,
    "a v5e slice of 16 hosts with 4 chips each: devices": 16 * 4,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student takes device_count for the number of devices that the process drives.
multihost_claims__wrong_own_devices = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 2,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student has learned that nothing at all may stand under an `if process_index() == 0`.
multihost_claims__wrong_never_under_if = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "not safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student thinks of MPI and torch: initialize spawns the workers, and every collective has to be written out.
multihost_claims__wrong_as_in_mpi = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "JAX",
    "what is mainly written differently for many processes (data in and out / every collective)": "every collective",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}

# This student counts two cores on a v5e chip, as on older TPUs, and thinks that a sum is replicated and so always printable.
multihost_claims__wrong_two_cores = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 128,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "safe",
}


# ---- join -------------------------------------------------------------------------------------------------------


def join__right_counts(process_id, num_processes, *, ticket):
    """Who am I, how many are we, how many devices are mine, and everybody's, and what have we all brought?"""
    jax.distributed.initialize(process_id=process_id, num_processes=num_processes)
    total = multihost_utils.process_allgather(np.int32(ticket)).sum().item()
    return jax.process_index(), jax.process_count(), jax.local_device_count(), jax.device_count(), total


# This student thinks that jnp.sum adds up over all processes, once they have joined.
def join__wrong_sum_of_own(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = int(jnp.sum(jnp.asarray([ticket])))
    return jax.process_index(), jax.process_count(), len(jax.local_devices()), len(jax.devices()), total


# This student makes the ticket a JAX number before the processes have joined.
def join__wrong_ticket_first(process_id, num_processes, *, ticket):
    mine = jnp.int32(ticket)
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = int(multihost_utils.process_allgather(np.asarray(mine)).sum())
    return jax.process_index(), jax.process_count(), len(jax.local_devices()), len(jax.devices()), total


# This student takes jax.devices() for this process's own, and multiplies by the number of processes for all.
def join__wrong_devices_are_mine(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    tickets = multihost_utils.process_allgather(np.int32(ticket))
    mine = len(jax.devices())
    return jax.process_index(), jax.process_count(), mine, mine * jax.process_count(), int(tickets.sum())


# This student brings the ticket once for each device, and forgets to divide by the devices of a process.
def join__wrong_once_per_device(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    line = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(AxisType.Auto,))
    mine = np.full(jax.local_device_count(), ticket, np.int32)
    tickets = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), mine)
    return (
        jax.process_index(),
        jax.process_count(),
        jax.local_device_count(),
        jax.device_count(),
        int(jnp.sum(tickets)),
    )
