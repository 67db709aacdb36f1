"""Answers to lesson 22 that are wrong at an edge, or right in an unusual way."""

import jax
import jax.numpy as jnp
import numpy as np
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


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def loss__wrong_minus_one_only(params, tokens, targets, *, mesh):
    """Only -1 is padding."""

    def body(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.psum(jnp.sum(losses), "data") / lax.psum(jnp.sum(targets != -1), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(layouts(), P("data"), P("data")), out_specs=P())(
        params, tokens, targets
    )


def step__wrong_first_and_last(state, tokens, targets, *, mesh):
    """The first and the last microbatch, in a scan."""

    def body(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")
        tokens, targets = tokens[jnp.array([0, -1])], targets[jnp.array([0, -1])]

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
        parts = lax.psum(sum(squares[name] for name in squares if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(squares[name] for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = jax.shard_map(body, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh, donate_argnums=0)(state, tokens, targets)


def held(model, plan):
    data, axis, tokens = plan["data"], plan["model"], plan["rows"] * model["length"]
    d, f, layers = model["width"], model["hidden"], model["layers"]
    state = 16 * model["parameters"] / (data * axis)
    gathered = 2 * 2 * model["parameters"] / layers / axis
    attention = (8 + 4 * model["kv_heads"] / model["heads"]) * d * tokens / axis
    hidden = 6 * f * tokens / axis
    kept = {
        "none": layers * (attention + hidden),
        "mlp": layers * attention + hidden,
        "full": layers * 2 * d * tokens / axis + attention + hidden,
    }
    return state + gathered + kept[plan["remat"]] + 2 * 4 * model["vocabulary"] * tokens / axis


def seconds(model, machine, plan):
    data, axis, micro = plan["data"], plan["model"], plan["micro"]
    tokens, layers = plan["rows"] * model["length"], model["layers"]
    again = {"none": 0, "mlp": 4 * model["width"] * model["hidden"] * layers, "full": 2 * model["parameters"]}
    flops = (6 * model["parameters"] + again[plan["remat"]]) * tokens * micro / axis
    passes = 3 * 2 * model["parameters"] / axis * (data - 1) / data * micro
    sums = {"none": 10, "mlp": 10, "full": 11}[plan["remat"]] * layers * micro
    sent = sums * 2 * model["width"] * tokens * (axis - 1) / axis
    return max(flops / machine["peak"], passes / machine["data"][axis.bit_length() - 1]) + sent / machine["model"]


def used(model, machine, plan):
    tokens = plan["data"] * plan["rows"] * plan["micro"] * model["length"]
    return (
        6
        * model["parameters"]
        * tokens
        / (seconds(model, machine, plan) * plan["data"] * plan["model"] * machine["peak"])
    )


def _plans(model, devices, sequences):
    for axis in (1, 2, 4, 8):
        if model["kv_heads"] % axis == 0 and devices % axis == 0:
            share = max(1, sequences * axis // devices)
            for rows in (2**k for k in range(20) if share % 2**k == 0):
                for remat in ("none", "mlp", "full"):
                    yield {"data": devices // axis, "model": axis, "rows": rows, "micro": share // rows, "remat": remat}


def plan__wrong_a_sequence_for_each(model, machine, devices, sequences):
    """Takes it that every device along data has a sequence."""
    every = list(_plans(model, devices, sequences))
    fits = [one for one in every if held(model, one) <= 0.9 * machine["memory"]]
    return (
        max(fits, key=lambda one: used(model, machine, one)) if fits else min(every, key=lambda one: held(model, one))
    )


def plan__right_floats(model, machine, devices, sequences):
    """Numbers of NumPy."""
    every = list(_plans(model, devices, sequences))
    every = [one for one in every if one["data"] * one["rows"] * one["micro"] == sequences]
    fits = [one for one in every if held(model, one) <= 0.9 * machine["memory"]]
    found = (
        max(fits, key=lambda one: used(model, machine, one)) if fits else min(every, key=lambda one: held(model, one))
    )
    return {name: np.int64(v) if name != "remat" else v for name, v in found.items()}


def plan__wrong_model_to_eight(model, machine, devices, sequences):
    """`model` up to 8, as many as there are key-value heads in the lesson's models."""
    every = [one for one in _plans(model | {"kv_heads": 8}, devices, sequences) if sequences % one["data"] == 0]
    fits = [one for one in every if held(model, one) <= 0.9 * machine["memory"]]
    return (
        max(fits, key=lambda one: used(model, machine, one)) if fits else min(every, key=lambda one: held(model, one))
    )


def plan__wrong_one_row(model, machine, devices, sequences):
    """One row a microbatch, which holds least."""
    every = [one for one in _plans(model, devices, sequences) if one["rows"] == 1 and sequences % one["data"] == 0]
    fits = [one for one in every if held(model, one) <= 0.9 * machine["memory"]]
    return (
        max(fits, key=lambda one: used(model, machine, one)) if fits else min(every, key=lambda one: held(model, one))
    )
