"""Answers to lesson 22, seventh batch, written by a reader of the notebook only."""

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


# My answers to the gates before (right ones), on which these build.


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


# The given lines of `logits_on_device`, so that not every answer below has to repeat them.


def gathered(x):
    """The whole sequence, of every device's block of it."""
    return lax.all_gather(x, axis_name="model", axis=1, tiled=True)


def scattered(x):
    """This device's block of the sequence, of the sum of every device's part."""
    return lax.psum_scatter(x, axis_name="model", scatter_dimension=1, tiled=True)


def embedded(params, tokens):
    """(x after the embedding, positions), as given."""
    table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
    place = tokens - lax.axis_index("model") * len(table)  # in this device's part of the vocabulary
    mine = (place >= 0) & (place < len(table))
    return scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0)), positions


# ---------------------------------------------------------------- forward


def logits_on_device(params, tokens):
    """Logits [b, T, words] of this device's rows and words, of its shares of the parameters."""
    x, positions = embedded(params, tokens)

    @jax.checkpoint
    def applied(x, layer):
        layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
        for piece, norm, more in ((attention, "attention_norm", (positions,)), (mlp, "mlp_norm", ())):
            everything = gathered(rms_norm(x, layer[norm]))
            x += scattered(piece(layer, everything, *more))
        return x, None

    x = lax.scan(applied, x, {name: params[name] for name in LAYER})[0]
    words = whole_width("unembedding", params["unembedding"])
    return jnp.einsum("btd,dv->btv", gathered(rms_norm(x, params["norm"])), words)


def forward__right_two_pieces(params, tokens, *, mesh):
    """The logits of all rows and words."""
    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)
    return on_mesh(logits_on_device)(params, tokens)


# Lesson 13's way: an all_reduce after attention and MLP, and x whole on every device, so nothing has to be gathered.
def forward__wrong_all_reduce(params, tokens, *, mesh):
    def on_device(params, tokens):
        x, positions = embedded(params, tokens)
        x = gathered(x)

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + lax.psum(attention(layer, rms_norm(x, layer["attention_norm"]), positions), "model")
            x = x + lax.psum(mlp(layer, rms_norm(x, layer["mlp_norm"])), "model")
            return x, None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return rms_norm(x, params["norm"]) @ whole_width("unembedding", params["unembedding"])

    ins, words = (layouts(), P("data")), P("data", None, "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=ins, out_specs=words)(params, tokens)


# Puts `scattered` around the whole line with the residual in it: x is added once on each of the two devices along model.
def forward__wrong_residual_summed(params, tokens, *, mesh):
    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)

    @on_mesh
    def run(params, tokens):
        x, positions = embedded(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = scattered(gathered(x) + attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
            return scattered(gathered(x) + mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    return run(params, tokens)


# After the layers every device has its tokens and its words: multiplies without gathering x once more.
def forward__wrong_own_tokens_only(params, tokens, *, mesh):
    def logits(params, tokens):
        x, positions = embedded(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
            x = x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"]))))
            return x, None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        x = rms_norm(x, params["norm"])
        return x @ whole_width("unembedding", params["unembedding"])

    return jax.shard_map(logits, mesh=mesh, in_specs=(layouts(), P("data")), out_specs=P("data", None, "model"))(
        params, tokens
    )


# Wrote x = norm(x) on a line of its own, and then adds attention to that: the residual is the normed x.
def forward__wrong_normed_residual(params, tokens, *, mesh):
    ins, words = (layouts(), P("data")), P("data", None, "model")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)

    def body(params, tokens):
        x, positions = embedded(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}

            x = rms_norm(x, layer["attention_norm"])
            x = x + scattered(attention(layer, gathered(x), positions))

            x = rms_norm(x, layer["mlp_norm"])
            x = x + scattered(mlp(layer, gathered(x)))
            return x, None

        x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
        x = gathered(rms_norm(x, params["norm"]))
        return x @ whole_width("unembedding", params["unembedding"])

    return on_mesh(body)(params, tokens)


# ---------------------------------------------------------------- loss


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
    """The mean over all real tokens of all devices."""
    each = losses_on_device(logits_on_device(params, tokens), targets)
    total, real = lax.psum((each.sum(), jnp.count_nonzero(targets >= 0)), "data")
    return total / real


def loss__right_one_psum(params, tokens, targets, *, mesh):
    """The loss of the whole batch, on every device."""
    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(loss_on_device)(params, tokens, targets)


# Each device's mean over its real tokens, and the mean of these means.
def loss__wrong_mean_of_means(params, tokens, targets, *, mesh):
    def on_device(params, tokens, targets):
        each = losses_on_device(logits_on_device(params, tokens), targets)
        return lax.pmean(jnp.sum(each) / jnp.sum(targets >= 0), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts(), P("data"), P("data")), out_specs=P())(
        params, tokens, targets
    )


# "All devices" are both axes, so the losses are added up over both; the count of tokens over data only.
def loss__wrong_both_axes(params, tokens, targets, *, mesh):
    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())

    def on_device(params, tokens, targets):
        total = jnp.sum(losses_on_device(logits_on_device(params, tokens), targets))
        return lax.psum(total, ("data", "model")) / lax.psum(jnp.sum(targets >= 0), "data")

    return on_mesh(on_device)(params, tokens, targets)


# Padding has a loss of 0 and so does no harm: a plain mean over everything.
def loss__wrong_padding_counted(params, tokens, targets, *, mesh):
    ins = layouts(), P("data"), P("data")
    f = lambda p, tok, tar: lax.pmean(jnp.mean(losses_on_device(logits_on_device(p, tok), tar)), "data")
    return jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=P())(params, tokens, targets)


# Counts targets > 0 as real; but 0 is a token too, the end of a line.
def loss__wrong_zero_is_padding(params, tokens, targets, *, mesh):
    def mean(params, tokens, targets):
        losses = losses_on_device(logits_on_device(params, tokens), targets)
        real = targets > 0
        return lax.psum(losses.sum(), "data") / lax.psum(real.sum(), "data")

    ins = layouts(), P("data"), P("data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P())
    return on_mesh(mean)(params, tokens, targets)


# ---------------------------------------------------------------- step (a right one: `curve` needs it)


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    squares = {name: jnp.sum(g**2) for name, g in slopes.items()}
    parts = lax.psum(sum(squares[name] for name in squares if name not in NORMS), ("data", "model"))
    norm = jnp.sqrt(parts + sum(squares[name] for name in NORMS))
    return adamw(state, clipped(slopes, norm)), value


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


# ---------------------------------------------------------------- curve


def curve__right_decorated(state, batches, mesh):
    """{"losses": …, "programs": …, "arrays left": …} of a run."""
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())

    @functools.partial(jax.jit, donate_argnums=0, out_shardings=shardings)
    def run(state, tokens, targets):
        return step(state, tokens, targets, mesh=mesh)

    losses = np.zeros(len(batches))
    with counted(state) as told:
        for k, (tokens, targets) in enumerate(batches):
            state, value = run(state, tokens, targets)
            losses[k] = float(value)
    return told | {"losses": losses}


# The step is the second thing that stands there, after the mesh's partial: counts arguments from 1, and gives away the tokens.
def curve__wrong_argument_one(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=1, out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
    return {**told, "losses": np.array(losses)}


# Compiles inside the loop: jit remembers the function it has seen. (A new partial each time is a new function.)
def curve__wrong_jit_in_the_loop(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    losses = []
    with counted(state) as told:
        for tokens, targets in batches:
            one = jax.jit(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
            state, value = one(state, tokens, targets)
            losses.append(float(value))
    told["losses"] = np.array(losses)
    return told


# Returns from within the block: the counts are made only when it ends, so they are not in the dict yet.
def curve__wrong_inside_the_block(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    with counted(state) as told:
        losses = []
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
        return {"losses": np.array(losses), **told}


# Works on a copy of the state, so that the caller's is not destroyed: then all of the first state is left.
def curve__wrong_polite_copy(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    mine = jax.tree.map(jnp.copy, state)
    losses = []
    with counted(state) as told:
        for batch in batches:
            mine, value = run(mine, *batch)
            losses.append(float(value))
    return dict(told, losses=np.array(losses))
