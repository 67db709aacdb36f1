"""Answers to lesson 19, twelfth batch, written by a reader of the notebook only."""

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


def squared_error(w, x, y):
    """The mean over all rows and outputs of the squared error of tanh(x w)."""
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


# ---------------------------------------------------------------- join


def join__right_asked(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    me = jax.process_index()
    mine = [device for device in jax.devices() if device.process_index == me]
    total = 0
    for other in multihost_utils.process_allgather(np.int32(ticket)):
        total += int(other)
    return me, jax.process_count(), len(mine), jax.device_count(), total


# This student thought that collecting is the work of rank 0, which then has the sum, and the others need not take part.
def join__wrong_rank0(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = int(ticket)
    if jax.process_index() == 0:
        total = int(multihost_utils.process_allgather(np.int32(ticket)).sum())
    return jax.process_index(), jax.process_count(), len(jax.local_devices()), len(jax.devices()), total


# This student thought that jax.devices() lists the devices of this process, so that all are that times the processes.
def join__wrong_devices(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mine = len(jax.devices())
    total = int(multihost_utils.process_allgather(np.int32(ticket)).sum())
    return jax.process_index(), jax.process_count(), mine, mine * jax.process_count(), total


# This student thought that after initialize a jnp.sum is always a sum over all processes, also of a number of one's own.
def join__wrong_jnpsum(process_id, num_processes, *, ticket):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = int(jnp.sum(jnp.asarray(ticket, jnp.int32)))
    return jax.process_index(), jax.process_count(), jax.local_device_count(), jax.device_count(), total


# This student thought that one's own devices are best counted before the others join, while jax.devices() shows only them.
def join__wrong_before(process_id, num_processes, *, ticket):
    mine = len(jax.devices())
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = int(multihost_utils.process_allgather(np.int32(ticket)).sum())
    return jax.process_index(), jax.process_count(), mine, len(jax.devices()), total


# ---------------------------------------------------------------- who_has_what

who_has_what__right_tuples = {
    "P('data', 'model'): rows in process 2": (2 * 2, 3 * 2),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# This student thought that stop is the last row that is there, and not the first that is not.
who_has_what__wrong_inclusive = {
    "P('data', 'model'): rows in process 2": (4, 5),
    "P('model', 'data'): columns in process 2": (2, 2),
    "P(('data', 'model')): rows in process 1": (2, 3),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# This student thought that two devices have two blocks, whatever the spec says.
who_has_what__wrong_twoblocks = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 2,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# This student thought that two halves of the rows are dealt out to two halves of the processes, and that what is replicated can be read in all its eight copies.
who_has_what__wrong_halves = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 2,
    "P(): shards that process 0 can read": 8,
}

# This student thought that the first entry of a spec is always cut by the first axis of the mesh, so that P('model', 'data') has columns in halves, and both in a process.
who_has_what__wrong_position = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (0, 4),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 1,
    "P(): shards that process 0 can read": 2,
}


# ---------------------------------------------------------------- dp_training_4procs


def dp_training_4procs__right_allgather(process_id, num_processes, *, x, y, w, rate, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    both = jax.jit(jax.value_and_grad(squared_error))
    w, losses = np.asarray(w), []
    for _ in range(steps):
        loss, slope = both(w, x, y)
        brought = np.asarray(loss), np.asarray(slope), np.int32(len(x))
        loss, slope, rows = multihost_utils.process_allgather(brought)
        share = (rows / rows.sum()).astype(np.float32)
        losses.append(float(share @ loss))
        w = (w - rate * np.tensordot(share, slope, 1)).astype(w.dtype)
    return losses, w


# This student thought that once the processes have joined, jit adds the gradients up between them by itself, as DDP does.
def dp_training_4procs__wrong_alone(process_id, num_processes, *, x, y, w, rate, steps):
    grid(process_id, num_processes)
    both = jax.jit(jax.value_and_grad(squared_error))
    w, losses = jnp.asarray(w), []
    for _ in range(steps):
        loss, slope = both(w, jnp.asarray(x), jnp.asarray(y))
        losses.append(float(loss))
        w = w - rate * slope
    return losses, np.asarray(w)


# This student thought that the compiler only adds the gradients of the processes up, so that the mean is still to be made.
def dp_training_4procs__wrong_divided(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    rows = NamedSharding(mesh, P("data"))
    x, y = (jax.make_array_from_process_local_data(rows, a) for a in (x, y))
    w = jax.device_put(w, NamedSharding(mesh, P()))
    both = jax.jit(jax.value_and_grad(squared_error))
    losses = []
    for _ in range(steps):
        loss, slope = both(w, x, y)
        losses.append(float(loss))
        w = w - rate * slope / jax.process_count()
    return losses, np.asarray(w)


# This student thought that the loss of a step is the one that the step leads to.
def dp_training_4procs__wrong_after(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    rows = NamedSharding(mesh, P("data"))
    x, y = (jax.make_array_from_process_local_data(rows, a) for a in (x, y))
    w = jax.device_put(w, NamedSharding(mesh, P()))
    slope, loss = jax.jit(jax.grad(squared_error)), jax.jit(squared_error)
    losses = []
    for _ in range(steps):
        w = w - rate * slope(w, x, y)
        losses.append(float(loss(w, x, y)))
    return losses, np.asarray(w)


# This student thought that global_shape is the shape of what the process hands in, so that three quarters of the rows are dropped.
def dp_training_4procs__wrong_quarter(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    rows = NamedSharding(mesh, P("data"))
    x = jax.make_array_from_process_local_data(rows, x, x.shape)
    y = jax.make_array_from_process_local_data(rows, y, y.shape)
    w = jax.device_put(w, NamedSharding(mesh, P()))
    both = jax.jit(jax.value_and_grad(squared_error))
    losses = []
    for _ in range(steps):
        loss, slope = both(w, x, y)
        losses.append(float(loss))
        w = w - rate * slope
    return losses, np.asarray(w)
