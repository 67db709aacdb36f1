"""Answers to lesson 22, nineteenth batch, written by a reader of the notebook only."""

import functools
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


# The other answers and the notebook's helpers that `step` needs.
def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    spec = P(*(rules.get(axis) for axis in axes))
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


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


# ---------------------------------------------------------------- specs


def specs__right_blocks(axes, lengths, mesh):
    """Each parameter's spec, and the lengths of its block multiplied."""
    on_model = ("heads", "kv_heads", "hidden", "vocabulary")
    found, numbers = {}, 0
    for name, dimensions in axes.items():
        if set(dimensions) & set(on_model):
            found[name] = P(*("data" if d == "width" else "model" if d in on_model else None for d in dimensions))
        else:
            found[name] = P()
        cut = math.prod(mesh[axis] for axis in tuple(found[name]) if axis)
        numbers += math.prod(lengths[d] for d in dimensions) // cut
    return {**found, "bytes on each device": 4 * numbers}


# This student applies the rules to every dimension, and so cuts the norm scales over data as well: they have a width.
def specs__wrong_norms_cut(axes, lengths, mesh):
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    found = {name: P(*(rules.get(axis) for axis in dimensions)) for name, dimensions in axes.items()}
    size = 0
    for name, dimensions in axes.items():
        parts = math.prod(mesh[axis] for axis in tuple(found[name]) if axis)
        size += 4 * math.prod(lengths[axis] for axis in dimensions) // parts
    return found | {"bytes on each device": size}


# This student thinks that key-value heads, being shared by several query heads, have to be whole along model: a copy on each device.
def specs__wrong_shared_heads(axes, lengths, mesh):
    rules = {"width": "data", "heads": "model", "hidden": "model", "vocabulary": "model"}
    found, size = {}, 0
    for name, dimensions in axes.items():
        norm = set(dimensions) <= {"layers", "width"}
        found[name] = P() if norm else P(*(rules.get(axis) for axis in dimensions))
        parts = math.prod(mesh[axis] for axis in tuple(found[name]) if axis)
        size += 4 * math.prod(lengths[axis] for axis in dimensions) // parts
    return found | {"bytes on each device": size}


# This student lays out rightly, but deals the bytes of all parameters out to all devices, the copies of the norm scales included.
def specs__wrong_everything_dealt_out(axes, lengths, mesh):
    found = {name: spec_of(dimensions) for name, dimensions in axes.items()}
    total = sum(math.prod(lengths[axis] for axis in dimensions) for dimensions in axes.values())
    found["bytes on each device"] = 4 * total / math.prod(mesh.values())
    return found


# This student goes by position, as in `gate` [width, hidden]: rows over data, columns over model, in every matrix.
def specs__wrong_by_position(axes, lengths, mesh):
    found, size = {}, 0
    for name, dimensions in axes.items():
        stacked = [None] if dimensions[0] == "layers" else []
        matrix = len(dimensions) - len(stacked) > 1
        found[name] = P(*stacked, "data", "model") if matrix else P()
        parts = mesh["data"] * mesh["model"] if matrix else 1
        size += 4 * math.prod(lengths[axis] for axis in dimensions) // parts
    return found | {"bytes on each device": size}


# ---------------------------------------------------------------- step


def step__right_shares(state, tokens, targets, *, mesh):
    """Every device brings its share of all squares: a copy counts as an eighth on each of eight devices."""

    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        copies = mesh.shape["data"] * mesh.shape["model"]
        share = sum(jnp.sum(g**2) / (copies if name in NORMS else 1) for name, g in slopes.items())
        norm = jnp.sqrt(lax.psum(share, ("data", "model")))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(run, donate_argnums=0)(state, tokens, targets)


# This student has the habit of data parallelism, and averages the gradients over data by hand, though each device has another share.
def step__wrong_averaged_again(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        slopes = {name: lax.pmean(g, "data") for name, g in slopes.items()}
        parts = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(on_device), donate_argnums=0)(state, tokens, targets)


# This student adds up the devices' norms in place of their squares: the root is taken before the psum.
def step__wrong_sum_of_norms(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        mine = jnp.sqrt(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS))
        scales = sum(jnp.sum(slopes[name] ** 2) for name in NORMS)
        norm = jnp.sqrt(lax.psum(mine, ("data", "model")) ** 2 + scales)
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(on_device), donate_argnums=0)(state, tokens, targets)


# This student divides by the number of microbatches at the end, as one does in accumulation, though `part` has divided already.
def step__wrong_mean_of_microbatches(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = jax.tree.map(lambda a: a / len(tokens), added_up(part, params, tokens, targets))
        parts = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(on_device), donate_argnums=0)(state, tokens, targets)


# This student gives away the batch, which no later step needs, and keeps the old state beside the new one.
def step__wrong_batch_given_away(state, tokens, targets, *, mesh):
    def on_device(state, tokens, targets):
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        parts = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(jnp.sum(slopes[name] ** 2) for name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(on_device), donate_argnums=(1, 2))(state, tokens, targets)


# ---------------------------------------------------------------- five_broken_trainers

five_broken_trainers__right_table = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# This student reads "psum over data" and thinks of copies for the gradients, and of a factor of four for the squares.
five_broken_trainers__wrong_psum_swapped = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "D",
    "copies are counted in the norm": "E",
    "weight decay on the bias": "B",
}

# This student sees "+ 0.1 * w" for all in B, the bias included, and takes the sum there for the one that is meant.
five_broken_trainers__wrong_two_biases = {
    "a mean of means": "A",
    "the bias is added up over model": "B",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "C",
}

# This student looks at the first loss alone, sees two that are off, and takes the larger change for the mean of means.
five_broken_trainers__wrong_first_losses = {
    "a mean of means": "C",
    "the bias is added up over model": "A",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# This student thinks that the bias inside of C's psum is the copy that is counted, and that an update off in B is the sum over model.
five_broken_trainers__wrong_cycle = {
    "a mean of means": "A",
    "the bias is added up over model": "B",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "C",
    "weight decay on the bias": "D",
}
