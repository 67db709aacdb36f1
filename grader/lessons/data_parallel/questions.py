"""§ 1–4, the tables, and placing a model and a batch."""

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
from grader.lessons.shared import FLOAT, bytes_sent, loss
from grader.programs.program import trace
from grader.programs.walk import structure

# The network of JAX's tutorial at its full size. Nobody makes it here: shapes are enough to count with.

WIDTHS, ROWS, DEVICES = (784, 8192, 8192, 8192, 10), 8192, 8


def _layers(mesh, spec=P()):
    return [
        {"W": aval((n, m), np.float32, spec, mesh), "b": aval((m,), np.float32, spec, mesh)}
        for n, m in zip(WIDTHS, WIDTHS[1:], strict=False)
    ]


@functools.lru_cache
def _counted() -> dict[str, int]:
    mesh = make_mesh({"data": DEVICES})
    params = _layers(mesh)
    x, y = (aval((ROWS, width), np.float32, P("data"), mesh) for width in (WIDTHS[0], WIDTHS[-1]))

    def step(params, x, y):
        value, gradients = jax.value_and_grad(lambda p: lax.pmean(loss(p, x, y), "data"))(params)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    program = trace(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P()), params, x, y)
    held = [math.prod(leaf.sharding.shard_shape(leaf.shape)) for leaf in jax.tree.leaves(params)]
    return {
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(params)),
        "bytes of parameters on each device": FLOAT * sum(held),
        "bytes of x on each device": FLOAT * math.prod(x.sharding.shard_shape(x.shape)),
        "bytes each device sends in a step": structure(program).bytes_sent,
        "bytes each device sends in a step, with 64 rows instead of 8192": structure(program).bytes_sent,
    }


DP_NUMBERS_ASKS = {
    "bytes of parameters": "How many bytes has a float32 number? And which of these arrays carry rows of the batch?",
    "bytes of x": "x has a number for each row and each feature: how many of the rows are on a device, and how many "
    "bytes has a number?",
    "bytes each device sends": "What travels is added up, not gathered. How many numbers are that, of how many bytes, "
    "and what share of them does a ring of eight send, how often? Which of this depends on the rows?",
    "parameters": "Layer by layer: which two widths does its W have, and which one its b? How many layers are there?",
}
dp_numbers = TableExercise("dp_numbers", points=3, reference=lambda row: _counted()[row], questions=DP_NUMBERS_ASKS)
dp_numbers.rows(_counted)


@dp_numbers.mistake
def forgot_the_biases(row):
    """These are the matrices alone. Each layer adds a bias, too: how many numbers is that for a layer with so many
    outputs?"""
    weights = sum(n * m for n, m in zip(WIDTHS, WIDTHS[1:], strict=False))
    return weights if row == "parameters" else FLOAT * weights if row.startswith("bytes of parameters") else None


@dp_numbers.mistake
def a_layer_for_each_width(row):
    """With five widths there are four layers: each goes from one width to the *next*. How many of them are square?"""
    square = WIDTHS[1] * WIDTHS[2] + WIDTHS[2]
    return _counted()["parameters"] + square if row == "parameters" else None


@dp_numbers.mistake
def divided_the_parameters(row):
    """In data parallelism nothing is saved on parameters: every device holds all of them. Only what carries a row for
    each example is divided."""
    whole = _counted()["bytes of parameters on each device"]
    return whole // DEVICES if row == "bytes of parameters on each device" else None


@dp_numbers.mistake
def whole_batch_everywhere(row):
    """That is all of x. It is cut over the devices: each holds its share of the rows, with all of their features. How
    many rows are a share?"""
    return FLOAT * ROWS * WIDTHS[0] if row == "bytes of x on each device" else None


@dp_numbers.mistake
def gathered_only(row):
    """An all-reduce is a reduce-scatter and an all-gather. Each of the two sends (n−1)/n of the array from every
    device."""
    sent = _counted()["bytes each device sends in a step"]
    return sent // 2 if row.startswith("bytes each device sends") else None


@dp_numbers.mistake
def forgot_the_loss(row):
    """The gradients are right. One more number is added up over all devices in each step, if only for the report: a
    single float32, by a ring too."""
    sent = _counted()["bytes each device sends in a step"] - bytes_sent("all_reduce", 1, DEVICES)
    return sent if row.startswith("bytes each device sends") else None


@dp_numbers.mistake
def scaled_with_the_batch(row):
    """What travels are gradients, and they are shaped like the parameters. Does their size depend on the batch?"""
    sent = _counted()["bytes each device sends in a step"]
    return sent * 64 // ROWS if "64 rows" in row else None


# Where a model and a batch are.


def _placed(params, batch, mesh):
    whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    return jax.device_put(params, whole), jax.device_put(batch, cut)


place_dp = FunctionExercise("place_dp", points=3, reference=_placed)


@place_dp.cases
def _(draw):
    for layers, (sizes, rows) in enumerate((({"data": 8}, 48), ({"model": 2, "data": 4}, 24), ({"data": 8}, 60)), 2):
        widths = [int(w) for w in draw.rng.choice([8, 16, 24, 32, 40], size=layers + 1, replace=False)]
        params = [{"W": draw.values(n, m), "b": draw.values(m)} for n, m in zip(widths, widths[1:], strict=False)]
        batch = {"x": draw.values(rows, widths[0]), "y": draw.values(rows, widths[-1]), "z": draw.values(rows)}
        yield Case({"params": params, "batch": batch, "mesh": OnMesh(sizes)})


@place_dp.mistake
def parameters_cut_too(params, batch, mesh):
    """The parameters were cut over `data` as well. A program would still compute the same, with less memory and more to
    send: that is *fully sharded* data parallelism, and comes in another lesson. Here each device gets all of them."""
    cut = NamedSharding(mesh, P("data"))
    return jax.device_put(params, cut), jax.device_put(batch, cut)


@place_dp.mistake
def features_cut(params, batch, mesh):
    """The batch was to be cut along its features: every device would have a bit of every example and could compute the
    network for none. Which dimension counts the examples, also in an array that has no other?"""
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, P(None, "data")))


@place_dp.mistake
def batch_whole(params, batch, mesh):
    """Everything is whole on every device: eight devices, each with all of the work. What should each of them have of
    the batch?"""
    return jax.device_put((params, batch), NamedSharding(mesh, P()))


@place_dp.mistake
def rest_dropped(params, batch, mesh):
    """60 rows cannot be cut into eight equal parts, and four examples are missing from what came back: no run will see
    them. An error is better. (Part 6 shows what to do with such a batch.)"""
    n = mesh.shape["data"]
    return _placed(params, jax.tree.map(lambda v: v[: len(v) // n * n], batch), mesh)


@place_dp.mistake
def whole_where_it_does_not_fit(params, batch, mesh):
    """A batch that cannot be cut evenly was put whole on every device: now all of them do all the work. An error says
    at once what is wrong."""
    fits = len(batch["x"]) % mesh.shape["data"] == 0
    spec = P("data") if fits else P()
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, spec))


# Sum or mean, and the learning rate that makes the same step.

LR, SHARE, MICROBATCHES = 0.48, 6, 4  # the rate of one device; rows on each of 8 devices; turns of a loop
SUMS, MEANS = jnp.sum, jnp.mean
RECIPES = {
    "local mean, pmean": (MEANS, lax.pmean, False),
    "local mean, psum": (MEANS, lax.psum, False),
    "local sum, pmean": (SUMS, lax.pmean, False),
    "local sum, psum": (SUMS, lax.psum, False),
    "local mean, nothing, check_vma on": (MEANS, None, True),
    "local sum / 48, psum": (lambda v: jnp.sum(v) / (8 * SHARE), lax.psum, False),
    "local mean, summed over 4 microbatches, pmean": (
        lambda v: jnp.sum(v.reshape(MICROBATCHES, -1).mean(1)),
        lax.pmean,
        False,
    ),
}


@functools.lru_cache
def _times_too_large(recipe: str) -> float:
    """The recipe's gradient with respect to one weight, over that of the mean over the whole batch."""
    reduce, combine, check = RECIPES[recipe]
    rows = 2 * MICROBATCHES if "microbatches" in recipe else SHARE
    mesh = make_mesh({"data": DEVICES})
    x = np.arange(1, DEVICES * rows + 1, dtype=np.float32) / 8

    def on_device(w, x):
        gradient = jax.grad(lambda w: reduce((w * x - 1) ** 2))(w)
        return combine(gradient, "data") if combine else gradient

    found = jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs=P(), check_vma=check))(
        put(np.float32(0.5), P(), mesh), put(x, P("data"), mesh)
    )
    alone = jax.grad(lambda w: jnp.mean((w * x - 1) ** 2))(np.float32(0.5))
    return round(float(found / alone), 3)


SAME_LR_ASKS = {
    "microbatches": "Four means are added up on each device. How many times the mean of its rows is that?",
    "nothing": "Parameters that are the same on all devices: what does the check bring about in their gradient?",
    "/ 48": "Each row's part is divided by the number of all rows. How many times the whole mean is the sum of these?",
    "local sum": "A device's sum is how many times the mean of its rows? And what do eight devices make of eight such "
    "sums?",
    "local mean": "Eight devices have a mean each. How many times the mean of all rows is what they make of these?",
}
same_lr_question = TableExercise(
    "same_lr_question", points=4, reference=lambda recipe: LR / _times_too_large(recipe), questions=SAME_LR_ASKS
)


@same_lr_question.cases
def _(draw):
    return [Case({"recipe": recipe}, key=recipe) for recipe in RECIPES]


@same_lr_question.mistake
def the_same_rate(recipe):
    """With the rate of one device this step is not the same: the gradient is a multiple of the mean's. Which multiple?
    The rate has to make up for it."""
    return None if _times_too_large(recipe) == 1 else LR


@same_lr_question.mistake
def larger_for_a_larger_gradient(recipe):
    """This is the rate *times* how often the gradient is too large. A step is rate times gradient: a gradient that is
    too large wants a *smaller* rate, for the same step."""
    return None if _times_too_large(recipe) == 1 else LR * _times_too_large(recipe)


@same_lr_question.mistake
def forgot_the_rows(recipe):
    """This makes up for the devices, not for the rows: a sum over a device's own rows is already as many times their
    mean as there are rows, before any other device is asked."""
    return {"local sum, psum": LR / DEVICES}.get(recipe)


@same_lr_question.mistake
def counted_the_devices_for_the_rows(recipe):
    """pmean divides by the devices, so what is left is the sum over a device's own rows. How many are these?"""
    return LR / DEVICES if recipe == "local sum, pmean" else None


@same_lr_question.mistake
def counted_the_rows_for_the_devices(recipe):
    """Each device took the mean over its own rows, so these are made up for. What psum added up are the devices'
    means. How many are these?"""
    return LR / SHARE if recipe == "local mean, psum" else None


@same_lr_question.mistake
def linear_scaling(recipe):
    """*“N devices, N times the learning rate”* belongs to a batch that grows with the devices. Here the batch is the
    same, cut into shares; the right rate makes the right step."""
    return LR * DEVICES if _times_too_large(recipe) == 1 else None


@same_lr_question.mistake
def divided_what_is_right(recipe):
    """This gradient is already that of the mean over the whole batch. There is nothing to make up for."""
    return LR / DEVICES if _times_too_large(recipe) == 1 else None


@same_lr_question.mistake
def divided_by_devices_for_microbatches(recipe):
    """Between the devices a mean was taken. What was summed without being divided were the microbatches of each."""
    return LR / DEVICES if "microbatches" in recipe else None


# Averaging parameters in place of gradients: when is it the same?

OPTIMISERS = (
    "SGD",
    "SGD with weight decay",
    "SGD with momentum",
    "Adam",
    "SGD, gradients clipped on each device",
    "SGD, averaged after every second step",
)


def _update(rule, w, g, state):
    """One step of an optimizer: the new weights, and its new state (two arrays like the weights, and the step)."""
    first, second, count = state
    if rule == "SGD with weight decay":
        return 0.9 * w - 0.1 * g, state
    if rule == "SGD with momentum":
        first = 0.5 * first + g
        return w - 0.1 * first, (first, second, count)
    if rule == "Adam":
        count, first, second = count + 1, 0.9 * first + 0.1 * g, 0.99 * second + 0.01 * g**2
        step = first / (1 - 0.9**count) / (jnp.sqrt(second / (1 - 0.99**count)) + 1e-8)
        return w - 0.1 * step, (first, second, count)
    if "clipped" in rule:
        return w - 0.1 * g * jnp.minimum(1, 1 / jnp.linalg.norm(g)), state
    return w - 0.1 * g, state


@functools.lru_cache
def _averaged_alike(rule: str) -> str:
    """Train a linear model on 8 shares: gradients averaged before the update, or parameters after it."""
    rng = np.random.default_rng(8)
    x, y = (jnp.asarray(rng.normal(size=shape).astype(np.float32)) for shape in ((8, 6, 3), (8, 6)))
    gradients = jax.vmap(jax.grad(lambda w, x, y: jnp.mean((x @ w - y) ** 2)))
    update = jax.vmap(functools.partial(_update, rule))

    def run(average_gradients):
        w = jnp.ones((8, 3))
        state = jnp.zeros_like(w), jnp.zeros_like(w), jnp.zeros(8)
        for number in range(4):
            g = gradients(w, x, y)
            w, state = update(w, jnp.broadcast_to(g.mean(0), g.shape) if average_gradients else g, state)
            if number % 2 or "every second" not in rule:
                w = jnp.broadcast_to(w.mean(0), w.shape)
        return w

    return "same" if np.allclose(run(True), run(False), atol=1e-5) else "different"


average_what = TableExercise("average_what", points=3, reference=_averaged_alike)


@average_what.cases
def _(draw):
    return [Case({"rule": rule}, key=rule) for rule in OPTIMISERS]


@average_what.mistake
def a_root_is_not_linear(rule):
    """Adam divides by a root of averaged squares: each device would divide by its own. Try two devices with gradients 3
    and −1, first step: what is the mean of the two updates, and what the update of the mean?"""
    return "same" if rule == "Adam" else None


@average_what.mistake
def a_minimum_is_not_linear(rule):
    """Each device shortens its own gradient by its own factor. Is the mean of shortened vectors the shortened mean?"""
    return "same" if "clipped" in rule else None


@average_what.mistake
def a_step_apart(rule):
    """After one step alone, the devices stand at different parameters, and take their second gradient there. With
    averaged gradients all of them stand at the same place. Where does a network's gradient depend on that place?"""
    return "same" if "every second" in rule else None


@average_what.mistake
def plain_steps_are_linear(rule):
    """The update is parameters times a number, minus gradients times a number, and so is what it remembers. The mean of
    such updates is the update by the mean."""
    return "different" if rule in OPTIMISERS[:3] else None
