"""Answers to lesson 22, eighteenth batch, written by a reader of the notebook only."""

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
    compiled,
    counted,
    mlp,
    rms_norm,
    started,
)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}


# ---- the answers above, and helpers of the notebook


def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    parts = [rules.get(axis) for axis in axes]
    return P(*parts) if "model" in parts else P()


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


def lay_out(tree, spec_tree, mesh):
    """Arrays on a mesh, as a tree of specs says."""
    return jax.tree.map(lambda leaf, spec: jax.device_put(np.asarray(leaf), NamedSharding(mesh, spec)), tree, spec_tree)


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    parts = sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS)
    copies = sum(jnp.sum(slopes[name] ** 2) for name in NORMS)
    norm = jnp.sqrt(lax.psum(parts, ("data", "model")) + copies)
    return adamw(state, clipped(slopes, norm)), value


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# ---- curve


def curve__right_afterwards(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=(0,), out_shardings=shardings)
    values = []
    with counted(state) as told:
        for tokens, targets in batches:
            state, value = run(state, tokens, targets)
            values.append(value)
    return dict(told, losses=np.array([float(value) for value in values]))


# thought: a jitted function is made where it is used, in the loop; JAX will know it again
def curve__wrong_jitinloop(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    losses = []
    with counted(state) as told:
        for batch in batches:
            run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
            state, value = run(state, *batch)
            losses.append(float(value))
    return {**told, "losses": np.array(losses)}


# thought: the step gives its state away already, so that the jit around it has nothing to say of that
def curve__wrong_stepsaysso(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
    return {**told, "losses": np.array(losses)}


# thought: one compiles by a first step before one counts, as when one measures a time
def curve__wrong_warmup(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    first, *others = batches
    state, value = run(state, *first)
    losses = [float(value)]
    with counted(state) as told:
        for batch in others:
            state, value = run(state, *batch)
            losses.append(float(value))
    return {**told, "losses": np.array(losses)}


# thought: a curve shows the mean of all losses so far, as a progress bar does
def curve__wrong_runningmean(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    losses, total = [], 0.0
    with counted(state) as told:
        for k, batch in enumerate(batches):
            state, value = run(state, *batch)
            total += float(value)
            losses.append(total / (k + 1))
    return {**told, "losses": np.array(losses)}


# ---- resume


def resume__right_startsaved(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    # what is saved is where in the data the run began: the batch of step n is n - 1 positions further
    here = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    run = {"state": lay_out(started(params), state_layouts(), here), "seed": int(seed), "start": int(position)}
    done, losses = 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = dict(
                run,
                state=jax.tree.map(
                    lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), run["state"]
                ),
            )
            run = manager.restore(done, args=ocp.args.StandardRestore(like))
        state, seed, start = run["state"], int(run["seed"]), int(run["start"])
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(here, P())
        once = compiled(functools.partial(step, mesh=here), donate_argnums=0, out_shardings=shardings)
        for number in range(done + 1, steps + 1):
            batch = batch_at(start + number - 1, seed, 4, 2, lines)
            state, value = once(state, *lay_out(batch, (P(None, "data"),) * 2, here))
            losses.append(float(value))
            if number % every == 0:
                tree = {"state": state, "seed": seed, "start": start}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}")
    return {"first": done + 1, "losses": losses, "mesh": where}


# thought: the position to be saved is that of the batch of this step
def resume__wrong_thisposition(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, done, losses = lay_out(started(params), state_layouts(), mesh), 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state
            )
            found = manager.restore(done, args=ocp.args.StandardRestore({"state": like, "seed": 0, "position": 0}))
            state, seed, position = found["state"], int(found["seed"]), int(found["position"])
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0)
        for number in range(done + 1, steps + 1):
            state, value = run(state, *lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh))
            losses.append(float(value))
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "seed": seed, "position": position}))
                manager.wait_until_finished()
            position += 1
            print(f"step {number} {losses[-1]}")
    return {"first": done + 1, "losses": losses, "mesh": where}


# thought: the parameters are what was learned; started() makes the rest of the state of them
def resume__wrong_onlyparams(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, done, losses = lay_out(started(params), state_layouts(), mesh), 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state["params"]
            )
            found = manager.restore(done, args=ocp.args.StandardRestore({"params": like, "seed": 0, "position": 0}))
            state = lay_out(started(found["params"]), state_layouts(), mesh)
            seed, position = int(found["seed"]), int(found["position"])
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0)
        for number in range(done + 1, steps + 1):
            state, value = run(state, *lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh))
            losses.append(float(value))
            position += 1
            if number % every == 0:
                manager.save(
                    number, args=ocp.args.StandardSave({"params": state["params"], "seed": seed, "position": position})
                )
                manager.wait_until_finished()
            print(f"step {number} {losses[-1]}")
    return {"first": done + 1, "losses": losses, "mesh": where}


# thought: all that the first run began with counts, so its mesh does too: it is saved, and the run goes on there
def resume__wrong_oldmesh(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, done, losses = lay_out(started(params), state_layouts(), mesh), 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state
            )
            like = {"state": like, "seed": 0, "position": 0, "data": 0, "model": 0}
            found = manager.restore(done, args=ocp.args.StandardRestore(like))
            seed, position, shape = (
                int(found["seed"]),
                int(found["position"]),
                (int(found["data"]), int(found["model"])),
            )
            mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
            state = lay_out(found["state"], state_layouts(), mesh)
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0)
        for number in range(done + 1, steps + 1):
            state, value = run(state, *lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh))
            losses.append(float(value))
            position += 1
            if number % every == 0:
                tree = {
                    "state": state,
                    "seed": seed,
                    "position": position,
                    "data": int(shape[0]),
                    "model": int(shape[1]),
                }
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} {losses[-1]}")
    return {"first": done + 1, "losses": losses, "mesh": where}


# thought: the step gives the state away, so it has to be saved before the step, with the position of the batch to come
def resume__wrong_savedbefore(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, done, losses = lay_out(started(params), state_layouts(), mesh), 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state
            )
            found = manager.restore(done, args=ocp.args.StandardRestore({"state": like, "seed": 0, "position": 0}))
            state, seed, position = found["state"], int(found["seed"]), int(found["position"])
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0)
        for number in range(done + 1, steps + 1):
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "seed": seed, "position": position}))
                manager.wait_until_finished()
            state, value = run(state, *lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh))
            losses.append(float(value))
            position += 1
            print(f"step {number} {losses[-1]}")
    return {"first": done + 1, "losses": losses, "mesh": where}


# ---- plan

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
    # Weights are gathered forwards and backwards, gradients dealt out, in bfloat16. Along `model`: four collectives a
    # layer forwards, four backwards. What the two gathers bring is not kept, so they are made again; with "full" the
    # first reduce_scatter is, too.
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


def plan__right_shortest(model, machine, devices, sequences):
    # batch and devices are the same for all, so that the highest MFU is the shortest step
    plans, axis = [], 1
    while axis <= devices and model["kv_heads"] % axis == 0:
        data = devices // axis
        rows = 1
        while data * rows <= sequences:
            plans += [
                {"data": data, "model": axis, "rows": rows, "micro": sequences // (data * rows), "remat": remat}
                for remat in ("none", "mlp", "full")
            ]
            rows *= 2
        axis *= 2
    fit = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    if fit:
        return min(fit, key=lambda one: seconds(model, machine, one))
    return min(plans, key=lambda one: held(model, one))


# thought: among those that fit there is always one; that there may be none is forgotten
def plan__wrong_alwaysone(model, machine, devices, sequences):
    best = None
    for axis in (1, 2, 4, 8):
        if model["kv_heads"] % axis or axis > devices:
            continue
        data = devices // axis
        for rows in (2**k for k in range(16) if data * 2**k <= sequences):
            for remat in ("none", "mlp", "full"):
                one = {"data": data, "model": axis, "rows": rows, "micro": sequences // data // rows, "remat": remat}
                if held(model, one) > 0.9 * machine["memory"]:
                    continue
                if best is None or used(model, machine, one) > used(model, machine, best):
                    best = one
    return best


# thought: the batch is cut into microbatches of `rows` sequences; that data cuts it first is forgotten
def plan__wrong_microofall(model, machine, devices, sequences):
    plans = []
    for axis in (2**k for k in range(4) if model["kv_heads"] % 2**k == 0 and 2**k <= devices):
        for rows in (2**k for k in range(sequences.bit_length())):
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": devices // axis, "model": axis, "rows": rows, "micro": sequences // rows, "remat": remat}
                )
    fit = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    if not fit:
        return min(plans, key=lambda one: held(model, one))
    return max(fit, key=lambda one: used(model, machine, one))


# thought: the best plan is the one that leaves most room, so the one that holds least is taken whether others fit or not
def plan__wrong_mostroom(model, machine, devices, sequences):
    plans = []
    for axis in (2**k for k in range(4) if model["kv_heads"] % 2**k == 0 and 2**k <= devices):
        data = devices // axis
        for rows in (2**k for k in range(sequences.bit_length()) if data * 2**k <= sequences):
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": data, "model": axis, "rows": rows, "micro": sequences // data // rows, "remat": remat}
                )
    return min(plans, key=lambda one: (held(model, one), -used(model, machine, one)))


# thought: what a plan holds has to fit into the memory of all devices together
def plan__wrong_wholepod(model, machine, devices, sequences):
    plans = []
    for axis in (2**k for k in range(4) if model["kv_heads"] % 2**k == 0 and 2**k <= devices):
        data = devices // axis
        for rows in (2**k for k in range(sequences.bit_length()) if data * 2**k <= sequences):
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": data, "model": axis, "rows": rows, "micro": sequences // data // rows, "remat": remat}
                )
    fit = [one for one in plans if held(model, one) <= 0.9 * devices * machine["memory"]]
    if not fit:
        return min(plans, key=lambda one: held(model, one))
    return max(fit, key=lambda one: used(model, machine, one))
