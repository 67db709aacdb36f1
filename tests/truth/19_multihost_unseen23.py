"""Answers to lesson 19, twenty-third batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- from_single_devices


def from_single_devices__right_pieces(process_id, num_processes, *, parts):
    """The global array whose blocks on this process's devices are `parts`, and its sum."""
    mesh = grid(process_id, num_processes)
    rows, *rest = parts[0].shape
    array = jax.make_array_from_single_device_arrays(
        (mesh.size * rows, *rest),
        NamedSharding(mesh, P(("data", "model"))),
        [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices(), strict=True)],
    )
    return {"array": array, "sum": float(jnp.sum(array))}


# This student adds up what the process brought itself, and believes that the array's sum is that.
def from_single_devices__wrong_own_sum(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (8 * len(parts[0]), *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": array, "sum": float(sum(np.sum(part) for part in parts))}


# This student thinks that the axis along which a process's own devices stand has to come first in the tuple.
def from_single_devices__wrong_model_first(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (len(jax.devices()) * len(parts[0]), *parts[0].shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("model", "data"))), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# This student makes one block for each process, and puts a copy of it on both devices: rows over 'data' alone.
def from_single_devices__wrong_block_of_process(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    mine = np.concatenate(parts)
    pieces = [jax.device_put(mine, device) for device in jax.local_devices()]
    shape = (num_processes * len(mine), *mine.shape[1:])
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P("data")), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# This student thinks that two axes cut two dimensions: the parts of a process stand side by side.
def from_single_devices__wrong_side_by_side(process_id, num_processes, *, parts):
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    rows, columns, *rest = parts[0].shape
    shape = (num_processes * rows, len(parts) * columns, *rest)
    array = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P("data", "model")), pieces)
    return {"array": array, "sum": float(jnp.sum(array))}


# ---------------------------------------------------------------- pipeline_calls

_all, _first, _second = [0, 1, 2, 3], [0, 1], [2, 3]

pipeline_calls__right_backwards = {
    "x = jax.device_put(batch, on_first)": _all,
    "y = f(x)": _all,
    "y = jax.device_put(y, on_second)": _all,
    "z = g(y)": _second,
    "print(jnp.sum(z))": _second,
}

# This student asks only on whose devices a line computes, and forgets that the others need the name y.
pipeline_calls__wrong_where_computed = {
    "x = jax.device_put(batch, on_first)": _first,
    "y = f(x)": _first,
    "y = jax.device_put(y, on_second)": _all,
    "z = g(y)": _second,
    "print(jnp.sum(z))": _second,
}

# This student gives all four a y by `y = f(x)`, and does not see that they need an x for that.
pipeline_calls__wrong_no_x = {
    "x = jax.device_put(batch, on_first)": _first,
    "y = f(x)": _all,
    "y = jax.device_put(y, on_second)": _all,
    "z = g(y)": _second,
    "print(jnp.sum(z))": _second,
}

# This student thinks of `print` as a thing of one process, and not of the sum in it, which is a collective.
pipeline_calls__wrong_one_prints = {
    "x = jax.device_put(batch, on_first)": _all,
    "y = f(x)": _all,
    "y = jax.device_put(y, on_second)": _all,
    "z = g(y)": _second,
    "print(jnp.sum(z))": [2],
}

# This student thinks that a sum is replicated over all processes, so that all have to ask for it, and need z.
pipeline_calls__wrong_sum_everywhere = {
    "x = jax.device_put(batch, on_first)": _all,
    "y = f(x)": _all,
    "y = jax.device_put(y, on_second)": _all,
    "z = g(y)": _all,
    "print(jnp.sum(z))": _all,
}

# ---------------------------------------------------------------- same_order


def same_order__right_gathered(process_id, num_processes, *, rows):
    """The sum and the maximum of the rows of all processes."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    everything = multihost_utils.process_allgather(np.asarray(rows))  # one collective: there is nothing to confuse
    return float(everything.sum()), float(everything.max())


# This student sorts the answers, and leaves the calls in the order in which each process likes to make them.
def same_order__wrong_sorted_answers(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    questions = {"sum": jax.jit(jnp.sum), "max": jax.jit(jnp.max)}
    order = ["max", "sum"] if process_id == 3 else ["sum", "max"]
    found = {name: float(questions[name](numbers)) for name in order}
    return found["sum"], found["max"]


# This student takes P() for 'everybody has all of it', and asks each process about its own two numbers.
def same_order__wrong_replicated(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P()), rows)
    total, largest = jax.jit(lambda a: (jnp.sum(a), jnp.max(a)))(numbers)
    return float(total), float(largest)


# This student gathers each process's sum once, and takes the largest of these sums for the largest number.
def same_order__wrong_largest_sum(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    sums = multihost_utils.process_allgather(np.float32(np.sum(rows)))
    return float(sums.sum()), float(sums.max())


# This student lets all ask in process 3's order, and returns the answers in the order of the calls.
def same_order__wrong_as_called(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    return tuple(float(ask(numbers)) for ask in (jax.jit(jnp.max), jax.jit(jnp.sum)))
