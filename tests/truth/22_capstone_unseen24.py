"""Answers to lesson 22, twenty-fourth batch, written by a reader of the notebook only."""

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
    adamw,
    added_up,
    attention,
    clipped,
    mlp,
    rms_norm,
)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}


def spec_of(axes):
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    spec = [rules.get(axis) for axis in axes]
    return P(*spec) if "model" in spec else P()


def specs(axes, lengths, mesh):
    result, total = {}, 0
    for name, dims in axes.items():
        result[name] = spec_of(dims)
        size = math.prod(lengths[dim] for dim in dims)
        total += 4 * size // math.prod(mesh[axis] for axis in tuple(result[name]) if axis)
    return result | {"bytes on each device": total}


def layouts():
    """The spec of every parameter, by your rule."""
    return {name: spec_of(axes) for name, axes in AXES.items()}


def whole_width(name, leaf):
    """FSDP: a parameter (inside the scan: of one layer), gathered to its whole width; unchanged where that is not cut."""
    spec = tuple(layouts()[name])
    if "data" not in spec:
        return leaf
    return lax.all_gather(leaf, "data", axis=spec.index("data") - (name in LAYER), tiled=True)


# ---- forward


def logits_on_device(params, tokens):
    """Logits [b, T, words] of this device's rows and words, of its shares of the parameters."""

    def gathered(x):
        return lax.all_gather(x, axis_name="model", axis=1, tiled=True)

    def scattered(x):
        return lax.psum_scatter(x, axis_name="model", scatter_dimension=1, tiled=True)

    table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
    place = tokens - lax.axis_index("model") * len(table)  # in this device's part of the vocabulary
    mine = (place >= 0) & (place < len(table))
    x = scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

    @jax.checkpoint
    def applied(x, layer):
        layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
        turns = {"attention_norm": lambda h: attention(layer, h, positions), "mlp_norm": lambda h: mlp(layer, h)}
        for scale, half in turns.items():
            x = x + scattered(half(gathered(rms_norm(x, layer[scale]))))
        return x, None

    x = lax.scan(applied, x, {name: params[name] for name in LAYER})[0]
    last = gathered(rms_norm(x, params["norm"]))
    return last @ whole_width("unembedding", params["unembedding"])


def forward(params, tokens, *, mesh):
    """The logits of all rows and words."""
    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


forward__right_pairs = forward


# An all_reduce is as many bytes as gather and scatter, and much shorter: x stays whole along model.
def forward__wrong_all_reduce(params, tokens, *, mesh):
    def on_device(params, tokens):
        def summed(x):
            return lax.psum(x, "model")

        table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
        place = tokens - lax.axis_index("model") * len(table)
        mine = (place >= 0) & (place < len(table))
        x = summed(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + summed(attention(layer, rms_norm(x, layer["attention_norm"]), positions))
            return x + summed(mlp(layer, rms_norm(x, layer["mlp_norm"]))), None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return rms_norm(x, params["norm"]) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=words)(params, tokens)


# What comes out of a half layer is x plus something, so the whole of that is scattered; x is then added once by each device of model.
def forward__wrong_residual_in_sum(params, tokens, *, mesh):
    def on_device(params, tokens):
        def gathered(x):
            return lax.all_gather(x, axis_name="model", axis=1, tiled=True)

        def scattered(x):
            return lax.psum_scatter(x, axis_name="model", scatter_dimension=1, tiled=True)

        table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
        place = tokens - lax.axis_index("model") * len(table)
        mine = (place >= 0) & (place < len(table))
        x = scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = gathered(x)
            x = scattered(x + attention(layer, rms_norm(x, layer["attention_norm"]), positions))
            x = gathered(x)
            x = scattered(x + mlp(layer, rms_norm(x, layer["mlp_norm"])))
            return x, None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=words)(params, tokens)


# Attention and MLP both want the whole sequence, so one gather a layer does for both, and one scatter of their sum.
def forward__wrong_one_gather(params, tokens, *, mesh):
    def on_device(params, tokens):
        def gathered(x):
            return lax.all_gather(x, axis_name="model", axis=1, tiled=True)

        def scattered(x):
            return lax.psum_scatter(x, axis_name="model", scatter_dimension=1, tiled=True)

        table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
        place = tokens - lax.axis_index("model") * len(table)
        mine = (place >= 0) & (place < len(table))
        x = scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            whole = gathered(x)
            part = attention(layer, rms_norm(whole, layer["attention_norm"]), positions)
            part = part + mlp(layer, rms_norm(whole, layer["mlp_norm"]))
            return x + scattered(part), None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=words)(params, tokens)


# The norms belong to the layers; after the scan there is only the gather and the last product.
def forward__wrong_no_last_norm(params, tokens, *, mesh):
    def on_device(params, tokens):
        def gathered(x):
            return lax.all_gather(x, axis_name="model", axis=1, tiled=True)

        def scattered(x):
            return lax.psum_scatter(x, axis_name="model", scatter_dimension=1, tiled=True)

        table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
        place = tokens - lax.axis_index("model") * len(table)
        mine = (place >= 0) & (place < len(table))
        x = scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
            return x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return gathered(x) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=words)(params, tokens)


# ---- step


def losses_on_device(logits, targets):
    """The loss of each token [b, T], of logits [b, T, words] in parts; 0 for padding."""
    words = logits.shape[-1]
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    place = targets - lax.axis_index("model") * words
    mine = (place >= 0) & (place < words)
    picked = jnp.take_along_axis(logits, jnp.where(mine, place, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jnp.log(total) + top - lax.psum(jnp.where(mine, picked, 0), "model"), 0)


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def value_and_slopes(params, tokens, targets):
    """The lines of step_on_device that are given, and `added_up`, as hint 1 has it."""
    real = lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    return added_up(part, params, tokens, targets)


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    value, slopes = value_and_slopes(state["params"], tokens, targets)
    by_axes = {}
    for name, g in slopes.items():
        cut = tuple(axis for axis in tuple(layouts()[name]) if axis is not None)
        key = tuple(sorted(cut))
        by_axes[key] = by_axes.get(key, 0) + jnp.sum(jnp.square(g))
    square = sum(lax.psum(own, axes) if axes else own for axes, own in by_axes.items())
    return adamw(state, clipped(slopes, jnp.sqrt(square))), value


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


step__right_by_layout = step


# The norm is of all gradients on all devices, so all squares are added over both axes, copies of the norm scales too.
def step__wrong_copies_counted(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        value, slopes = value_and_slopes(state["params"], tokens, targets)
        own = sum(jnp.sum(g**2) for g in slopes.values())
        norm = jnp.sqrt(lax.psum(own, ("data", "model")))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(on_device), donate_argnums=0)(state, tokens, targets)


# Each device takes the norm of its parts, and the norms are added up, as everything that devices have in parts is.
def step__wrong_norms_added(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        value, slopes = value_and_slopes(state["params"], tokens, targets)
        parts = sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS)
        copies = sum(jnp.sum(slopes[name] ** 2) for name in NORMS)
        norm = jnp.sqrt(lax.psum(jnp.sqrt(parts), ("data", "model")) ** 2 + copies)
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(on_device), donate_argnums=0)(state, tokens, targets)


# `added_up` adds M microbatches, so loss and gradients are to be divided by M to get means; but part divides by all tokens already.
def step__wrong_divided_twice(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        value, slopes = value_and_slopes(state["params"], tokens, targets)
        value, slopes = jax.tree.map(lambda a: a / len(tokens), (value, slopes))
        parts = sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS)
        copies = sum(jnp.sum(slopes[name] ** 2) for name in NORMS)
        norm = jnp.sqrt(lax.psum(parts, ("data", "model")) + copies)
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(on_device), donate_argnums=0)(state, tokens, targets)


# Arguments are counted from 1, so the state that is given away is number 1 (which is the tokens).
def step__wrong_gives_tokens(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        value, slopes = value_and_slopes(state["params"], tokens, targets)
        parts = sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS)
        copies = sum(jnp.sum(slopes[name] ** 2) for name in NORMS)
        norm = jnp.sqrt(lax.psum(parts, ("data", "model")) + copies)
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(on_device), donate_argnums=1)(state, tokens, targets)


# ---- plan

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


def plan__right_generated(model, machine, devices, sequences):
    powers = [2**k for k in range(max(devices, sequences).bit_length())]
    everything = [
        {
            "data": devices // axis,
            "model": axis,
            "rows": rows,
            "micro": sequences * axis // devices // rows,
            "remat": remat,
        }
        for axis, rows, remat in itertools.product(powers, powers, ("none", "mlp", "full"))
        if axis <= devices and model["kv_heads"] % axis == 0 and rows * (devices // axis) <= sequences
    ]
    fitting = [one for one in everything if held(model, one) <= 0.9 * machine["memory"]]
    if not fitting:
        return min(everything, key=lambda one: held(model, one))
    return max(fitting, key=lambda one: used(model, machine, one))


# What decides is memory, so the best plan is the one that leaves most of it free.
def plan__wrong_least_held(model, machine, devices, sequences):
    plans = []
    axis = 1
    while axis <= devices and model["kv_heads"] % axis == 0:
        data = devices // axis
        share, rows = sequences // data, 1
        while rows <= share:
            for remat in ("none", "mlp", "full"):
                plans.append({"data": data, "model": axis, "rows": rows, "micro": share // rows, "remat": remat})
            rows *= 2
        axis *= 2
    return min(plans, key=lambda one: (held(model, one), -used(model, machine, one)))


# `held` is what the plan needs, and all devices hold it together, so it is divided by their number before it is compared.
def plan__wrong_divided_again(model, machine, devices, sequences):
    plans = []
    axis = 1
    while axis <= devices and model["kv_heads"] % axis == 0:
        data = devices // axis
        share, rows = sequences // data, 1
        while rows <= share:
            for remat in ("none", "mlp", "full"):
                plans.append({"data": data, "model": axis, "rows": rows, "micro": share // rows, "remat": remat})
            rows *= 2
        axis *= 2
    fit = [one for one in plans if held(model, one) / devices <= 0.9 * machine["memory"]]
    return max(fit, key=lambda one: used(model, machine, one)) if fit else min(plans, key=lambda one: held(model, one))


# A large model is always trained with every layer computed again, so only "full" need be tried; the rest is searched.
def plan__wrong_always_full(model, machine, devices, sequences):
    plans = []
    axis = 1
    while axis <= devices and model["kv_heads"] % axis == 0:
        data = devices // axis
        share, rows = sequences // data, 1
        while rows <= share:
            plans.append({"data": data, "model": axis, "rows": rows, "micro": share // rows, "remat": "full"})
            rows *= 2
        axis *= 2
    fit = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    return max(fit, key=lambda one: used(model, machine, one)) if fit else min(plans, key=lambda one: held(model, one))


# The sequences are taken `rows` at once, so there are sequences // rows microbatches; forgets that data has shared them out.
def plan__wrong_micro_of_all(model, machine, devices, sequences):
    plans = []
    axis = 1
    while axis <= devices and model["kv_heads"] % axis == 0:
        data = devices // axis
        rows = 1
        while rows <= sequences // data:
            for remat in ("none", "mlp", "full"):
                plans.append({"data": data, "model": axis, "rows": rows, "micro": sequences // rows, "remat": remat})
            rows *= 2
        axis *= 2
    fit = [one for one in plans if held(model, one) <= 0.9 * machine["memory"]]
    return max(fit, key=lambda one: used(model, machine, one)) if fit else min(plans, key=lambda one: held(model, one))
