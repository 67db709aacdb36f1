"""Answers to lesson 22, sixteenth batch, written by a reader of the notebook only."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader.transformer import (
    AXES,
    LAYER,
    NORMS,
    attention,
    mlp,
    rms_norm,
)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}

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


# ---- plan


def all_plans(model, devices, sequences, remats=("none", "mlp", "full")):
    """Every plan whose numbers are powers of two and come out even (a helper of the answers below)."""
    powers = [2**k for k in range(max(devices, sequences).bit_length())]
    plans = []
    for axis, rows, remat in itertools.product(powers, powers, remats):
        if model["kv_heads"] % axis or devices % axis:
            continue
        data = devices // axis
        if sequences % (data * rows):
            continue
        plans.append({"data": data, "model": axis, "rows": rows, "micro": sequences // (data * rows), "remat": remat})
    return plans


def plan__right_sorted(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""
    room = 0.9 * machine["memory"]

    def worth(one):
        needs = held(model, one)
        if needs > room:
            return (0, -needs, 0)
        return (1, round(used(model, machine, one), 9), -needs)  # of two that are as fast, the smaller one

    return sorted(all_plans(model, devices, sequences), key=worth)[-1]


# Thought that to compute again is a last resort: "mlp" only where no plan with "none" fits, and so on.
def plan__wrong_lastresort(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""
    for remat in ("none", "mlp", "full"):
        fits = [
            one for one in all_plans(model, devices, sequences, (remat,)) if held(model, one) <= 0.9 * machine["memory"]
        ]
        if fits:
            return max(fits, key=lambda one: used(model, machine, one))
    return min(all_plans(model, devices, sequences), key=lambda one: held(model, one))


# Took the share of the peak at which the chip is busy for the MFU: what is computed again counts as useful.
def plan__wrong_busy(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""

    def busy(one):
        again = {
            "full": 2 * model["parameters"],
            "mlp": 4 * model["width"] * model["hidden"] * model["layers"],
            "none": 0,
        }
        flops = (
            (6 * model["parameters"] + again[one["remat"]])
            * one["rows"]
            * one["micro"]
            * model["length"]
            / one["model"]
        )
        return round(flops / machine["peak"] / seconds(model, machine, one), 4)

    plans = all_plans(model, devices, sequences, ("full", "mlp", "none"))  # the smallest first
    fits = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    if not fits:
        return min(plans, key=lambda one: held(model, one))
    return max(fits, key=busy)


# Put the nine tenths on the wrong side: nine tenths of what is held have to be within the memory.
def plan__wrong_ninetenths(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""
    plans = all_plans(model, devices, sequences)
    fits = [one for one in plans if 0.9 * held(model, one) <= machine["memory"]]
    if not fits:
        return min(plans, key=lambda one: held(model, one))
    return max(fits, key=lambda one: used(model, machine, one))


# Thought that where nothing fits memory no longer matters, and gave the fastest of all.
def plan__wrong_nonefits(model, machine, devices, sequences):
    """{"data", "model", "rows", "micro", "remat"}: the plan with the highest MFU that fits."""
    plans = all_plans(model, devices, sequences)
    fits = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    return max(fits or plans, key=lambda one: used(model, machine, one))


# ---- specs

RULES = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}


def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
    spec = P(*(RULES.get(axis) for axis in axes))
    return spec if "model" in tuple(spec) else P()


def layouts():
    """The spec of every parameter, by your rule."""
    return {name: spec_of(axes) for name, axes in AXES.items()}


def specs__right_shares(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""
    answer, entries = {}, 0
    for name, dimensions in axes.items():
        cuts = [RULES.get(dimension) for dimension in dimensions]
        if "model" not in cuts:
            cuts = [None] * len(cuts)
        answer[name] = P(*cuts)
        share = [lengths[dimension] // (mesh[cut] if cut else 1) for dimension, cut in zip(dimensions, cuts)]
        entries += math.prod(share)
    answer["bytes on each device"] = 4 * entries
    return answer


# Left the dimensions that are not cut out of the spec, so that in a layer's parameters every name moves one place to the left.
def specs__wrong_movedleft(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""

    def spec_of(names):
        cuts = [RULES[name] for name in names if name in RULES]
        return P(*cuts) if "model" in cuts else P()

    found, size = {}, 0
    for name, names in axes.items():
        found[name] = spec_of(names)
        parts = math.prod(mesh[cut] for cut in found[name])
        size += 4 * math.prod(lengths[one] for one in names) // parts
    return {**found, "bytes on each device": size}


# Thought that several query heads share a kv head, and that every device therefore needs all of those.
def specs__wrong_kvwhole(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""
    rules = {"width": "data", "heads": "model", "hidden": "model", "vocabulary": "model"}

    def spec_of(names):
        spec = P(*[rules.get(name) for name in names])
        return spec if "model" in tuple(spec) else P()

    found, size = {}, 0
    for name, names in axes.items():
        found[name] = spec_of(names)
        parts = math.prod(mesh[cut] for cut in found[name] if cut)
        size += 4 * math.prod(lengths[one] for one in names) // parts
    return {**found, "bytes on each device": size}


# Thought that of all parameters together each device has one share, the norm scales (which are whole) included.
def specs__wrong_evenly(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""
    found = {name: spec_of(names) for name, names in axes.items()}
    entries = sum(math.prod(lengths[one] for one in names) for names in axes.values())
    devices = mesh["data"] * mesh["model"]
    return found | {"bytes on each device": 4 * entries / devices}


# Thought that the width counts in full, since a device gathers it before it uses it; divided along model only.
def specs__wrong_gathered(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""
    found, size = {}, 0
    for name, names in axes.items():
        found[name] = spec_of(names)
        parts = mesh["model"] if "model" in tuple(found[name]) else 1
        size += 4 * math.prod(lengths[one] for one in names) // parts
    found["bytes on each device"] = size
    return found


# ---- gradients (with right answers to `forward` and `loss`)


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
        x = x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"]))))
        return x, None

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


def loss_on_device(params, tokens, targets):
    """The mean over all real targets of all devices."""
    losses = losses_on_device(logits_on_device(params, tokens), targets)
    return lax.psum(jnp.sum(losses), "data") / lax.psum(jnp.sum(targets >= 0), "data")


def gradients__right_pullback(params, tokens, targets, *, mesh):
    """(loss, gradients) of the whole batch."""
    spec_tree = layouts()

    def on_device(params, tokens, targets):
        value, pullback = jax.vjp(lambda mine: loss_on_device(mine, tokens, targets), params)
        (slopes,) = pullback(jnp.ones_like(value))
        return value, slopes

    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, P("data"), P("data")), out_specs=(P(), spec_tree))(
        params, tokens, targets
    )


# Thought that, as in data parallelism by hand, the gradients of the four parts of the batch have yet to be added up.
def gradients__wrong_addedagain(params, tokens, targets, *, mesh):
    """(loss, gradients) of the whole batch."""
    spec_tree = layouts()

    def on_device(params, tokens, targets):
        value, slopes = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        return value, {name: lax.psum(slope, "data") for name, slope in slopes.items()}

    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, P("data"), P("data")))
    return on_mesh(on_device, out_specs=(P(), spec_tree))(params, tokens, targets)


# Thought that a norm scale has seen only this device's part of the sequence, and added its gradients up over model.
def gradients__wrong_normsovermodel(params, tokens, targets, *, mesh):
    """(loss, gradients) of the whole batch."""
    spec_tree = layouts()

    def on_device(params, tokens, targets):
        value, slopes = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        summed = {name: lax.psum(slopes[name], "model") for name in NORMS}
        return value, {**slopes, **summed}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, P("data"), P("data")), out_specs=(P(), spec_tree))(
        params, tokens, targets
    )


# Thought that the mean of the devices' means is the mean, and differentiated that.
def gradients__wrong_meanofmeans(params, tokens, targets, *, mesh):
    """(loss, gradients) of the whole batch."""
    spec_tree = layouts()

    def my_loss(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        mine = jnp.sum(losses) / jnp.sum(targets >= 0)
        return lax.pmean(mine, "data")

    return jax.shard_map(
        jax.value_and_grad(my_loss), mesh=mesh, in_specs=(spec_tree, P("data"), P("data")), out_specs=(P(), spec_tree)
    )(params, tokens, targets)


# Turned the check off, and thought that to divide by the eight devices takes back what the psums do twice.
def gradients__wrong_eighth(params, tokens, targets, *, mesh):
    """(loss, gradients) of the whole batch."""
    spec_tree, devices = layouts(), mesh.shape["data"] * mesh.shape["model"]

    def on_device(params, tokens, targets):
        value, slopes = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        return value, jax.tree.map(lambda slope: slope / devices, slopes)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(spec_tree, P("data"), P("data")), out_specs=(P(), spec_tree), check_vma=False
    )(params, tokens, targets)
