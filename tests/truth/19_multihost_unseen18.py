"""Answers to lesson 19, eighteenth batch, written by a reader of the notebook only."""

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


# ---- same_order


def same_order__right_gathered(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    everybodys = multihost_utils.process_allgather(np.asarray(rows))
    return float(everybodys.sum()), float(everybodys.max())


# thought: with P() every process gets a copy of everything, so sum and max are over all
def same_order__wrong_replicated(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P()), rows)
    return float(jnp.sum(numbers)), float(jnp.max(numbers))


# thought: the processes differ along data, so a psum over data has been round everybody; the two devices of a process forgotten
def same_order__wrong_dataonly(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes)
    numbers = jax.make_array_from_process_local_data(NamedSharding(mesh, P(("data", "model"))), rows)

    def both(block):
        return jax.lax.psum(block.sum(), "data"), jax.lax.pmax(block.max(), "data")

    total, top = jax.shard_map(both, mesh=mesh, in_specs=P(("data", "model")), out_specs=(P(), P()), check_vma=False)(
        numbers
    )
    return float(total), float(top)


# thought: each process brings one number, its own sum, and the answers are the sum and the largest of what is brought
def same_order__wrong_maxofsums(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    brought = multihost_utils.process_allgather(np.float32(np.sum(rows)))
    return float(brought.sum()), float(brought.max())


# thought: all must ask as process 3 does, max first; the answers come back in the order in which they were asked for
def same_order__wrong_askedorder(process_id, num_processes, *, rows):
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    questions = {"sum": jax.jit(jnp.sum), "max": jax.jit(jnp.max)}
    return tuple(float(questions[name](numbers)) for name in ("max", "sum"))


# ---- same_params


def same_params__right_gatherfirst(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    first = multihost_utils.process_allgather(np.int32(seed))[0]
    drawn = np.asarray(jax.random.normal(jax.random.key(int(first)), (3, 2)))
    return jax.device_put(drawn, NamedSharding(mesh, P()))


# thought: the seeds go up with the process number, so the smallest one is that of process 0
def same_params__wrong_smallest(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    first = int(multihost_utils.process_allgather(np.int32(seed)).min())
    make = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return make(jax.random.key(first))


# thought: the seed is the same now, but a process should still have a key of its own, so its number is folded in
def same_params__wrong_folded(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    first = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    make = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return make(jax.random.fold_in(jax.random.key(first), process_id))


# thought: a copy in every process is what replicated means; inside a process its two devices share it
def same_params__wrong_perprocess(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    first = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    make = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P(None, "model")))
    return make(jax.random.key(first))


# thought: under P() make_array_from_process_local_data takes the part of process 0 and copies it to the others
def same_params__wrong_localdata(process_id, num_processes, *, seed):
    mesh = grid(process_id, num_processes)
    mine = np.asarray(jax.random.normal(jax.random.key(int(seed)), (3, 2)))
    return jax.make_array_from_process_local_data(NamedSharding(mesh, P()), mine)


# ---- jobset_manifest


def jobset_manifest__right_copied(manifest, hosts):
    import copy

    manifest = copy.deepcopy(manifest)
    for job in manifest["spec"]["replicatedJobs"][:1]:
        inner = job["template"]["spec"]
        inner.update(parallelism=hosts, completions=hosts)
        inner["template"]["spec"] |= {"restartPolicy": "Never", "serviceAccountName": "pod-reader"}
    return manifest


# thought: the service account belongs to the job, so it stands beside parallelism
def jobset_manifest__wrong_accountlevel(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = job["completions"] = hosts
    job["serviceAccountName"] = "pod-reader"
    job["template"]["spec"]["restartPolicy"] = "Never"
    return manifest


# thought: the file says 4 and 4, so completions is right as it is, and only parallelism has to become as many
def jobset_manifest__wrong_four(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = job["completions"]
    pod = job["template"]["spec"]
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


# thought: parallelism counts the pods on one host, which is 1 as it stands; the number of hosts is completions
def jobset_manifest__wrong_onehost(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["completions"] = hosts
    pod = job["template"]["spec"]
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


# thought: three restarts are wanted, and backoffLimit (in place of OnFailure) is where they are allowed
def jobset_manifest__wrong_backoff(manifest, hosts):
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"], job["completions"], job["backoffLimit"] = hosts, hosts, 3
    pod = job["template"]["spec"]
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest
