"""§ 1–2: what a device holds and sends in ZeRO's stages, which dimension is cut, and a state that begins in shares."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnMesh
from grader.arrays.meshes import aval, make_mesh, put
from grader.exercises import Case, FunctionExercise, TableExercise
from grader.lessons.fsdp.layers import STACK, deep_gradient
from grader.lessons.shared import believed, device_map, within
from grader.programs.program import trace
from grader.programs.walk import structure

# ZeRO's stages: bytes as they are laid out, and what real programs send.

DEVICES, PARAMETERS = 8, 1024
HELD = {"optimizer": (np.float32,) * 3, "gradients": (jnp.bfloat16,), "weights": (jnp.bfloat16,)}  # in order of stages
BYTES, SENT = "bytes of a parameter, stage {}", "bytes sent, stage {} ÷ stage 0"


def _held(stage: int) -> float:
    """Bytes on device 0 for each parameter, where the first so many of HELD are cut."""
    mesh, total = make_mesh({"fsdp": DEVICES}), 0
    for k, dtypes in enumerate(HELD.values()):
        spec = P("fsdp") if k < stage else P()
        total += sum(put(np.ones(PARAMETERS, dtype), spec, mesh).addressable_shards[0].data.nbytes for dtype in dtypes)
    return total / PARAMETERS


@functools.cache
def _sent(stage: int) -> int:
    """Bytes that each device sends in a step of several layers, but for the loss."""
    mesh, layers, width = make_mesh({"fsdp": DEVICES}), 4, 16
    stack_spec = STACK if stage == 3 else P()

    def value(stack, x):
        return jnp.mean(lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, stack)[0] ** 2)

    def step(stack, x):
        if stage == 3:
            return stack - deep_gradient(stack, x, x)[1]
        gradient = jax.grad(value)(stack, x)
        if stage == 0:
            return stack - lax.psum(gradient, "fsdp")
        mine = lax.psum_scatter(gradient, "fsdp", scatter_dimension=1, tiled=True)
        return lax.all_gather(mine, "fsdp", axis=1, tiled=True)

    mapped = device_map(step, mesh, (stack_spec, P("fsdp")), stack_spec, check_vma=stage == 3)
    shapes = ((layers, width, width), stack_spec), ((DEVICES, width), P("fsdp"))
    found = structure(trace(mapped, *(aval(shape, np.float32, spec, mesh) for shape, spec in shapes)))
    return sum(c.bytes_sent for c in found.collectives if math.prod(c.operand) > 1)


def _of_stage(row: str) -> float:
    for stage in range(4):
        if row == BYTES.format(stage):
            return _held(stage)
        if row == SENT.format(stage):
            return _sent(stage) / _sent(0)
    raise ValueError(f"no row of the table is called {row!r}")


STAGES = *(BYTES.format(stage) for stage in range(4)), SENT.format(1), SENT.format(3)
ZERO_TABLE_ASKS = {
    "bytes of a parameter": "Weights, gradients, and three numbers of the optimizer: how many bytes has each, and "
    "which of them does this stage leave whole?",
    "bytes sent": "An all_reduce is a reduce_scatter and an all_gather. Which of these does a step of this stage make, "
    "and how often for each weight?",
}
zero_table = TableExercise("zero_table", points=3, reference=_of_stage, same=within(0.01), questions=ZERO_TABLE_ASKS)
zero_table.rows(STAGES)


@zero_table.mistake
def one_stage_too_far(row):
    """That is the next stage. Stage 1 divides what the optimizer keeps, stage 2 the gradients too, stage 3 the weights
    too."""
    return {BYTES.format(1): _held(2), BYTES.format(2): _held(3)}.get(row)


@zero_table.mistake
def moments_only(row):
    """Three float32 numbers belong to the optimizer, not two: the master copy of the weights is divided as well."""
    return {BYTES.format(stage): _held(stage) + 4 - 4 / DEVICES for stage in (1, 2)}.get(row)


@zero_table.mistake
def forgot_the_master_copy(row):
    """So it is with an optimizer that keeps two numbers for each parameter. This one keeps a third, the master copy:
    steps are too small for the two bytes of the weights themselves. How many bytes does each of the three take?"""
    return {BYTES.format(0): 12, BYTES.format(1): 5, BYTES.format(2): 3.25, BYTES.format(3): 1.5}.get(row)


@zero_table.mistake
def only_what_is_divided(row):
    """That is a device's share of what is divided. What the stage leaves whole is on every device as well: in stage 1
    gradients and weights, in stage 2 the weights."""
    return {BYTES.format(1): 12 / DEVICES, BYTES.format(2): 14 / DEVICES}.get(row)


@zero_table.mistake
def weights_first(row):
    """Here the smallest are divided first. The stages begin with the largest, the optimizer's twelve bytes, and stage 3
    divides everything."""
    return {BYTES.format(1): 2 / DEVICES + 14, BYTES.format(2): 4 / DEVICES + 12}.get(row)


@zero_table.mistake
def gradients_in_place_of_the_optimizer(row):
    """So it is where stage 2 divides the gradients and nothing else. Each stage goes on from the one before: what does
    stage 1 divide?"""
    return {BYTES.format(2): 2 + 2 / DEVICES + 12}.get(row)


@zero_table.mistake
def something_left_whole(row):
    """In stage 3 nothing is whole: all sixteen bytes are divided."""
    return {BYTES.format(3): 14 / DEVICES + 2}.get(row)


@zero_table.mistake
def gathered_behind_an_all_reduce(row):
    """Stage 1 needs no all_reduce: a device updates only its own rows, so a reduce_scatter is enough. Then the new
    weights are gathered. What are the two together?"""
    return believed(row, 1.5, SENT.format(1))


@zero_table.mistake
def counted_collectives(row):
    """So many collectives are there. But the question is about bytes, and an all_reduce sends twice what a
    reduce_scatter or an all_gather sends."""
    return {SENT.format(1): 2.0, SENT.format(3): 3.0}.get(row)


@zero_table.mistake
def twice_for_two_gathers(row):
    """The weights are gathered twice, but that does not double what is sent. An all_reduce sends as much as a
    reduce_scatter and an all_gather together: count stage 0 and stage 3 in these, and then divide."""
    return believed(row, 2.0, SENT.format(3))


@zero_table.mistake
def nothing_goes_back(row):
    """A reduce_scatter alone would be half. But then each device has new values for its own rows only, and in stage 1
    the weights are whole on every device: the new ones have to be gathered."""
    return believed(row, 0.5, SENT.format(1))


@zero_table.mistake
def gathered_once(row):
    """The weights are forgotten after their use in the forward pass. On the way back they are needed once more, so they
    are gathered twice in a step, and the gradients are reduced once."""
    return believed(row, 1.0, SENT.format(3))


# Which dimension of an array is cut.

WHOLE = "whole"


def _longest(shape, n, smallest):
    """The longest dimension that n divides, the first of several; whole if it is small, or n divides none."""
    fits = [k for k, length in enumerate(shape) if length % n == 0]
    if math.prod(shape) < smallest or not fits:
        return WHOLE
    return max(fits, key=lambda k: shape[k])


shard_axis = FunctionExercise("shard_axis", points=3, reference=_longest)


@shard_axis.cases
def _(draw):
    for shape, n, smallest in (
        ((4096, 14336), 8, 1024),
        ((14336, 4096), 8, 1024),
        ((128264, 4096), 16, 1024),
        ((50257, 768), 8, 1024),
        ((12, 64, 768), 8, 1024),
        ((4096,), 8, 8192),
        ((4096,), 8, 4096),
        ((64, 64), 8, 1024),
        ((24, 36, 24), 8, 1024),
        ((50257, 4), 8, 1024),
        ((), 8, 1),
        ((), 8, 1024),
        ((16384,), 8, 1024),
        ((16, 32), 8, 2048),
        ((8, 1023), 8, 1024),
    ):
        yield Case({"shape": shape, "n": n, "smallest": smallest})


@shard_axis.mistake
def always_the_first(shape, n, smallest):
    """The first dimension is not always divisible: GPT-2's vocabulary has 50,257 words. Another dimension may be."""
    return WHOLE if math.prod(shape) < smallest or not shape or shape[0] % n else 0


@shard_axis.mistake
def first_that_fits(shape, n, smallest):
    """That is the first dimension that n divides. The longest one was asked for: its shares stay large enough to be
    multiplied well, also with many devices."""
    fits = [k for k, length in enumerate(shape) if length % n == 0]
    return WHOLE if math.prod(shape) < smallest or not fits else fits[0]


@shard_axis.mistake
def longest_of_all(shape, n, smallest):
    """The longest dimension of all was taken, whether n divides it or not. `device_put` refuses shares of different
    sizes. Among which dimensions should the longest be chosen?"""
    return WHOLE if math.prod(shape) < smallest or not shape else max(range(len(shape)), key=lambda k: shape[k])


@shard_axis.mistake
def longest_or_nothing(shape, n, smallest):
    """The longest dimension was found, and where n does not divide it, the array was left whole. A shorter dimension
    may do: GPT-2's embedding, 50,257 × 768, would be whole on every device."""
    if math.prod(shape) < smallest or not shape:
        return WHOLE
    longest = max(range(len(shape)), key=lambda k: shape[k])
    return longest if shape[longest] % n == 0 else WHOLE


@shard_axis.mistake
def small_ones_too(shape, n, smallest):
    """Small arrays were cut as well. Each would have a collective of its own, whose start costs more than all of its
    bytes. Which number says what is small?"""
    return _longest(shape, n, 0)


@shard_axis.mistake
def last_of_several(shape, n, smallest):
    """Of several dimensions of the same length the first was asked for. Weight and moments must be cut alike, so there
    has to be a rule."""
    fits = [k for k, length in enumerate(shape) if length % n == 0]
    return WHOLE if math.prod(shape) < smallest or not fits else max(fits, key=lambda k: (shape[k], k))


@shard_axis.mistake
def exactly_as_many_left_whole(shape, n, smallest):
    """An array with exactly `smallest` entries is not smaller than that. Where does your comparison draw the line?"""
    return _longest(shape, n, smallest + 1)


@shard_axis.mistake
def length_for_dimension(shape, n, smallest):
    """That is the length of the dimension; asked for is its place in the shape, counted from 0."""
    found = _longest(shape, n, smallest)
    return WHOLE if found == WHOLE else shape[found]


@shard_axis.mistake
def smallness_by_length(shape, n, smallest):
    """With what do you compare `smallest`: with a single dimension? It counts all entries of an array."""
    return _longest(shape, n, 0) if max(shape, default=0) >= smallest else WHOLE


# A state that begins in shares.


def _begun(params, mesh):
    cut, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    laid = [{"W": jax.device_put(layer["W"], cut), "b": jax.device_put(layer["b"], whole)} for layer in params]
    zeros = jax.tree.map(lambda leaf: jax.device_put(jnp.zeros(leaf.shape, leaf.dtype), leaf.sharding), laid)
    return laid, {"mean": zeros, "square": zeros}


begin_fsdp = FunctionExercise("begin_fsdp", points=3, reference=_begun)


@begin_fsdp.cases
def _(draw):
    for sizes, layers in (({"fsdp": 8}, 2), ({"slice": 2, "fsdp": 2, "model": 2}, 3)):
        widths = [int(w) for w in draw.rng.choice([8, 16, 24, 32], size=layers + 1, replace=False)]
        params = [{"W": draw.values(i, k), "b": draw.values(k)} for i, k in zip(widths, widths[1:], strict=False)]
        yield Case({"params": params, "mesh": OnMesh(sizes)})


@begin_fsdp.mistake
def moments_made_before_cutting(params, mesh):
    """The weights are in shares, the moments are whole on each device. With the master copy they are twelve of the
    sixteen bytes of a parameter. From what were they made, and what do zeros have to be made like?"""
    whole = jax.device_put(jax.tree.map(np.zeros_like, params), NamedSharding(mesh, P()))
    return _begun(params, mesh)[0], {"mean": whole, "square": whole}


@begin_fsdp.mistake
def moments_left_at_home(params, mesh):
    """The weights are laid out, the moments are not: they are on one device, where they were made. A step that takes
    both needs them on the same devices, in the same shares."""
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), params)
    return _begun(params, mesh)[0], {"mean": zeros, "square": zeros}


@begin_fsdp.mistake
def biases_cut(params, mesh):
    """The biases were cut as well. They were to stay whole: so small an array costs more to gather than it saves."""
    laid = jax.device_put(params, NamedSharding(mesh, P("fsdp")))
    zeros = jax.device_put(jax.tree.map(np.zeros_like, params), NamedSharding(mesh, P("fsdp")))
    return laid, {"mean": zeros, "square": zeros}


@begin_fsdp.mistake
def all_of_it_whole(params, mesh):
    """Every device holds all of it: that is data parallelism. Which leaves should be cut, and along which dimension?"""
    zeros = jax.tree.map(np.zeros_like, params)
    return jax.device_put((params, {"mean": zeros, "square": zeros}), NamedSharding(mesh, P()))


@begin_fsdp.mistake
def columns_in_place_of_rows(params, mesh):
    """The weights were cut by columns. Rows were asked for, dimension 0."""
    state, columns = _begun(params, mesh), NamedSharding(mesh, P(None, "fsdp"))
    return jax.tree.map(lambda leaf: jax.device_put(leaf, columns) if leaf.ndim == 2 else leaf, state)


@begin_fsdp.mistake
def moments_of_ones(params, mesh):
    """The moments should begin at zero."""
    laid, moments = _begun(params, mesh)
    return laid, jax.tree.map(lambda leaf: leaf + 1, moments)
