"""Answers to lesson 22, ninth batch, written by a reader of the notebook only."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader.transformer import AXES, LAYER, NORMS, attention, mlp, rms_norm

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


# The notebook's helpers, and this student's own answers to the gates before.
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


def losses_on_device(logits, targets):
    """The loss of each token [b, T], of logits [b, T, words] in parts; 0 for padding."""
    words = logits.shape[-1]
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    place = targets - lax.axis_index("model") * words
    mine = (place >= 0) & (place < words)
    picked = jnp.take_along_axis(logits, jnp.where(mine, place, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jnp.log(total) + top - lax.psum(jnp.where(mine, picked, 0), "model"), 0)


def gathered(x):
    """The whole sequence, of every device's block of it."""
    return lax.all_gather(x, axis_name="model", axis=1, tiled=True)


def scattered(x):
    """This device's block of the sequence, of the sum of every device's part."""
    return lax.psum_scatter(x, axis_name="model", scatter_dimension=1, tiled=True)


def embedded(params, tokens):
    """The embedding, as the answer cell of `forward` has it."""
    table = whole_width("embedding", params["embedding"])
    place = tokens - lax.axis_index("model") * len(table)  # in this device's part of the vocabulary
    mine = (place >= 0) & (place < len(table))
    return scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))


def logits_on_device(params, tokens):
    """Logits [b, T, words] of this device's rows and words, of its shares of the parameters."""
    positions = jnp.arange(tokens.shape[1])
    sublayers = (("attention_norm", lambda layer, h: attention(layer, h, positions)), ("mlp_norm", mlp))

    @jax.checkpoint
    def applied(x, layer):
        layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
        for norm, sublayer in sublayers:
            x = x + scattered(sublayer(layer, gathered(rms_norm(x, layer[norm]))))
        return x, None

    x, _ = lax.scan(applied, embedded(params, tokens), {name: params[name] for name in LAYER})
    return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])


def loss_on_device(params, tokens, targets):
    """The mean over all real tokens of all devices."""
    losses = losses_on_device(logits_on_device(params, tokens), targets)
    return lax.psum(jnp.sum(losses), "data") / lax.psum(jnp.sum(targets >= 0), "data")


# ---------------------------------------------------------------- forward


def forward__right_sublayers(params, tokens, *, mesh):
    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


# Adds x to what attention made before it is scattered, so both devices bring x into the sum.
def forward__wrong_residual_inside(params, tokens, *, mesh):
    def on_device(params, tokens):
        positions = jnp.arange(tokens.shape[1])

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            whole = gathered(x)
            x = scattered(whole + attention(layer, rms_norm(whole, layer["attention_norm"]), positions))
            whole = gathered(x)
            x = scattered(whole + mlp(layer, rms_norm(whole, layer["mlp_norm"])))
            return x, None

        x, _ = lax.scan(applied, embedded(params, tokens), {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=words)(params, tokens)


# Saves a gather and a scatter: attention and MLP read the same gathered x, and their parts go home in one sum.
def forward__wrong_side_by_side(params, tokens, *, mesh):
    def on_device(params, tokens):
        positions = jnp.arange(tokens.shape[1])

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            whole = gathered(x)
            a = attention(layer, rms_norm(whole, layer["attention_norm"]), positions)
            b = mlp(layer, rms_norm(whole, layer["mlp_norm"]))
            return x + scattered(a + b), None

        x, _ = lax.scan(applied, embedded(params, tokens), {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=words)(params, tokens)


# Gathers the widths of all layers once, before the scan, "so that it is not done in every turn": all weights are there at once.
def forward__wrong_gathered_before_the_scan(params, tokens, *, mesh):
    def on_device(params, tokens):
        positions = jnp.arange(tokens.shape[1])
        layers = {}
        for name in LAYER:
            spec = tuple(layouts()[name])
            layers[name] = params[name]
            if "data" in spec:
                layers[name] = lax.all_gather(params[name], "data", axis=spec.index("data"), tiled=True)

        @jax.checkpoint
        def applied(x, layer):
            x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
            x = x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"]))))
            return x, None

        x, _ = lax.scan(applied, embedded(params, tokens), layers)
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=words)(params, tokens)


# Uses the name x for the normed x as well, so that the results are added to the normed one.
def forward__wrong_added_to_the_normed(params, tokens, *, mesh):
    def on_device(params, tokens):
        positions = jnp.arange(tokens.shape[1])

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = rms_norm(x, layer["attention_norm"])
            x = x + scattered(attention(layer, gathered(x), positions))
            x = rms_norm(x, layer["mlp_norm"])
            x = x + scattered(mlp(layer, gathered(x)))
            return x, None

        x, _ = lax.scan(applied, embedded(params, tokens), {name: params[name] for name in LAYER})
        x = gathered(rms_norm(x, params["norm"]))
        return x @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=words)(params, tokens)


# ---------------------------------------------------------------- loss


def loss__right_two_means(params, tokens, targets, *, mesh):
    def on_device(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        # Each mean goes over as many devices, so their number cancels.
        return lax.pmean(losses.sum(), "data") / lax.pmean((targets >= 0).sum().astype(losses.dtype), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(on_device)(params, tokens, targets)


# The logits are in parts over model, so the losses are added up over both axes; the tokens are counted over data.
def loss__wrong_also_over_model(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.psum(jnp.sum(losses), ("data", "model")) / lax.psum(jnp.sum(targets >= 0), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# Padding has a loss of 0, so it "does no harm" in a mean over all tokens of all devices.
def loss__wrong_padding_does_no_harm(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        return lax.pmean(losses_on_device(logits_on_device(params, tokens), targets).mean(), "data")

    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(layouts(), P("data"), P("data")), out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# Counts the targets above 0: the token 0, which ends a line, is a real one and is not counted.
def loss__wrong_ends_of_lines(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        total, real = lax.psum((jnp.sum(losses), jnp.sum(targets > 0)), "data")
        return total / real

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# Takes the mean of each line first, so that long lines do not outweigh short ones, and then the mean of all lines.
def loss__wrong_mean_of_lines(params, tokens, targets, *, mesh):
    def loss_on_device(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        length = jnp.maximum(jnp.sum(targets >= 0, axis=1), 1)
        of_lines = jnp.sum(losses, axis=1) / length
        return lax.psum(jnp.sum(of_lines), "data") / lax.psum(len(targets), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# ---------------------------------------------------------------- gradients


def gradients__right_pulled_back(params, tokens, targets, *, mesh):
    spec_tree = layouts()

    def on_device(params, tokens, targets):
        value, back = jax.vjp(lambda params: loss_on_device(params, tokens, targets), params)
        (slopes,) = back(jnp.ones((), value.dtype))
        return value, slopes

    rows = P("data")
    run = jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(P(), spec_tree))
    return run(params, tokens, targets)


# Norm scales are copies, and each device along model has seen another half of the sequence: adds these gradients up by hand.
def gradients__wrong_norms_by_hand(params, tokens, targets, *, mesh):
    def on_device(params, tokens, targets):
        value, slopes = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        return value, {name: lax.psum(g, "model") if name in NORMS else g for name, g in slopes.items()}

    spec_tree = layouts()
    return jax.shard_map(on_device, mesh=mesh, in_specs=(spec_tree, P("data"), P("data")), out_specs=(P(), spec_tree))(
        params, tokens, targets
    )


# Data parallelism averages gradients over data (lesson 12): does so, though along data these are shares of different widths.
def gradients__wrong_averaged_over_data(params, tokens, targets, *, mesh):
    def on_device(*arrays):
        value, slopes = jax.value_and_grad(loss_on_device)(*arrays)
        return value, jax.tree.map(lambda g: lax.pmean(g, "data"), slopes)

    ins, outs = (layouts(), P("data"), P("data")), (P(), layouts())
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(params, tokens, targets)


# With the check off everything was eight times too large, so divides by the number of devices.
def gradients__wrong_an_eighth(params, tokens, targets, *, mesh):
    def on_device(params, tokens, targets):
        value, slopes = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        return value, jax.tree.map(lambda g: g / mesh.size, slopes)

    ins, outs = (layouts(), P("data"), P("data")), (P(), layouts())
    on_mesh = jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)
    return on_mesh(params, tokens, targets)


# Differentiates the sum, to keep the count of tokens out of it, and divides the loss only.
def gradients__wrong_of_the_sum(params, tokens, targets, *, mesh):
    def on_device(params, tokens, targets):
        def total(params):
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data")

        value, slopes = jax.value_and_grad(total)(params)
        return value / lax.psum(jnp.sum(targets >= 0), "data"), slopes

    ins, outs = (layouts(), P("data"), P("data")), (P(), layouts())
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=outs)(params, tokens, targets)
