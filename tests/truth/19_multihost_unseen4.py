"""Answers to lesson 19, fourth batch, written by a reader of the notebook only."""

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


# ------------------------------------------------------------------ from_callback


def from_callback__right_counter(process_id, num_processes, *, table):
    """A block that was read is kept, by its corner; what is kept is counted."""
    mesh = grid(process_id, num_processes)
    kept = {}

    def load(index):
        corner = tuple(part.start for part in index)
        if corner not in kept:
            kept[corner] = np.array(table[index])
        return kept[corner]

    array = jax.make_array_from_callback(tuple(table.shape), NamedSharding(mesh, P("data", "model")), load)
    return {"array": array, "sum": float(array.sum()), "read": sum(block.size for block in kept.values())}


# This student reads the table first and lets the callback cut from what was read.
def from_callback__wrong_read_at_once(process_id, num_processes, *, table):
    mesh = grid(process_id, num_processes)
    everything = np.asarray(table[:])
    sizes = []

    def load(index):
        sizes.append(everything[index].size)
        return everything[index]

    array = jax.make_array_from_callback(everything.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": array, "sum": float(jnp.sum(array)), "read": sum(sizes)}


# This student cuts the rows alone, as one does with a batch: each block is then asked for twice.
def from_callback__wrong_rows_only(process_id, num_processes, *, table):
    mesh = grid(process_id, num_processes)
    sizes = []

    def load(index):
        block = table[index]
        sizes.append(block.size)
        return block

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data")), load)
    return {"array": array, "sum": float(jnp.sum(array)), "read": sum(sizes)}


# This student thought that what this process read is what the whole array has.
def from_callback__wrong_read_is_all(process_id, num_processes, *, table):
    mesh = grid(process_id, num_processes)
    array = jax.make_array_from_callback(
        table.shape, NamedSharding(mesh, P("data", "model")), lambda index: table[index]
    )
    return {"array": array, "sum": float(jnp.sum(array)), "read": array.size}


# This student adds up in the callback, where only this process's blocks come by.
def from_callback__wrong_own_sum(process_id, num_processes, *, table):
    mesh = grid(process_id, num_processes)
    sizes, sums = [], []

    def load(index):
        block = table[index]
        sizes.append(block.size)
        sums.append(float(np.sum(block)))
        return block

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": array, "sum": sum(sums), "read": sum(sizes)}


# ------------------------------------------------------------------ same_params


def same_params__right_gathered(process_id, num_processes, *, seed):
    """All seeds go to all; everybody takes the first one."""
    mesh = grid(process_id, num_processes)
    first, *_ = multihost_utils.process_allgather(np.int32(seed)).tolist()
    make = jax.jit(lambda: jax.random.normal(jax.random.key(first), (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return make()


# This student thought that out_shardings=P() makes one array of what all draw, so the own seed will do.
def same_params__wrong_own_seed(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    make = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return make(jax.random.key(seed))


# This student lets only process 0 call the broadcast, since it is the one that sends.
def same_params__wrong_only_the_first_calls(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    if process_id == 0:
        seed = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    make = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return make(jax.random.key(seed))


# This student makes one seed of all seeds by adding them: the same everywhere, but not that of process 0.
def same_params__wrong_sum_of_seeds(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    common = int(multihost_utils.process_allgather(np.int32(seed)).sum())
    make = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return make(jax.random.key(common))


# This student sends the parameters themselves and returns what came: an array of this process, not one over the grid.
def same_params__wrong_not_on_the_grid(process_id, num_processes, *, seed):
    grid(process_id, num_processes)
    drawn = jax.random.normal(jax.random.key(seed), (3, 2))
    return jnp.asarray(multihost_utils.broadcast_one_to_all(np.asarray(drawn)))


# ------------------------------------------------------------------ dp_training_4procs


def dp_training_4procs__right_scan(process_id, num_processes, *, x, y, w, rate, steps):
    """All steps in one program."""
    mesh = grid(process_id, num_processes)
    everywhere, dealt = NamedSharding(mesh, P()), NamedSharding(mesh, P(mesh.axis_names))

    def train(w, x, y):
        def step(w, _):
            value, slope = jax.value_and_grad(squared_error)(w, x, y)
            return w - rate * slope, value

        return jax.lax.scan(step, w, None, length=steps)

    arrays = [jax.make_array_from_process_local_data(dealt, rows) for rows in (x, y)]
    w, losses = jax.jit(train, out_shardings=everywhere)(jax.device_put(w, everywhere), *arrays)
    return np.asarray(losses).tolist(), np.asarray(w)


# This student lets every process train on its own rows and averages parameters and losses at the end.
def dp_training_4procs__wrong_averaged_at_the_end(process_id, num_processes, *, x, y, w, rate, steps):
    grid(process_id, num_processes)
    gradient, losses = jax.jit(jax.value_and_grad(squared_error)), []
    for _ in range(steps):
        value, slope = gradient(w, x, y)
        losses.append(float(value))
        w = w - rate * np.asarray(slope)
    everyone = multihost_utils.process_allgather(np.asarray(losses, np.float32))
    return everyone.mean(axis=0).tolist(), multihost_utils.process_allgather(np.asarray(w)).mean(axis=0)


# This student gathers the processes' own gradients and adds them up, where each is a mean already.
def dp_training_4procs__wrong_sum_of_means(process_id, num_processes, *, x, y, w, rate, steps):
    grid(process_id, num_processes)
    gradient, losses = jax.jit(jax.value_and_grad(squared_error)), []
    for _ in range(steps):
        value, slope = gradient(w, x, y)
        losses.append(float(multihost_utils.process_allgather(np.asarray(value)).mean()))
        w = w - rate * multihost_utils.process_allgather(np.asarray(slope)).sum(axis=0)
    return losses, np.asarray(w)


# This student thought that the gradient of a global array is a sum over processes and divides by their number.
def dp_training_4procs__wrong_divided_again(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    rows = NamedSharding(mesh, P(("data", "model")))
    x, y = (jax.make_array_from_process_local_data(rows, a) for a in (x, y))
    w = jax.device_put(w, NamedSharding(mesh, P()))
    gradient, losses = jax.jit(jax.value_and_grad(squared_error)), []
    for _ in range(steps):
        value, slope = gradient(w, x, y)
        losses.append(float(value))
        w = w - rate * slope / num_processes
    return losses, np.asarray(w)


# This student gives the rows the layout P(), so that every process has its own rows as if they were everybody's.
def dp_training_4procs__wrong_rows_as_copies(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    whole = NamedSharding(mesh, P())
    x, y = (jax.make_array_from_process_local_data(whole, a) for a in (x, y))
    w = jax.device_put(w, whole)
    gradient, losses = jax.jit(jax.value_and_grad(squared_error)), []
    for _ in range(steps):
        value, slope = gradient(w, x, y)
        losses.append(float(value))
        w = w - rate * slope
    return losses, np.asarray(w)
