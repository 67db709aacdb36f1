"""Answers to lesson 22, third batch, written by a reader of the notebook only."""

import contextlib
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import grader
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

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}

# ------------------------------------------------ the notebook's helpers, and this student's answers to the gates before


def spec_of(axes):
    """How a parameter lies, by the names of its dimensions. (Another exercise's answer.)"""
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    spec = P(*(rules.get(axis) for axis in axes))
    return spec if "model" in tuple(spec) else P()


def specs(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device". (Another exercise's answer.)"""
    sizes = mesh if isinstance(mesh, dict) else mesh.shape
    found, total = {}, 0
    for name, dimensions in axes.items():
        found[name] = spec_of(dimensions)
        numbers = math.prod(lengths[dimension] for dimension in dimensions)
        total += 4 * numbers // math.prod(sizes[axis] for axis in tuple(found[name]) if axis)
    return {**found, "bytes on each device": total}


def layouts():
    """The spec of every parameter, by your rule."""
    return {name: spec_of(axes) for name, axes in AXES.items()}


def whole_width(name, leaf):
    """FSDP: a parameter (inside the scan: of one layer), gathered to its whole width; unchanged where that is not cut."""
    spec = tuple(layouts()[name])
    if "data" not in spec:
        return leaf
    return lax.all_gather(leaf, "data", axis=spec.index("data") - (name in LAYER), tiled=True)


def losses_on_device(logits, targets):
    """The loss of each token [b, T], of logits [b, T, words] in parts; 0 for padding."""
    words = logits.shape[-1]
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    place = targets - lax.axis_index("model") * words
    mine = (place >= 0) & (place < words)
    picked = jnp.take_along_axis(logits, jnp.where(mine, place, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jnp.log(total) + top - lax.psum(jnp.where(mine, picked, 0), "model"), 0)


def logits_on_device(params, tokens):
    """Logits [b, T, words] of this device's rows and words, of its shares of the parameters."""

    def gathered(x):
        """The whole sequence, of every device's block of it."""
        return lax.all_gather(x, "model", axis=1, tiled=True)

    def scattered(x):
        """This device's block of the sequence, of the sum of every device's part."""
        return lax.psum_scatter(x, "model", scatter_dimension=1, tiled=True)

    table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
    place = tokens - lax.axis_index("model") * len(table)  # in this device's part of the vocabulary
    mine = (place >= 0) & (place < len(table))
    x = scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

    @jax.checkpoint
    def applied(x, shares):
        layer = {name: whole_width(name, leaf) for name, leaf in shares.items()}
        x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
        return x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

    x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
    return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])


def loss_on_device(params, tokens, targets):
    """The mean over all real tokens of all devices."""
    found = jnp.sum(losses_on_device(logits_on_device(params, tokens), targets))
    return lax.psum(found, "data") / lax.psum(jnp.sum(targets >= 0), "data")


def lay_out(tree, lies, mesh):
    """Arrays on a mesh, as a tree of specs says."""
    return jax.tree.map(lambda leaf, spec: jax.device_put(np.asarray(leaf), NamedSharding(mesh, spec)), tree, lies)


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    squares = {name: jnp.sum(slope**2) for name, slope in slopes.items()}
    parts = lax.psum(sum(square for name, square in squares.items() if name not in NORMS), ("data", "model"))
    norm = jnp.sqrt(parts + sum(squares[name] for name in NORMS))
    return adamw(state, clipped(slopes, norm)), value


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    lies, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(lies, rows, rows), out_specs=(lies, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


def compiled(function, **options):
    """`jax.jit` that asks first whether its arguments still exist."""
    jitted = jax.jit(function, **options)

    def call(*arguments):
        for leaf in jax.tree.leaves(arguments):
            if leaf.is_deleted():
                raise RuntimeError(f"Array has been deleted with shape={leaf.dtype}[{','.join(map(str, leaf.shape))}].")
        return jitted(*arguments)

    return call


@contextlib.contextmanager
def counted(state):
    """A dict that has, when the block is over, the "programs" compiled in it and the "arrays left" of this state."""
    told, given = {}, jax.tree.leaves(state)
    with grader.compilations() as made:
        yield told
    told["programs"], told["arrays left"] = len(made), sum(not leaf.is_deleted() for leaf in given)


# ---------------------------------------------------------------- resume


def resume__right_one_tree(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    now = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    run = {"state": lay_out(started(params), state_layouts(), now), "seed": seed, "position": position}
    lies = jax.tree.map(lambda leaf: leaf.sharding, run["state"]), NamedSharding(now, P())
    train, losses = jax.jit(functools.partial(step, mesh=now), donate_argnums=(0,), out_shardings=lies), []
    with ocp.CheckpointManager(folder) as manager:
        done = manager.latest_step()
        if done is None:
            done = 0
        else:
            like = dict(
                run,
                state=jax.tree.map(
                    lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), run["state"]
                ),
            )
            run = manager.restore(done, args=ocp.args.StandardRestore(like))
        found = dict(run["state"]["params"]["embedding"].sharding.mesh.shape)
        for number in range(done + 1, steps + 1):
            batch = batch_at(int(run["position"]), int(run["seed"]), 4, 2, lines)
            new, value = train(run["state"], *lay_out(tuple(batch), (P(None, "data"), P(None, "data")), now))
            run = {"state": new, "seed": run["seed"], "position": run["position"] + 1}
            losses.append(float(value))
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave(run))
                manager.wait_until_finished()
            print(f"step {number} loss {losses[-1]:.4f}", flush=True)
    return {"first": done + 1, "losses": losses, "mesh": found}


# The seed is an argument of the run, so it need not be saved: state and position are enough.
def resume__wrong_seed(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    here = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, first, losses = lay_out(started(params), state_layouts(), here), 1, []
    with ocp.CheckpointManager(folder) as manager:
        last = manager.latest_step()
        if last is not None:
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            kept = manager.restore(last, args=ocp.args.StandardRestore({"state": like, "position": 0}))
            state, position, first = kept["state"], kept["position"], last + 1
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(here, P())
        train = jax.jit(functools.partial(step, mesh=here), donate_argnums=0, out_shardings=lies)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, here)
            state, value = train(state, *batch)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                manager.save(number, args=ocp.args.StandardSave({"state": state, "position": position}))
                manager.wait_until_finished()
            print("step", number, "loss", losses[-1], flush=True)
    return {"first": first, "losses": losses, "mesh": where}


# Save the position of the batch that this step has had; it belongs to the step.
def resume__wrong_position(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    here = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, first, losses = lay_out(started(params), state_layouts(), here), 1, []
    with ocp.CheckpointManager(folder) as manager:
        last = manager.latest_step()
        if last is not None:
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            kept = manager.restore(last, args=ocp.args.StandardRestore({"state": like, "seed": 0, "position": 0}))
            state, seed, position, first = kept["state"], kept["seed"], kept["position"], last + 1
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(here, P())
        train = jax.jit(functools.partial(step, mesh=here), donate_argnums=0, out_shardings=lies)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, here)
            state, value = train(state, *batch)
            losses.append(float(value))
            if number % every == 0:
                tree = {"state": state, "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            position += 1
            print("step", number, "loss", losses[-1], flush=True)
    return {"first": first, "losses": losses, "mesh": where}


# save writes while the next steps run, and the manager waits for it at the end of the with: no need to wait here.
def resume__wrong_no_wait(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    here = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, first, losses = lay_out(started(params), state_layouts(), here), 1, []
    with ocp.CheckpointManager(folder) as manager:
        last = manager.latest_step()
        if last is not None:
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
            kept = manager.restore(last, args=ocp.args.StandardRestore({"state": like, "seed": 0, "position": 0}))
            state, seed, position, first = kept["state"], kept["seed"], kept["position"], last + 1
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(here, P())
        train = jax.jit(functools.partial(step, mesh=here), donate_argnums=0, out_shardings=lies)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, here)
            state, value = train(state, *batch)
            position += 1
            losses.append(float(value))
            print("step", number, "loss", losses[-1], flush=True)
            if number % every == 0:
                tree = {"state": state, "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
    return {"first": first, "losses": losses, "mesh": where}


# The model is its parameters: they are saved with seed and position, and Adam warms up again by itself.
def resume__wrong_moments(process_id, num_processes, *, folder, shape, params, seed, position, lines, every, steps):
    here = jax.make_mesh(tuple(shape), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, first, losses = lay_out(started(params), state_layouts(), here), 1, []
    with ocp.CheckpointManager(folder) as manager:
        last = manager.latest_step()
        if last is not None:
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state["params"])
            kept = manager.restore(last, args=ocp.args.StandardRestore({"params": like, "seed": 0, "position": 0}))
            state = {**state, "params": kept["params"]}
            seed, position, first = kept["seed"], kept["position"], last + 1
        where = dict(state["params"]["embedding"].sharding.mesh.shape)
        lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(here, P())
        train = jax.jit(functools.partial(step, mesh=here), donate_argnums=0, out_shardings=lies)
        for number in range(first, steps + 1):
            batch = lay_out(batch_at(position, seed, 4, 2, lines), (P(None, "data"),) * 2, here)
            state, value = train(state, *batch)
            position += 1
            losses.append(float(value))
            if number % every == 0:
                tree = {"params": state["params"], "seed": seed, "position": position}
                manager.save(number, args=ocp.args.StandardSave(tree))
                manager.wait_until_finished()
            print("step", number, "loss", losses[-1], flush=True)
    return {"first": first, "losses": losses, "mesh": where}


# ---------------------------------------------------------------- forward
# (The answer cell has logits_on_device and forward; here the first stands inside the second, so that each answer has its own.)


def forward__right_blocks(params, tokens, *, mesh):
    gathered = functools.partial(lax.all_gather, axis_name="model", axis=1, tiled=True)
    scattered = functools.partial(lax.psum_scatter, axis_name="model", scatter_dimension=1, tiled=True)

    def logits_on_device(params, tokens):
        table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
        place = tokens - lax.axis_index("model") * len(table)
        mine = (place >= 0) & (place < len(table))
        x = scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

        @jax.checkpoint
        def applied(x, shares):
            layer = {name: whole_width(name, leaf) for name, leaf in shares.items()}
            blocks = (
                ("attention_norm", lambda h: attention(layer, h, positions)),
                ("mlp_norm", lambda h: mlp(layer, h)),
            )
            for norm, block in blocks:
                x = x + scattered(block(gathered(rms_norm(x, layer[norm]))))
            return x, None

        x = lax.scan(applied, x, {name: params[name] for name in LAYER})[0]
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    lies, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=lies, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


def _forward(params, tokens, mesh, body):
    """`body(x, params, positions, gathered, scattered)` after the embedding; what the answer cell gives."""

    def gathered(x):
        return lax.all_gather(x, "model", axis=1, tiled=True)

    def scattered(x):
        return lax.psum_scatter(x, "model", scatter_dimension=1, tiled=True)

    def logits_on_device(params, tokens):
        table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
        place = tokens - lax.axis_index("model") * len(table)
        mine = (place >= 0) & (place < len(table))
        looked_up = jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0)
        return body(looked_up, params, positions, gathered, scattered)

    lies, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(logits_on_device, mesh=mesh, in_specs=lies, out_specs=words)(params, tokens)


# The two lines of a layer are done on the gathered x, and its result is scattered: the residual goes along.
def forward__wrong_residual_inside(params, tokens, *, mesh):
    def body(x, params, positions, gathered, scattered):
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            whole = gathered(x)
            x = scattered(whole + attention(layer, rms_norm(whole, layer["attention_norm"]), positions))
            whole = gathered(x)
            return scattered(whole + mlp(layer, rms_norm(whole, layer["mlp_norm"]))), None

        x, _ = lax.scan(applied, scattered(x), {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    return _forward(params, tokens, mesh, body)


# Add the parts up for everybody, then nothing needs to be gathered before the next matrix.
def forward__wrong_all_reduce(params, tokens, *, mesh):
    def body(x, params, positions, gathered, scattered):
        def everybody(part):
            return lax.psum(part, "model")

        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + everybody(attention(layer, rms_norm(x, layer["attention_norm"]), positions))
            return x + everybody(mlp(layer, rms_norm(x, layer["mlp_norm"]))), None

        x, _ = lax.scan(applied, everybody(x), {name: params[name] for name in LAYER})
        return rms_norm(x, params["norm"]) @ whole_width("unembedding", params["unembedding"])

    return _forward(params, tokens, mesh, body)


# After attention and MLP a device keeps its own block of the sequence of what it has made.
def forward__wrong_own_block(params, tokens, *, mesh):
    def body(x, params, positions, gathered, scattered):
        def own_block(whole):
            length = whole.shape[1] // lax.axis_size("model")
            return lax.dynamic_slice_in_dim(whole, lax.axis_index("model") * length, length, axis=1)

        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + own_block(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
            return x + own_block(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

        x, _ = lax.scan(applied, scattered(x), {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    return _forward(params, tokens, mesh, body)


# The last product is of each token by itself, so x need not be gathered for it.
def forward__wrong_last_product(params, tokens, *, mesh):
    def body(x, params, positions, gathered, scattered):
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
            return x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

        x, _ = lax.scan(applied, scattered(x), {name: params[name] for name in LAYER})
        return rms_norm(x, params["norm"]) @ whole_width("unembedding", params["unembedding"])

    return _forward(params, tokens, mesh, body)


# ---------------------------------------------------------------- curve


def curve__right_listed(state, batches, mesh):
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(lambda *given: step(*given, mesh=mesh), donate_argnums=(0,), out_shardings=lies)
    values = []
    with counted(state) as told:
        for tokens, targets in batches:
            state, value = run(state, tokens, targets)
            values.append(float(value))
    return {"losses": np.asarray(values), **told}


# step gives its state away already, so the jit around it need not say so again.
def curve__wrong_not_donated(state, batches, mesh):
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), out_shardings=lies)
    losses = []
    with counted(state) as told:
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
    return told | {"losses": np.array(losses)}


# A jit where it is used: JAX remembers what it has compiled.
def curve__wrong_jit_in_loop(state, batches, mesh):
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    losses = []
    with counted(state) as told:
        for batch in batches:
            run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
            state, value = run(state, *batch)
            losses.append(float(value))
    return told | {"losses": np.array(losses)}


# To count the arrays of the first state I have to keep it, so training goes on with a copy of it.
def curve__wrong_copy(state, batches, mesh):
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
    losses = []
    with counted(state) as told:
        current = jax.tree.map(jnp.copy, state)
        for batch in batches:
            current, value = run(current, *batch)
            losses.append(float(value))
    return told | {"losses": np.array(losses)}


# A curve over batches is noisy, so its point at a step is the mean of all losses so far.
def curve__wrong_running_mean(state, batches, mesh):
    lies = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=lies)
    losses = []
    with counted(state) as told:
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
    return told | {"losses": np.cumsum(losses) / np.arange(1, len(losses) + 1)}
