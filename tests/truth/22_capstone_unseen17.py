"""Answers to lesson 22, seventeenth batch, written by a reader of the notebook only."""

import functools

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


def spec_of(axes):
    rules = {"width": "data"} | dict.fromkeys(("heads", "kv_heads", "hidden", "vocabulary"), "model")
    spec = P(*map(rules.get, axes))
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


def looked_up(params, tokens):
    """This device's part of the embedded tokens (given in the answer cell), and the positions."""
    table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
    place = tokens - lax.axis_index("model") * len(table)  # in this device's part of the vocabulary
    mine = (place >= 0) & (place < len(table))
    return jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0), positions


def whole_layer(layer):
    return {name: whole_width(name, leaf) for name, leaf in layer.items()}


def over_mesh(on_device, params, tokens, mesh):
    """The given lines of `forward`, and the one that is to be written."""
    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(on_device)(params, tokens)


# --------------------------------------------------------------------- forward


def logits_on_device(params, tokens):
    x, positions = looked_up(params, tokens)

    @jax.checkpoint
    def applied(x, layer):
        layer = whole_layer(layer)
        around = lambda x, part, scale: x + scattered(part(gathered(rms_norm(x, layer[scale]))))
        x = around(x, lambda h: attention(layer, h, positions), "attention_norm")
        return around(x, functools.partial(mlp, layer), "mlp_norm"), None

    x, _ = lax.scan(applied, scattered(x), {name: params[name] for name in LAYER})
    return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])


def forward__right_around(params, tokens, *, mesh):
    return over_mesh(logits_on_device, params, tokens, mesh)


# A sum over model is a psum: then x is whole everywhere, and nothing has to be gathered.
def forward__wrong_all_reduce(params, tokens, *, mesh):
    def logits_on_device(params, tokens):
        x, positions = looked_up(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer = whole_layer(layer)
            x = x + lax.psum(attention(layer, rms_norm(x, layer["attention_norm"]), positions), "model")
            return x + lax.psum(mlp(layer, rms_norm(x, layer["mlp_norm"])), "model"), None

        x, _ = lax.scan(applied, lax.psum(x, "model"), {name: params[name] for name in LAYER})
        return rms_norm(x, params["norm"]) @ whole_width("unembedding", params["unembedding"])

    return over_mesh(logits_on_device, params, tokens, mesh)


# Gather x, do the line of logits_of with it, and scatter the line's result (so x itself is added once by each device of model).
def forward__wrong_x_in_the_sum(params, tokens, *, mesh):
    def logits_on_device(params, tokens):
        x, positions = looked_up(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer, x = whole_layer(layer), gathered(x)
            x = gathered(scattered(x + attention(layer, rms_norm(x, layer["attention_norm"]), positions)))
            return scattered(x + mlp(layer, rms_norm(x, layer["mlp_norm"]))), None

        x, _ = lax.scan(applied, scattered(x), {name: params[name] for name in LAYER})
        return rms_norm(gathered(x), params["norm"]) @ whole_width("unembedding", params["unembedding"])

    return over_mesh(logits_on_device, params, tokens, mesh)


# After the last layer a token needs no other token any more, so x may stay cut in T for the last product.
def forward__wrong_not_gathered_at_the_end(params, tokens, *, mesh):
    def logits_on_device(params, tokens):
        x, positions = looked_up(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer = whole_layer(layer)
            x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
            return x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

        x, _ = lax.scan(applied, scattered(x), {name: params[name] for name in LAYER})
        return rms_norm(x, params["norm"]) @ whole_width("unembedding", params["unembedding"])

    return over_mesh(logits_on_device, params, tokens, mesh)


# Both are parts of sums that are added to x, so one reduce_scatter may add up attention and MLP together.
def forward__wrong_one_sum_for_both(params, tokens, *, mesh):
    def logits_on_device(params, tokens):
        x, positions = looked_up(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer = whole_layer(layer)
            seen = attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions)
            thought = mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))
            return x + scattered(seen + thought), None

        x, _ = lax.scan(applied, scattered(x), {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    return over_mesh(logits_on_device, params, tokens, mesh)


# ------------------------------------------------------------------------ step


def real_and_part(targets):
    """The given lines of `step_on_device`: the count of real tokens is closed over by `part`."""
    real = lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    return part


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step_on_mesh(mesh):
    """The given lines of `step`."""
    spec_tree, rows = state_layouts(), P(None, "data")
    return functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))


def norm_of(slopes):
    """Squares of parts over both axes, squares of copies once."""
    squares = {name: jnp.vdot(g, g) for name, g in slopes.items()}
    copies = sum(square for name, square in squares.items() if name in NORMS)
    return jnp.sqrt(
        copies + lax.psum(sum(square for name, square in squares.items() if name not in NORMS), ("data", "model"))
    )


def step__right_parts_and_copies(state, tokens, targets, *, mesh):
    def step_on_device(state, tokens, targets):
        value, slopes = added_up(real_and_part(targets), state["params"], tokens, targets)
        return adamw(state, clipped(slopes, norm_of(slopes))), value

    return jax.jit(step_on_mesh(mesh)(step_on_device), donate_argnums=0)(state, tokens, targets)


# The norm is that of all gradients on all devices, so every square is added up over both axes.
def step__wrong_copies_counted(state, tokens, targets, *, mesh):
    def step_on_device(state, tokens, targets):
        value, slopes = added_up(real_and_part(targets), state["params"], tokens, targets)
        norm = jnp.sqrt(lax.psum(sum(jnp.sum(g**2) for g in jax.tree.leaves(slopes)), ("data", "model")))
        return adamw(state, clipped(slopes, norm)), value

    return jax.jit(step_on_mesh(mesh)(step_on_device), donate_argnums=0)(state, tokens, targets)


# Every microbatch's gradient is clipped before it is added, so that none of them can be too large.
def step__wrong_each_microbatch_clipped(state, tokens, targets, *, mesh):
    def step_on_device(state, tokens, targets):
        part, found = real_and_part(targets), []
        for one in zip(tokens, targets):
            value, slopes = jax.value_and_grad(part)(state["params"], *one)
            found.append((value, clipped(slopes, norm_of(slopes))))
        value, slopes = jax.tree.map(lambda *parts: sum(parts), *found)
        return adamw(state, slopes), value

    return jax.jit(step_on_mesh(mesh)(step_on_device), donate_argnums=0)(state, tokens, targets)


# The new state has the shapes and layouts of the old one, so that jit puts it in the old one's place by itself.
def step__wrong_not_given_away(state, tokens, targets, *, mesh):
    def step_on_device(state, tokens, targets):
        value, slopes = added_up(real_and_part(targets), state["params"], tokens, targets)
        return adamw(state, clipped(slopes, norm_of(slopes))), value

    return jax.jit(step_on_mesh(mesh)(step_on_device))(state, tokens, targets)


# Loss and gradients have been added up over M microbatches, so the mean is a division by M.
def step__wrong_divided_by_microbatches(state, tokens, targets, *, mesh):
    def step_on_device(state, tokens, targets):
        found = added_up(real_and_part(targets), state["params"], tokens, targets)
        value, slopes = jax.tree.map(lambda leaf: leaf / len(tokens), found)
        return adamw(state, clipped(slopes, norm_of(slopes))), value

    return jax.jit(step_on_mesh(mesh)(step_on_device), donate_argnums=0)(state, tokens, targets)


# -------------------------------------------------------- five_broken_trainers

_faults = (
    "a mean of means",
    "the bias is added up over model",
    "all gradients four times too large",
    "copies are counted in the norm",
    "weight decay on the bias",
)

five_broken_trainers__right_zipped = dict(zip(_faults, "ACEDB"))

# Both first losses are wrong; in C the psum of what differs over model is the mean of means, and in A the bias is in out twice.
five_broken_trainers__wrong_first_losses_exchanged = dict(zip(_faults, "CAEDB"))

# The psum over data in D makes the gradients four times too large, and E adds up copies.
five_broken_trainers__wrong_psums_over_data_exchanged = dict(zip(_faults, "ACDEB"))

# Weight decay makes the whole update shorter, and copies in the norm are those of the bias, which is the only copy.
five_broken_trainers__wrong_updates_exchanged = dict(zip(_faults, "ACEBD"))

# A mean over four devices that is then added up again is four times too large, and E averages gradients of each device's own mean.
five_broken_trainers__wrong_mean_and_factor_exchanged = dict(zip(_faults, "ECADB"))
