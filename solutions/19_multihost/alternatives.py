"""Right answers to 19_multihost, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what the processes return, not how it is written.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def join__named(process_id, num_processes, *, ticket):
    jax.config.update("jax_enable_x64", False)
    jax.distributed.initialize(process_id=process_id, num_processes=num_processes)
    mine = [d for d in jax.devices() if d.process_index == process_id]
    total = sum(multihost_utils.process_allgather(ticket).tolist())
    return [process_id, num_processes, len(mine), len(jax.devices()), total]


def join__by_a_global_array(process_id, num_processes, *, ticket):
    """Each device brings the ticket of its process, so that the sum has to be shared."""
    jax.distributed.initialize(process_id=process_id, num_processes=num_processes)
    across = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P("x"))
    each = len(jax.local_devices())
    everybody = jax.make_array_from_process_local_data(across, np.full(each, ticket))
    return process_id, num_processes, each, len(jax.devices()), int(jnp.sum(everybody)) // each


def launch_lines__no_logs(script, processes, devices):
    return [f"JAX_NUM_CPU_DEVICES={devices} python3 {script} {k} {processes} &" for k in range(processes)] + ["wait"]


def launch_lines__with_a_first_line(script, processes, devices):
    lines = ["#!/bin/bash"]
    for k in range(processes):
        lines.append(f"JAX_NUM_CPU_DEVICES={devices}   python {script} {k} {processes} >out.{k} &")
    return [*lines, "wait", "cat out.*"]


def loader__by_callback(process_id, num_processes, *, examples, step, batch):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = Mesh(np.array(jax.devices()).reshape(num_processes, -1), ("data", "model"))
    shape, first = (batch, examples.shape[1]), step * batch

    def read(index):
        return examples[first + index[0].start : first + index[0].stop]

    made = jax.make_array_from_callback(shape, NamedSharding(mesh, P("data")), read)
    parts = sum(shard.data.sum().item() for shard in made.addressable_shards if shard.replica_id == 0)
    return {"batch": made, "sum": float(multihost_utils.process_allgather(np.float32(parts)).sum())}


def from_single_devices__in_any_order(process_id, num_processes, *, parts):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((jax.device_count(),), ("all",), axis_types=(AxisType.Auto,))
    pieces = [jax.device_put(parts[k], jax.local_devices()[k]) for k in (1, 0)]
    shape = (len(pieces) * num_processes * len(parts[0]), parts[0].shape[1])
    whole = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P("all")), pieces)
    return {"array": whole, "sum": float(multihost_utils.process_allgather(whole, tiled=True).sum())}


def from_callback__counted(process_id, num_processes, *, table):
    mesh, count = grid(process_id, num_processes), 0  # noqa: F821 - it stands beside the imports

    def block(index):
        nonlocal count
        part = table[index]
        count += part.shape[0] * part.shape[1]
        return part

    array = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), block)
    return {"array": array, "sum": float(array.sum()), "read": count}


def print_it__replicated_first(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes)  # noqa: F821
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    copies = jax.jit(lambda a: a, out_shardings=NamedSharding(mesh, P()))(x)
    mine = [np.asarray(shard.data) for shard in x.addressable_shards if shard.replica_id == 0]
    return {"mine": np.concatenate(mine), "whole": np.asarray(copies)}


def print_it__from_the_host(process_id, num_processes, *, rows):
    grid(process_id, num_processes)  # noqa: F821
    return {"mine": rows, "whole": multihost_utils.process_allgather(rows, tiled=True)}


def same_order__one_program(process_id, num_processes, *, rows):
    mesh = grid(process_id, num_processes)  # noqa: F821
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    total, most = jax.jit(lambda a: (a.sum(), a.max()))(x)
    return float(total), float(most)


def subset_mesh__outsiders_take_part(process_id, num_processes, *, rows):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    inside = num_processes // 2
    chosen = [d for d in jax.devices() if d.process_index < inside]
    mesh = Mesh(np.array(chosen), ("x",))
    pieces = []
    if process_id < inside:
        pieces = [jax.device_put(part, d) for part, d in zip(np.split(rows, 2), jax.local_devices(), strict=True)]
    whole = jax.make_array_from_single_device_arrays(
        (inside * len(rows),), NamedSharding(mesh, P("x")), pieces, dtype=jnp.float32
    )
    total = jnp.sum(whole)
    return float(total) if total.addressable_shards else "outside"


def same_params__told_the_values(process_id, num_processes, *, seed):
    """Each draws its own, and process 0 tells the others what it has drawn."""
    mesh = grid(process_id, num_processes)  # noqa: F821
    own = np.asarray(jax.random.normal(jax.random.key(seed), (3, 2)))
    values = np.asarray(multihost_utils.broadcast_one_to_all(own))
    multihost_utils.assert_equal(values, "they differ")
    return jax.device_put(values, NamedSharding(mesh, P()))


def dp_training_4procs__by_hand(process_id, num_processes, *, x, y, w, rate, steps):
    """With shard_map: each device's mean, then the mean of these."""
    mesh = grid(process_id, num_processes, (8,), ("all",))  # noqa: F821
    cut = NamedSharding(mesh, P("all"))
    x, y = (jax.make_array_from_process_local_data(cut, part) for part in (x, y))

    def local(w, x, y):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
        return jax.lax.pmean(loss, "all"), jax.lax.pmean(gradient, "all")

    step = jax.jit(
        jax.shard_map(local, mesh=mesh, in_specs=(P(), P("all"), P("all")), out_specs=(P(), P()), check_vma=False)
    )
    losses = []
    for _ in range(steps):
        loss, gradient = step(w, x, y)
        losses.append(float(loss))
        w = w - rate * np.asarray(gradient)
    return losses, w


def slurm_script__tasks_for_the_job(lines, hosts, gpus):
    repaired = []
    for line in lines:
        if line.startswith("export JAX_COORDINATOR"):
            continue
        if "ntasks" in line:
            line = f"#SBATCH --ntasks={hosts * gpus}"
        repaired.append("srun --label " + line if line.startswith("python") else line)
    return repaired


def jobset_manifest__a_new_one(manifest, hosts):
    (old,) = manifest["spec"]["replicatedJobs"]
    job = old["template"]["spec"]
    pod = {**job["template"]["spec"], "restartPolicy": "Never", "serviceAccountName": "pod-reader"}
    new = {**job, "parallelism": hosts, "completions": hosts, "template": {"spec": pod}}
    return {**manifest, "spec": {"replicatedJobs": [{**old, "template": {"spec": new}}]}}
