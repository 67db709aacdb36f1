"""Answers to lesson 22, sixth batch, written by a reader of the notebook only."""

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
    mlp,
    rms_norm,
    started,
)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}


# ---------------------------------------------------------------- the notebook's cells, and the answers above these


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


def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    spec = P(*(rules.get(axis) for axis in axes))
    return spec if "model" in tuple(spec) else P()


def specs(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""
    found, total = {}, 0
    for name, dimensions in axes.items():
        found[name] = spec_of(dimensions)
        size = math.prod(lengths[axis] for axis in dimensions)
        for axis in tuple(found[name]):
            size //= mesh[axis] if axis else 1
        total += 4 * size
    return found | {"bytes on each device": total}


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


def forward(params, tokens, *, mesh):
    """The logits of all rows and words."""
    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


def losses_on_device(logits, targets):
    """The loss of each token [b, T], of logits [b, T, words] in parts; 0 for padding."""
    words = logits.shape[-1]
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    place = targets - lax.axis_index("model") * words
    mine = (place >= 0) & (place < words)
    picked = jnp.take_along_axis(logits, jnp.where(mine, place, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jnp.log(total) + top - lax.psum(jnp.where(mine, picked, 0), "model"), 0)


def loss_on_device(params, tokens, targets):
    """The mean over all real tokens of all devices."""
    losses = losses_on_device(logits_on_device(params, tokens), targets)
    return lax.psum(jnp.sum(losses), "data") / lax.psum(jnp.sum(targets >= 0), "data")


def loss(params, tokens, targets, *, mesh):
    """The loss of the whole batch, on every device."""
    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


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
    pieces = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
    copies = sum(jnp.sum(slopes[name] ** 2) for name in NORMS)
    return adamw(state, clipped(slopes, jnp.sqrt(pieces + copies))), value


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# ---------------------------------------------------------------- gradients


# Right: differentiates the whole `loss` from outside; the gradient of a shard_map's argument is laid out as the argument.
def gradients__right_from_outside(params, tokens, targets, *, mesh):
    of_params = lambda params: loss(params, tokens, targets, mesh=mesh)
    return jax.value_and_grad(of_params)(params)


# This student has trouble with the types, and switches the check off.
def gradients__wrong_unchecked(params, tokens, targets, *, mesh):
    on_mesh = jax.shard_map(
        jax.value_and_grad(loss_on_device),
        mesh=mesh,
        in_specs=(layouts(), P("data"), P("data")),
        out_specs=(P(), layouts()),
        check_vma=False,
    )
    return on_mesh(params, tokens, targets)


# This student remembers that copies must be added up, and does by hand for the norm scales what JAX has already done.
def gradients__wrong_norms_again(params, tokens, targets, *, mesh):
    def on_device(params, tokens, targets):
        value, slopes = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        for name in NORMS:
            slopes[name] = lax.psum(slopes[name], ("data", "model"))
        return value, slopes

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts(), P("data"), P("data")), out_specs=(P(), layouts()))(
        params, tokens, targets
    )


# This student takes the mean of the devices' own means for the loss.
def gradients__wrong_mean_of_means(params, tokens, targets, *, mesh):
    def my_loss(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        mine = jnp.sum(losses) / jnp.maximum(jnp.sum(targets >= 0), 1)
        return lax.pmean(mine, "data")

    spec_tree = layouts()
    return jax.shard_map(
        jax.value_and_grad(my_loss), mesh=mesh, in_specs=(spec_tree, P("data"), P("data")), out_specs=(P(), spec_tree)
    )(params, tokens, targets)


# This student thinks that JAX has added up the gradients of four parts of the batch, and that they have to be averaged.
def gradients__wrong_averaged_once_more(params, tokens, targets, *, mesh):
    ins, outs = (layouts(), P("data"), P("data")), (P(), layouts())
    value, slopes = jax.shard_map(jax.value_and_grad(loss_on_device), mesh=mesh, in_specs=ins, out_specs=outs)(
        params, tokens, targets
    )
    return value, {name: g / mesh.shape["data"] for name, g in slopes.items()}


# ---------------------------------------------------------------- resume


# Right: the state and the two numbers are two items of a checkpoint; the numbers are JSON.
def resume__right_two_items(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    here = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(params), state_layouts(), here)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(here, P())
    run = compiled(functools.partial(step, mesh=here), donate_argnums=0, out_shardings=shardings)
    losses = []
    with ocp.CheckpointManager(folder) as manager:
        done = manager.latest_step()
        if done is None:
            done = 0
        else:
            abstract = jax.tree.map(
                lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state
            )
            found = manager.restore(
                done, args=ocp.args.Composite(state=ocp.args.StandardRestore(abstract), data=ocp.args.JsonRestore())
            )
            state, seed, position = found["state"], found["data"]["seed"], found["data"]["position"]
        began_on = dict(state["params"]["embedding"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, here)
            state, value = run(state, *batch)
            losses.append(float(value))
            position += 1
            if number % every == 0:
                manager.save(
                    number,
                    args=ocp.args.Composite(
                        state=ocp.args.StandardSave(state),
                        data=ocp.args.JsonSave({"seed": int(seed), "position": int(position)}),
                    ),
                )
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}", flush=True)
    return {"first": done + 1, "losses": losses, "mesh": began_on}


# This student saves the parameters only: Adam's moments and the count begin anew.
def resume__wrong_params_only(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    manager = ocp.CheckpointManager(folder)
    latest = manager.latest_step()
    first = 1
    if latest is not None:
        like = {
            name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, layouts()[name]))
            for name, leaf in params.items()
        }
        found = manager.restore(latest, args=ocp.args.StandardRestore({"params": like, "seed": 0, "position": 0}))
        params, seed, position = found["params"], int(found["seed"]), int(found["position"])
        first = latest + 1
    state = lay_out(started(params), state_layouts(), mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    losses = []
    for n in range(first, steps + 1):
        state, value = run(state, *lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh))
        losses.append(float(value))
        position += 1
        if n % every == 0:
            manager.save(n, args=ocp.args.StandardSave({"params": state["params"], "seed": seed, "position": position}))
            manager.wait_until_finished()
        print(f"step {n} {losses[-1]}", flush=True)
    manager.close()
    return {"first": first, "losses": losses, "mesh": dict(mesh.shape)}


# This student saves the position of the batch that has just been used: the second run reads it once more.
def resume__wrong_batch_twice(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(params), state_layouts(), mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    with ocp.CheckpointManager(folder) as manager:
        last = manager.latest_step()
        if last is not None:
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            tree = manager.restore(last, args=ocp.args.StandardRestore({"state": like, "seed": 0, "position": 0}))
            state, seed, position = tree["state"], int(tree["seed"]), int(tree["position"])
        first, losses = (last or 0) + 1, []
        on = dict(state["count"].sharding.mesh.shape)
        for n in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh)
            state, value = run(state, *batch)
            losses.append(float(value))
            if n % every == 0:
                manager.save(n, args=ocp.args.StandardSave({"state": state, "seed": seed, "position": position}))
                manager.wait_until_finished()
            position += 1
            print("step", n, losses[-1], flush=True)
    return {"first": first, "losses": losses, "mesh": on}


# This student says that the step is done as soon as `save` has returned, and waits at the end of the run only.
def resume__wrong_says_it_too_early(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(params), state_layouts(), mesh)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    manager = ocp.CheckpointManager(folder)
    done = manager.latest_step() or 0
    if done:
        like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
        back = manager.restore(done, args=ocp.args.StandardRestore({"state": like, "seed": 0, "position": 0}))
        state, seed, position = back["state"], int(back["seed"]), int(back["position"])
    where, losses = dict(mesh.shape), []
    for n in range(done + 1, steps + 1):
        state, value = run(state, *lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, mesh))
        position += 1
        losses.append(float(value))
        if n % every == 0:
            manager.save(n, args=ocp.args.StandardSave({"state": state, "seed": seed, "position": position}))
        print(f"step {n} loss {losses[-1]:.3f}", flush=True)
    manager.wait_until_finished()
    manager.close()
    return {"first": done + 1, "losses": losses, "mesh": where}


# This student saves the state and the position, and takes the seed from the arguments: "it is a setting of the run, not a state".
def resume__wrong_seed_of_the_arguments(
    process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps
):
    mesh = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(params), state_layouts(), mesh)
    run = compiled(
        functools.partial(step, mesh=mesh),
        donate_argnums=0,
        out_shardings=(jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())),
    )
    first, losses = 1, []
    with ocp.CheckpointManager(folder) as manager:
        if (last := manager.latest_step()) is not None:
            like = {
                "state": jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state),
                "position": 0,
            }
            tree = manager.restore(last, args=ocp.args.StandardRestore(like))
            state, position, first = tree["state"], int(tree["position"]), last + 1
        begin = dict(state["params"]["norm"].sharding.mesh.shape)
        for n in range(first, steps + 1):
            batch = batch_at(position, seed, 4, 2, lines)
            state, value = run(state, *lay_out(batch, (P(None, "data"),) * 2, mesh))
            position += 1
            losses.append(float(value))
            if n % every == 0:
                manager.save(n, args=ocp.args.StandardSave({"state": state, "position": position}))
                manager.wait_until_finished()
            print(f"step {n}", flush=True)
    return {"first": first, "losses": losses, "mesh": begin}


# ---------------------------------------------------------------- five_broken_trainers


five_broken_trainers__right_table = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# This student knows that two first losses are wrong, and takes the one for the other.
five_broken_trainers__wrong_first_losses = {
    "a mean of means": "C",
    "the bias is added up over model": "A",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# This student sees a psum over data too much in two of them, and takes the one in the norm for the one of the gradients.
five_broken_trainers__wrong_psums_over_data = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "D",
    "copies are counted in the norm": "E",
    "weight decay on the bias": "B",
}

# This student looks at the update only: in both it is another one, and the bias is the copy that is counted.
five_broken_trainers__wrong_updates = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "B",
    "weight decay on the bias": "D",
}

# This student thinks that dividing by a quarter of the count in A makes all four times too large, and that E, a psum of gradients, is the mean of means.
five_broken_trainers__wrong_quarter_of_the_count = {
    "a mean of means": "E",
    "the bias is added up over model": "C",
    "all gradients four times too large": "A",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}
