"""Answers to lesson 19, written by a reader of the notebook only."""

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


def join__right_kept(process_id, num_processes, *, ticket):
    jax.distributed.initialize(process_id=process_id, num_processes=num_processes)
    tickets = multihost_utils.process_allgather(np.int32(ticket))
    return (
        jax.process_index(),
        jax.process_count(),
        jax.local_device_count(),
        jax.device_count(),
        int(np.sum(tickets)),
    )


def join__wrong_own_ticket(process_id, num_processes, *, ticket):
    """The own ticket times the processes."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return (
        jax.process_index(),
        jax.process_count(),
        jax.local_device_count(),
        jax.device_count(),
        ticket * num_processes,
    )


def join__wrong_swapped(process_id, num_processes, *, ticket):
    """All devices before the local ones."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = int(multihost_utils.process_allgather(np.int32(ticket)).sum())
    return jax.process_index(), jax.process_count(), len(jax.devices()), len(jax.local_devices()), total


def join__wrong_first_device(process_id, num_processes, *, ticket):
    """Asks for the devices before it joins."""
    local = len(jax.local_devices())
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = int(multihost_utils.process_allgather(np.int32(ticket)).sum())
    return jax.process_index(), jax.process_count(), local, len(jax.devices()), total


def join__wrong_no_join(process_id, num_processes, *, ticket):
    """Never joins."""
    total = int(np.sum(multihost_utils.process_allgather(np.int32(ticket))))
    return process_id, num_processes, len(jax.local_devices()), len(jax.devices()), total


def join__wrong_list_of_tickets(process_id, num_processes, *, ticket):
    """The tickets in place of their sum."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    tickets = multihost_utils.process_allgather(np.int32(ticket))
    return jax.process_index(), jax.process_count(), len(jax.local_devices()), len(jax.devices()), tickets.tolist()


def launch_lines__right_loop(script, processes, devices):
    lines = []
    for number in range(processes):
        lines.append(f"JAX_NUM_CPU_DEVICES={devices} python {script} {number} {processes} > out.{number} 2>&1 &")
    return lines + ["wait"]


def launch_lines__wrong_no_wait(script, processes, devices):
    """wait forgotten."""
    return [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &" for k in range(processes)]


def launch_lines__wrong_one_by_one(script, processes, devices):
    """No & at the end."""
    return [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes}" for k in range(processes)] + ["wait"]


def launch_lines__wrong_from_one(script, processes, devices):
    """Numbers from 1."""
    return [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &" for k in range(1, processes + 1)] + [
        "wait"
    ]


def launch_lines__wrong_export(script, processes, devices):
    """Set for the whole script."""
    return (
        [f"export JAX_NUM_CPU_DEVICES={devices}"]
        + [f"python {script} {k} {processes} &" for k in range(processes)]
        + ["wait"]
    )


def launch_lines__wrong_wait_each(script, processes, devices):
    """Waits after each."""
    lines = []
    for k in range(processes):
        lines += [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &", "wait"]
    return lines


def launch_lines__wrong_text(script, processes, devices):
    """One text in place of a list."""
    return "\n".join(
        [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &" for k in range(processes)] + ["wait"]
    )


who_has_what__right_numbers = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}
# stop is the last row
who_has_what__wrong_inclusive = {
    **who_has_what__right_numbers,
    "P('data', 'model'): rows in process 2": (4, 5),
    "P('model', 'data'): columns in process 2": (2, 2),
    "P(('data', 'model')): rows in process 1": (2, 3),
}
# one device's rows in place of a process's
who_has_what__wrong_one_device = {**who_has_what__right_numbers, "P(('data', 'model')): rows in process 1": (1, 2)}
# counts shards, not blocks
who_has_what__wrong_shards = {**who_has_what__right_numbers, "P('data'): different blocks in process 3": 2}
# counts devices for processes, and one copy
who_has_what__wrong_copies = {
    **who_has_what__right_numbers,
    "P('model'): processes that hold row 0": 2,
    "P(): shards that process 0 can read": 8,
}

order_puzzle__right_numbers = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 29,
    "what process 3 takes for the sum": 15,
}
# process 3 reduces by what it called
order_puzzle__wrong_own_rule = {
    **order_puzzle__right_numbers,
    "what process 3 takes for the max": 11,
    "what process 3 takes for the sum": 28,
}
# the names of process 3 swapped
order_puzzle__wrong_names = {
    **order_puzzle__right_numbers,
    "what process 3 takes for the max": 15,
    "what process 3 takes for the sum": 29,
}
# brings its sum first
order_puzzle__wrong_sum_first = {
    **order_puzzle__right_numbers,
    "process 3, its first collective: what it contributes": 15,
    "what process 0 takes for the sum": 36,
    "what process 0 takes for the max": 8,
}
# the lesson's own numbers
order_puzzle__wrong_lessons = {
    "sum, all in the same order": 28,
    "process 3, its first collective: what it contributes": 7,
    "what process 0 takes for the sum": 22,
    "what process 0 takes for the max": 13,
    "what process 3 takes for the max": 22,
    "what process 3 takes for the sum": 13,
}


def loader__right_split(process_id, num_processes, *, examples, step, batch):
    """The step's rows, split."""
    mesh = grid(process_id, num_processes)
    first = step * batch + process_id * (batch // num_processes)
    part = np.asarray(examples[first : first + batch // num_processes])
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data", None)), part)
    return {"batch": whole, "sum": float(jax.jit(jnp.sum)(whole))}


def loader__wrong_same_rows(process_id, num_processes, *, examples, step, batch):
    """All processes load the same rows."""
    mesh = grid(process_id, num_processes)
    rows = batch // num_processes
    part = examples[step * batch : step * batch + rows]
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), part)
    return {"batch": whole, "sum": float(jnp.sum(whole))}


def loader__wrong_whole_batch(process_id, num_processes, *, examples, step, batch):
    """Each gives the whole batch: it is num_processes times too long."""
    mesh = grid(process_id, num_processes)
    whole = jax.make_array_from_process_local_data(
        NamedSharding(mesh, P("data")), examples[step * batch : (step + 1) * batch]
    )
    return {"batch": whole, "sum": float(jnp.sum(whole))}


def loader__wrong_step_local(process_id, num_processes, *, examples, step, batch):
    """The step moves on by the process's rows."""
    mesh = grid(process_id, num_processes)
    rows = batch // num_processes
    start = (step + process_id) * rows
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), examples[start : start + rows])
    return {"batch": whole, "sum": float(jnp.sum(whole))}


def loader__wrong_local_sum(process_id, num_processes, *, examples, step, batch):
    """The sum of the own rows."""
    mesh = grid(process_id, num_processes)
    rows = batch // num_processes
    start = step * batch + process_id * rows
    part = examples[start : start + rows]
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), part)
    return {"batch": whole, "sum": float(part.sum())}


def loader__wrong_step_forgotten(process_id, num_processes, *, examples, step, batch):
    """The first step again and again."""
    mesh = grid(process_id, num_processes)
    rows = batch // num_processes
    whole = jax.make_array_from_process_local_data(
        NamedSharding(mesh, P("data")), examples[process_id * rows : (process_id + 1) * rows]
    )
    return {"batch": whole, "sum": float(jnp.sum(whole))}


def loader__wrong_device_put(process_id, num_processes, *, examples, step, batch):
    """Reads everybody's rows, by device_put."""
    mesh = grid(process_id, num_processes)
    whole = jax.device_put(examples[step * batch : (step + 1) * batch], NamedSharding(mesh, P("data")))
    return {"batch": whole, "sum": float(jnp.sum(whole))}
