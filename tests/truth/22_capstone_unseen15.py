"""Answers to lesson 22, fifteenth batch, written by a reader of the notebook only."""

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


def spec_of(axes):
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    spec = [rules.get(axis) for axis in axes]
    return P(*spec) if "model" in spec else P()


def layouts():
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
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
        parts = lax.psum(sum(s for name, s in squares.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(squares[name] for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=0)(state, tokens, targets)


def step__right_names(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
        parts = lax.psum(sum(s for name, s in squares.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(squares[name] for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=0)(state, tokens, targets)


# Thought: the norm is that of everything on all devices, so all squares go into the psum.
def step__wrong_copies_counted(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
        parts = lax.psum(sum(squares.values()), ("data", "model"))
        norm = jnp.sqrt(parts)
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=0)(state, tokens, targets)


# Thought: gradients that were accumulated have to be divided by the number of microbatches.
def step__wrong_divided_by_m(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        value, slopes = value / len(tokens), jax.tree.map(lambda g: g / len(tokens), slopes)
        squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
        parts = lax.psum(sum(s for name, s in squares.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(squares[name] for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=0)(state, tokens, targets)


# Thought: every device has a norm, and the norm of all is their sum.
def step__wrong_sum_of_norms(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
        parts = lax.psum(jnp.sqrt(sum(s for name, s in squares.items() if name not in NORMS)), ("data", "model"))
        norm = jnp.sqrt(parts**2 + sum(squares[name] for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=0)(state, tokens, targets)


# Thought: the old state is freed when its name is bound anew, as in PyTorch; jit needs to know nothing.
def step__wrong_not_donated(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
        parts = lax.psum(sum(s for name, s in squares.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(squares[name] for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run)(state, tokens, targets)


def four_processes__right_loop(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        batch = []
        for array in batch_at(k, seed, rows, 1, lines):
            part = np.split(np.asarray(array), num_processes, axis=1)[process_id]
            batch.append(jax.make_array_from_process_local_data(cut, part))
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses


# Thought: rows are dealt out in turns, as DistributedSampler does.
def four_processes__wrong_strided(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        batch = []
        for array in batch_at(k, seed, rows, 1, lines):
            part = np.asarray(array)[:, process_id::num_processes]
            batch.append(jax.make_array_from_process_local_data(cut, part))
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses


# Thought: the sharding cuts the batch, so each process gives all of it.
def four_processes__wrong_not_cut(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        batch = []
        for array in batch_at(k, seed, rows, 1, lines):
            part = np.asarray(array)
            batch.append(jax.make_array_from_process_local_data(cut, part))
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses


# Thought: each process asks for a batch of a quarter of the rows.
def four_processes__wrong_small_batches(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        batch = []
        for array in batch_at(k, seed, rows // num_processes, 1, lines):
            part = np.asarray(array)
            batch.append(jax.make_array_from_process_local_data(cut, part))
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses


# Thought: only rank 0 reports.
def four_processes__wrong_only_zero(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh)
    cut, losses = NamedSharding(mesh, P(None, "data")), []
    for k in range(steps):
        batch = []
        for array in batch_at(k, seed, rows, 1, lines):
            part = np.split(np.asarray(array), num_processes, axis=1)[process_id]
            batch.append(jax.make_array_from_process_local_data(cut, part))
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses if process_id == 0 else []


def resume__right_tree(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, done, losses = lay_out(started(params), state_layouts(), mesh), 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            like = {"state": like, "seed": 0, "position": 0}
            tree = manager.restore(done, args=ocp.args.StandardRestore(like))
            state, seed, position = tree["state"], int(tree["seed"]), int(tree["position"])
        found = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            losses.append(float(value))
            position += 1
            if number % every == 0:
                saved = {"state": state, "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(saved))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}")
    return {"first": done + 1, "losses": losses, "mesh": found}


# Thought: save has returned, so it is saved.
def resume__wrong_no_wait(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, done, losses = lay_out(started(params), state_layouts(), mesh), 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            like = {"state": like, "seed": 0, "position": 0}
            tree = manager.restore(done, args=ocp.args.StandardRestore(like))
            state, seed, position = tree["state"], int(tree["seed"]), int(tree["position"])
        found = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            losses.append(float(value))
            position += 1
            if number % every == 0:
                saved = {"state": state, "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(saved))
            print(f"step {number} loss {losses[-1]:.4f}")
    return {"first": done + 1, "losses": losses, "mesh": found}


# Thought: the position saved is that of the batch just done.
def resume__wrong_position(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, done, losses = lay_out(started(params), state_layouts(), mesh), 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            like = {"state": like, "seed": 0, "position": 0}
            tree = manager.restore(done, args=ocp.args.StandardRestore(like))
            state, seed, position = tree["state"], int(tree["seed"]), int(tree["position"])
        found = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            losses.append(float(value))
            position += 1
            if number % every == 0:
                saved = {"state": state, "seed": seed, "position": position - 1}
                manager.save(number, args=ocp.args.StandardSave(saved))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}")
    return {"first": done + 1, "losses": losses, "mesh": found}


# Thought: the seed is an argument, only the state and the position need to come back.
def resume__wrong_own_seed(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, done, losses = lay_out(started(params), state_layouts(), mesh), 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step()
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            like = {"state": like, "seed": 0, "position": 0}
            tree = manager.restore(done, args=ocp.args.StandardRestore(like))
            state, position = tree["state"], int(tree["position"])
        found = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            losses.append(float(value))
            position += 1
            if number % every == 0:
                saved = {"state": state, "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(saved))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}")
    return {"first": done + 1, "losses": losses, "mesh": found}


# Thought: the run goes on with the step whose number is on the checkpoint.
def resume__wrong_step_again(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(shape, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, done, losses = lay_out(started(params), state_layouts(), mesh), 0, []
    with ocp.CheckpointManager(folder) as manager:
        if manager.latest_step() is not None:
            done = manager.latest_step() - 1
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            like = {"state": like, "seed": 0, "position": 0}
            tree = manager.restore(done + 1, args=ocp.args.StandardRestore(like))
            state, seed, position = tree["state"], int(tree["seed"]), int(tree["position"])
        found = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = step(state, *batch, mesh=mesh)
            losses.append(float(value))
            position += 1
            if number % every == 0:
                saved = {"state": state, "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(saved))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}")
    return {"first": done + 1, "losses": losses, "mesh": found}
