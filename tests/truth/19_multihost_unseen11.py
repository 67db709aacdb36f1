"""Answers to lesson 19, eleventh batch, written by a reader of the notebook only."""

import copy

import jax
import numpy as np
from jax.sharding import AxisType


def grid(process_id, num_processes, shape=(4, 2), names=("data", "model")):
    """Join the others, then make a mesh of the devices of all: a row for each process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(shape))


# ---------------------------------------------------------------- batch_arithmetic

_batch, _processes, _own = 1024, 16, 4
_whole = np.empty((1024, 256), np.float32).nbytes

batch_arithmetic__right_counted = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": _batch // _processes,
    "batch 1024, 16 processes of 4 devices: examples a device gets": _batch // (_processes * _own),
    "the same, the 4 devices of a process share a model: examples a device gets": _batch // _processes,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": _processes * 48,
    "float32[1024, 256] by device_put: bytes each process reads": _whole,
    "float32[1024, 256] from process-local data: bytes each process reads": _whole // _processes,
}

# This student counts entries where bytes are asked for.
batch_arithmetic__wrong_entries = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 262144,
    "float32[1024, 256] from process-local data: bytes each process reads": 16384,
}

# device_put with a sharding moves only a process's shards, thinks this student, so a process reads no more than those.
batch_arithmetic__wrong_device_put_reads_part = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 65536,
    "float32[1024, 256] from process-local data: bytes each process reads": 65536,
}

# Devices that share a model share their examples out as well, thinks this student: a process's 64 are still cut in four.
batch_arithmetic__wrong_model_cuts_rows = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 16,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 1048576,
    "float32[1024, 256] from process-local data: bytes each process reads": 65536,
}

# "Process-local" is taken for "device-local": each of the 64 devices brings 48 rows, and reads a 64th.
batch_arithmetic__wrong_local_is_device = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 3072,
    "float32[1024, 256] by device_put: bytes each process reads": 1048576,
    "float32[1024, 256] from process-local data: bytes each process reads": 16384,
}


# ---------------------------------------------------------------- order_puzzle

_pairs = [(2, 3), (1, 4), (6, 5), (8, 7)]
_first = sum(sum(pair) for pair in _pairs[:3]) + max(_pairs[3])  # 5 + 5 + 11 + 8
_second = max(*(max(pair) for pair in _pairs[:3]), sum(_pairs[3]))  # of 3, 4, 6, 15

order_puzzle__right_exchanges = {
    "sum, all in the same order": sum(map(sum, _pairs)),
    "process 3, its first collective: what it contributes": max(_pairs[3]),
    "what process 0 takes for the sum": _first,
    "what process 0 takes for the max": _second,
    "what process 3 takes for the max": _first,
    "what process 3 takes for the sum": _second,
}

# Each process reduces what arrives by the operation that it has called itself, thinks this student: process 3 takes
# the largest of 5, 5, 11, 8, and then adds 3, 4, 6, 15.
order_puzzle__wrong_own_operation = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 11,
    "what process 3 takes for the sum": 28,
}

# The numbers are mixed up on the way in, but answers find their way back by name: all agree on sum and max.
order_puzzle__wrong_answers_by_name = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 15,
    "what process 3 takes for the sum": 29,
}

# As in the example, the last device has the largest number, so this student has process 3 bring the 7.
order_puzzle__wrong_last_is_largest = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 7,
    "what process 0 takes for the sum": 28,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 28,
    "what process 3 takes for the sum": 15,
}

# An all-reduce of eight devices has eight contributions: both devices of process 3 bring their process's maximum, 8.
order_puzzle__wrong_each_device_brings = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 37,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 37,
    "what process 3 takes for the sum": 15,
}


# ---------------------------------------------------------------- jobset_manifest


def jobset_manifest__right_rebuilt(manifest, hosts):
    """The manifest, repaired."""
    repaired = copy.deepcopy(manifest)
    template = repaired["spec"]["replicatedJobs"][0]["template"]
    job = {**template["spec"], **dict.fromkeys(("parallelism", "completions"), hosts)}
    pod = {**job["template"]["spec"], "restartPolicy": "Never", "serviceAccountName": "pod-reader"}
    template["spec"] = {**job, "template": {**job["template"], "spec": pod}}
    return repaired


# All pods at once means that parallelism equals completions, so the student copies what stands there, whatever `hosts` is.
def jobset_manifest__wrong_completions_stand(manifest, hosts):
    """The manifest, repaired."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = job["completions"]
    pod = job["template"]["spec"]
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


# A pod on each of the hosts is a replica for each host, thinks this student: so many jobs of one pod (all are number 0 of 1).
def jobset_manifest__wrong_replicas(manifest, hosts):
    """The manifest, repaired."""
    replicated = manifest["spec"]["replicatedJobs"][0]
    replicated["replicas"] = hosts
    job = replicated["template"]["spec"]
    job["parallelism"] = job["completions"] = 1
    pod = job["template"]["spec"]
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


# It is the job that asks Kubernetes who the others are, thinks this student, and gives the account to the job's spec.
def jobset_manifest__wrong_account_of_job(manifest, hosts):
    """The manifest, repaired."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = job["completions"] = hosts
    job["serviceAccountName"] = "pod-reader"
    job["template"]["spec"]["restartPolicy"] = "Never"
    return manifest


# A pod that is never restarted needs a job that tries again: three times, as in the lesson, but at the wrong level.
def jobset_manifest__wrong_job_retries(manifest, hosts):
    """The manifest, repaired."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job.update(parallelism=hosts, completions=hosts, backoffLimit=3)
    job["template"]["spec"].update(restartPolicy="Never", serviceAccountName="pod-reader")
    return manifest
