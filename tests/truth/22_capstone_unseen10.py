"""Answers to lesson 22, tenth batch, written by a reader of the notebook only."""

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
    mlp,
    rms_norm,
    started,
)


def logits_of(params, tokens):
    """Logits [B, T, vocabulary] of the token that follows each of tokens [B, T]."""
    positions = jnp.arange(tokens.shape[1])

    def applied(x, layer):
        x = x + attention(layer, rms_norm(x, layer["attention_norm"]), positions)
        return x + mlp(layer, rms_norm(x, layer["mlp_norm"])), None

    x, _ = lax.scan(applied, params["embedding"][tokens], {name: params[name] for name in LAYER})
    return rms_norm(x, params["norm"]) @ params["unembedding"]


def mean_loss(params, tokens, targets):
    """The mean over all real targets; one below 0 is padding."""
    logits, real = logits_of(params, tokens), targets >= 0
    picked = jnp.take_along_axis(logits, jnp.where(real, targets, 0)[..., None], axis=-1)[..., 0]
    return jnp.sum(jnp.where(real, jax.nn.logsumexp(logits, axis=-1) - picked, 0)) / jnp.sum(real)


def one_step(state, tokens, targets):
    """One step on microbatches [M, B, T], as if they were one batch: (new state, loss)."""
    rows = (array.reshape(-1, array.shape[-1]) for array in (tokens, targets))
    value, slopes = jax.value_and_grad(mean_loss)(state["params"], *rows)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(slopes)))
    return adamw(state, clipped(slopes, norm)), value


mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}


# ---- answers of the notebook that others need (right) -----------------------------------------------------------


def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
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


def lay_out(tree, spec_tree, mesh):
    """Arrays on a mesh, as a tree of specs says."""
    return jax.tree.map(lambda leaf, spec: jax.device_put(np.asarray(leaf), NamedSharding(mesh, spec)), tree, spec_tree)


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


# ---- specs ------------------------------------------------------------------------------------------------------


def specs__right_own_share(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""
    found, total = {}, 0
    for name, dimensions in axes.items():
        found[name] = spec = spec_of(dimensions)
        cuts = [*spec, *[None] * (len(dimensions) - len(spec))]
        total += 4 * math.prod(lengths[axis] // (mesh[cut] if cut else 1) for axis, cut in zip(dimensions, cuts))
    return found | {"bytes on each device": total}


# This student follows "the width over data" everywhere, in the norm scales too.
def specs__wrong_norms_cut(axes, lengths, mesh):
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    found = {name: P(*(rules.get(axis) for axis in dimensions)) for name, dimensions in axes.items()}
    total = 0
    for name, dimensions in axes.items():
        size = math.prod(lengths[axis] for axis in dimensions)
        total += 4 * size // math.prod(mesh[cut] for cut in found[name] if cut)
    return found | {"bytes on each device": total}


# This student lays everything out rightly, and then divides the bytes of all parameters by the number of devices.
def specs__wrong_all_by_eight(axes, lengths, mesh):
    found = {name: spec_of(dimensions) for name, dimensions in axes.items()}
    numbers = sum(math.prod(lengths[axis] for axis in dimensions) for dimensions in axes.values())
    return found | {"bytes on each device": 4 * numbers // math.prod(mesh.values())}


# This student thinks that keys and values are shared by the query heads, and so have to be whole on every device.
def specs__wrong_keys_whole(axes, lengths, mesh):
    rules = {"width": "data", "heads": "model", "hidden": "model", "vocabulary": "model"}
    found, total = {}, 0
    for name, dimensions in axes.items():
        spec = [rules.get(axis) for axis in dimensions]
        found[name] = P(*spec) if "model" in spec else P()
        parts = math.prod(mesh[cut] for cut in found[name] if cut is not None)
        total += math.prod(lengths[axis] for axis in dimensions) // parts * 4
    return found | {"bytes on each device": total}


# This student thinks that FSDP cuts what is stored, and tensor parallelism only what is computed.
def specs__wrong_only_data_stores(axes, lengths, mesh):
    found = {name: spec_of(dimensions) for name, dimensions in axes.items()}
    total = 0
    for name, dimensions in axes.items():
        size = 4 * math.prod(lengths[axis] for axis in dimensions)
        total += size // mesh["data"] if "data" in tuple(found[name]) else size
    return found | {"bytes on each device": total}


# ---- step -------------------------------------------------------------------------------------------------------


def adding(targets):
    """(what a microbatch adds to the loss, as `part` in the notebook's answer cell), for these targets of all microbatches."""
    real = lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    return part


def step__right_copies_by_share(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")

    def on_device(state, tokens, targets):
        value, slopes = added_up(adding(targets), state["params"], tokens, targets)
        devices = lax.axis_size("data") * lax.axis_size("model")
        # a copy is on all devices: each brings its share of it, and one psum does for everything
        squares = sum(jnp.sum(g**2) / (devices if name in NORMS else 1) for name, g in slopes.items())
        return adamw(state, clipped(slopes, jnp.sqrt(lax.psum(squares, ("data", "model"))))), value

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=(0,))(state, tokens, targets)


# This student makes the mean over the microbatches at the end, though `part` has divided by the tokens of all of them.
def step__wrong_divided_twice(state, tokens, targets, *, mesh):
    spec_tree, rows = state_layouts(), P(None, "data")

    def on_device(state, tokens, targets):
        value, slopes = added_up(adding(targets), state["params"], tokens, targets)
        value, slopes = value / len(tokens), {name: g / len(tokens) for name, g in slopes.items()}
        parts = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=0)(state, tokens, targets)


# This student gives the batch away, since it is used up, and keeps the state, which is needed for the next step.
def step__wrong_batch_given_away(state, tokens, targets, *, mesh):
    spec_tree, rows = state_layouts(), P(None, "data")

    def on_device(state, tokens, targets):
        value, slopes = added_up(adding(targets), state["params"], tokens, targets)
        parts = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=(1, 2))(state, tokens, targets)


# This student takes the root on every device, and adds the norms up in place of the squares.
def step__wrong_sum_of_norms(state, tokens, targets, *, mesh):
    spec_tree, rows = state_layouts(), P(None, "data")

    def on_device(state, tokens, targets):
        value, slopes = added_up(adding(targets), state["params"], tokens, targets)
        own = jnp.sqrt(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS))
        copies = jnp.sqrt(sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
        norm = lax.psum(own, ("data", "model")) + copies
        return adamw(state, clipped(slopes, norm)), value

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=0)(state, tokens, targets)


# This student does not trust the copies: he averages the norm scales' gradients over data once more, to be sure.
def step__wrong_copies_averaged_again(state, tokens, targets, *, mesh):
    spec_tree, rows = state_layouts(), P(None, "data")

    def on_device(state, tokens, targets):
        value, slopes = added_up(adding(targets), state["params"], tokens, targets)
        slopes = {name: lax.pmean(g, ("data", "model")) if name in NORMS else g for name, g in slopes.items()}
        parts = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=0)(state, tokens, targets)


# ---- resume -----------------------------------------------------------------------------------------------------


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    parts = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
    norm = jnp.sqrt(parts + sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
    return adamw(state, clipped(slopes, norm)), value


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


def resume__right_one_tree(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """{"first": …, "losses": …, "mesh": …} of this run, which begins or goes on."""
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    run = {"state": lay_out(started(params), state_layouts(), mesh), "seed": int(seed), "position": int(position)}
    losses, done = [], 0
    with ocp.CheckpointManager(folder) as manager:
        if (latest := manager.latest_step()) is not None:
            as_now = lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
            like = run | {"state": jax.tree.map(as_now, run["state"])}
            run, done = manager.restore(latest, args=ocp.args.StandardRestore(like)), latest
        on = dict(run["state"]["params"]["embedding"].sharding.mesh.shape)
        state, seed, position = run["state"], int(run["seed"]), int(run["position"])
        first = done + 1
        while done < steps:
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            done, position = done + 1, position + 1
            losses.append(float(value))
            if done % every == 0:
                tree = {"state": state, "seed": seed, "position": position}
                manager.save(done, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {done} loss {losses[-1]:.4f}", flush=True)
    return {"first": first, "losses": losses, "mesh": on}


# This student saves state and position; the seed, he thinks, is an argument, and so it is known anyway.
def resume__wrong_seed_is_given(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses, first = lay_out(started(params), state_layouts(), mesh), [], 1
    with ocp.CheckpointManager(folder) as manager:
        latest = manager.latest_step()
        if latest is not None:
            as_now = lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
            like = {"state": jax.tree.map(as_now, state), "position": 0}
            found = manager.restore(latest, args=ocp.args.StandardRestore(like))
            state, position, first = found["state"], int(found["position"]), latest + 1
        on = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "position": position}))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}", flush=True)
    return {"first": first, "losses": losses, "mesh": on}


# This student thinks that the position follows from the number of the step, as if every run had begun at position 0.
def resume__wrong_position_is_the_step(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses, first = lay_out(started(params), state_layouts(), mesh), [], 1
    with ocp.CheckpointManager(folder) as manager:
        latest = manager.latest_step()
        if latest is not None:
            as_now = lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
            like = {"state": jax.tree.map(as_now, state), "seed": 0}
            found = manager.restore(latest, args=ocp.args.StandardRestore(like))
            state, seed, position, first = found["state"], int(found["seed"]), latest, latest + 1
        on = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "seed": int(seed)}))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}", flush=True)
    return {"first": first, "losses": losses, "mesh": on}


# This student reports the step as soon as it is made, and saves after that.
def resume__wrong_says_it_first(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses, first = lay_out(started(params), state_layouts(), mesh), [], 1
    with ocp.CheckpointManager(folder) as manager:
        latest = manager.latest_step()
        if latest is not None:
            as_now = lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
            like = {"state": jax.tree.map(as_now, state), "seed": 0, "position": 0}
            found = manager.restore(latest, args=ocp.args.StandardRestore(like))
            state, seed, position, first = found["state"], int(found["seed"]), int(found["position"]), latest + 1
        on = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            position += 1
            losses.append(float(value))
            print(f"step {number} loss {losses[-1]:.4f}", flush=True)
            if number % every == 0:
                tree = {"state": state, "seed": int(seed), "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
    return {"first": first, "losses": losses, "mesh": on}


# This student restores by shape and dtype alone: step has the mesh, so that the layout, he thinks, comes by itself.
def resume__wrong_layout_of_then(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses, first = lay_out(started(params), state_layouts(), mesh), [], 1
    with ocp.CheckpointManager(folder) as manager:
        latest = manager.latest_step()
        if latest is not None:
            like = {"state": jax.eval_shape(started, params), "seed": 0, "position": 0}
            found = manager.restore(latest, args=ocp.args.StandardRestore(like))
            state, seed, position, first = found["state"], int(found["seed"]), int(found["position"]), latest + 1
        on = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                tree = {"state": state, "seed": int(seed), "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}", flush=True)
    return {"first": first, "losses": losses, "mesh": on}
