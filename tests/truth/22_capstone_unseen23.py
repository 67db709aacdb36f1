"""Answers to lesson 22, twenty-third batch, written by a reader of the notebook only."""

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
    clipped,
    compiled,
    counted,
    mlp,
    rms_norm,
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
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}

# ---------------------------------------------------------------- the gates before: right answers, which others call


def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
    rules = {"width": "data"} | dict.fromkeys(("heads", "kv_heads", "hidden", "vocabulary"), "model")
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


# ---------------------------------------------------------------- loss


def loss_on_device(params, tokens, targets):
    """The mean over all real tokens of all devices."""
    losses = losses_on_device(logits_on_device(params, tokens), targets)
    total, real = lax.psum(jnp.stack([losses.sum(), (targets >= 0).sum().astype(losses.dtype)]), "data")
    return total / real


def loss(params, tokens, targets, *, mesh):
    """The loss of the whole batch, on every device."""
    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


loss__right_two_sums_in_one = loss


# This student takes the mean on each device, and then the mean of the devices.
def loss__wrong_mean_of_means(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.pmean(jnp.sum(losses) / jnp.sum(targets >= 0), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student thinks that the losses are still in parts along model, and counts the targets, which are not, over data.
def loss__wrong_over_both_axes(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.psum(jnp.sum(losses), ("data", "model")) / lax.psum(jnp.sum(targets >= 0), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student thinks that the zeros of the padding do no harm in a mean, and divides by all places.
def loss__wrong_padding_counted(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.pmean(jnp.mean(losses), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student counts the targets above 0, and so leaves out token 0, which ends a line.
def loss__wrong_ends_not_counted(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        total, real = (lax.psum(jnp.sum(one), "data") for one in (losses, targets > 0))
        return total / real

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# ---------------------------------------------------------------- step (right; `curve` calls it)


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
    parts = sum(square for name, square in squares.items() if name not in NORMS)
    copies = sum(square for name, square in squares.items() if name in NORMS)
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


step__right_parts_and_copies = step

# ---------------------------------------------------------------- curve


def curve__right_advance(state, batches, mesh):
    """{"losses": …, "programs": …, "arrays left": …} of a run."""
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)

    def advance(batch):
        nonlocal state
        state, value = run(state, *batch)
        return float(value)

    with counted(state) as told:
        losses = [advance(batch) for batch in batches]
    return {**told, "losses": np.array(losses)}


# This student makes the jitted step anew for every batch, and thinks that jit knows a function by what it does.
def curve__wrong_jit_in_loop(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    losses = []
    with counted(state) as told:
        for batch in batches:
            run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
            state, value = run(state, *batch)
            losses.append(float(value))
    return {**told, "losses": np.array(losses)}


# This student returns out of the block: the counts are not there yet when the two dicts become one.
def curve__wrong_too_early(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
        return {**told, "losses": np.array(losses)}


# This student counts arguments from 1, and gives the tokens away.
def curve__wrong_first_is_one(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=1, out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
    return {**told, "losses": np.array(losses)}


# This student takes every microbatch for a batch, and makes a step with each.
def curve__wrong_step_for_each_microbatch(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for tokens, targets in batches:
            for k in range(len(tokens)):
                state, value = run(state, tokens[k : k + 1], targets[k : k + 1])
                losses.append(float(value))
    return {**told, "losses": np.array(losses)}


# ---------------------------------------------------------------- five_broken_trainers

_faults = [
    "a mean of means",
    "the bias is added up over model",
    "all gradients four times too large",
    "copies are counted in the norm",
    "weight decay on the bias",
]

five_broken_trainers__right_read = dict(zip(_faults, "ACEDB"))

# This student sees that the first loss of A and of C is wrong, and takes the wrong one of the two.
five_broken_trainers__wrong_first_losses = dict(zip(_faults, "CAEDB"))

# This student sees a psum over data that is one too many in D and E, and takes a squared norm for gradients.
five_broken_trainers__wrong_psum_of_what = dict(zip(_faults, "ACDEB"))

# This student looks for the bias in the lines, and finds it in C and, less plainly, in B: the wrong way round.
five_broken_trainers__wrong_which_bias = dict(zip(_faults, "ABEDC"))

# This student knows that D and B change only the update, and thinks that decay makes all of it shorter.
five_broken_trainers__wrong_updates = dict(zip(_faults, "ACEBD"))
