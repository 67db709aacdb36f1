"""§ 2, 5, 9, the tables: answered by taking the gradients."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks_of
from grader.arrays.meshes import aval, make_mesh, put
from grader.arrays.numbers import close
from grader.arrays.ratios import ratio
from grader.exercises import TableExercise
from grader.lessons.gradients.means import loss
from grader.programs.program import trace
from grader.programs.walk import structure

LINE = {"data": 8}
DEVICE = 3  # which the questions are about
CUT, WHOLE = P("data"), P()

# Eight devices, and a cotangent for what they returned.


class _Step(NamedTuple):
    """What every device does with its number, how its input and result are sharded, and the result's cotangent."""

    body: Any
    cotangent: np.ndarray
    given: P = CUT
    out: P = CUT


ONE, ONES, COUNTED = np.float32([1]), np.ones(8, np.float32), np.arange(8, dtype=np.float32)
STEPS = {
    "psum to P(), ct 1": _Step(lambda x: lax.psum(x, "data"), ONE, out=WHOLE),
    "psum to P('data'), ct 1 each": _Step(lambda x: lax.psum(x, "data"), ONES),
    "ppermute +1, ct 0 … 7": _Step(lambda x: lax.ppermute(x, "data", [(k, (k + 1) % 8) for k in range(8)]), COUNTED),
    "w from P() to P('data'), ct 0 … 7": _Step(lambda w: w, COUNTED, given=WHOLE),
}


@functools.cache
def _came_back(row):
    """The gradient that device 3 holds: a number."""
    step, mesh = STEPS[row], make_mesh(LINE)
    program = jax.shard_map(step.body, mesh=mesh, in_specs=step.given, out_specs=step.out)
    given = put(np.arange(1, 9 if step.given == CUT else 2, dtype=np.float32), step.given, mesh)
    cotangent = put(step.cotangent, step.out, mesh)
    back = jax.jit(lambda x, ct: jax.vjp(program, x)[1](ct)[0])(given, cotangent)
    return (back[DEVICE] if step.given == CUT else back[0]).item()


TRANSPOSES_ASKS = {
    "psum to": "How many elements of the result are this sum, and what is the cotangent of each?",
    "ppermute": "Which element of the result is device 3's number?",
    "w from": "Which elements of the result are w, and what is the cotangent of each?",
}
transposes = TableExercise("transposes", points=4, reference=_came_back, questions=TRANSPOSES_ASKS)
transposes.rows(STEPS, mesh=LINE)


@transposes.mistake
def one_value_counted_eight_times(row):
    """With `out_specs=P()` there is *one* result with one cotangent, and all devices are given the same one. The
    answer counts it eight times. When does each device have its own result?"""
    return {"psum to P(), ct 1": 8.0}.get(row)


@transposes.mistake
def one_copy_for_all(row):
    """The number went into the results of all eight devices, and each of them has its own cotangent. What does the
    backward pass do with what the forward pass copies?"""
    return {
        "psum to P('data'), ct 1 each": 1.0,
        "w from P() to P('data'), ct 0 … 7": float(DEVICE),
    }.get(row)


@transposes.mistake
def sent_on_in_the_same_direction(row):
    """In the forward pass, device 3 sends to device 4. The cotangent has to come back from where the number is now.
    Which device is that?"""
    return DEVICE - 1.0 if row.startswith("ppermute") else None


@transposes.mistake
def stayed_where_it_was(row):
    """This is the cotangent of what device 3 *received*. Where is the number that device 3 sent?"""
    return float(DEVICE) if row.startswith("ppermute") else None


@transposes.mistake
def counted_the_devices(row):
    """Eight devices use w, but their cotangents aren't 1 each: they are 0 to 7. What is their sum?"""
    return 8.0 if row.startswith("w from") else None


# The recipes without check_vma.

RECIPES = {  # what is applied to the loss, and to its gradient
    "own loss": (None, None),
    "own loss, then pmean": (None, lax.pmean),
    "own loss, then psum": (None, lax.psum),
    "pmean of the loss": (lax.pmean, None),
    "pmean of the loss, then pmean": (lax.pmean, lax.pmean),
    "pmean of the loss, then psum": (lax.pmean, lax.psum),
    "psum of the loss, then pmean": (lax.psum, lax.pmean),
}
ASKED = ("own loss", "own loss, then pmean", "pmean of the loss", "psum of the loss, then pmean")
APART = "replicas disagree"


def _batch():
    rng = np.random.default_rng(11)
    w1, w2, x, y = (rng.standard_normal(shape).astype(np.float32) / 2 for shape in ((6, 5), (5, 3), (16, 6), (16, 3)))
    return {"w1": w1, "w2": w2}, x, y


@functools.cache
def ratio_of(recipe, check_vma):
    """The ratio of a recipe's gradient, taken inside shard_map, to the correct one; or that replicas disagree."""
    combine, then = RECIPES[recipe]
    mesh = make_mesh(LINE)

    def body(params, x, y):
        own = jax.grad(lambda p: combine(loss(p, x, y), "data") if combine else loss(p, x, y))(params)
        return jax.tree.map(lambda g: then(g, "data"), own) if then else own

    program = jax.shard_map(body, mesh=mesh, in_specs=(WHOLE, CUT, CUT), out_specs=WHOLE, check_vma=check_vma)
    params, x, y = _batch()
    found = jax.jit(program)(params, put(x, CUT, mesh), put(y, CUT, mesh))
    return _common(
        [
            ratio(name, blocks_of(found[name], LINE).values, [due] * 8)
            for name, due in jax.jit(jax.grad(loss))(params, x, y).items()
        ]
    )


def _common(found):
    """The one ratio of all arrays."""
    if any(r.apart for r in found):
        return APART
    (least, *rest), most = [r.least for r in found], [r.most for r in found]
    if not all(close(value, least) for value in (*rest, *most)):
        raise ValueError(f"no common ratio in {found}")
    return round(least, 4)


VMA_OFF_ASKS = {
    "own loss": "Each device has the gradient of its own rows' mean. What does the last step do with eight of them?",
    "pmean of the loss": "A pmean is a psum and a division by 8, and unchecked its transpose is a pmean. Which "
    "gradient does each device hold after that?",
    "psum of the loss": "Unchecked, the transpose of psum is psum, here of eight cotangents that are all 1. Which "
    "gradient does each device hold before the last step?",
}
same_with_vma_off = TableExercise(
    "same_with_vma_off", points=4, reference=lambda recipe: ratio_of(recipe, check_vma=False), questions=VMA_OFF_ASKS
)
same_with_vma_off.rows(ASKED, LINE, argument="recipe")


@same_with_vma_off.mistake
def as_with_the_check_on(recipe):
    """This is the ratio with `check_vma=True`, when JAX knows that the parameters are replicated and sums their
    gradient. Without it, JAX sums nothing. What does each device hold before the last step?"""
    with_check, without = ratio_of(recipe, check_vma=True), ratio_of(recipe, check_vma=False)
    return None if with_check == without else with_check


@same_with_vma_off.mistake
def took_device_0_for_all(recipe):
    """NumPy would show you a gradient here, that of device 0. But nothing was combined across the devices, so each
    holds the gradient of its own rows. Which step would have combined them?"""
    return 1.0 if ratio_of(recipe, check_vma=False) == APART else None


@same_with_vma_off.mistake
def psum_backwards_is_free(recipe):
    """Unchecked, the transpose of a psum is a psum: JAX doesn't know that the loss is one value, and sums eight
    cotangents. Which multiple of its own gradient does each device hold before the last step?"""
    return {"psum of the loss, then pmean": 1.0}.get(recipe)


@same_with_vma_off.mistake
def saw_different_copies(recipe):
    """The last step was a collective, after which all devices hold the same. Which multiple of the correct gradient
    is it?"""
    return APART if ratio_of(recipe, check_vma=False) != APART else None


# What the forward pass of sharded parameters does to the backward pass: counted in real programs.

WIDTH, ROWS = 16, 32


def _gathered_layer(h, w_rows):
    return jnp.tanh(h @ lax.all_gather(w_rows, "data", axis=0, tiled=True))


def _fsdp_loss(layers_run):
    """The mean loss of three layers with sharded weights; `layers_run` may save less."""

    def body(weights, x, y):
        return lax.pmean(jnp.mean((layers_run(weights, x) - y) ** 2), "data")

    mesh = make_mesh(LINE)
    return jax.shard_map(body, mesh=mesh, in_specs=(CUT, CUT, CUT), out_specs=WHOLE)


def layers(weights, x):
    for w_rows in weights:
        x = _gathered_layer(x, w_rows)
    return x


def all_but_gathers(primitive, *_, **__):
    """A policy: save every result for the backward pass, except gathered weights."""
    return "all_gather" not in str(primitive)


KEPT = {
    "keeps all": layers,
    "keeps all but gathered weights": jax.checkpoint(layers, policy=all_but_gathers),
    "keeps nothing": jax.checkpoint(layers),
}


@functools.cache
def fsdp_counts(kept):
    """The number of collectives of each kind in the program, with its backward pass."""
    mesh = make_mesh(LINE)
    weights = [aval((WIDTH, WIDTH), jnp.float32, CUT, mesh)] * 3
    batch = [aval((ROWS, WIDTH), jnp.float32, CUT, mesh)] * 2
    program = _fsdp_loss(KEPT[kept])
    found = structure(trace(jax.value_and_grad(program), weights, *batch)).collectives
    return {
        kind: sum(c.times for c in found if c.kind == kind) for kind in ("all_gather", "reduce_scatter", "all_reduce")
    }


def _count(row):
    kind, _, kept = row.partition(", ")
    return fsdp_counts(kept)[kind]


FSDP = (
    "all_gather, keeps all",
    "reduce_scatter, keeps all",
    "all_reduce, keeps all",
    "all_gather, keeps nothing",
    "reduce_scatter, keeps nothing",
    "all_gather, keeps all but gathered weights",
)

FSDP_ASKS = {
    "all_gather, keeps all but": "The forward pass gathers each weight once. Which layers' weights does the backward "
    "pass multiply by, and which of them are still there?",
    "all_gather, keeps all": "Three sharded weights are gathered. Which of them is gathered again, if everything "
    "is kept?",
    "all_gather, keeps nothing": "The forward pass gathers each weight. The backward pass recomputes all three layers, "
    "even the last one. What does that need?",
    "reduce_scatter": "Three weights are gathered. What is the transpose of a gather, and how often is each gradient "
    "computed?",
    "all_reduce": "The forward pass sums one number over all devices. Which one, and what is the transpose of that?",
}
fsdp_transpose = TableExercise("fsdp_transpose", points=3, reference=_count, questions=FSDP_ASKS)
fsdp_transpose.rows(FSDP, mesh=LINE)


@fsdp_transpose.mistake
def counted_the_way_forward(row):
    """This is the count of the forward pass alone. The gradient also runs the program backward. What does each
    collective become there?"""
    return 0 if row.startswith("reduce_scatter") else None


@fsdp_transpose.mistake
def all_reduced_each_gradient(row):
    """An all-reduce for each weight is what *replicated* parameters need. Here a device needs only the gradient of
    its own rows, which a reduce-scatter gives it. Which single number is all-reduced, once?"""
    return 4 if row.startswith("all_reduce") else None


@fsdp_transpose.mistake
def loss_summed_backwards_too(row):
    """Two would be one in each direction. The forward pass sums the devices' losses. In the backward pass every
    device already has the same cotangent of that sum. What would be left to sum there?"""
    return 2 if row.startswith("all_reduce") else None


@fsdp_transpose.mistake
def gathered_again_for_nothing(row):
    """If everything is kept, so are the gathered weights, on every device. What is missing in the backward pass
    that would have to be gathered again?"""
    return 6 if row == "all_gather, keeps all" else None


@fsdp_transpose.mistake
def forgot_to_gather_again(row):
    """What isn't kept has to be recomputed in the backward pass, and that needs gathered weights. Which of them
    does the backward pass use?"""
    return 3 if row.startswith("all_gather") and row != FSDP[0] else None


@fsdp_transpose.mistake
def every_weight_twice(row):
    """This gathers every weight twice. The backward pass needs the second weight to send the cotangent on to the
    first layer. Does anything need a cotangent that passes through the first weight?"""
    return 6 if row.endswith("but gathered weights") else None


@fsdp_transpose.mistake
def scattered_twice(row):
    """Each weight has one gradient, which is summed and scattered once. A weight that is gathered a second time is
    only used there. Is that second gather differentiated?"""
    return 6 if row == "reduce_scatter, keeps nothing" else None
