"""§ 4: what a step of training sends: the formulas of lesson 09 against the chip's compiler."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import abstract_mesh
from grader.chips.compiling import NoCompiler
from grader.chips.report import communication
from grader.exercises import Case, FunctionExercise
from grader.lessons.shared import within

POD, WIDTH, HIDDEN, TOKENS, BFLOAT16 = "v5e:2x4", 1024, 4096, 4096, 2
# A way: its mesh, and the layouts of the two matrices.
WAYS = {
    "dp": ({"data": 8, "model": 1}, P(), P()),
    "fsdp": ({"data": 8, "model": 1}, P("data", "model"), P("model", "data")),
    "tp": ({"data": 1, "model": 8}, P("data", "model"), P("model", "data")),
    "both": ({"data": 4, "model": 2}, P("data", "model"), P("model", "data")),
}


def training_step(way):
    """The gradients of a block of two products, for its weights and its input; it is computed anew on the way back."""
    sizes, up, down = WAYS[way]
    mesh = abstract_mesh(sizes)

    def shape(lengths, spec):
        return jax.ShapeDtypeStruct(lengths, jnp.bfloat16, sharding=NamedSharding(mesh, spec))

    @jax.checkpoint
    def block(weights, x):
        h = lax.with_sharding_constraint(jax.nn.relu(x @ weights[0]), NamedSharding(mesh, P("data", "model")))
        return lax.with_sharding_constraint(h @ weights[1], NamedSharding(mesh, P("data")))

    def loss(weights, x):
        return jnp.sum(block(weights, x).astype(jnp.float32) ** 2)

    arguments = (shape((WIDTH, HIDDEN), up), shape((HIDDEN, WIDTH), down)), shape((TOKENS, WIDTH), P("data"))
    lie = jax.tree.map(lambda a: a.sharding, arguments)
    return jax.jit(jax.grad(loss, argnums=(0, 1)), out_shardings=lie), arguments


def bytes_by_formula(way, data, model, weights, activations, passes=3, sums=2):
    """Bytes that a device sends. Along `data` so many passes of its part of the weights, one ring each, two without
    FSDP; along `model` so many all_reduces of its part of the activations."""
    passes = 2 if way == "dp" else passes
    shared = passes * (data - 1) / data * weights / model
    return shared + sums * 2 * (model - 1) / model * activations / data


@functools.cache
def bytes_by_compiler(way):
    """What the compiler lets each chip send in the step; None where it cannot be asked, and nothing is stored."""
    step, arguments = training_step(way)
    try:
        return communication(step, *arguments, on=POD).bytes_sent
    except NoCompiler:
        return None


COMPILED = {
    way: {
        "way": way,
        **sizes,
        "weights": 2 * WIDTH * HIDDEN * BFLOAT16,
        "activations": TOKENS * WIDTH * BFLOAT16,
    }
    for way, (sizes, _, _) in WAYS.items()
}


def _bet(**asked):
    """The compiler's own count where it has compiled the step; else the formula."""
    compiled = bytes_by_compiler(asked["way"]) if asked == COMPILED[asked["way"]] else None
    return float(bytes_by_formula(**asked) if compiled is None else compiled)


bet = FunctionExercise("bet", points=4, reference=_bet, same=within(0.2))


@bet.cases
def _(draw):
    """The four steps that are compiled; then others, for which the formula stands: on short axes, where (n−1)/n counts,
    with many activations, which only tensor parallelism sends; at last with many weights."""
    yield from (Case(asked) for asked in COMPILED.values())
    for way, few in [*((way, "weights") for way in WAYS), ("both", "activations")]:
        data, model = (n if n == 1 else int(draw.rng.choice([2, 4])) for n in WAYS[way][0].values())
        sizes = {name: int(draw.rng.integers(8, 64)) * 2**20 for name in ("weights", "activations")}
        sizes[few] //= 8
        yield Case({"way": way, "data": data, "model": model, **sizes})


@bet.mistake
def one_pass_for_the_gradients(way, **sizes):
    """Under data parallelism every device holds the whole gradient in the end: an all_reduce, which is a reduce_scatter
    *and* an all_gather."""
    return bytes_by_formula(way, **sizes) / (2 if way == "dp" else 1)


@bet.mistake
def two_passes_in_place_of_three(way, **sizes):
    """That is about two passes of the weights' bytes. The block is computed anew on the way back, and its weights have
    been given up by then. How often are they gathered, and what else goes round?"""
    return bytes_by_formula(way, **sizes, passes=2)


@bet.mistake
def sums_on_the_way_forwards_only(way, **sizes):
    """Tensor parallelism adds up partial sums on the way forwards. And what does the gradient for the block's input
    consist of?"""
    return bytes_by_formula(way, **sizes, sums=1)


@bet.mistake
def summed_once_more_where_computed_anew(way, **sizes):
    """That is about three sums along `model`: one forwards, and two on the way back. The block is computed anew there,
    for what it holds in between. Is its result, which the first sum made, needed once more?"""
    return bytes_by_formula(way, **sizes, sums=3)


@bet.mistake
def every_device_has_the_whole_batch(way, data, model, weights, activations):
    """Only the devices along `model` add up, and those hold one part of the batch: whose activations are they?"""
    return bytes_by_formula(way, data, model, weights, activations * data)


@bet.mistake
def every_device_gathers_all_weights(way, data, model, weights, activations):
    """Along `data` a device gathers the part of the weights that its place along `model` works with, and no more."""
    return bytes_by_formula(way, data, model, weights * model, activations)


@bet.mistake
def both_ways_at_once(way, **sizes):
    """That is about half of it. In which direction bytes go decides how long they take, and not how many they are."""
    return bytes_by_formula(way, **sizes) / 2
