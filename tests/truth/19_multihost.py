"""Answers to lesson 19, as students give them: written from the student's notebook alone."""

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


def join__right_plain(process_id, num_processes, *, ticket):
    """As in the hints."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    tickets = multihost_utils.process_allgather(np.int32(ticket))
    me, count = jax.process_index(), jax.process_count()
    return me, count, len(jax.local_devices()), len(jax.devices()), int(tickets.sum())


def join__wrong_alone(process_id, num_processes, *, ticket):
    """Does not join."""
    return process_id, num_processes, len(jax.local_devices()), len(jax.devices()), int(ticket)


def join__wrong_late(process_id, num_processes, *, ticket):
    """Asks for devices before it joins."""
    local = len(jax.local_devices())
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = multihost_utils.process_allgather(np.int32(ticket)).sum()
    return jax.process_index(), jax.process_count(), local, len(jax.devices()), int(total)


def join__wrong_own_ticket(process_id, num_processes, *, ticket):
    """Never asks for the others' tickets."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    counts = jax.process_count(), jax.local_device_count(), jax.device_count()
    return (jax.process_index(), *counts, int(ticket))


def join__wrong_swapped(process_id, num_processes, *, ticket):
    """All devices before the local ones."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    total = int(multihost_utils.process_allgather(np.int32(ticket)).sum())
    return jax.process_index(), jax.process_count(), jax.device_count(), jax.local_device_count(), total


def launch_lines__right_plain(script, processes, devices):
    """As in the hints."""
    lines = [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &" for k in range(processes)]
    return [*lines, "wait"]


def launch_lines__right_logs(script, processes, devices):
    """With a log for each."""
    lines = []
    for number in range(processes):
        lines.append(f"JAX_NUM_CPU_DEVICES={devices} python {script} {number} {processes} > log.{number} 2>&1 &")
    lines.append("wait")
    return lines


def launch_lines__wrong_no_wait(script, processes, devices):
    """Does not stay."""
    return [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &" for k in range(processes)]


def launch_lines__wrong_no_ampersand(script, processes, devices):
    """One after the other."""
    return [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes}" for k in range(processes)] + ["wait"]


def launch_lines__wrong_from_one(script, processes, devices):
    """Numbers from one."""
    lines = [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &" for k in range(1, processes + 1)]
    return [*lines, "wait"]


def launch_lines__wrong_exported(script, processes, devices):
    """Exports the variable, in place of one for the command only."""
    lines = [f"python {script} {k} {processes} &" for k in range(processes)]
    return [f"export JAX_NUM_CPU_DEVICES={devices}", *lines, "wait"]


def launch_lines__wrong_swapped(script, processes, devices):
    """COUNT NUMBER."""
    lines = [f"JAX_NUM_CPU_DEVICES={devices} python {script} {processes} {k} &" for k in range(processes)]
    return [*lines, "wait"]


def launch_lines__wrong_text(script, processes, devices):
    """One text in place of a list."""
    lines = [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &" for k in range(processes)]
    return "\n".join([*lines, "wait"])


def launch_lines__wrong_three(script, processes, devices):
    """range(1, processes): forgets process 0."""
    lines = [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &" for k in range(1, processes)]
    return [*lines, "wait"]


who_has_what__right_plain = {
    "P('data', 'model'): rows in process 2": (4, 6),
    "P('model', 'data'): columns in process 2": (2, 3),
    "P(('data', 'model')): rows in process 1": (2, 4),
    "P('data'): different blocks in process 3": 1,
    "P('model'): processes that hold row 0": 4,
    "P(): shards that process 0 can read": 2,
}
"""As it is."""

who_has_what__wrong_one_device = who_has_what__right_plain | {
    "P(('data', 'model')): rows in process 1": (2, 3),
}
"""Answers for one device of the process."""

who_has_what__wrong_inclusive = who_has_what__right_plain | {
    "P('data', 'model'): rows in process 2": (4, 5),
    "P('model', 'data'): columns in process 2": (2, 2),
}
"""Takes stop for the last one."""

who_has_what__wrong_all_shards = who_has_what__right_plain | {
    "P(): shards that process 0 can read": 8,
    "P('data'): different blocks in process 3": 2,
    "P('model'): processes that hold row 0": 1,
}
"""Counts devices for blocks, and believes that a process reads all copies."""

batch_arithmetic__right_plain = {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 64,
    "batch 1024, 16 processes of 4 devices: examples a device gets": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 64,
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 768,
    "float32[1024, 256] by device_put: bytes each process reads": 1048576,
    "float32[1024, 256] from process-local data: bytes each process reads": 65536,
}
"""As it is."""

batch_arithmetic__wrong_per_device = batch_arithmetic__right_plain | {
    "batch 1024, 16 processes of 4 devices: examples a process loads": 16,
    "the same, the 4 devices of a process share a model: examples a device gets": 16,
}
"""Divides by all devices."""

"""Counts processes from one."""

batch_arithmetic__wrong_entries = batch_arithmetic__right_plain | {
    "float32[1024, 256] by device_put: bytes each process reads": 262144,
    "float32[1024, 256] from process-local data: bytes each process reads": 16384,
}
"""Counts entries for bytes."""

batch_arithmetic__wrong_next = batch_arithmetic__right_plain | {
    "each of 16 processes gives 48 rows to make_array_from_process_local_data: global rows": 48,
}
"""A multiple of 16, and rows that are taken for those of all."""


def loader__right_plain(process_id, num_processes, *, examples, step, batch):
    """As in the hints."""
    mesh = grid(process_id, num_processes)
    own = batch // num_processes
    first = step * batch + process_id * own
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), examples[first : first + own])
    return {"batch": x, "sum": float(jnp.sum(x))}


def loader__wrong_everybody_the_first(process_id, num_processes, *, examples, step, batch):
    """Every process reads the first part of the batch."""
    mesh = grid(process_id, num_processes)
    own = batch // num_processes
    mine = examples[step * batch : step * batch + own]
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return {"batch": x, "sum": float(jnp.sum(x))}


def loader__wrong_whole_batch(process_id, num_processes, *, examples, step, batch):
    """Reads the whole batch, and lets JAX cut it."""
    mesh = grid(process_id, num_processes)
    whole = examples[step * batch : (step + 1) * batch]
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), whole, whole.shape)
    return {"batch": x, "sum": float(jnp.sum(x))}


def loader__wrong_step_forgotten(process_id, num_processes, *, examples, step, batch):
    """Always the first step's rows."""
    mesh = grid(process_id, num_processes)
    own = batch // num_processes
    mine = examples[process_id * own : (process_id + 1) * own]
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return {"batch": x, "sum": float(jnp.sum(x))}


def loader__wrong_own_sum(process_id, num_processes, *, examples, step, batch):
    """The sum of its own rows."""
    mesh = grid(process_id, num_processes)
    own = batch // num_processes
    first = step * batch + process_id * own
    mine = examples[first : first + own]
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return {"batch": x, "sum": float(mine.sum())}


def from_single_devices__right_plain(process_id, num_processes, *, parts):
    """As in the hints."""
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (mesh.size * parts[0].shape[0], *parts[0].shape[1:])
    x = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": x, "sum": float(jnp.sum(x))}


def from_single_devices__wrong_shape_of_a_process(process_id, num_processes, *, parts):
    """The shape of this process's pieces."""
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts, jax.local_devices())]
    shape = (2 * parts[0].shape[0], *parts[0].shape[1:])
    x = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": x, "sum": float(jnp.sum(x))}


def from_single_devices__wrong_swapped(process_id, num_processes, *, parts):
    """The pieces the other way round."""
    mesh = grid(process_id, num_processes)
    pieces = [jax.device_put(part, device) for part, device in zip(parts[::-1], jax.local_devices())]
    shape = (mesh.size * parts[0].shape[0], *parts[0].shape[1:])
    x = jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, P(("data", "model"))), pieces)
    return {"array": x, "sum": float(jnp.sum(x))}


def from_single_devices__wrong_process_local(process_id, num_processes, *, parts):
    """By the other function: the same array, and no piece was laid down by hand."""
    mesh = grid(process_id, num_processes)
    cut = NamedSharding(mesh, P(("data", "model")))
    x = jax.make_array_from_process_local_data(cut, np.concatenate(parts) + 0 * process_id)
    return {"array": x, "sum": float(np.concatenate(parts).sum())}


def from_callback__right_plain(process_id, num_processes, *, table):
    """As in the hints."""
    mesh = grid(process_id, num_processes)
    sizes = []

    def load(index):
        block = table[index]
        sizes.append(block.size)
        return block

    x = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": x, "sum": float(jnp.sum(x)), "read": sum(sizes)}


def from_callback__wrong_all_read(process_id, num_processes, *, table):
    """Counts the whole table."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), lambda i: table[i])
    return {"array": x, "sum": float(jnp.sum(x)), "read": table.size}


def from_callback__wrong_own_sum(process_id, num_processes, *, table):
    """The sum of its own table."""
    mesh = grid(process_id, num_processes)
    sizes = []

    def load(index):
        sizes.append(table[index].size)
        return table[index]

    x = jax.make_array_from_callback(table.shape, NamedSharding(mesh, P("data", "model")), load)
    return {"array": x, "sum": float(table.sum()), "read": sum(sizes)}


def from_callback__wrong_device_put(process_id, num_processes, *, table):
    """device_put of the whole table."""
    mesh = grid(process_id, num_processes)
    x = jax.device_put(table, NamedSharding(mesh, P("data", "model")))
    return {"array": x, "sum": float(jnp.sum(x)), "read": table.size // num_processes}


def print_it__right_plain(process_id, num_processes, *, rows):
    """As in the hints."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    whole = multihost_utils.process_allgather(x, tiled=True)
    return {"mine": np.asarray(x.addressable_shards[0].data), "whole": whole}


def print_it__right_replicated(process_id, num_processes, *, rows):
    """Replicates first."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    whole = np.asarray(jax.device_put(x, NamedSharding(mesh, P())))
    return {"mine": np.array(x.addressable_data(0)), "whole": whole}


def print_it__wrong_both_shards(process_id, num_processes, *, rows):
    """Joins both shards: its rows twice."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    mine = np.concatenate([np.asarray(shard.data) for shard in x.addressable_shards])
    return {"mine": mine, "whole": multihost_utils.process_allgather(x, tiled=True)}


def print_it__wrong_asarray(process_id, num_processes, *, rows):
    """np.asarray of what nobody holds alone."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    return {"mine": np.asarray(x.addressable_shards[0].data), "whole": np.asarray(x)}


def print_it__wrong_only_the_first(process_id, num_processes, *, rows):
    """Only process 0 gathers."""
    mesh = grid(process_id, num_processes)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), rows)
    whole = multihost_utils.process_allgather(x, tiled=True) if process_id == 0 else None
    return {"mine": np.asarray(x.addressable_shards[0].data), "whole": whole}


order_puzzle__right_plain = {
    "sum, all in the same order": 36,
    "process 3, its first collective: what it contributes": 8,
    "what process 0 takes for the sum": 29,
    "what process 0 takes for the max": 15,
    "what process 3 takes for the max": 29,
    "what process 3 takes for the sum": 15,
}
"""As it is."""

order_puzzle__wrong_maximum_of_sums = order_puzzle__right_plain | {"what process 0 takes for the max": 6}
"""Leaves process 3's number out of the maximum."""

order_puzzle__wrong_process_3_alone = order_puzzle__right_plain | {"what process 3 takes for the max": 8}
"""Believes that process 3 gets what it asked for."""

order_puzzle__wrong_sum = order_puzzle__right_plain | {
    "what process 0 takes for the sum": 36,
    "process 3, its first collective: what it contributes": 15,
}
"""Believes that process 3 brings its sum first."""

order_puzzle__wrong_sum_of_3 = order_puzzle__right_plain | {"what process 3 takes for the sum": 36}
"""Believes that process 3 hears the sum after all."""


def same_order__right_plain(process_id, num_processes, *, rows):
    """As in the hints."""
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    return float(jnp.sum(numbers)), float(jnp.max(numbers))


def same_order__wrong_own(process_id, num_processes, *, rows):
    """Its own two numbers."""
    return float(rows.sum()), float(rows.max())


def same_order__wrong_swapped(process_id, num_processes, *, rows):
    """(max, sum)."""
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    return float(jnp.max(numbers)), float(jnp.sum(numbers))


def same_order__wrong_still_mixed(process_id, num_processes, *, rows):
    """Keeps process 3's own order."""
    line = grid(process_id, num_processes, (8,), ("x",))
    numbers = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    order = ["max", "sum"] if process_id == 3 else ["sum", "max"]
    answers = {name: float(getattr(jnp, name)(numbers)) for name in order}
    return answers["sum"], answers["max"]


def subset_mesh__right_plain(process_id, num_processes, *, rows):
    """As in the hints."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    devices = jax.devices()[: jax.device_count() // 2]
    half = jax.make_mesh((len(devices),), ("x",), axis_types=(AxisType.Auto,), devices=devices)
    if process_id >= num_processes // 2:
        return "outside"
    x = jax.make_array_from_process_local_data(NamedSharding(half, P("x")), rows)
    return float(jnp.sum(x))


def subset_mesh__wrong_all(process_id, num_processes, *, rows):
    """The sum over all processes."""
    line = grid(process_id, num_processes, (8,), ("x",))
    x = jax.make_array_from_process_local_data(NamedSharding(line, P("x")), rows)
    total = float(jnp.sum(x))
    return total if process_id < num_processes // 2 else "outside"


def subset_mesh__wrong_off_by_one(process_id, num_processes, *, rows):
    """> in place of >=: process 2 goes on."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    devices = jax.devices()[:4]
    half = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=devices)
    if process_id > num_processes // 2:
        return "outside"
    x = jax.make_array_from_process_local_data(NamedSharding(half, P("x")), rows)
    return float(jnp.sum(x))


pipeline_calls__right_plain = {
    "x = jax.device_put(batch, on_first)": [0, 1, 2, 3],
    "y = f(x)": [0, 1, 2, 3],
    "y = jax.device_put(y, on_second)": [0, 1, 2, 3],
    "z = g(y)": [2, 3],
    "print(jnp.sum(z))": [2, 3],
}
"""As it is."""

pipeline_calls__right_sets = {name: set(numbers) for name, numbers in pipeline_calls__right_plain.items()}
"""Sets, since order means nothing."""

pipeline_calls__wrong_transfer = pipeline_calls__right_plain | {"y = jax.device_put(y, on_second)": [2, 3]}
"""Believes that only the receiver has to call."""

pipeline_calls__wrong_everybody = dict.fromkeys(pipeline_calls__right_plain, [0, 1, 2, 3])
"""Believes that all have to run every line."""

pipeline_calls__wrong_print = pipeline_calls__right_plain | {"print(jnp.sum(z))": [0]}
"""Believes that process 0 prints."""


def same_params__right_plain(process_id, num_processes, *, seed):
    """As in the hints."""
    mesh = grid(process_id, num_processes)
    common = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    draw_them = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return draw_them(jax.random.key(common))


def same_params__wrong_own_seed(process_id, num_processes, *, seed):
    """Its own seed."""
    mesh = grid(process_id, num_processes)
    draw_them = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return draw_them(jax.random.key(seed))


def same_params__wrong_zero(process_id, num_processes, *, seed):
    """Seed 0 for all, in place of that of process 0."""
    mesh = grid(process_id, num_processes)
    draw_them = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return draw_them(jax.random.key(0))


def same_params__wrong_only_zero_calls(process_id, num_processes, *, seed):
    """Only process 0 broadcasts."""
    mesh = grid(process_id, num_processes)
    if process_id == 0:
        seed = int(multihost_utils.broadcast_one_to_all(np.int32(seed)))
    draw_them = jax.jit(lambda key: jax.random.normal(key, (3, 2)), out_shardings=NamedSharding(mesh, P()))
    return draw_them(jax.random.key(seed))


def dp_training_4procs__right_plain(process_id, num_processes, *, x, y, w, rate, steps):
    """As in the hints."""
    mesh = grid(process_id, num_processes)
    cut, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    x, y = (jax.make_array_from_process_local_data(cut, rows) for rows in (x, y))
    w = jax.device_put(w, whole)
    gradient = jax.jit(jax.value_and_grad(lambda w, x, y: jnp.mean((jnp.tanh(x @ w) - y) ** 2)))
    losses = []
    for _ in range(steps):
        value, g = gradient(w, x, y)
        losses.append(float(value))
        w = w - rate * g
    return losses, np.asarray(w)


def dp_training_4procs__wrong_alone(process_id, num_processes, *, x, y, w, rate, steps):
    """Each process trains on its own rows."""
    grid(process_id, num_processes)
    gradient = jax.jit(jax.value_and_grad(lambda w, x, y: jnp.mean((jnp.tanh(x @ w) - y) ** 2)))
    losses = []
    for _ in range(steps):
        value, g = gradient(w, x, y)
        losses.append(float(value))
        w = w - rate * np.asarray(g)
    return losses, np.asarray(w)


def dp_training_4procs__wrong_replicated(process_id, num_processes, *, x, y, w, rate, steps):
    """P() for the rows."""
    mesh = grid(process_id, num_processes)
    whole = NamedSharding(mesh, P())
    x, y = (jax.make_array_from_process_local_data(whole, rows) for rows in (x, y))
    w = jax.device_put(w, whole)
    gradient = jax.jit(jax.value_and_grad(lambda w, x, y: jnp.mean((jnp.tanh(x @ w) - y) ** 2)))
    losses = []
    for _ in range(steps):
        value, g = gradient(w, x, y)
        losses.append(float(value))
        w = w - rate * g
    return losses, np.asarray(w)


def dp_training_4procs__wrong_loss_after(process_id, num_processes, *, x, y, w, rate, steps):
    """The losses after each step."""
    mesh = grid(process_id, num_processes)
    cut, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    x, y = (jax.make_array_from_process_local_data(cut, rows) for rows in (x, y))
    w = jax.device_put(w, whole)
    gradient = jax.jit(jax.value_and_grad(lambda w, x, y: jnp.mean((jnp.tanh(x @ w) - y) ** 2)))
    losses = []
    for _ in range(steps):
        w = w - rate * gradient(w, x, y)[1]
        losses.append(float(gradient(w, x, y)[0]))
    return losses, np.asarray(w)


def slurm_script__right_plain(lines, hosts, gpus):
    """As in the hints."""
    return [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}").replace(
            "python train.py", "srun python train.py"
        )
        for line in lines
        if "JAX_COORDINATOR_ADDRESS" not in line
    ]


def slurm_script__right_flags(lines, hosts, gpus):
    """With the flags of slurm.sh."""
    fixed = []
    for line in lines:
        if line.startswith("export JAX_COORDINATOR"):
            continue
        if "--ntasks-per-node" in line:
            line = f"#SBATCH --ntasks-per-node={gpus}"
        if line.startswith("python"):
            line = "srun --kill-on-bad-exit=1 --label " + line
        fixed.append(line)
    return fixed


def slurm_script__wrong_four(lines, hosts, gpus):
    """Four tasks, as in the script shown."""
    return [
        line.replace("--ntasks-per-node=1", "--ntasks-per-node=4").replace("python train.py", "srun python train.py")
        for line in lines
        if "JAX_COORDINATOR_ADDRESS" not in line
    ]


def slurm_script__wrong_no_srun(lines, hosts, gpus):
    """Forgets srun."""
    return [line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}") for line in lines if "export" not in line]


def slurm_script__wrong_localhost_kept(lines, hosts, gpus):
    """Keeps the coordinator on localhost."""
    return [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}").replace(
            "python train.py", "srun python train.py"
        )
        for line in lines
    ]


def slurm_script__wrong_all_tasks(lines, hosts, gpus):
    """All tasks on each node."""
    return [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={hosts * gpus}").replace("python", "srun python")
        for line in lines
        if "JAX_COORDINATOR_ADDRESS" not in line
    ]


def slurm_script__wrong_one_gpu(lines, hosts, gpus):
    """Takes a GPU away instead of adding tasks."""
    return [
        line.replace(f"--gpus-per-node={gpus}", "--gpus-per-node=1").replace("python train.py", "srun python train.py")
        for line in lines
        if "JAX_COORDINATOR_ADDRESS" not in line
    ]


def jobset_manifest__right_plain(manifest, hosts):
    """As in the hints."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    job["parallelism"] = hosts
    job["completions"] = hosts
    pod["restartPolicy"] = "Never"
    pod["serviceAccountName"] = "pod-reader"
    return manifest


def jobset_manifest__right_update(manifest, hosts):
    """By update."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job.update(parallelism=hosts, completions=hosts)
    job["template"]["spec"] |= {"restartPolicy": "Never", "serviceAccountName": "pod-reader"}
    return manifest


def jobset_manifest__wrong_four(manifest, hosts):
    """Leaves completions at 4, and sets parallelism to it."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["parallelism"] = 4
    job["template"]["spec"].update(restartPolicy="Never", serviceAccountName="pod-reader")
    return manifest


def jobset_manifest__wrong_account_of_the_job(manifest, hosts):
    """Puts the service account one level too high."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job.update(parallelism=hosts, completions=hosts, serviceAccountName="pod-reader")
    job["template"]["spec"]["restartPolicy"] = "Never"
    return manifest


def jobset_manifest__wrong_always(manifest, hosts):
    """restartPolicy Always."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job.update(parallelism=hosts, completions=hosts)
    job["template"]["spec"].update(restartPolicy="Always", serviceAccountName="pod-reader")
    return manifest


def jobset_manifest__wrong_not_returned(manifest, hosts):
    """Changes the manifest, and does not return it."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job.update(parallelism=hosts, completions=hosts)
    job["template"]["spec"].update(restartPolicy="Never", serviceAccountName="pod-reader")


def jobset_manifest__wrong_text(manifest, hosts):
    """Numbers as text."""
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job.update(parallelism=str(hosts), completions=str(hosts))
    job["template"]["spec"].update(restartPolicy="Never", serviceAccountName="pod-reader")
    return manifest


cluster_faults__right_plain = {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 2,
    "Slurm: the variable that becomes process_id": "SLURM_PROCID",
    "Kubernetes: the variable that becomes process_id": "JOB_COMPLETION_INDEX",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "parallelism",
    "ssh to 4 GPU hosts, initialize() without arguments (ValueError / finds the others)": "ValueError",
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "waits",
}
"""As it is."""

cluster_faults__wrong_all_gpus = cluster_faults__right_plain | {
    "2 nodes of 8 GPUs, srun with one task a node, initialize(): devices that JAX uses": 16
}
"""Believes that a process takes all GPUs of its node."""

cluster_faults__wrong_variables = cluster_faults__right_plain | {
    "Slurm: the variable that becomes process_id": "SLURM_LOCALID",
    "Kubernetes: the field that becomes num_processes (parallelism / completions)": "completions",
}
"""Reads one column too far."""

cluster_faults__wrong_alone = cluster_faults__right_plain | {
    "TPU slice of 4 hosts, the script started with --worker=0 (waits / trains alone)": "trains alone",
}
"""Believes that who finds nobody is alone."""

multihost_claims__right_plain = {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 8,
    "a v5e slice of 16 hosts with 4 chips each: devices": 64,
    "who starts the processes (you, or a scheduler / JAX)": "you, or a scheduler",
    "what is mainly written differently for many processes (data in and out / every collective)": "data in and out",
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "not safe",
}
"""As it is."""

"""Sees that a comma is missing, and believes that the text is taken letter by letter."""

multihost_claims__wrong_device = multihost_claims__right_plain | {
    "4 hosts of 2 GPUs, a process each: jax.device_count() in process 1": 2,
}
"""Believes that a process sees its own devices only, and that a device controls."""

multihost_claims__wrong_safe = multihost_claims__right_plain | {
    "if process_index() == 0: print(total), with total replicated (safe / not safe)": "not safe",
    "if process_index() == 0: print(jnp.sum(w)), with w cut over all (safe / not safe)": "safe",
}
"""Mixes up the two prints."""


# Wrong at an edge, or right in an unusual way


def launch_lines__wrong_last_only(script, processes, devices):
    """Waits for the last one only."""
    return [f"JAX_NUM_CPU_DEVICES={devices} python {script} {k} {processes} &" for k in range(processes)] + ["wait $!"]


def slurm_script__wrong_at_the_end(lines, hosts, gpus):
    """An option behind the first command is not read."""
    kept = [line for line in lines if "COORDINATOR" not in line and "ntasks" not in line and "python" not in line]
    return kept + ["srun python train.py", f"#SBATCH --ntasks-per-node={gpus}"]


def slurm_script__right_coordinator(lines, hosts, gpus):
    """The name of the first node."""
    text = "\n".join(lines).replace("localhost", "$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)")
    return text.replace("ntasks-per-node=1", f"ntasks-per-node={gpus}").replace("python", "srun python").split("\n")


# A variable of the shell, which no process is given.
def launch_lines__wrong_semicolon(script, processes, devices):
    start = f"JAX_NUM_CPU_DEVICES={devices}; python {script}"
    return [*(f"{start} {k} {processes} &" for k in range(processes)), "wait"]


# In each line, and for all that follows.
def launch_lines__wrong_export_inline(script, processes, devices):
    start = f"export JAX_NUM_CPU_DEVICES={devices}; python {script}"
    return [*(f"{start} {k} {processes} > log.{k} 2>&1 &" for k in range(processes)), "wait"]


# As if the setting were a value.
def launch_lines__wrong_dollar(script, processes, devices):
    start = f"$JAX_NUM_CPU_DEVICES={devices} python {script}"
    return [*(f"{start} {k} {processes} &" for k in range(processes)), "wait"]


def launch_lines__right_subshell(script, processes, devices):
    start = f"(export JAX_NUM_CPU_DEVICES={devices}; python {script}"
    return [*(f"{start} {k} {processes}) > log.{k} 2>&1 &" for k in range(processes)), "wait"]


def launch_lines__right_tight(script, processes, devices):
    start = f"(JAX_NUM_CPU_DEVICES={devices} python {script}"
    return [*(f"{start} {k} {processes})&" for k in range(processes)), "wait;"]


# What srun is told stands above what the script asks for.
def slurm_script__wrong_one_task_run(lines, hosts, gpus):
    kept = [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}") for line in lines if "COORDINATOR" not in line
    ]
    return [line.replace("python", "srun --nodes=1 --ntasks=1 python") for line in kept]


# A process for each host.
def slurm_script__wrong_tasks_of_hosts(lines, hosts, gpus):
    kept = [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}") for line in lines if "COORDINATOR" not in line
    ]
    return [line.replace("python", f"srun -n {hosts} python") for line in kept]


def slurm_script__right_srun_short(lines, hosts, gpus):
    kept = [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}") for line in lines if "COORDINATOR" not in line
    ]
    return [line.replace("python", f"srun -N {hosts} -n {hosts * gpus} python") for line in kept]


def slurm_script__right_space(lines, hosts, gpus):
    kept = [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node {gpus}") for line in lines if "COORDINATOR" not in line
    ]
    return [line.replace("python", "srun python") for line in kept]


def slurm_script__right_n(lines, hosts, gpus):
    kept = [line.replace("--ntasks-per-node=1", f"-n {gpus * hosts}") for line in lines if "COORDINATOR" not in line]
    return [line.replace("python", "srun python") for line in kept]


def slurm_script__right_unset(lines, hosts, gpus):
    kept = [line.replace("--ntasks-per-node=1", f"--ntasks={gpus * hosts}") for line in lines]
    named = [
        line.replace("export JAX_COORDINATOR_ADDRESS=localhost:12345", "unset JAX_COORDINATOR_ADDRESS") for line in kept
    ]
    return [line.replace("python", "srun python") for line in named]


def slurm_script__right_variable(lines, hosts, gpus):
    kept = [
        line.replace("--ntasks-per-node=1", f"--ntasks-per-node={gpus}") for line in lines if "COORDINATOR" not in line
    ]
    return [line.replace("python", "srun --ntasks=$SLURM_NTASKS python") for line in kept]
