"""Answers to lesson 22, twentieth batch, written by a reader of the notebook only."""

import functools
import itertools
import math

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
    clipped,
    compiled,
    counted,
    mlp,
    rms_norm,
)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}


# ---------------------------------------------------------------- answers of earlier exercises, and helpers of the notebook


def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
    rules = {"width": "data"} | dict.fromkeys(("heads", "kv_heads", "hidden", "vocabulary"), "model")
    parts = [rules.get(axis) for axis in axes]
    return P(*parts) if "model" in parts else P()


def specs(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""
    found, total = {name: spec_of(names) for name, names in axes.items()}, 0
    for name, names in axes.items():
        numbers = math.prod(lengths[axis] for axis in names)
        total += 4 * numbers // math.prod(mesh[axis] for axis in tuple(found[name]) if axis is not None)
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


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    parts = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
    norm = jnp.sqrt(parts + sum(jnp.sum(g**2) for name, g in slopes.items() if name in NORMS))
    return adamw(state, clipped(slopes, norm)), value


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# ---------------------------------------------------------------- loss


def loss__right_pair(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        each = losses_on_device(logits_on_device(params, tokens), targets)
        total, real = lax.psum((jnp.sum(each), jnp.sum(targets >= 0)), "data")
        return total / real

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student took every device's own mean over its real tokens, and the mean of those.
def loss__wrong_mean_of_means(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        each = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.pmean(jnp.sum(each) / jnp.sum(targets >= 0), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student added the losses up over both axes, as if model cut the rows too, and counted the tokens over data.
def loss__wrong_both_axes(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        each = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.psum(jnp.sum(each), ("data", "model")) / lax.psum(jnp.sum(targets >= 0), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student thought that padding, having a loss of 0, does no harm in a plain mean.
def loss__wrong_padding_counts(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        each = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.pmean(each.mean(), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student thought that 0 is padding, and did not count the ends of lines, whose token is 0.
def loss__wrong_above_zero(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        total = lax.psum(losses_on_device(logits_on_device(params, tokens), targets).sum(), "data")
        real = lax.psum((targets > 0).sum(), "data")
        return total / real

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# ---------------------------------------------------------------- curve


def curve__right_dict(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=(0,), out_shardings=shardings)
    losses = ()
    with counted(state) as told:
        for tokens, targets in batches:
            state, value = run(state, tokens, targets)
            losses += (float(value),)
    return dict(told, losses=np.asarray(losses))


# This student compiled where the step is used: a new jitted function for each batch.
def curve__wrong_jit_in_loop(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    losses = []
    with counted(state) as told:
        for batch in batches:
            run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
            state, value = run(state, *batch)
            losses.append(float(value))
    return {"losses": np.array(losses), **told}


# This student returned from within the block, before anything was told.
def curve__wrong_return_inside(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
        return {"losses": np.array(losses)} | told


# This student made the first step before the block, so that compiling should not disturb what is counted.
def curve__wrong_warmed_up(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    state, value = run(state, *batches[0])
    losses = [float(value)]
    with counted(state) as told:
        for batch in batches[1:]:
            state, value = run(state, *batch)
            losses.append(float(value))
    return {"losses": np.array(losses), **told}


# This student gave away a copy, so that whoever calls the function keeps the state.
def curve__wrong_copied(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    mine = jax.tree.map(jnp.copy, state)
    losses = []
    with counted(state) as told:
        for batch in batches:
            mine, value = run(mine, *batch)
            losses.append(float(value))
    return {"losses": np.array(losses), **told}


# ---------------------------------------------------------------- plan


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


def plan__right_product(model, machine, devices, sequences):
    powers = [2**k for k in range(max(devices, sequences).bit_length())]
    plans = []
    for axis, rows, remat in itertools.product(powers, powers, ("none", "mlp", "full")):
        if model["kv_heads"] % axis or devices % axis:
            continue
        data = devices // axis
        micro, rest = divmod(sequences, data * rows)
        if micro and not rest:
            plans.append({"data": data, "model": axis, "rows": rows, "micro": micro, "remat": remat})
    holds = lambda one: held(model, one)
    fits = [one for one in plans if holds(one) <= 0.9 * machine["memory"]]
    return max(fits, key=lambda one: used(model, machine, one)) if fits else min(plans, key=holds)


# This student divided the sequences by the rows, and forgot that the groups along data share them.
def plan__wrong_micro_of_all(model, machine, devices, sequences):
    plans = []
    axis = 1
    while axis <= min(devices, model["kv_heads"]):
        rows = 1
        while rows <= sequences // (devices // axis):
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": devices // axis, "model": axis, "rows": rows, "micro": sequences // rows, "remat": remat}
                )
            rows *= 2
        axis *= 2
    fits = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    if not fits:
        return min(plans, key=lambda one: held(model, one))
    return max(fits, key=lambda one: used(model, machine, one))


# This student thought that fewer microbatches are always better, and looked at the MFU only among plans with the most rows.
def plan__wrong_most_rows(model, machine, devices, sequences):
    plans = []
    for axis in (1, 2, 4, 8):
        if model["kv_heads"] % axis or axis > devices or sequences < devices // axis:
            continue
        share = sequences // (devices // axis)
        for k in range(share.bit_length()):
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": devices // axis, "model": axis, "rows": 2**k, "micro": share // 2**k, "remat": remat}
                )
    fits = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    if fits:
        return max(fits, key=lambda one: (one["rows"], used(model, machine, one)))
    return min(plans, key=lambda one: held(model, one))


# This student thought of no plan that fits as of no limit: the highest MFU of all then.
def plan__wrong_none_fits(model, machine, devices, sequences):
    plans = []
    for axis in (1, 2, 4, 8):
        if model["kv_heads"] % axis or axis > devices or sequences < devices // axis:
            continue
        share = sequences // (devices // axis)
        for k in range(share.bit_length()):
            for remat in ("none", "mlp", "full"):
                plans.append(
                    {"data": devices // axis, "model": axis, "rows": 2**k, "micro": share // 2**k, "remat": remat}
                )
    fits = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    return max(fits or plans, key=lambda one: used(model, machine, one))


# This student thought that a model of this size needs every layer computed again, and tried no other way.
def plan__wrong_always_full(model, machine, devices, sequences):
    plans = []
    for axis in (1, 2, 4, 8):
        if model["kv_heads"] % axis or axis > devices or sequences < devices // axis:
            continue
        share = sequences // (devices // axis)
        plans += [
            {"data": devices // axis, "model": axis, "rows": 2**k, "micro": share // 2**k, "remat": "full"}
            for k in range(share.bit_length())
        ]
    fits = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    if not fits:
        return min(plans, key=lambda one: held(model, one))
    return max(fits, key=lambda one: used(model, machine, one))
