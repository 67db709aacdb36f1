"""Answers to lesson 22, twelfth batch, written by a reader of the notebook only."""

import functools
import math

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


def lay_out(tree, spec_tree, mesh):
    """Arrays on a mesh, as a tree of specs says."""
    return jax.tree.map(lambda leaf, spec: jax.device_put(np.asarray(leaf), NamedSharding(mesh, spec)), tree, spec_tree)


# ---------------------------------------------------------------- specs (each `specs` has its own `spec_of`)


def spec_of_entries(axes):
    if not set(axes) & {"heads", "kv_heads", "hidden", "vocabulary"}:
        return P(*[None] * len(axes))
    entry = lambda axis: (
        "data" if axis == "width" else "model" if axis in ("heads", "kv_heads", "hidden", "vocabulary") else None
    )
    return P(*map(entry, axes))


def specs__right_entries(axes, lengths, mesh):
    found, numbers = {}, 0
    for name, dimensions in axes.items():
        found[name] = spec_of_entries(dimensions)
        numbers += math.prod(lengths[one] // mesh.get(over, 1) for one, over in zip(dimensions, tuple(found[name])))
    found["bytes on each device"] = 4 * numbers
    return found


def spec_of_even(axes):
    rules = {"width": "data"} | dict.fromkeys(("heads", "kv_heads", "hidden", "vocabulary"), "model")
    spec = P(*(rules.get(axis) for axis in axes))
    return spec if "model" in tuple(spec) else P()


# This student thought that what all devices hold together is dealt out evenly, also the norm scales, of which each has a copy.
def specs__wrong_even(axes, lengths, mesh):
    result = {name: spec_of_even(one) for name, one in axes.items()}
    numbers = sum(math.prod(lengths[axis] for axis in one) for one in axes.values())
    return result | {"bytes on each device": 4 * numbers // math.prod(mesh.values())}


def spec_of_kv(axes):
    rules = {"width": "data", "heads": "model", "hidden": "model", "vocabulary": "model"}
    spec = P(*(rules.get(axis) for axis in axes))
    return spec if "model" in tuple(spec) or "kv_heads" in axes else P()


# This student thought that keys and values are shared by all heads, so that every device along model needs all kv_heads.
def specs__wrong_kv(axes, lengths, mesh):
    result = {name: spec_of_kv(one) for name, one in axes.items()}
    numbers = 0
    for name, one in axes.items():
        numbers += math.prod(lengths[axis] for axis in one) // math.prod(
            mesh[cut] for cut in tuple(result[name]) if cut
        )
    return result | {"bytes on each device": 4 * numbers}


def spec_of_first(axes):
    rest = [axis for axis in axes if axis != "layers"]
    lead = [None] * (len(axes) - len(rest))
    return P(*lead, "data", "model") if len(rest) > 1 else P()


# This student thought that FSDP always cuts a parameter's first dimension, as in PyTorch, and tensor parallelism the next one.
def specs__wrong_first(axes, lengths, mesh):
    result = {name: spec_of_first(one) for name, one in axes.items()}
    numbers = 0
    for name, one in axes.items():
        numbers += math.prod(lengths[axis] for axis in one) // math.prod(
            mesh[cut] for cut in tuple(result[name]) if cut
        )
    return result | {"bytes on each device": 4 * numbers}


def spec_of_layers(axes):
    rules = {"width": "data"} | dict.fromkeys(("heads", "kv_heads", "hidden", "vocabulary"), "model")
    spec = P(*(rules.get(axis) for axis in axes if axis != "layers"))
    return spec if "model" in tuple(spec) else P()


# This student thought that a spec is that of one layer, as it is inside the scan, so that "layers" has no entry.
def specs__wrong_layers(axes, lengths, mesh):
    result = {name: spec_of_layers(one) for name, one in axes.items()}
    numbers = 0
    for name, one in axes.items():
        numbers += math.prod(lengths[axis] for axis in one) // math.prod(
            mesh[cut] for cut in tuple(result[name]) if cut
        )
    return result | {"bytes on each device": 4 * numbers}


# ---------------------------------------------------------------- what curve and resume build on: the gates before them


def spec_of(axes):
    if not set(axes) & {"heads", "kv_heads", "hidden", "vocabulary"}:
        return P(*[None] * len(axes))
    entry = lambda axis: (
        "data" if axis == "width" else "model" if axis in ("heads", "kv_heads", "hidden", "vocabulary") else None
    )
    return P(*map(entry, axes))


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


# ---------------------------------------------------------------- curve


def curve__right_told(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())

    @functools.partial(jax.jit, donate_argnums=0, out_shardings=shardings)
    def run(state, tokens, targets):
        return step(state, tokens, targets, mesh=mesh)

    losses = np.zeros(len(batches))
    with counted(state) as told:
        for k, (tokens, targets) in enumerate(batches):
            state, value = run(state, tokens, targets)
            losses[k] = float(value)
    return {"losses": losses, **told}


# This student thought that the step gives its state away already, so that the jit around it has nothing to say about that.
def curve__wrong_outer(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = jax.jit(functools.partial(step, mesh=mesh), out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
    return dict(told) | {"losses": np.array(losses)}


# This student thought that jit remembers by what it is given which program it has made, wherever jit itself is called.
def curve__wrong_everytime(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    losses = []
    with counted(state) as told:
        for tokens, targets in batches:
            run = jax.jit(lambda s, a, b: step(s, a, b, mesh=mesh), donate_argnums=0, out_shardings=shardings)
            state, value = run(state, tokens, targets)
            losses.append(float(value))
    return dict(told) | {"losses": np.array(losses)}


# This student thought that a state that is given away is updated in place, as by optimizer.step(), so that its name has the new one.
def curve__wrong_inplace(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for batch in batches:
            _, value = run(state, *batch)
            losses.append(float(value))
    return dict(told) | {"losses": np.array(losses)}


# This student thought that a first call to warm up, as in every benchmark, only compiles, and does no training.
def curve__wrong_warmup(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    losses = []
    with counted(state) as told:
        state, _ = run(state, *batches[0])
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
    return dict(told) | {"losses": np.array(losses)}


# ---------------------------------------------------------------- resume


def resume__right_composite(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(params), state_layouts(), mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state)
    run = compiled(
        functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=(shardings, NamedSharding(mesh, P()))
    )
    losses = []
    with ocp.CheckpointManager(folder, item_names=("state", "data")) as manager:
        done = manager.latest_step() or 0
        if done:
            like = jax.tree.map(
                lambda leaf, there: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=there), state, shardings
            )
            wanted = ocp.args.Composite(state=ocp.args.StandardRestore(like), data=ocp.args.JsonRestore())
            found = manager.restore(done, args=wanted)
            state, seed, position = found.state, found.data["seed"], found.data["position"]
        axes = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = run(state, *batch)
            losses.append(float(value))
            position += 1
            if number % every == 0:
                where = {"seed": int(seed), "position": int(position)}
                manager.save(
                    number, args=ocp.args.Composite(state=ocp.args.StandardSave(state), data=ocp.args.JsonSave(where))
                )
                manager.wait_until_finished()
            print("step", number, "loss", losses[-1], flush=True)
    return {"first": done + 1, "losses": losses, "mesh": axes}


# This student thought that the model is its parameters, and that Adam finds its moments again by itself.
def resume__wrong_weights(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, first, losses = lay_out(started(params), state_layouts(), mesh), 1, []
    with ocp.CheckpointManager(folder) as manager:
        done = manager.latest_step()
        if done is not None:
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state["params"])
            tree = manager.restore(done, args=ocp.args.StandardRestore({"params": like, "seed": 0, "position": 0}))
            state["params"], seed, position, first = tree["params"], int(tree["seed"]), int(tree["position"]), done + 1
        axes = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                tree = {"params": state["params"], "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]}", flush=True)
    return {"first": first, "losses": losses, "mesh": axes}


# This student thought that the position to save is that of the batch just used, and takes that batch once more after a restore.
def resume__wrong_position(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, first, losses = lay_out(started(params), state_layouts(), mesh), 1, []
    with ocp.CheckpointManager(folder) as manager:
        done = manager.latest_step()
        if done is not None:
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            tree = manager.restore(done, args=ocp.args.StandardRestore({"state": like, "seed": 0, "position": 0}))
            state, seed, position, first = tree["state"], int(tree["seed"]), int(tree["position"]), done + 1
        axes = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            losses.append(float(value))
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "seed": seed, "position": position}))
                manager.wait_until_finished()
            position += 1
            print(f"step {number} loss {losses[-1]}", flush=True)
    return {"first": first, "losses": losses, "mesh": axes}


# This student thought that the data are where the number of steps done says, so that only the seed has to be kept, as if every run began at position 0.
def resume__wrong_counted(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, first, losses = lay_out(started(params), state_layouts(), mesh), 1, []
    with ocp.CheckpointManager(folder) as manager:
        done = manager.latest_step()
        if done is not None:
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            tree = manager.restore(done, args=ocp.args.StandardRestore({"state": like, "seed": 0}))
            state, seed, position, first = tree["state"], int(tree["seed"]), done, done + 1
        axes = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "seed": seed}))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]}", flush=True)
    return {"first": first, "losses": losses, "mesh": axes}


# This student thought that a step is safe as soon as it is done, prints it, and saves afterwards.
def resume__wrong_early(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, first, losses = lay_out(started(params), state_layouts(), mesh), 1, []
    with ocp.CheckpointManager(folder) as manager:
        done = manager.latest_step()
        if done is not None:
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            tree = manager.restore(done, args=ocp.args.StandardRestore({"state": like, "seed": 0, "position": 0}))
            state, seed, position, first = tree["state"], int(tree["seed"]), int(tree["position"]), done + 1
        axes = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            position += 1
            losses.append(float(value))
            print(f"step {number} loss {losses[-1]}", flush=True)
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "seed": seed, "position": position}))
    return {"first": first, "losses": losses, "mesh": axes}
