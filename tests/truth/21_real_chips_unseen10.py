"""Answers to lesson 21, tenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
mesh


def shape(*lengths, spec, dtype=jnp.bfloat16):
    """An array that nobody has to make: its shape, dtype and layout."""
    return jax.ShapeDtypeStruct(lengths, dtype, sharding=NamedSharding(mesh, spec))


line = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))


def layer(h, w):
    return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(line, P("x"))), None


def deep_loss(weights, x):
    return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)


WAYS = {  # sizes of data and model, the layouts of the two matrices
    "dp": ((8, 1), P(), P()),
    "fsdp": ((8, 1), P("data"), P(None, "data")),
    "tp": ((1, 8), P(None, "model"), P("model")),
    "both": ((4, 2), P("data", "model"), P("model", "data")),
}


def gradients(way):
    """The gradients of a block for its weights and its input, and their shapes."""
    sizes, *specs = WAYS[way]
    pod = AbstractMesh(sizes, ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    on = lambda *parts: NamedSharding(pod, P(*parts))

    @jax.checkpoint
    def block(up, down, x):
        h = lax.with_sharding_constraint(jax.nn.relu(x @ up), on("data", "model"))
        return lax.with_sharding_constraint(h @ down, on("data"))

    def loss(*arrays):
        return jnp.sum(block(*arrays).astype(jnp.float32) ** 2)

    lengths = zip(((1024, 4096), (4096, 1024), (4096, 1024)), (*specs, P("data")))
    arrays = [jax.ShapeDtypeStruct(n, jnp.bfloat16, sharding=NamedSharding(pod, spec)) for n, spec in lengths]
    return jax.jit(jax.grad(loss, argnums=(0, 1, 2)), out_shardings=tuple(a.sharding for a in arrays)), arrays


# ---- it_fits ----------------------------------------------------------------------------------------------------


def it_fits__right_wrapped_inside(weights, x, *, mesh):
    """The gradient of the stack's loss for its weights."""
    cut = NamedSharding(mesh, P("x"))

    @jax.checkpoint
    def one(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), cut)

    def whole(weights):
        last, _ = lax.scan(lambda h, w: (one(h, w), None), x, weights)
        return jnp.mean(jnp.square(last.astype(jnp.float32)))

    return jax.grad(whole)(weights)


# This student puts jax.checkpoint around the whole loss, since that is what he differentiates.
def it_fits__wrong_around_the_loss(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def deep_loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(deep_loss)(weights, x)


# This student reads "no more than it must" as: never compute a product again, and keeps every layer's product.
def it_fits__wrong_keeps_products(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    cheap = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)

    def deep_loss(weights, x):
        return jnp.mean(lax.scan(cheap, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(deep_loss)(weights, x)


# This student writes the layer of part 2 from memory, which has no residual connection.
def it_fits__wrong_layer_of_part_2(weights, x, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    def deep_loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(deep_loss)(weights, x)


# This student keeps only every fourth input and checkpoints group and layer, so that every product is made twice more.
def it_fits__wrong_groups_of_layers(weights, x, *, mesh):
    group = next(n for n in (4, 2, 1) if len(weights) % n == 0)

    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def some_layers(h, ws):
        return lax.scan(layer, h, ws)[0], None

    def deep_loss(weights, x):
        grouped = weights.reshape(-1, group, *weights.shape[1:])
        return jnp.mean(lax.scan(some_layers, x, grouped)[0].astype(jnp.float32) ** 2)

    return jax.grad(deep_loss)(weights, x)


# ---- chip_collectives -------------------------------------------------------------------------------------------


def chip_collectives__right_written(lines, turns):
    """Kind → how often it is run."""
    written = {"all-reduce-scatter fusion": "reduce-scatter"}
    for kind in ("all-gather", "all-reduce", "collective-permute"):
        written[kind] = written[kind + "-start"] = kind
    found = {}
    for line in lines:
        kind = written.get(line.strip())
        if kind is not None:
            times = turns if line[:2] == "  " else 1
            found[kind] = found.get(kind, 0) + times
    return {kind: times for kind, times in found.items() if times}


# This student takes "-start" away with rstrip, which takes letters and not an ending ("all-gather" becomes "all-gathe").
def chip_collectives__wrong_rstrip(lines, turns):
    kinds = {
        "all-gather": "all-gather",
        "all-reduce": "all-reduce",
        "collective-permute": "collective-permute",
        "all-reduce-scatter fusion": "reduce-scatter",
    }
    found = {}
    for line in lines:
        name = line.strip().rstrip("-start")
        if name in kinds:
            found[kinds[name]] = found.get(kinds[name], 0) + (turns if line.startswith("  ") else 1)
    return found


# This student notes that the loop has begun, and never that it has ended.
def chip_collectives__wrong_loop_never_ends(lines, turns):
    kinds = {
        "all-gather": "all-gather",
        "all-reduce": "all-reduce",
        "collective-permute": "collective-permute",
        "all-reduce-scatter fusion": "reduce-scatter",
    }
    found, times = {}, 1
    for line in lines:
        if line.startswith("  "):
            times = turns
        name = line.strip().removesuffix("-start")
        if name in kinds:
            found[kinds[name]] = found.get(kinds[name], 0) + times
    return found


# This student begins with a zero for every kind, and returns those that never occur as well.
def chip_collectives__wrong_with_zeros(lines, turns):
    counts = {kind: 0 for kind in ("all-gather", "all-reduce", "collective-permute", "reduce-scatter")}
    for line in lines:
        name = line.strip().removesuffix("-start").replace("all-reduce-scatter fusion", "reduce-scatter")
        if name in counts:
            counts[name] += turns if line.startswith("  ") else 1
    return counts


# This student strips the lines first, and then looks for the blanks of the loop, which are gone.
def chip_collectives__wrong_stripped_too_early(lines, turns):
    kinds = {
        "all-gather": "all-gather",
        "all-reduce": "all-reduce",
        "collective-permute": "collective-permute",
        "all-reduce-scatter fusion": "reduce-scatter",
    }
    found = {}
    for line in map(str.strip, lines):
        name = line.removesuffix("-start")
        if name in kinds:
            found[kinds[name]] = found.get(kinds[name], 0) + (turns if line.startswith("  ") else 1)
    return found


# ---- bet --------------------------------------------------------------------------------------------------------


def bet__right_passes(way, data, model, weights, activations):
    """Bytes that one chip sends in a step."""

    def one_pass(size, devices):
        return size - size / devices

    passes = 2 if way == "dp" else 3  # an all_reduce; or: gathered forwards, gathered backwards, dealt out
    # two all_reduces along model: the block's result, and its input's gradient
    return passes * one_pass(weights / model, data) + 2 * 2 * one_pass(activations / data, model)


# This student takes the two sums along model for one pass each, as a reduce_scatter is.
def bet__wrong_sums_are_one_pass(way, data, model, weights, activations):
    passes = 2 if way == "dp" else 3
    along_data = passes * (data - 1) / data * weights / model
    along_model = 2 * (model - 1) / model * activations / data
    return along_data + along_model


# This student gathers the weights twice, and has the gradients added up on every chip by an all_reduce, as in dp.
def bet__wrong_gradients_as_in_dp(way, data, model, weights, activations):
    one_pass = (data - 1) / data * weights / model
    gradients_sent = 2 * one_pass
    gathers_sent = 0 if way == "dp" else 2 * one_pass
    return gathers_sent + gradients_sent + 4 * (model - 1) / model * activations / data


# This student forgets that a chip only has its part of the batch's activations.
def bet__wrong_whole_batch(way, data, model, weights, activations):
    passes = 2 if way == "dp" else 3
    return passes * (data - 1) / data * weights / model + 2 * 2 * (model - 1) / model * activations


# This student thinks that weights, once gathered, are still there on the way back: one gather and one reduce_scatter.
def bet__wrong_gathered_once(way, data, model, weights, activations):
    if way == "dp":
        return 2 * (data - 1) / data * weights
    gather = scatter = (data - 1) / data * weights / model
    return gather + scatter + 2 * 2 * (model - 1) / model * activations / data
