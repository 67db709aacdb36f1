"""Answers to lesson 22, thirteenth batch, written by a reader of the notebook only."""

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
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}


# ---------------------------------------------------------------- earlier answers, and what the notebook gives


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


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


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


# ---------------------------------------------------------------- forward


def forward__right_added(params, tokens, *, mesh):
    """The logits of all rows and words."""

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

            def added(x, part, norm):
                return x + scattered(part(layer, gathered(rms_norm(x, layer[norm]))))

            turned = lambda layer, whole: attention(layer, whole, positions)
            return added(added(x, turned, "attention_norm"), mlp, "mlp_norm"), None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


# This student put the reduce_scatter around the whole line of `logits_of`, so that x itself is added up from every device.
def forward__wrong_residual_inside(params, tokens, *, mesh):
    """The logits of all rows and words."""

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
            whole = gathered(x)
            x = scattered(whole + attention(layer, rms_norm(whole, layer["attention_norm"]), positions))
            whole = gathered(x)
            return scattered(whole + mlp(layer, rms_norm(whole, layer["mlp_norm"]))), None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


# This student thought that attention and MLP are both parts of one sum, and saves a reduce_scatter: the MLP does not see what attention has added.
def forward__wrong_one_scatter(params, tokens, *, mesh):
    """The logits of all rows and words."""

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
            heads = attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions)
            hidden = mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))
            return x + scattered(heads + hidden), None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


# This student kept x whole on every device and added the parts up with a psum: right numbers in the way that the text does not want.
def forward__wrong_all_reduced(params, tokens, *, mesh):
    """The logits of all rows and words."""

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
        x = gathered(x)

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + lax.psum(attention(layer, rms_norm(x, layer["attention_norm"]), positions), "model")
            return x + lax.psum(mlp(layer, rms_norm(x, layer["mlp_norm"])), "model"), None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return rms_norm(x, params["norm"]) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


# This student thought that a word's logit needs its own token only, so that the last product needs no gather along the sequence.
def forward__wrong_block_of_logits(params, tokens, *, mesh):
    """The logits of all rows and words."""

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
        return rms_norm(x, params["norm"]) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


# ---------------------------------------------------------------- loss


def loss__right_two_at_once(params, tokens, targets, *, mesh):
    """The loss of the whole batch, on every device."""

    def loss_on_device(params, tokens, targets):
        """The mean over all real tokens of all devices."""
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        total, real = lax.psum((losses.sum(), (targets >= 0).sum()), "data")
        return total / real

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student took each device's mean over its real tokens, and the mean of these.
def loss__wrong_mean_of_means(params, tokens, targets, *, mesh):
    """The loss of the whole batch, on every device."""

    def loss_on_device(params, tokens, targets):
        """The mean over all real tokens of all devices."""
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.pmean(losses.sum() / (targets >= 0).sum(), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student thought that a token whose loss is 0 may be counted all the same, and divides by the number of all tokens.
def loss__wrong_padding_counts(params, tokens, targets, *, mesh):
    """The loss of the whole batch, on every device."""

    def loss_on_device(params, tokens, targets):
        """The mean over all real tokens of all devices."""
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.psum(losses.sum(), "data") / lax.psum(targets.size, "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student thought that a mean wants a pmean, and took it for the losses, but a psum for the number of tokens.
def loss__wrong_pmean_above(params, tokens, targets, *, mesh):
    """The loss of the whole batch, on every device."""

    def loss_on_device(params, tokens, targets):
        """The mean over all real tokens of all devices."""
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.pmean(jnp.sum(losses), "data") / lax.psum(jnp.sum(targets >= 0), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# This student thought that token 0, which ends a line, is padding too, and counts the targets above 0.
def loss__wrong_zero_is_padding(params, tokens, targets, *, mesh):
    """The loss of the whole batch, on every device."""

    def loss_on_device(params, tokens, targets):
        """The mean over all real tokens of all devices."""
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        real = lax.psum(jnp.sum(targets > 0), "data")
        return lax.psum(jnp.sum(losses), "data") / real

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# ---------------------------------------------------------------- step


def step__right_two_sums(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""

    def step_on_device(state, tokens, targets):
        """One step on microbatches [M, b, T]: (new state, loss)."""
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            """What a microbatch [b, T] adds to the loss."""
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        squares = lambda names: sum(jnp.vdot(slopes[name], slopes[name]) for name in names)
        parts, copies = ([name for name in slopes if (name in NORMS) == copied] for copied in (False, True))
        norm = jnp.sqrt(squares(copies) + lax.psum(squares(parts), ("data", "model")))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# This student thought that what is added up over microbatches must be divided by their number, though `part` has divided by all real tokens.
def step__wrong_divided_by_m(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""

    def step_on_device(state, tokens, targets):
        """One step on microbatches [M, b, T]: (new state, loss)."""
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            """What a microbatch [b, T] adds to the loss."""
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = jax.tree.map(lambda sums: sums / len(tokens), added_up(part, params, tokens, targets))
        squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
        parts = lax.psum(sum(square for name, square in squares.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(squares[name] for name in squares if name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# This student thought that microbatches are small batches, and makes a step of AdamW with each of them.
def step__wrong_step_for_each(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""

    def step_on_device(state, tokens, targets):
        """One step on microbatches [M, b, T]: (new state, loss)."""
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            """What a microbatch [b, T] adds to the loss."""
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value = 0
        for k in range(len(tokens)):
            one, slopes = jax.value_and_grad(part)(state["params"], tokens[k], targets[k])
            parts = lax.psum(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS), ("data", "model"))
            norm = jnp.sqrt(parts + sum(jnp.sum(g**2) for name, g in slopes.items() if name in NORMS))
            state, value = adamw(state, clipped(slopes, norm)), value + one
        return state, value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# This student thought that norms add up like their squares: each device takes the root of its own part, and these are summed.
def step__wrong_sum_of_norms(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""

    def step_on_device(state, tokens, targets):
        """One step on microbatches [M, b, T]: (new state, loss)."""
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            """What a microbatch [b, T] adds to the loss."""
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        own = jnp.sqrt(sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS))
        scales = sum(jnp.sum(g**2) for name, g in slopes.items() if name in NORMS)
        norm = jnp.sqrt(lax.psum(own, ("data", "model")) ** 2 + scales)
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# This student thought that shard_map writes over what it is given, and gave nothing away: a second state in memory.
def step__wrong_kept(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""

    def step_on_device(state, tokens, targets):
        """One step on microbatches [M, b, T]: (new state, loss)."""
        params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

        def part(params, tokens, targets):
            """What a microbatch [b, T] adds to the loss."""
            return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

        value, slopes = added_up(part, params, tokens, targets)
        squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
        parts = lax.psum(sum(square for name, square in squares.items() if name not in NORMS), ("data", "model"))
        norm = jnp.sqrt(parts + sum(squares[name] for name in squares if name in NORMS))
        return adamw(state, clipped(slopes, norm)), value

    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device))(state, tokens, targets)
