"""Answers to lesson 19, fourteenth batch, written by a reader of the notebook only."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


def loader__right_pieces(process_id, num_processes, *, examples, step, batch):
    """The global batch of a step, of which this process has read its own part only, and its sum."""
    sharding = NamedSharding(grid(process_id, num_processes), P("data"))
    share = batch // num_processes
    first = (step * num_processes + process_id) * share  # so many shares were taken before this one
    mine = np.asarray(examples[first : first + share])  # read once, a copy for each of my devices
    pieces = [jax.device_put(mine, device) for device in jax.local_devices()]
    rows = jax.make_array_from_single_device_arrays((batch, *mine.shape[1:]), sharding, pieces)
    return {"batch": rows, "sum": float(jnp.sum(rows))}


# A step moves the file on by one process's share, since that is all that this process reads in a step.
def loader__wrong_overlap(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    share = batch // num_processes
    start = step * share + process_id * share
    mine = examples[start : start + share]
    rows = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return {"batch": rows, "sum": float(jnp.sum(rows))}


# The examples are dealt out like cards: every fourth row of the step's batch is mine.
def loader__wrong_dealt(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    begin = step * batch
    mine = examples[begin + process_id : begin + batch : num_processes]
    rows = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return {"batch": rows, "sum": float(jnp.sum(rows))}


# I hold my rows as a NumPy array already, so I can sum them there, and every process does the same.
def loader__wrong_own_sum(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    share = batch // num_processes
    start = step * batch + process_id * share
    mine = np.asarray(examples[start : start + share])
    rows = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    total = float(mine.sum())
    return {"batch": rows, "sum": total}


# A process has two devices, so its rows have to be cut over both of them, one half each.
def loader__wrong_both_axes(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    share = batch // num_processes
    start = step * batch + process_id * share
    sharding = NamedSharding(mesh, P(("data", "model")))
    rows = jax.make_array_from_process_local_data(sharding, examples[start : start + share])
    return {"batch": rows, "sum": float(jnp.sum(rows))}


_held = [(2, 3), (1, 4), (6, 5), (8, 7)]
_first = sum(map(sum, _held[:3])) + max(_held[3])
_second = max(*map(max, _held[:3]), sum(_held[3]))
order_puzzle__right_computed = {
    "sum, all in the same order": sum(map(sum, _held)),
    "process 3, its first collective: what it contributes": max(_held[3]),
    "what process 0 takes for the sum": _first,
    "what process 0 takes for the max": _second,
    "what process 3 takes for the max": _first,
    "what process 3 takes for the sum": _second,
}

# Everyone gets the mixed numbers, but process 3 keeps them under the right names: its sum is the sum that came.
order_puzzle__wrong_same_names = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 15,
    "what process 3 takes for the sum": 29,
}

# Each process reduces what it hears by its own operation, so process 3 takes the largest first and adds then.
order_puzzle__wrong_own_operation = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 11,
    "what process 3 takes for the sum": 28,
}

# In the second exchange a maximum is taken, and no device holds more than 8.
order_puzzle__wrong_largest_is_eight = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 8,
    "what process 3 takes for the max": 29,
    "what process 3 takes for the sum": 8,
}

# Process 3 did not call the sum, so only the other three are added, and that is what is handed to everybody.
order_puzzle__wrong_without_three = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 21,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 21,
    "what process 3 takes for the sum": 15,
}


def jobset_manifest__right_copy(manifest, hosts):
    """The manifest, repaired."""
    repaired = copy.deepcopy(manifest)
    job = repaired["spec"]["replicatedJobs"][0]["template"]["spec"]
    job.update(parallelism=hosts, completions=hosts)
    job["template"]["spec"].update(restartPolicy="Never", serviceAccountName="pod-reader")
    return repaired


# The account is a matter of the job, so it stands beside parallelism.
def jobset_manifest__wrong_account_of_job(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = hosts
    job["completions"] = hosts
    job["serviceAccountName"] = "pod-reader"
    job["template"]["spec"]["restartPolicy"] = "Never"
    return manifest


# All pods have to run at once, so parallelism must be what completions says; that one was right before.
def jobset_manifest__wrong_as_completions(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    job["parallelism"] = job["completions"]
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


# A replica is a host: the job of one pod is replicated `hosts` times.
def jobset_manifest__wrong_replicas(manifest, hosts):
    workers = manifest["spec"]["replicatedJobs"][0]
    workers["replicas"] = hosts
    job = workers["template"]["spec"]
    job["parallelism"] = job["completions"] = 1
    job["template"]["spec"]["restartPolicy"] = "Never"
    job["template"]["spec"]["serviceAccountName"] = "pod-reader"
    return manifest


# Writes the pod's spec anew with the two entries that matter, and forgets that the containers stood there.
def jobset_manifest__wrong_containers_gone(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job |= {
        "parallelism": hosts,
        "completions": hosts,
        "template": {"spec": {"restartPolicy": "Never", "serviceAccountName": "pod-reader"}},
    }
    return manifest
