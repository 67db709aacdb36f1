"""Answers to lesson 19, twenty-fourth batch, written by a reader of the notebook only."""

import copy

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


# ---- jobset_manifest


def jobset_manifest__right_copied(manifest, hosts):
    new = copy.deepcopy(manifest)
    job = new["spec"]["replicatedJobs"][0]["template"]["spec"]
    job |= dict.fromkeys(("parallelism", "completions"), hosts)
    job["template"]["spec"] |= {"restartPolicy": "Never", "serviceAccountName": "pod-reader"}
    return new


# Only what runs at the same time is wrong; four completions are what the set was made for, so they stay.
def jobset_manifest__wrong_completions(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = hosts
    pod = job["template"]["spec"]
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


# The job is what is run under an account, so the account belongs beside parallelism, in the job's spec.
def jobset_manifest__wrong_level(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = job["completions"] = hosts
    job["serviceAccountName"] = "pod-reader"
    job["template"]["spec"]["restartPolicy"] = "Never"
    return manifest


# The job has to begin again three times, so the limit of 0 is the fault, and a restart on failure is what one wants.
def jobset_manifest__wrong_backoff(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = hosts
    job["completions"] = hosts
    job["backoffLimit"] = 3
    job["template"]["spec"]["serviceAccountName"] = "pod-reader"
    return manifest


# One pod a host: these are replicas of a job, each of which has one pod to run and one to complete.
def jobset_manifest__wrong_replicas(manifest, hosts):
    jobs = manifest["spec"]["replicatedJobs"][0]
    jobs["replicas"] = hosts
    job = jobs["template"]["spec"]
    job["parallelism"], job["completions"] = 1, 1
    pod = job["template"]["spec"]
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


# ---- who_has_what

who_has_what__right_table = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# Two devices, so two blocks: forgets that what is cut over data alone is copied along model.
who_has_what__wrong_blocks = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 2,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}

# 'model' cuts the rows in two halves, so half of the processes have the upper one.
who_has_what__wrong_half = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 2,
    "P(): shards that process 0 can read": 2,
}

# A replicated array can be read by everybody, so all eight shards of it can.
who_has_what__wrong_readable = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 8,
}

# The stop is the last row or column that is there.
who_has_what__wrong_inclusive = {
    "P('data', 'model'): rows in process 2": (4, 5),
    "P('model', 'data'): columns in process 2": (2, 2),
    "P(('data', 'model')): rows in process 1": (2, 3),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}


# ---- dp_training_4procs


def dp_training_4procs__right_scan(process_id, num_processes, *, x, y, w, rate, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    both = (AxisType.Auto,) * 2
    mesh = jax.make_mesh((num_processes, jax.local_device_count()), ("data", "model"), axis_types=both)
    rows, copies = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    def train(w, x, y):
        def one(w, _):
            value, slope = jax.value_and_grad(squared_error)(w, x, y)
            return w - rate * slope, value

        return jax.lax.scan(one, w, None, length=steps)

    x, y = (jax.make_array_from_process_local_data(rows, mine) for mine in (x, y))
    w, losses = jax.jit(train, out_shardings=(copies, copies))(jax.device_put(w, copies), x, y)
    return [float(value) for value in np.asarray(losses)], np.asarray(w)


# Everything that goes into the step has to be on the whole mesh, so the rows are made with P(), as the parameters are.
def dp_training_4procs__wrong_copies(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    whole = NamedSharding(mesh, P())
    x = jax.make_array_from_process_local_data(whole, x)
    y = jax.make_array_from_process_local_data(whole, y)
    w = jax.device_put(w, whole)
    step = jax.jit(jax.value_and_grad(squared_error))
    losses = []
    for _ in range(steps):
        value, slope = step(w, x, y)
        losses.append(float(value))
        w = w - rate * slope
    return losses, np.asarray(w)


# Gradients are added up across processes, so the processes' gradients (each of a mean already) are summed.
def dp_training_4procs__wrong_summed(process_id, num_processes, *, x, y, w, rate, steps):
    grid(process_id, num_processes)
    step, losses = jax.jit(jax.value_and_grad(squared_error)), []
    for _ in range(steps):
        value, slope = step(w, x, y)
        losses.append(float(multihost_utils.process_allgather(np.asarray(value)).mean()))
        w = w - rate * multihost_utils.process_allgather(np.asarray(slope)).sum(axis=0)
    return losses, np.asarray(w)


# The loss of a step is what the step has led to, so it is taken with the new parameters.
def dp_training_4procs__wrong_after(process_id, num_processes, *, x, y, w, rate, steps):
    mesh = grid(process_id, num_processes)
    x, y = (jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), a) for a in (x, y))
    w = jax.device_put(w, NamedSharding(mesh, P()))
    slope_of, loss_of = jax.jit(jax.grad(squared_error)), jax.jit(squared_error)
    losses = []
    for _ in range(steps):
        w = w - rate * slope_of(w, x, y)
        losses.append(float(loss_of(w, x, y)))
    return losses, np.asarray(w)


# Each trains on its rows, and since the mean is linear it is enough to average the parameters when all are done.
def dp_training_4procs__wrong_averaged_late(process_id, num_processes, *, x, y, w, rate, steps):
    grid(process_id, num_processes)
    step, losses = jax.jit(jax.value_and_grad(squared_error)), []
    for _ in range(steps):
        value, slope = step(w, x, y)
        losses.append(float(value))
        w = w - rate * np.asarray(slope)
    losses = multihost_utils.process_allgather(np.array(losses, np.float32)).mean(axis=0)
    w = multihost_utils.process_allgather(np.asarray(w)).mean(axis=0)
    return [float(value) for value in losses], w
