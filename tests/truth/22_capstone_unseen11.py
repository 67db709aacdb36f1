"""Answers to lesson 22, eleventh batch, written by a reader of the notebook only."""

import functools

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


# ---------------------------------------------------------------- this student's earlier gates, and the notebook's helpers


def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    spec = P(*[rules.get(axis) for axis in axes])
    return spec if "model" in tuple(spec) else P()


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
# FLOPs a second, bytes of memory, dollars an hour (list prices of 2025); bytes a second along `model`, and along `data` where
# `model` has 1, 2, 4 or 8 devices: on a v5e both axes of the torus, then one; eight H100s share a node's network cards.
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


# ---------------------------------------------------------------- four_processes


def four_processes__right_piece_by_piece(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    grid = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), grid)
    quarter, cut = rows // num_processes, NamedSharding(grid, P(None, "data"))

    def fed(array):
        """The whole batch, of which both devices of this process hold its quarter."""
        mine = np.asarray(array)[:, process_id * quarter : (process_id + 1) * quarter]
        pieces = [jax.device_put(mine, device) for device in jax.local_devices()]
        return jax.make_array_from_single_device_arrays(array.shape, cut, pieces)

    run = jax.jit(functools.partial(step, mesh=grid), donate_argnums=0)
    losses = []
    for k in range(steps):
        state, value = run(state, *map(fed, batch_at(k, seed, rows, 1, lines)))
        losses.append(float(value))
    return losses


# The parameters are made of a key and of nothing else, so this student makes them first, on each host, and then joins.
def four_processes__wrong_joins_late(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    state = started(initial(jax.random.key(seed), sizes))
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    grid = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(state, state_layouts(), grid)
    run, losses = compiled(functools.partial(step, mesh=grid), donate_argnums=0), []
    for k in range(steps):
        batch = [
            jax.make_array_from_process_local_data(
                NamedSharding(grid, P(None, "data")), np.split(np.asarray(array), num_processes, axis=1)[process_id]
            )
            for array in batch_at(k, seed, rows, 1, lines)
        ]
        state, value = run(state, *batch)
        losses.append(float(value))
    return losses


# A process drives its own devices, so each makes a mesh of those; that all have joined is thought to add the gradients up.
def four_processes__wrong_own_mesh(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    grid = jax.make_mesh((1, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2, devices=jax.local_devices())
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), grid)
    run, losses = compiled(functools.partial(step, mesh=grid), donate_argnums=0), []
    for k in range(steps):
        mine = [
            np.split(np.asarray(array), num_processes, axis=1)[process_id]
            for array in batch_at(k, seed, rows, 1, lines)
        ]
        state, value = run(state, *lay_out(mine, [P(None, "data")] * 2, grid))
        losses.append(float(value))
    return losses


# The order of a mesh's axes is a matter of taste, thinks this student: 2 × 4, model first. Then processes 0 and 2 stand at
# the same places along data, and feed different rows as copies of each other.
def four_processes__wrong_model_first(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    grid = jax.make_mesh((2, 4), ("model", "data"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), grid)
    run, losses = compiled(functools.partial(step, mesh=grid), donate_argnums=0), []
    for k in range(steps):
        batch = [
            jax.make_array_from_process_local_data(
                NamedSharding(grid, P(None, "data")), np.split(np.asarray(array), num_processes, axis=1)[process_id]
            )
            for array in batch_at(k, seed, rows, 1, lines)
        ]
        state, value = run(state, *batch)
        losses.append(float(value))
    return losses


# Each process asks for a quarter as many rows, and takes what it gets for its own quarter: all ask for the same ones.
def four_processes__wrong_smaller_batch_each(process_id, num_processes, *, seed, sizes, lines, rows, steps):
    """The losses of the steps, the same list on every process."""
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    grid = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = lay_out(started(initial(jax.random.key(seed), sizes)), state_layouts(), grid)
    cut = NamedSharding(grid, P(None, "data"))
    run, losses = compiled(functools.partial(step, mesh=grid), donate_argnums=0), []
    for k in range(steps):
        mine = batch_at(k, seed, rows // num_processes, 1, lines)
        state, value = run(state, *(jax.make_array_from_process_local_data(cut, np.asarray(array)) for array in mine))
        losses.append(float(value))
    return losses


# ---------------------------------------------------------------- plan


def plan__right_sorted(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""

    def halves(n):
        """n and its halves, down to 1."""
        return [n] + (halves(n // 2) if n > 1 else [])

    every = [
        {"data": data, "model": devices // data, "rows": rows, "micro": sequences // data // rows, "remat": remat}
        for data in halves(devices)
        if data <= sequences and model["kv_heads"] % (devices // data) == 0
        for rows in halves(sequences // data)
        for remat in ("none", "mlp", "full")
    ]
    every.sort(key=lambda one: used(model, machine, one), reverse=True)
    fitting = (one for one in every if held(model, one) <= 0.9 * machine["memory"])
    return next(fitting, None) or min(every, key=lambda one: held(model, one))


# The sequences are shared out over all devices, those along `model` included: data × rows × micro comes out too small.
def plan__wrong_share_of_each_device(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""
    plans, share = [], max(sequences // devices, 1)
    for axis in (1, 2, 4, 8):
        if model["kv_heads"] % axis or axis > devices:
            continue
        rows = 1
        while rows <= share:
            plans += [
                {"data": devices // axis, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}
                for remat in ("none", "mlp", "full")
            ]
            rows *= 2
    fit = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    if not fit:
        return min(plans, key=lambda one: held(model, one))
    return max(fit, key=lambda one: used(model, machine, one))


# What `held` returns is taken for the bytes of the whole machine, and shared out over its devices once more.
def plan__wrong_held_by_all(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""
    plans = []
    for axis in (1, 2, 4, 8):
        data = devices // axis
        if model["kv_heads"] % axis or not 1 <= data <= sequences:
            continue
        share = sequences // data
        for rows in (2**k for k in range(share.bit_length())):
            plans += [
                {"data": data, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}
                for remat in ("none", "mlp", "full")
            ]
    on_each = lambda one: held(model, one) / devices
    fit = [one for one in plans if on_each(one) <= 0.9 * machine["memory"]]
    return max(fit, key=lambda one: used(model, machine, one)) if fit else min(plans, key=on_each)


# Memory that is paid for should be filled: the plan that holds most, of those that fit, has the least to do twice.
def plan__wrong_fullest(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""
    plans = []
    for axis in (1, 2, 4, 8):
        data = devices // axis
        if model["kv_heads"] % axis or not 1 <= data <= sequences:
            continue
        share = sequences // data
        for rows in (2**k for k in range(share.bit_length())):
            plans += [
                {"data": data, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}
                for remat in ("none", "mlp", "full")
            ]
    memory = lambda one: held(model, one)
    fit = [one for one in plans if memory(one) <= 0.9 * machine["memory"]]
    return max(fit, key=memory) if fit else min(plans, key=memory)


# Where nothing fits all plans are equally bad, and the highest MFU decides there as everywhere.
def plan__wrong_fastest_if_none_fits(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""
    plans = []
    for axis in (1, 2, 4, 8):
        data = devices // axis
        if model["kv_heads"] % axis or not 1 <= data <= sequences:
            continue
        share = sequences // data
        for rows in (2**k for k in range(share.bit_length())):
            plans += [
                {"data": data, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}
                for remat in ("none", "mlp", "full")
            ]
    fit = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    return max(fit or plans, key=lambda one: used(model, machine, one))


# ---------------------------------------------------------------- five_broken_trainers

five_broken_trainers__right_letters = {
    fault: letter
    for letter, fault in {
        "A": "a mean of means",
        "B": "weight decay on the bias",
        "C": "the bias is added up over model",
        "D": "copies are counted in the norm",
        "E": "all gradients four times too large",
    }.items()
}

# A second psum over data makes what is a copy there four times too large: the student reads D's sum as that of gradients.
five_broken_trainers__wrong_norm_for_gradients = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "D",
    "copies are counted in the norm": "E",
    "weight decay on the bias": "B",
}

# Both A and C show in the first loss; a pmean is thought to be harmless (it is a mean), and the psum to be the mean gone wrong.
five_broken_trainers__wrong_first_losses_swapped = {
    "a mean of means": "C",
    "the bias is added up over model": "A",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# Weight decay makes everything smaller, so it is the trainer whose update is shorter in all of them.
five_broken_trainers__wrong_decay_is_shorter = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "B",
    "weight decay on the bias": "D",
}

# The two faults of the bias are confused: in B something is added for the bias in the update, in C it is made larger.
five_broken_trainers__wrong_two_biases = {
    "a mean of means": "A",
    "the bias is added up over model": "B",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "C",
}
