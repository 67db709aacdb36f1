"""Answers to lesson 22, fourth batch, written by a reader of the notebook only."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
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
    initial,
    mlp,
    rms_norm,
    started,
)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

# ------------------------------------------------------------------ answers to earlier gates, which four_processes needs


def spec_of(axes):
    """How a parameter lies, by the names of its dimensions."""
    rules = {"width": "data"} | dict.fromkeys(("heads", "kv_heads", "hidden", "vocabulary"), "model")
    spec = tuple(rules.get(axis) for axis in axes)
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
    squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
    parts = lax.psum(sum(s for name, s in squares.items() if name not in NORMS), ("data", "model"))
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


# ------------------------------------------------------------------ four_processes


def four_processes__right_callback(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """Of the batch that every process can compute, JAX asks each for its own rows."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    pod = jax.make_mesh((num_processes, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    lies = jax.tree.map(lambda spec: NamedSharding(pod, spec), (state_layouts(), P()))
    run = compiled(functools.partial(step, mesh=pod), donate_argnums=0, out_shardings=lies)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), pod)

    def fed(whole):
        whole = np.asarray(whole)
        return jax.make_array_from_callback(
            whole.shape, NamedSharding(pod, P(None, "data")), lambda index: whole[index]
        )

    losses = []
    for k in range(steps):
        state, value = run(state, *map(fed, batch_at(k, seed, rows, 1, lines)))
        losses.append(float(value))
    return losses


# This student gives JAX the whole batch in every process and expects it to take each one's rows out of it.
def four_processes__wrong_whole_batch_each(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh), []
    for k in range(steps):
        batch = [
            jax.make_array_from_process_local_data(NamedSharding(mesh, P(None, "data")), np.asarray(array))
            for array in batch_at(k, seed, rows, 1, lines)
        ]
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses


# This student gives every process an order of the data of its own, so that they do not see the same lines.
def four_processes__wrong_own_order(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh), []
    for k in range(steps):
        batch = batch_at(k, seed + process_id, rows, 1, lines)
        parts = (np.split(np.asarray(array), num_processes, axis=1)[process_id] for array in batch)
        batch = [jax.make_array_from_process_local_data(NamedSharding(mesh, P(None, "data")), part) for part in parts]
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses


# This student wrote the mesh with `model` first, so that `data` runs within pairs of processes and not over all four.
def four_processes__wrong_model_first(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((2, 4), ("model", "data"), axis_types=(AxisType.Auto,) * 2)
    state, losses = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh), []
    for k in range(steps):
        parts = (
            np.split(np.asarray(array), num_processes, axis=1)[process_id]
            for array in batch_at(k, seed, rows, 1, lines)
        )
        batch = [jax.make_array_from_process_local_data(NamedSharding(mesh, P(None, "data")), part) for part in parts]
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses


# This student counts the batches from 1, as steps are counted.
def four_processes__wrong_batches_from_1(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), mesh), []
    for k in range(1, steps + 1):
        parts = (
            np.split(np.asarray(array), num_processes, axis=1)[process_id]
            for array in batch_at(k, seed, rows, 1, lines)
        )
        batch = [jax.make_array_from_process_local_data(NamedSharding(mesh, P(None, "data")), part) for part in parts]
        state, value = step(state, *batch, mesh=mesh)
        losses.append(float(value))
    return losses


# ------------------------------------------------------------------ plan


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
    # layer forwards, four backwards; what is computed again gathers again.
    passes = 3 * 2 * model["parameters"] / axis * (data - 1) / data * micro
    sums = {"none": 8, "mlp": 9, "full": 12}[plan["remat"]] * layers * micro
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


def plan__right_fastest(model, machine, devices, sequences):
    """For a fixed batch the highest MFU is the shortest step."""
    powers = [2**k for k in range(sequences.bit_length())]
    plans = [
        {
            "data": devices // axis,
            "model": axis,
            "rows": rows,
            "micro": sequences * axis // devices // rows,
            "remat": remat,
        }
        for axis, rows, remat in itertools.product((1, 2, 4, 8, 16, 32), powers, ("none", "mlp", "full"))
        if model["kv_heads"] % axis == 0 and devices % axis == 0 and sequences * axis % (devices * rows) == 0
    ]
    room = [plan for plan in plans if held(model, plan) <= 9 * machine["memory"] / 10]
    if not room:
        return min(plans, key=lambda plan: held(model, plan))
    return min(room, key=lambda plan: seconds(model, machine, plan))


# This student fills the memory to the last byte: the formula says that it fits.
def plan__wrong_all_of_the_memory(model, machine, devices, sequences):
    plans = []
    for axis in (1, 2, 4, 8):
        if model["kv_heads"] % axis or devices % axis:
            continue
        share, rows = sequences // (devices // axis), 1
        while rows <= share:
            plans += [
                {"data": devices // axis, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}
                for remat in ("none", "mlp", "full")
            ]
            rows *= 2
    fit = [plan for plan in plans if held(model, plan) <= machine["memory"]]
    if not fit:
        return min(plans, key=lambda plan: held(model, plan))
    return max(fit, key=lambda plan: used(model, machine, plan))


# This student thought that a large model always needs every layer computed twice.
def plan__wrong_always_full(model, machine, devices, sequences):
    plans = []
    for axis in (1, 2, 4, 8):
        if model["kv_heads"] % axis or devices % axis:
            continue
        share, rows = sequences // (devices // axis), 1
        while rows <= share:
            plans.append(
                {"data": devices // axis, "model": axis, "rows": rows, "micro": share // rows, "remat": "full"}
            )
            rows *= 2
    fit = [plan for plan in plans if held(model, plan) <= 0.9 * machine["memory"]]
    if not fit:
        return min(plans, key=lambda plan: held(model, plan))
    return max(fit, key=lambda plan: used(model, machine, plan))


# This student takes all sequences of a device at once: microbatches only gather the weights once more.
def plan__wrong_no_microbatches(model, machine, devices, sequences):
    plans = []
    for axis in (1, 2, 4, 8):
        data = devices // axis
        if model["kv_heads"] % axis == 0 and data and sequences >= data:
            for remat in ("none", "mlp", "full"):
                plans.append({"data": data, "model": axis, "rows": sequences // data, "micro": 1, "remat": remat})
    fit = [plan for plan in plans if held(model, plan) <= 0.9 * machine["memory"]]
    if not fit:
        return min(plans, key=lambda plan: held(model, plan))
    return max(fit, key=lambda plan: used(model, machine, plan))


# This student divides the sequences by all devices, although those along model have the same ones.
def plan__wrong_share_of_a_device(model, machine, devices, sequences):
    plans, share = [], max(1, sequences // devices)
    for axis in (1, 2, 4, 8):
        if model["kv_heads"] % axis or devices % axis:
            continue
        rows = 1
        while rows <= share:
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": devices // axis, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}
                )
            rows *= 2
    fit = [plan for plan in plans if held(model, plan) <= 0.9 * machine["memory"]]
    if not fit:
        return min(plans, key=lambda plan: held(model, plan))
    return max(fit, key=lambda plan: used(model, machine, plan))


# ------------------------------------------------------------------ five_broken_trainers

five_broken_trainers__right_lines = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# This student thought that the second psum makes everything four times too large, and that a psum of gradients counts copies.
five_broken_trainers__wrong_psum_over_data = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "D",
    "copies are counted in the norm": "E",
    "weight decay on the bias": "B",
}

# This student took both wrong first losses for the other's fault: a first loss that is off looked like the bias.
five_broken_trainers__wrong_first_losses_swapped = {
    "a mean of means": "C",
    "the bias is added up over model": "A",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# This student thought that an update that differs for the bias alone comes from counting the bias's copies in the norm.
five_broken_trainers__wrong_bias_is_the_copy = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "B",
    "weight decay on the bias": "D",
}

# This student thought that a pmean of the loss is what makes the gradients four times too large, and that E averages means.
five_broken_trainers__wrong_pmean_is_the_four = {
    "a mean of means": "E",
    "the bias is added up over model": "C",
    "all gradients four times too large": "A",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}
