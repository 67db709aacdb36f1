"""Answers to lesson 19, eighth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- from_callback


def from_callback__right_nonlocal(process_id, num_processes, *, table):
    mesh = grid(process_id, num_processes)
    read = 0

    def load(index):
        nonlocal read
        rows, columns = index
        block = np.asarray(table[rows, columns])
        read += int(np.prod(block.shape))
        return block

    x = jax.make_array_from_callback(tuple(table.shape), NamedSharding(mesh, P("data", "model")), load)
    return {"array": x, "sum": float(jnp.sum(x)), "read": read}


# Reads the rows of the process for each of its two devices, and only then cuts the columns out: all its rows are read twice.
def from_callback__wrong_band(process_id, num_processes, *, table):
    mesh, read = grid(process_id, num_processes), []

    def load(index):
        rows, columns = index
        band = np.asarray(table[rows])
        read.append(band.size)
        return band[:, columns]

    x = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": x, "sum": float(jnp.sum(x)), "read": sum(read)}


# The sum is of what this process has read: an array that nobody holds alone cannot be added up here, the student thinks.
def from_callback__wrong_own_sum(process_id, num_processes, *, table):
    mesh, blocks = grid(process_id, num_processes), []

    def load(index):
        blocks.append(np.asarray(table[index]))
        return blocks[-1]

    x = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": x, "sum": float(sum(block.sum() for block in blocks)), "read": sum(block.size for block in blocks)}


# "What each process reads in its own table": so the tables are parts, and the whole has as many rows as all tables together.
def from_callback__wrong_stacked(process_id, num_processes, *, table):
    mesh, read = grid(process_id, num_processes), []
    height, width = table.shape

    def load(index):
        rows, columns = index
        block = np.asarray(table[rows.start - process_id * height : rows.stop - process_id * height, columns])
        read.append(block.size)
        return block

    shape = num_processes * height, width
    x = jax.make_array_from_callback(shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": x, "sum": float(jnp.sum(x)), "read": sum(read)}


# An entry of a table is a row of it: counts the rows of each block.
def from_callback__wrong_rows(process_id, num_processes, *, table):
    mesh, read = grid(process_id, num_processes), []

    def load(index):
        block = table[index]
        read.append(len(block))
        return block

    x = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": x, "sum": float(jnp.sum(x)), "read": sum(read)}


# ---------------------------------------------------------------- same_params


def same_params__right_gathered(process_id, num_processes, *, seed):
    everywhere = NamedSharding(grid(process_id, num_processes), P())
    of_first = int(multihost_utils.process_allgather(np.int32(seed)).reshape(-1)[0])
    values = np.asarray(jax.random.normal(jax.random.key(of_first), (3, 2)))
    return jax.device_put(values, everywhere)  # it compares what the processes bring


# All have to agree on *one* seed, and the smallest of them is what all can find out alike (and process 0 mostly has it).
def same_params__wrong_smallest(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    agreed = int(multihost_utils.process_allgather(np.int32(seed)).min())
    make = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return make(jax.random.key(agreed))


# The seed of process 0 with the process's number folded in, as one does for data: a key is used in one place only.
def same_params__wrong_folded(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    seed = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    key = jax.random.fold_in(jax.random.key(seed), process_id)
    make = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return make(key)


# Every *process* has to have all of it, so it is a copy along data; the two devices of a process share it, a column each.
def same_params__wrong_column_each(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    seed = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    make = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P(None, "model")))
    return make(jax.random.key(seed))


# The same key gives the same numbers in all processes, and that is what replicated means: no sharding is needed.
def same_params__wrong_local(process_id, num_processes, *, seed):
    grid(process_id, num_processes)
    seed = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    return jax.random.normal(jax.random.key(seed), (3, 2))


# ---------------------------------------------------------------- dp_training_4procs


def dp_training_4procs__right_one_program(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    rows, copies = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    x, y = (jax.make_array_from_process_local_data(rows, np.asarray(part)) for part in (x, y))
    w = jax.device_put(w, copies)

    @jax.jit
    def step(w, x, y):
        value, slope = jax.value_and_grad(squared_error)(w, x, y)
        return value, jax.lax.with_sharding_constraint(w - rate * slope, copies)

    losses = []
    while len(losses) < steps:
        value, w = step(w, x, y)
        losses.append(float(value))
    return losses, np.asarray(w)


# Each process trains on its own rows, and at the end the models are averaged: gradients are linear, so that should come to the same.
def dp_training_4procs__wrong_average_at_the_end(process_id, num_processes, *, x, y, w, rate, steps):
    grid(process_id, num_processes)
    slope = jax.jit(jax.value_and_grad(squared_error))
    w, losses = jnp.asarray(w), []
    for _ in range(steps):
        value, grad = slope(w, x, y)
        losses.append(np.asarray(value))
        w = w - rate * grad
    losses = multihost_utils.process_allgather(np.stack(losses)).mean(axis=0)
    w = multihost_utils.process_allgather(np.asarray(w)).mean(axis=0)
    return [float(value) for value in losses], w


# Gradients are added up over the processes, "the compiler adds the gradients up"; that each was a mean of its own rows is forgotten.
def dp_training_4procs__wrong_added_up(process_id, num_processes, *, x, y, w, rate, steps):
    grid(process_id, num_processes)
    slope, losses = jax.jit(jax.value_and_grad(squared_error)), []
    for _ in range(steps):
        value, grad = slope(w, x, y)
        losses.append(float(multihost_utils.process_allgather(np.asarray(value)).mean()))
        w = w - np.float32(rate) * multihost_utils.process_allgather(np.asarray(grad)).sum(axis=0)
    return losses, np.asarray(w)


# The parameters are right; but the loss that is written down is that of this process's rows, "the loss that I see".
def dp_training_4procs__wrong_own_loss(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    cut = NamedSharding(mesh, P("data"))
    all_x, all_y = (jax.make_array_from_process_local_data(cut, a) for a in (x, y))
    there = jax.device_put(w, NamedSharding(mesh, P()))
    slope, losses = jax.jit(jax.grad(squared_error)), []
    for _ in range(steps):
        losses.append(float(squared_error(np.asarray(there), x, y)))
        there = there - rate * slope(there, all_x, all_y)
    return losses, np.asarray(there)


# A loss is written down when the step has been made, with the parameters that it has made.
def dp_training_4procs__wrong_after(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    cut = NamedSharding(mesh, P(("data", "model")))
    x, y = (jax.make_array_from_process_local_data(cut, a) for a in (x, y))
    w, losses = jax.device_put(w, NamedSharding(mesh, P())), []
    loss, slope = jax.jit(squared_error), jax.jit(jax.grad(squared_error))
    for _ in range(steps):
        w = w - rate * slope(w, x, y)
        losses.append(float(loss(w, x, y)))
    return losses, np.asarray(w)
