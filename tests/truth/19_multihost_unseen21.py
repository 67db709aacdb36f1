"""Answers to lesson 19, twenty-first batch, written by a reader of the notebook only."""

import copy
import re

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


# ---- slurm_script


def slurm_script__right_regex(lines, hosts, gpus):
    repaired = []
    for line in lines:
        if re.match(r"\s*export\s+JAX_COORDINATOR_ADDRESS=", line):
            continue
        line = re.sub(r"--ntasks-per-node=\d+", f"--ntasks-per-node={gpus}", line)
        if line.strip().startswith("python "):
            line = "srun --kill-on-bad-exit=1 --label " + line.strip()
        repaired.append(line)
    return repaired


# Thought: a task for each GPU, so tasks = hosts * gpus (and overlooked that the option says "per node").
def slurm_script__wrong_all_tasks(lines, hosts, gpus):
    out = []
    for line in lines:
        if "JAX_COORDINATOR_ADDRESS" in line:
            continue
        line = line.replace("--ntasks-per-node=1", f"--ntasks-per-node={hosts * gpus}")
        out.append(line.replace("python train.py", "srun python train.py"))
    return out


# Thought: localhost is wrong because it is a constant; every host should put its own name there, so evaluate it in each task.
def slurm_script__wrong_own_hostname(lines, hosts, gpus):
    out = []
    for line in lines:
        if line.startswith("export JAX_COORDINATOR_ADDRESS"):
            continue
        line = line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}")
        if line == "python train.py":
            line = "srun bash -c 'JAX_COORDINATOR_ADDRESS=$(hostname):12345 python train.py'"
        out.append(line)
    return out


# Thought: the script shown has 4 GPUs, so 4 tasks a node; wrote the number instead of the argument.
def slurm_script__wrong_four(lines, hosts, gpus):
    return [
        line.replace("--ntasks-per-node=1", "--ntasks-per-node=4").replace("python train.py", "srun python train.py")
        for line in lines
        if "COORDINATOR" not in line
    ]


# Thought: "each GPU by a process of its own" is said best by one GPU per task, so it takes the place of gpus-per-node (the text's fault).
def slurm_script__wrong_gpu_per_task(lines, hosts, gpus):
    out = []
    for line in lines:
        if "COORDINATOR" in line:
            continue
        if "--ntasks-per-node" in line:
            line = f"#SBATCH --ntasks-per-node={gpus}"
        elif "--gpus-per-node" in line:
            line = "#SBATCH --gpus-per-task=1"
        elif line == "python train.py":
            line = "srun python train.py"
        out.append(line)
    return out


# ---- loader


def loader__right_pieces(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    rows = batch // num_processes
    start = step * batch + process_id * rows
    mine = np.asarray(examples[start : start + rows])
    pieces = [jax.device_put(mine, device) for device in jax.local_devices()]
    whole = jax.make_array_from_single_device_arrays((batch, *mine.shape[1:]), NamedSharding(mesh, P("data")), pieces)
    return {"batch": whole, "sum": float(jnp.sum(whole))}


# Thought: as PyTorch's DistributedSampler deals out: process 0 takes rows 0, 4, 8, ..., process 1 takes 1, 5, 9, ...
def loader__wrong_strided(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    mine = examples[step * batch + process_id : (step + 1) * batch : num_processes]
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return {"batch": x, "sum": float(jnp.sum(x))}


# Thought: read the step's whole batch everywhere; with global_shape JAX cuts it by itself (values right, but reads everybody's part).
def loader__wrong_reads_whole(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    whole = examples[step * batch : (step + 1) * batch]
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), whole, whole.shape)
    return {"batch": x, "sum": float(jnp.sum(x))}


# Thought: the batch is divided by devices, as in all earlier lessons (8), and not by processes (4).
def loader__wrong_per_device(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    rows = batch // jax.device_count()
    start = step * batch + process_id * rows
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), examples[start : start + rows])
    return {"batch": x, "sum": float(jnp.sum(x))}


# Thought: a process sums its own shards and the processes' sums are gathered; forgot that both devices of a process hold a copy.
def loader__wrong_copies_summed(process_id, num_processes, *, examples, step, batch):
    mesh = grid(process_id, num_processes)
    rows = batch // num_processes
    start = step * batch + process_id * rows
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), examples[start : start + rows])
    mine = sum(float(np.asarray(shard.data).sum()) for shard in x.addressable_shards)
    return {"batch": x, "sum": float(multihost_utils.process_allgather(np.float32(mine)).sum())}


# ---- jobset_manifest


def jobset_manifest__right_copy(manifest, hosts):
    repaired = copy.deepcopy(manifest)
    for replicated in repaired["spec"]["replicatedJobs"]:
        job = replicated["template"]["spec"]
        job |= dict.fromkeys(("parallelism", "completions"), hosts)
        job["template"]["spec"] |= {"restartPolicy": "Never", "serviceAccountName": "pod-reader"}
    return repaired


# Thought: the service account belongs to the job, beside backoffLimit, since the job is what asks Kubernetes.
def jobset_manifest__wrong_account_in_job(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = hosts
    job["completions"] = hosts
    job["serviceAccountName"] = "pod-reader"
    job["template"]["spec"]["restartPolicy"] = "Never"
    return manifest


# Thought: completions is 4 already and so it is right; only parallelism has to change (right for four hosts only).
def jobset_manifest__wrong_completions_left(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    job["parallelism"] = hosts
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


# Thought: OnFailure is what one wants, since it restarts what failed; what is wrong must be a backoffLimit of 0, three tries are allowed.
def jobset_manifest__wrong_backoff(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job.update(parallelism=hosts, completions=hosts, backoffLimit=3)
    job["template"]["spec"]["serviceAccountName"] = "pod-reader"
    return manifest


# Thought: a pod on each host means a job of one pod for each host: as many replicas of the job, each with one completion.
def jobset_manifest__wrong_replicas(manifest, hosts):
    replicated = manifest["spec"]["replicatedJobs"][0]
    replicated["replicas"] = hosts
    job = replicated["template"]["spec"]
    job["parallelism"] = job["completions"] = 1
    job["template"]["spec"] |= {"restartPolicy": "Never", "serviceAccountName": "pod-reader"}
    return manifest
