"""Answers to lesson 22, eighth batch, written by a reader of the notebook only."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.transformer import (
    AXES,
    LAYER,
    NORMS,
    adamw,
    added_up,
    attention,
    batch_at,
    clipped,
    initial,
    mlp,
    rms_norm,
    started,
)

# ---------------------------------------------------------------- the answers to the earlier gates, and the notebook's own helpers


def spec_of(axes):
    rules = {"width": "data"} | dict.fromkeys(("heads", "kv_heads", "hidden", "vocabulary"), "model")
    spec = [rules.get(axis) for axis in axes]
    return P(*spec) if "model" in spec else P()


def layouts():
    """The spec of every parameter, by your rule."""
    return {name: spec_of(axes) for name, axes in AXES.items()}


def whole_width(name, leaf):
    """FSDP: a parameter (inside the scan: of one layer), gathered to its whole width; unchanged where that is not cut."""
    spec = tuple(layouts()[name])
    if "data" not in spec:
        return leaf
    return lax.all_gather(leaf, "data", axis=spec.index("data") - (name in LAYER), tiled=True)


def logits_on_device(params, tokens):
    """Logits [b, T, words] of this device's rows and words, of its shares of the parameters."""

    def gathered(x):
        """The whole sequence, of every device's block of it."""
        return lax.all_gather(x, axis_name="model", axis=1, tiled=True)

    def scattered(x):
        """This device's block of the sequence, of the sum of every device's part."""
        return lax.psum_scatter(x, axis_name="model", scatter_dimension=1, tiled=True)

    table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
    place = tokens - lax.axis_index("model") * len(table)  # in this device's part of the vocabulary
    mine = (place >= 0) & (place < len(table))
    x = scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

    @jax.checkpoint
    def applied(x, layer):
        layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
        x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
        return x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

    x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
    return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])


def losses_on_device(logits, targets):
    """The loss of each token [b, T], of logits [b, T, words] in parts; 0 for padding."""
    words = logits.shape[-1]
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    place = targets - lax.axis_index("model") * words
    mine = (place >= 0) & (place < words)
    picked = jnp.take_along_axis(logits, jnp.where(mine, place, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jnp.log(total) + top - lax.psum(jnp.where(mine, picked, 0), "model"), 0)


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    squares = {name: jnp.sum(slope**2) for name, slope in slopes.items()}
    parts = lax.psum(sum(square for name, square in squares.items() if name not in NORMS), ("data", "model"))
    norm = jnp.sqrt(parts + sum(squares[name] for name in squares if name in NORMS))
    return adamw(state, clipped(slopes, norm)), value


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


def lay_out(tree, spec_tree, mesh):
    """Arrays on a mesh, as a tree of specs says."""
    return jax.tree.map(lambda leaf, spec: jax.device_put(np.asarray(leaf), NamedSharding(mesh, spec)), tree, spec_tree)


LLAMA_3 = {  # Meta's model cards; a sequence has `length` tokens
    "8B": {
        "parameters": 8.03e9,
        "layers": 32,
        "width": 4096,
        "hidden": 14336,
        "heads": 32,
        "kv_heads": 8,
        "vocabulary": 128256,
        "length": 8192,
    },
    "70B": {
        "parameters": 70.6e9,
        "layers": 80,
        "width": 8192,
        "hidden": 28672,
        "heads": 64,
        "kv_heads": 8,
        "vocabulary": 128256,
        "length": 8192,
    },
}
MACHINES = {
    "v5e": {
        "peak": 1.97e14,
        "memory": 15.75 * 2**30,
        "dollars": 1.2,
        "model": 9e10,
        "data": [1.8e11, 9e10, 9e10, 9e10],
    },
    "H100": {"peak": 9.9e14, "memory": 80e9, "dollars": 3.0, "model": 4.5e11, "data": [4e11, 2e11, 1e11, 5e10]},
}


def held(model, plan):
    """Bytes of one device: state, two layers' gathered weights, activations, logits."""
    data, axis, tokens = plan["data"], plan["model"], plan["rows"] * model["length"]
    d, f, layers = model["width"], model["hidden"], model["layers"]
    state = 16 * model["parameters"] / (data * axis)  # weights, gradients, two moments: four bytes each
    gathered = 2 * 2 * model["parameters"] / layers / axis  # of two layers, in bfloat16
    # Of a token in bfloat16: the inputs of two norms, q, what attention sums up (four times d), k and v.
    attention = (8 + 4 * model["kv_heads"] / model["heads"]) * d * tokens / axis
    hidden = 6 * f * tokens / axis  # gate, up, and their product
    kept = {
        "none": layers * (attention + hidden),
        "mlp": layers * attention + hidden,
        "full": layers * 2 * d * tokens / axis + attention + hidden,
    }
    return state + gathered + kept[plan["remat"]] + 2 * 4 * model["vocabulary"] * tokens / axis


def seconds(model, machine, plan):
    """Of a step: FSDP's passes are hidden behind the arithmetic, the sums along `model` are not."""
    data, axis, micro = plan["data"], plan["model"], plan["micro"]
    tokens, layers = plan["rows"] * model["length"], model["layers"]
    again = {"none": 0, "mlp": 4 * model["width"] * model["hidden"] * layers, "full": 2 * model["parameters"]}
    flops = (6 * model["parameters"] + again[plan["remat"]]) * tokens * micro / axis
    passes = 3 * 2 * model["parameters"] / axis * (data - 1) / data * micro
    sums = {"none": 10, "mlp": 10, "full": 11}[plan["remat"]] * layers * micro
    sent = sums * 2 * model["width"] * tokens * (axis - 1) / axis
    return max(flops / machine["peak"], passes / machine["data"][axis.bit_length() - 1]) + sent / machine["model"]


def used(model, machine, plan):
    """MFU: the model's own FLOPs, over what the devices could have done."""
    tokens = plan["data"] * plan["rows"] * plan["micro"] * model["length"]
    return (
        6
        * model["parameters"]
        * tokens
        / (seconds(model, machine, plan) * plan["data"] * plan["model"] * machine["peak"])
    )


# ---------------------------------------------------------------- four_processes


def four_processes__right_rows(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    in_order = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    grid = np.array(in_order).reshape(num_processes, -1)
    mesh = jax.sharding.Mesh(grid, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    rows_cut = NamedSharding(mesh, P(None, "data", None))
    share = rows // num_processes

    def fed(array):
        mine = np.asarray(array)[:, share * process_id : share * (process_id + 1)]
        return jax.make_array_from_process_local_data(rows_cut, np.ascontiguousarray(mine))

    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), state_layouts())
    state = started(jax.tree.map(np.asarray, initial(jax.random.key(seed), sizes)))
    state = jax.tree.map(lambda leaf, sharding: jax.device_put(np.asarray(leaf), sharding), state, shardings)
    run = jax.jit(
        functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=(shardings, NamedSharding(mesh, P()))
    )
    losses = []
    for k in range(steps):
        state, value = run(state, *map(fed, batch_at(k, seed, rows, 1, lines)))
        losses.append(float(value))
    return losses


# A process's quarter is every fourth row, dealt out in turn, as in stripes.
def four_processes__wrong_in_turn(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        parts = (np.asarray(array)[:, process_id::num_processes] for array in batch_at(k, seed, rows, 1, lines))
        state, value = step(state, *(jax.make_array_from_process_local_data(cut, part) for part in parts), mesh=mesh)
        losses.append(float(value))
    return losses


# Each process takes batches of its own, a quarter as large, one behind the other: process p in step k the one with number 4 k + p.
# (Its author thought that wrong; but these are just the rows of its quarter, in order.)
def four_processes__right_own_batches(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((num_processes, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        mine = batch_at(k * num_processes + process_id, seed, rows // num_processes, 1, lines)
        batch = [jax.make_array_from_process_local_data(cut, np.asarray(array)) for array in mine]
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses


# The mesh the other way up: the two devices of a process are neighbours along data, and model goes over the processes.
def four_processes__wrong_other_way_up(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    grid = np.array(jax.devices()).reshape(2, 4).T  # column by column
    mesh = jax.sharding.Mesh(grid, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        parts = (np.split(np.asarray(a), num_processes, axis=1)[process_id] for a in batch_at(k, seed, rows, 1, lines))
        state, value = step(state, *(jax.make_array_from_process_local_data(cut, part) for part in parts), mesh=mesh)
        losses.append(float(value))
    return losses


# Steps count from 1, as in `resume`, and with them the batches.
def four_processes__wrong_from_one(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(1, steps + 1):
        parts = (np.split(np.asarray(a), num_processes, axis=1)[process_id] for a in batch_at(k, seed, rows, 1, lines))
        state, value = step(state, *(jax.make_array_from_process_local_data(cut, part) for part in parts), mesh=mesh)
        losses.append(float(value))
    return losses


# ---------------------------------------------------------------- resume


def resume__right_helpers(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def on(spec):
        return NamedSharding(mesh, spec)

    def laid(tree, specs):
        return jax.tree.map(lambda leaf, spec: jax.device_put(np.asarray(leaf), on(spec)), tree, specs)

    def described(leaf):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)

    state, losses = laid(started(params), state_layouts()), []
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state)
    run = jax.jit(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=(shardings, on(P())))
    with ocp.CheckpointManager(folder) as manager:
        done = manager.latest_step()
        if done is None:
            done = 0
        else:
            like = {"state": jax.tree.map(described, state), "seed": 0, "position": 0}
            found = manager.restore(done, args=ocp.args.StandardRestore(like))
            state, seed, position = found["state"], int(found["seed"]), int(found["position"])
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = laid(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2)
            state, value = run(state, *batch)
            losses.append(float(value))
            position += 1
            if number % every == 0:
                tree = {"state": state, "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.6f}", flush=True)
    return {"first": done + 1, "losses": losses, "mesh": where}


# The position need not be saved: each step takes the next one, so it is the first position plus the steps that are done.
def resume__wrong_computed(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses, done = lay_out(started(params), state_layouts(), mesh), [], 0
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = jax.jit(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            found = manager.restore(done, args=ocp.args.StandardRestore({"state": like, "seed": 0}))
            state, seed = found["state"], int(found["seed"])
        where = dict(state["count"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            rows = batch_at(position + number - 1, seed, 4, 2, lines)
            state, value = run(state, *lay_out(rows, (P(None, "data"),) * 2, mesh))
            losses.append(float(value))
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "seed": seed}))
                manager.wait_until_finished()
            print(f"step {number} {losses[-1]}", flush=True)
    return {"first": done + 1, "losses": losses, "mesh": where}


# Adam's moments are means over the last steps only, and are soon made again: parameters and count are saved, the moments begin at 0.
def resume__wrong_moments(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses, done = lay_out(started(params), state_layouts(), mesh), [], 0
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = jax.jit(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            needed = {"params": state["params"], "count": state["count"]}
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), needed)
            tree = like | {"seed": 0, "position": 0}
            found = manager.restore(done, args=ocp.args.StandardRestore(tree))
            state = state | {"params": found["params"], "count": found["count"]}
            seed, position = int(found["seed"]), int(found["position"])
        where = dict(state["count"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            state, value = run(state, *lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh))
            losses.append(float(value))
            position += 1
            if number % every == 0:
                tree = {"params": state["params"], "count": state["count"], "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} {losses[-1]}", flush=True)
    return {"first": done + 1, "losses": losses, "mesh": where}


# "Save while the next steps run, and wait for a save to end before the next one begins": so the line of a step is printed while its
# checkpoint is still being written.
def resume__wrong_waits_later(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses, done = lay_out(started(params), state_layouts(), mesh), [], 0
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = jax.jit(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            tree = {"state": like, "seed": 0, "position": 0}
            found = manager.restore(done, args=ocp.args.StandardRestore(tree))
            state, seed, position = found["state"], int(found["seed"]), int(found["position"])
        where = dict(state["count"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            state, value = run(state, *lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh))
            losses.append(float(value))
            position += 1
            if number % every == 0:
                manager.wait_until_finished()  # the one before
                tree = {"state": state, "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
            print(f"step {number} {losses[-1]}", flush=True)
        manager.wait_until_finished()
    return {"first": done + 1, "losses": losses, "mesh": where}


# The run goes on *from* the step on the checkpoint, so that this is the first one that it does.
def resume__wrong_once_more(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses, first = lay_out(started(params), state_layouts(), mesh), [], 1
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = jax.jit(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    with ocp.CheckpointManager(folder) as manager:
        if (latest := manager.latest_step()) is not None:
            first = latest
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            tree = {"state": like, "seed": 0, "position": 0}
            found = manager.restore(first, args=ocp.args.StandardRestore(tree))
            state, seed, position = found["state"], int(found["seed"]), int(found["position"])
        where = dict(state["count"].sharding.mesh.shape)
        for number in range(first, steps + 1):
            state, value = run(state, *lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh))
            losses.append(float(value))
            position += 1
            if number % every == 0 and number != latest:  # that one is there already
                tree = {"state": state, "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} {losses[-1]}", flush=True)
    return {"first": first, "losses": losses, "mesh": where}


# ---------------------------------------------------------------- plan


def plan__right_product(model, machine, devices, sequences):
    import itertools

    powers = [2**k for k in range(max(devices, sequences).bit_length())]
    best, smallest = None, None
    for axis, rows, remat in itertools.product(powers, powers, ("none", "mlp", "full")):
        if model["kv_heads"] % axis or devices % axis:
            continue
        data = devices // axis
        if sequences % (data * rows):
            continue
        one = {"data": data, "model": axis, "rows": rows, "micro": sequences // (data * rows), "remat": remat}
        size = held(model, one)
        if smallest is None or size < smallest[0]:
            smallest = size, one
        if size <= 0.9 * machine["memory"]:
            value = used(model, machine, one)
            if best is None or value > best[0]:
                best = value, one
    return (best or smallest)[1]


# First the plan with the highest MFU; if that does not fit, none does, and the one that holds least is taken.
def plan__wrong_best_first(model, machine, devices, sequences):
    plans = []
    for axis in (1, 2, 4, 8):
        data = devices // axis
        for rows in (2**k for k in range(sequences.bit_length())):
            if model["kv_heads"] % axis == 0 and data * axis == devices and sequences % (data * rows) == 0:
                micro = sequences // (data * rows)
                plans += [
                    {"data": data, "model": axis, "rows": rows, "micro": micro, "remat": remat}
                    for remat in ("none", "mlp", "full")
                ]
    best = max(plans, key=lambda one: used(model, machine, one))
    if held(model, best) <= 0.9 * machine["memory"]:
        return best
    return min(plans, key=lambda one: held(model, one))


# Memory is what a large model lacks, so every layer is computed again on the way back; what remains to be chosen are axes and rows.
def plan__wrong_always_full(model, machine, devices, sequences):
    plans = []
    for axis in (1, 2, 4, 8):
        data = devices // axis
        for rows in (2**k for k in range(sequences.bit_length())):
            if model["kv_heads"] % axis == 0 and data * axis == devices and sequences % (data * rows) == 0:
                micro = sequences // (data * rows)
                plans.append({"data": data, "model": axis, "rows": rows, "micro": micro, "remat": "full"})
    fit = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    return max(fit, key=lambda one: used(model, machine, one)) if fit else min(plans, key=lambda one: held(model, one))


# Tensor parallelism as far as the key-value heads allow, as it stays inside a host, and data for the rest; then rows and remat.
def plan__wrong_widest_model(model, machine, devices, sequences):
    axis = next(size for size in (8, 4, 2, 1) if model["kv_heads"] % size == 0 and devices % size == 0)
    share = sequences // (devices // axis)
    plans = [
        {"data": devices // axis, "model": axis, "rows": 2**k, "micro": share // 2**k, "remat": remat}
        for k in range(share.bit_length())
        for remat in ("none", "mlp", "full")
    ]
    fit = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    return max(fit, key=lambda one: used(model, machine, one)) if fit else min(plans, key=lambda one: held(model, one))


# `rows` are taken to be those of the whole batch at once, dealt out over data afterwards: so rows × micro are the sequences.
def plan__wrong_rows_of_all(model, machine, devices, sequences):
    plans = []
    for axis in (1, 2, 4, 8):
        data = devices // axis
        for rows in (2**k for k in range(sequences.bit_length())):
            if model["kv_heads"] % axis == 0 and data * axis == devices and rows >= data and sequences % rows == 0:
                plans += [
                    {"data": data, "model": axis, "rows": rows, "micro": sequences // rows, "remat": remat}
                    for remat in ("none", "mlp", "full")
                ]

    def on_one(one):
        return one | {"rows": one["rows"] // one["data"]}

    fit = [one for one in plans if held(model, on_one(one)) <= 0.9 * machine["memory"]]
    if not fit:
        return min(plans, key=lambda one: held(model, on_one(one)))
    return max(fit, key=lambda one: used(model, machine, on_one(one)))
