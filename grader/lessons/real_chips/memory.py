"""§ 2: the memory of one device as the compiler counts it, and a program that has too little of it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Case, ChipFlops, FunctionExercise, Layout, PodExercise

GIB = 2**30
ROOMS = {"v5e": 15.75, "v6e": 31.25, "v5p": 95.74}  # GiB that a program may have


def _hbm(arguments, results, temporaries, shared, peak, room):
    """What the parts come to, and whether the program fits."""
    return arguments + results + temporaries - shared, peak <= room * GIB


hbm = FunctionExercise("hbm", points=3, reference=_hbm)


def _step(room, state, temporaries, peak, shared=1.0, more=4):
    """The compiler's numbers for a step whose state is such a part of the room, and so on."""
    held, lent = int(state * room * GIB), int(shared * state * room * GIB)
    parts = {"arguments": held, "results": held + more, "temporaries": int(temporaries * room * GIB), "shared": lent}
    return Case({**parts, "peak": int(peak * room * GIB), "room": room})


@hbm.cases
def _(draw):
    """A training step of Llama 3 8B's size; sum and peak on either side of the room; then sizes near the edge."""
    gib = {"arguments": 6 * GIB, "results": 6 * GIB, "temporaries": 8 * GIB, "shared": 6 * GIB, "peak": 15 * GIB}
    yield Case({**gib, "room": 15.75})
    yield _step(15.75, state=0.3, temporaries=0.3, peak=1.02, shared=0.0)  # the parts would fit, the peak does not
    yield _step(15.75, state=0.4, temporaries=0.65, peak=0.9)  # the other way round
    for room in ROOMS.values():  # between so many times 10⁹ and so many times 2³⁰
        yield _step(room, state=0.2, temporaries=0.76, peak=0.97)
    yield _step(15.75, state=0.2, temporaries=0.7, peak=1.0)  # to the last byte; below, one byte too many
    for shared, peak in ((0.25, 0.999), (0.75, 0.99), (0.5, 1 + 1e-10)):  # a part of the state is given away
        yield _step(15.75, state=0.3, temporaries=0.35, peak=peak, shared=shared)
    for _ in range(12):
        state, between, peak, shared = draw.rng.uniform((0.01, 0.4, 0.6, 0.2), (0.4, 0.8, 1.2, 0.9))
        room, loss = draw.rng.choice(list(ROOMS.values())), draw.rng.integers(1, 2**12)
        yield _step(float(room), state, between, peak, float(shared), more=int(loss))


@hbm.mistake
def counted_the_state_twice(arguments, results, temporaries, shared, peak, room):
    """The new state takes the place of the old one: its bytes are among the arguments *and* among the results. Which of
    the numbers says how many they are?"""
    return arguments + results + temporaries, peak <= room * GIB


@hbm.mistake
def added_what_is_shared(arguments, results, temporaries, shared, peak, room):
    """`shared` is no memory of its own: it is the part of the results that is where arguments were. Should it make
    the sum larger or smaller?"""
    return arguments + results + temporaries + shared, peak <= room * GIB


@hbm.mistake
def left_out_the_temporaries(arguments, results, temporaries, shared, peak, room):
    """That is what goes in and what comes out. Where are the activations that the backward pass waits for?"""
    return arguments + results - shared, peak <= room * GIB


@hbm.mistake
def left_out_the_results(arguments, results, temporaries, shared, peak, room):
    """Results that are not written over an argument need room of their own: a loss, or a whole state if nothing was
    donated."""
    return arguments + temporaries - shared, peak <= room * GIB


@hbm.mistake
def gave_the_peak_for_the_sum(arguments, results, temporaries, shared, peak, room):
    """The first number is the bytes of the parts, all together, whenever they are held. The peak is for the second."""
    return peak, peak <= room * GIB


@hbm.mistake
def went_by_the_sum(arguments, results, temporaries, shared, peak, room):
    """The sum is right, but it does not decide. Not all parts are held at one time, and some of what is held is in none
    of them. Which of the numbers says how much a chip holds at once?"""
    total = arguments + results + temporaries - shared
    return total, total <= room * GIB


@hbm.mistake
def gigabytes_for_gibibytes(arguments, results, temporaries, shared, peak, room):
    """The bytes are right, the comparison is not: the compiler's G is 2³⁰ bytes, 7 % more than 10⁹."""
    return arguments + results + temporaries - shared, peak <= room * 1e9


@hbm.mistake
def compared_bytes_with_gibibytes(arguments, results, temporaries, shared, peak, room):
    """The peak is in bytes, and `room` in GiB: held against one another as they come, no program fits. In which unit
    are they to be compared?"""
    return arguments + results + temporaries - shared, peak <= room


# A stack of layers whose activations do not fit, unless the backward pass computes them anew.

LAYERS, WIDTH, TOKENS = 32, 4096, 8 * 40_960
PRODUCT = 2 * TOKENS * WIDTH * WIDTH // 8  # FLOPs of one device in one product of a layer


def _loss(weights, x):
    """The mean square of what comes out of the stack."""
    for w in weights:
        x = x + jax.nn.relu(x @ w)
    return jnp.mean(x.astype(jnp.float32) ** 2)


def _stacked(weights, x, mesh, wrap=lambda layer: layer, kept=1):
    """The same loss as a scan, its layers wrapped; each keeps its input, unless it is `kept` 0 times."""

    def layer(h, w):
        return lax.with_sharding_constraint(kept * h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    return jnp.mean(lax.scan(wrap(layer), x, weights)[0].astype(jnp.float32) ** 2)


it_fits = PodExercise("it_fits", points=4, reference=jax.grad(_loss), by_compiler=True, mesh_shapes=((8,), (4,)))


@it_fits.cases
def _(draw):
    """Three small layers, which are run; and once 32 large ones, for the compiler of a v5e:2x4 alone."""
    n = draw.mesh("x")["x"]
    width, tokens = 2 * n, 3 * n
    weights, x = draw.values(3, width, width) / 16, draw.values(tokens, width)
    weights *= draw.rng.uniform(0.9, 1.1, weights.shape).astype(weights.dtype)  # no sum is 0, where relu has a corner
    yield Case({"weights": Array(weights, P(None, "x")), "x": Array(x, P("x"))}, draw.mesh("x"), P())
    if draw.square:
        weights, x = (
            Layout((LAYERS, WIDTH, WIDTH), "bfloat16", P(None, "x")),
            Layout((TOKENS, WIDTH), "bfloat16", P("x")),
        )
        flops = ChipFlops((3 * LAYERS - 1) * PRODUCT, 4 * LAYERS * PRODUCT)
        yield Case({"weights": weights, "x": x}, {"x": 8}, limits=[flops], pod="v5e:2x4")


@it_fits.mistake
def kept_every_activation(weights, x, *, mesh):
    """Between the two passes something waits in memory of each of the 32 layers. What of one layer could be computed
    again, once the backward pass comes to it? (To compute the whole loss again is of no help: then its activations wait
    all the same, all at once.)"""
    return jax.grad(_stacked)(weights, x, mesh)


@it_fits.mistake
def kept_the_products(weights, x, *, mesh):
    """As much is kept as by a policy that keeps the results of the products: that spares FLOPs, and memory is what is
    short here. What is there to keep of a layer at least?"""

    def wrap(layer):
        return jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)

    return jax.grad(_stacked)(weights, x, mesh, wrap)


@it_fits.mistake
def without_the_sum(weights, x, *, mesh):
    """That is the gradient of layers that pass on `relu(h @ w)` alone. What else does a layer of this stack pass on? (A
    checkpoint changes when something is computed, and never what.)"""
    return jax.grad(_stacked)(weights, x, mesh, jax.checkpoint, 0)


@it_fits.mistake
def cut_the_way_back(weights, x, *, mesh):
    """It fits, for there is no way back: no layer hears of the layers behind it. Is there a `stop_gradient`? What is to
    be forgotten are the activations, not their gradients."""

    def wrap(layer):
        return lambda h, w: layer(lax.stop_gradient(h), w)

    return jax.grad(_stacked)(weights, x, mesh, wrap)
