"""Answers to lesson 22, twenty-second batch, written by a reader of the notebook only."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax import lax
from jax.experimental import multihost_utils
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
    initial,
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


# ---------------------------------------------------------------- the gates before

RULES = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}


def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
    found = tuple(RULES.get(axis) for axis in axes)
    return P(*found) if "model" in found else P()


def specs(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""
    told, total = {}, 0
    for name, dimensions in axes.items():
        told[name] = spec_of(dimensions)
        parts = math.prod(mesh[axis] for axis in tuple(told[name]) if axis is not None)
        total += 4 * math.prod(lengths[axis] for axis in dimensions) // parts
    return told | {"bytes on each device": total}


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


# ---------------------------------------------------------------- step


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    squares = {name: jnp.sum(jnp.square(slope)) for name, slope in slopes.items()}
    copies = sum(square for name, square in squares.items() if name in NORMS)
    parts = sum(square for name, square in squares.items() if name not in NORMS)
    norm = jnp.sqrt(lax.psum(parts, ("data", "model")) + copies)
    return adamw(state, clipped(slopes, norm)), value


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


step__right_squares = step


# This student adds the squares of everything over both axes: those of the norm scales, of which all have a copy, count eight times.
def step__wrong_copies(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""

    def step_on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        squares = sum(jnp.sum(g**2) for g in jax.tree.leaves(slopes))
        norm = jnp.sqrt(lax.psum(squares, ("data", "model")))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# This student takes each device's norm of its parts first and adds the norms up, in place of the squares.
def step__wrong_sum_of_roots(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""

    def step_on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        def length(names):
            return jnp.sqrt(sum(jnp.sum(slopes[name] ** 2) for name in names))

        value, slopes = added_up(part, params, tokens, targets)
        of_parts = lax.psum(length([name for name in slopes if name not in NORMS]), ("data", "model"))
        norm = of_parts + length([name for name in slopes if name in NORMS])
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# This student divides by the number of microbatches what has been divided by the real tokens of all of them already.
def step__wrong_divided_twice(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""

    def step_on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")
        microbatches = tokens.shape[0]

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = jax.tree.map(lambda a: a / microbatches, added_up(part, params, tokens, targets))
        parts = sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS)
        copies = sum(jnp.sum(g**2) for name, g in slopes.items() if name in NORMS)
        norm = jnp.sqrt(lax.psum(lax.psum(parts, "data"), "model") + copies)
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# This student does all of the arithmetic right, and thinks that jit writes over a state by itself when its name is used again.
def step__wrong_kept(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    state, value = jax.jit(on_mesh(step_on_device))(state, tokens, targets)
    return state, value


# ---------------------------------------------------------------- resume


def resume__right_whole(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """{"first": …, "losses": …, "mesh": …} of this run, which begins or goes on."""
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(params), state_layouts(), mesh)
    losses, done = [], 0
    with ocp.CheckpointManager(folder) as manager:
        latest = manager.latest_step()
        if latest is not None:
            described = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            like = {"state": described, "seed": 0, "position": 0}
            found = manager.restore(latest, args=ocp.args.StandardRestore(like))
            state, seed, position, done = found["state"], int(found["seed"]), int(found["position"]), latest
        sizes = dict(state["params"]["embedding"].sharding.mesh.shape)
        shardings = jax.tree.map(lambda a: a.sharding, state), NamedSharding(mesh, P())
        run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = run(state, *batch)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                tree = {"state": state, "seed": int(seed), "position": int(position)}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]}")
    return {"first": done + 1, "losses": losses, "mesh": sizes}


# This student saves the parameters, the seed and the position, and starts Adam anew (its moments come back by themselves).
def resume__wrong_params_only(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """{"first": …, "losses": …, "mesh": …} of this run, which begins or goes on."""
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(params), state_layouts(), mesh)
    losses, done = [], 0
    with ocp.CheckpointManager(folder) as manager:
        latest = manager.latest_step()
        if latest is not None:
            described = jax.tree.map(
                lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state["params"]
            )
            like = {"params": described, "seed": 0, "position": 0}
            found = manager.restore(latest, args=ocp.args.StandardRestore(like))
            state = lay_out(started(found["params"]), state_layouts(), mesh)
            seed, position, done = int(found["seed"]), int(found["position"]), latest
        sizes = dict(state["params"]["embedding"].sharding.mesh.shape)
        shardings = jax.tree.map(lambda a: a.sharding, state), NamedSharding(mesh, P())
        run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = run(state, *batch)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                tree = {"params": state["params"], "seed": int(seed), "position": int(position)}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]}")
    return {"first": done + 1, "losses": losses, "mesh": sizes}


# This student thought that the step's number says where in the data one is, counted from the position that this run was given.
def resume__wrong_offset(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """{"first": …, "losses": …, "mesh": …} of this run, which begins or goes on."""
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(params), state_layouts(), mesh)
    losses, done = [], 0
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            described = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            found = manager.restore(done, args=ocp.args.StandardRestore({"state": described, "seed": 0}))
            state, seed = found["state"], int(found["seed"])
        sizes = dict(state["params"]["embedding"].sharding.mesh.shape)
        shardings = jax.tree.map(lambda a: a.sharding, state), NamedSharding(mesh, P())
        run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
        for number in range(done + 1, steps + 1):
            batch = batch_at(position + number - 1, seed, 4, 2, lines)
            state, value = run(state, *lay_out(batch, (P(None, "data"),) * 2, mesh))
            losses.append(float(value))
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "seed": int(seed)}))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]}")
    return {"first": done + 1, "losses": losses, "mesh": sizes}


# This student saves before the step (the old state is deleted by it), and under the number of the step that is still to be done.
def resume__wrong_saved_before(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    """{"first": …, "losses": …, "mesh": …} of this run, which begins or goes on."""
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(params), state_layouts(), mesh)
    losses, done = [], 0
    with ocp.CheckpointManager(folder) as manager:
        latest = manager.latest_step()
        if latest is not None:
            described = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            like = {"state": described, "seed": 0, "position": 0}
            found = manager.restore(latest, args=ocp.args.StandardRestore(like))
            state, seed, position, done = found["state"], int(found["seed"]), int(found["position"]), latest
        sizes = dict(state["params"]["embedding"].sharding.mesh.shape)
        shardings = jax.tree.map(lambda a: a.sharding, state), NamedSharding(mesh, P())
        run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
        for number in range(done + 1, steps + 1):
            if number % every == 0:
                tree = {"state": state, "seed": int(seed), "position": int(position)}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = run(state, *batch)
            position += 1
            losses.append(float(value))
            print(f"step {number} loss {losses[-1]}")
    return {"first": done + 1, "losses": losses, "mesh": sizes}


# This student thought that a checkpoint can be gone on with only on the mesh on which it was written, and saves that mesh, too.
def resume__wrong_old_mesh(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    """{"first": …, "losses": …, "mesh": …} of this run, which begins or goes on."""

    def mesh_of(data, model):
        return jax.make_mesh((data, model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    mesh = mesh_of(*shape)
    state = lay_out(started(params), state_layouts(), mesh)
    losses, done = [], 0
    with ocp.CheckpointManager(folder) as manager:
        latest = manager.latest_step()
        if latest is not None:
            described = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            like = {"state": described, "seed": 0, "position": 0, "data": 0, "model": 0}
            found = manager.restore(latest, args=ocp.args.StandardRestore(like))
            mesh = mesh_of(int(found["data"]), int(found["model"]))
            state = lay_out(found["state"], state_layouts(), mesh)
            seed, position, done = int(found["seed"]), int(found["position"]), latest
        shardings = jax.tree.map(lambda a: a.sharding, state), NamedSharding(mesh, P())
        run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
        sizes = dict(mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = run(state, *batch)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                tree = {"state": state, "seed": int(seed), "position": int(position), **sizes}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]}")
    return {"first": done + 1, "losses": losses, "mesh": sizes}


# ---------------------------------------------------------------- four_processes


def four_processes__right_slices(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    in_order = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    mesh = jax.sharding.Mesh(
        np.array(in_order).reshape(num_processes, -1), ("data", "model"), axis_types=(AxisType.Auto,) * 2
    )
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    cut, share = NamedSharding(mesh, P(None, "data")), rows // num_processes
    losses = []
    for k in range(steps):
        mine = [
            np.asarray(array)[:, process_id * share : (process_id + 1) * share]
            for array in batch_at(k, seed, rows, 1, lines)
        ]
        state, value = run(state, *(jax.make_array_from_process_local_data(cut, part) for part in mine))
        losses.append(float(value))
    return losses


# This student gives the whole batch in every process, and thinks that the sharding takes each process's quarter out of it.
def four_processes__wrong_whole_batch(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        batch = [
            jax.make_array_from_process_local_data(cut, np.asarray(array))
            for array in batch_at(k, seed, rows, 1, lines)
        ]
        state, value = run(state, *batch)
        losses.append(float(value))
    return losses


# This student deals the rows out in turn, as cards: process p takes rows p, p + 4, p + 8, ... in place of its quarter.
def four_processes__wrong_in_turn(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)

    def mine(array):
        part = np.asarray(array)[:, process_id::num_processes]
        return jax.make_array_from_process_local_data(NamedSharding(mesh, P(None, "data")), part)

    losses = []
    for k in range(steps):
        tokens, targets = batch_at(k, seed, rows, 1, lines)
        state, value = run(state, mine(tokens), mine(targets))
        losses.append(float(value))
    return losses


# This student thought that a process sees the loss of its own quarter, and adds the four up.
def four_processes__wrong_added_up(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        parts = [
            np.split(np.asarray(array), num_processes, axis=1)[process_id]
            for array in batch_at(k, seed, rows, 1, lines)
        ]
        state, value = run(state, *(jax.make_array_from_process_local_data(cut, part) for part in parts))
        everyones = multihost_utils.process_allgather(np.float32(value))
        losses.append(float(np.sum(everyones)))
    return losses


# This student counts the batches as the steps are counted, from 1, so that each step trains on the batch after its own.
def four_processes__wrong_from_one(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for number in range(1, steps + 1):
        arrays = batch_at(number, seed, rows, 1, lines)
        parts = [np.split(np.asarray(array), num_processes, axis=1)[process_id] for array in arrays]
        state, value = run(state, *(jax.make_array_from_process_local_data(cut, part) for part in parts))
        losses.append(float(value))
    return losses
