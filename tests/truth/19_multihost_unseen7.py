"""Answers to lesson 19, seventh batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- loader


def loader__right_pieces(process_id, num_processes, *, examples, step, batch):
    """Reads once, and lays the same rows on each of its devices itself."""
    mesh = grid(process_id, num_processes)
    share, rest = divmod(batch, num_processes)
    assert rest == 0
    first = (step * num_processes + process_id) * share
    mine = np.asarray(examples[first : first + share])
    pieces = [jax.device_put(mine, device) for device in jax.local_devices()]
    whole = jax.make_array_from_single_device_arrays((batch, *mine.shape[1:]), NamedSharding(mesh, P("data")), pieces)
    return {"batch": whole, "sum": float(jnp.sum(whole))}


# Each process takes its own part of `batch` rows; that earlier steps have used rows up already is forgotten.
def loader__wrong_always_first_step(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    n = batch // num_processes
    rows = np.asarray(examples[process_id * n : (process_id + 1) * n])
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    return {"batch": x, "sum": float(jnp.sum(x))}


# Reads the whole batch of the step everywhere and lets JAX cut it, by global_shape.
def loader__wrong_reads_the_batch(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    rows = np.asarray(examples[step * batch : (step + 1) * batch])
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows, rows.shape)
    total = jnp.sum(x)
    return {"batch": x, "sum": float(total)}


# Deals the rows out in turn, as a data loader often does: process 0 has rows 0, 4, 8, ... of the step.
def loader__wrong_in_turn(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    start = step * batch
    mine = np.asarray(examples[start + process_id : start + batch : num_processes])
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return {"batch": whole, "sum": float(jnp.sum(whole))}


# Adds up what the process has read itself: the batch is right, and the sum that of a quarter.
def loader__wrong_own_sum(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    per_process = batch // num_processes
    begin = step * batch + process_id * per_process
    mine = np.array(examples[begin : begin + per_process])
    sharding = NamedSharding(mesh, P("data"))
    return {"batch": jax.make_array_from_process_local_data(sharding, mine), "sum": float(mine.sum())}


# ---------------------------------------------------------------- who_has_what

who_has_what__right_table = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# Writes the last row instead of the end: (start, stop) with the stop included.
who_has_what__wrong_inclusive = {
    "P('data', 'model'): rows in process 2": (4, 5),
    "P('model', 'data'): columns in process 2": (2, 2),
    "P(('data', 'model')): rows in process 1": (2, 3),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# Two devices, so two blocks, though they are copies; and a copied array can be read whole, with all its eight shards.
who_has_what__wrong_copies = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 2,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 8,
}

# Eight pieces, numbered: process 1 has piece number 1. (It has two devices, so two pieces.)
who_has_what__wrong_piece_number = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (1, 2),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# Thinks that processes differ along whatever cuts the rows: under P('model') half of the processes have the upper rows,
# and of P('model', 'data') a process has all columns.
who_has_what__wrong_model_is_processes = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (0, 4),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 2,
    "P(): shards that process 0 can read": 2,
}


# ---------------------------------------------------------------- print_it


def print_it__right_jitted_copy(process_id, num_processes, *, rows):
    """Replicates by a jitted identity; of the shards takes those that are nobody's copy."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.asarray(rows))
    everywhere = jax.jit(lambda a: a, out_shardings=NamedSharding(mesh, P()))(x)
    mine = np.concatenate([np.asarray(shard.data) for shard in x.addressable_shards if shard.replica_id == 0])
    return {"mine": mine, "whole": np.asarray(everywhere)}


# Puts all shards of the process one below the other; both devices have the same two rows, so they come twice.
def print_it__wrong_twice(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    mine = np.concatenate([np.asarray(s.data) for s in x.addressable_shards])
    whole = multihost_utils.process_allgather(x, tiled=True)
    return {"mine": mine, "whole": np.asarray(whole)}


# Gathers the rows without tiled, since that line complains only for the global array: one more dimension comes out.
def print_it__wrong_stacked(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    mine = np.asarray(x.addressable_shards[0].data)
    return {"mine": mine, "whole": np.asarray(multihost_utils.process_allgather(mine))}


# All call, but one does the printing: so only process 0 returns the whole.
def print_it__wrong_only_the_first(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes)
    sharding = NamedSharding(mesh, P("data"))
    x = jax.make_array_from_process_local_data(sharding, rows)
    copies = jax.device_put(x, NamedSharding(mesh, P()))
    whole = None
    if process_id == 0:
        whole = np.asarray(copies)
    return {"mine": np.asarray(x.addressable_shards[0].data), "whole": whole}


# Cuts over both axes so that nothing stands twice, and then reads one shard, which is one row of two.
def print_it__wrong_one_row(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P(("data", "model"))), rows)
    whole = np.asarray(jax.device_put(x, NamedSharding(mesh, P())))
    shard, *_ = x.addressable_shards
    return {"mine": np.asarray(shard.data), "whole": whole}
