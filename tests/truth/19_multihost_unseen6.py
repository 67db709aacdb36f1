"""Answers to lesson 19, sixth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- jobset_manifest


# Right: builds the repaired job anew and leaves the given manifest as it was.
def jobset_manifest__right_copy(manifest, hosts):
    repaired = copy.deepcopy(manifest)
    job = repaired["spec"]["replicatedJobs"][0]["template"]["spec"]
    job.update(parallelism=hosts, completions=hosts)
    job["template"]["spec"] |= {"restartPolicy": "Never", "serviceAccountName": "pod-reader"}
    return repaired


# This student takes the service account for a thing of the job, and writes it one level too high.
def jobset_manifest__wrong_account_of_the_job(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    job["parallelism"] = hosts
    job["completions"] = hosts
    job["serviceAccountName"] = "pod-reader"
    pod["restartPolicy"] = "Never"
    return manifest


# This student sees completions: 4 and takes it for right: only parallelism is made equal to it.
def jobset_manifest__wrong_four_pods(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = job["completions"]
    pod = job["template"]["spec"]
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


# This student makes the number of pods by replicas: so many Jobs of one pod each (each with a pod number 0).
def jobset_manifest__wrong_replicas(manifest, hosts):
    manifest["spec"]["replicatedJobs"][0]["replicas"] = hosts
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = job["completions"] = 1
    job["template"]["spec"].update({"restartPolicy": "Never", "serviceAccountName": "pod-reader"})
    return manifest


# This student thinks that a pod that fails should begin again by itself, so OnFailure is right, and backoffLimit 0 is the fault.
def jobset_manifest__wrong_on_failure_stays(manifest, hosts):
    spec = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    spec["parallelism"], spec["completions"] = hosts, hosts
    spec["backoffLimit"] = 3
    spec["template"]["spec"]["serviceAccountName"] = "pod-reader"
    return manifest


# ---------------------------------------------------------------- cluster_faults


cluster_faults__right_table = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student thinks that a task takes all GPUs of its node, as a host does elsewhere.
cluster_faults__wrong_all_gpus = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 16,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student mixes the number of a process with what it is called where it lives: local id on Slurm, worker id on Kubernetes.
cluster_faults__wrong_local_numbers = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_LOCALID",
    "Kubernetes: the variable that becomes process_id": "TPU_WORKER_ID",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student believes the comment of jobset.yaml: "completions: as there are in all: JAX's num_processes".
cluster_faults__wrong_completions = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "completions",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}

# This student thinks of the silent job that forgets initialize: who does not find the others trains alone, and initialize finds all there are.
cluster_faults__wrong_alone = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "finds the others",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "trains alone",
}


# ---------------------------------------------------------------- subset_mesh


# Right: asks each device for its process, and does without `if process_id`: whoever has a device on the mesh is inside.
def subset_mesh__right_asks_devices(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    chosen = [device for device in jax.devices() if device.process_index < num_processes // 2]
    half = jax.make_mesh((len(chosen),), ("rows",), axis_types=(AxisType.Auto,), devices=chosen)
    if not set(chosen) & set(jax.local_devices()):
        return "outside"
    whole = jax.make_array_from_process_local_data(NamedSharding(half, P("rows")), np.asarray(rows))
    return float(whole.sum())


# This student lets the outsiders go before anybody has asked for the devices.
def subset_mesh__wrong_leaves_too_early(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    if process_id >= num_processes // 2:
        return "outside"
    devices = jax.devices()
    mesh = jax.make_mesh(
        (len(devices) // 2,), ("x",), axis_types=(AxisType.Auto,), devices=devices[: len(devices) // 2]
    )
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), rows)
    return float(jnp.sum(x))


# This student copies the numbers from `first_two`: always the first four devices and the first two processes.
def subset_mesh__wrong_first_two(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    small = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    if process_id >= 2:
        return "outside"
    x = jax.make_array_from_process_local_data(NamedSharding(small, P("x")), rows)
    return float(jnp.sum(x))


# This student makes one array on the devices of all, and only returns something else in the second half: everybody's rows are added.
def subset_mesh__wrong_sum_of_all(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((len(jax.devices()),), ("x",), axis_types=(AxisType.Auto,))
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), rows)
    total = float(jnp.sum(x))
    return total if process_id < num_processes // 2 else "outside"


# This student lays the rows out as P(): the processes bring their own rows as if they were the same, and each gets its own sum.
def subset_mesh__wrong_replicated(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    n = len(jax.devices()) // 2
    mesh = jax.make_mesh((n,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:n])
    if process_id >= num_processes // 2:
        return "outside"
    everything = jax.make_array_from_process_local_data(NamedSharding(mesh, P()), rows)
    return float(jnp.sum(everything))
