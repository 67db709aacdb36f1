"""§ 2, 6, 9, the tables: answered by taking the gradients."""

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
from grader.jax_versions import all_gather
from grader.lessons.gradients.means import loss
from grader.programs.program import trace
from grader.programs.walk import structure

LINE = {"data": 8}
DEVICE = 3  # whose numbers are asked about
CUT, WHOLE = P("data"), P()

# What comes back: eight devices in a row, and a cotangent for what they returned.


class _Step(NamedTuple):
    """What every device does with its `length` numbers, how its input and result are laid out, and the result's
    cotangent."""

    body: Any
    cotangent: np.ndarray
    given: P = CUT
    out: P = CUT
    length: int = 1


ONE, ONES, COUNTED = np.float32([1]), np.ones(8, np.float32), np.arange(8, dtype=np.float32)
STEPS = {
    "psum to P(), ct 1": _Step(lambda x: lax.psum(x, "data"), ONE, out=WHOLE),
    "psum to P('data'), ct 1 each": _Step(lambda x: lax.psum(x, "data"), ONES),
    "pmean to P(), ct 1": _Step(lambda x: lax.pmean(x, "data"), ONE, out=WHOLE),
    "all_gather to P('data'), ct 1 each": _Step(
        lambda x: lax.all_gather(x, "data", tiled=True), np.ones(64, np.float32)
    ),
    "all_gather to P(), ct 0 … 7": _Step(
        lambda x: all_gather(x, "data", tiled=True, to="invarying"), COUNTED, out=WHOLE
    ),
    "ppermute +1, ct 0 … 7": _Step(lambda x: lax.ppermute(x, "data", [(k, (k + 1) % 8) for k in range(8)]), COUNTED),
    "psum_scatter, ct 0 … 7": _Step(lambda x: lax.psum_scatter(x, "data", tiled=True), COUNTED, length=8),
    "w from P() to P('data'), ct 0 … 7": _Step(lambda w: w, COUNTED, given=WHOLE),
}


@functools.cache
def _came_back(row):
    """The gradient that device 3 holds: a number, or a list of them."""
    step, mesh = STEPS[row], make_mesh(LINE)
    program = jax.shard_map(step.body, mesh=mesh, in_specs=step.given, out_specs=step.out)
    count = step.length * (8 if step.given == CUT else 1)
    given = put(np.arange(1, count + 1, dtype=np.float32), step.given, mesh)
    cotangent = put(step.cotangent, step.out, mesh)
    back = jax.jit(lambda x, ct: jax.vjp(program, x)[1](ct)[0])(given, cotangent)
    held = np.split(np.asarray(back), 8)[DEVICE] if step.given == CUT else np.asarray(back)
    return held.tolist() if step.length > 1 else held.item()


TRANSPOSES_ASKS = {
    "psum to": "Device 3's number is in the sum. How many entries of what is returned are this sum, and what cotangent "
    "has each?",
    "pmean": "How many entries are this mean, and how much of device 3's number is in it?",
    "all_gather": "In how many entries of what is returned does device 3's number stand, and which cotangent has each?",
    "ppermute": "In which entry is device 3's number in the end?",
    "psum_scatter": "Each of device 3's eight numbers goes into a sum: on which device is that, and what cotangent has "
    "it there?",
    "w from": "Which entries of what is returned are w, and what cotangent has each?",
}
transposes = TableExercise("transposes", points=4, reference=_came_back, questions=TRANSPOSES_ASKS)
transposes.rows(STEPS, mesh=LINE)


@transposes.mistake
def one_value_counted_eight_times(row):
    """With out_specs=P() there is *one* result, and one cotangent of it: all devices are given the same. Eight of them
    are added up where eight devices return a result each."""
    return {"psum to P(), ct 1": 8.0, "all_gather to P(), ct 0 … 7": 8.0 * DEVICE}.get(row)


@transposes.mistake
def one_copy_for_all(row):
    """This number went into the results of all eight devices, and each of these has a cotangent of its own. What is
    copied forwards is added up backwards."""
    return {
        "psum to P('data'), ct 1 each": 1.0,
        "all_gather to P('data'), ct 1 each": 1.0,
        "w from P() to P('data'), ct 0 … 7": float(DEVICE),
    }.get(row)


@transposes.mistake
def added_what_others_gave(row):
    """That is the sum of the cotangents of all eight entries. Only one of these entries is device 3's number; the
    others' cotangents go back to those who gave them."""
    return float(COUNTED.sum()) if row.startswith("all_gather to P()") else None


@transposes.mistake
def mean_without_its_division(row):
    """A mean is a sum, divided. Nudge device 3's number by a little: by how much does the mean move?"""
    return 1.0 if row.startswith("pmean") else None


@transposes.mistake
def sent_on_in_the_same_direction(row):
    """Forwards device 3 sends to device 4. Its number's cotangent is that of the place where the number is now, and
    has to come back from there."""
    return DEVICE - 1.0 if row.startswith("ppermute") else None


@transposes.mistake
def stayed_where_it_was(row):
    """That is the cotangent of what device 3 *received*. Where is the number now that device 3 sent?"""
    return float(DEVICE) if row.startswith("ppermute") else None


@transposes.mistake
def kept_its_own_share(row):
    """Device 3's eight numbers went into eight sums, one on each device. The cotangent of each of these sums comes
    back to the number that went into it."""
    return [float(DEVICE)] * 8 if row.startswith("psum_scatter") else None


@transposes.mistake
def added_what_was_scattered(row):
    """Each of the eight numbers went into one sum only, so that nothing is added up on the way back. Device 3 gave
    eight numbers and gets eight cotangents."""
    return [float(COUNTED.sum())] * 8 if row.startswith("psum_scatter") else None


@transposes.mistake
def counted_the_devices(row):
    """Eight devices use w, but their cotangents are not 1 each: they are 0 to 7. Add those up."""
    return 8.0 if row.startswith("w from") else None


# The same recipes with the check off.

RECIPES = {  # what the differentiated loss becomes, and what is done to the gradient
    "own loss": (None, None),
    "own loss, then pmean": (None, lax.pmean),
    "own loss, then psum": (None, lax.psum),
    "pmean of the loss": (lax.pmean, None),
    "pmean of the loss, then pmean": (lax.pmean, lax.pmean),
    "pmean of the loss, then psum": (lax.pmean, lax.psum),
    "psum of the loss, then pmean": (lax.psum, lax.pmean),
    "psum of the loss, then psum": (lax.psum, lax.psum),
}
APART = "copies differ"


def _batch():
    rng = np.random.default_rng(11)
    w1, w2, x, y = (rng.standard_normal(shape).astype(np.float32) / 2 for shape in ((6, 5), (5, 3), (16, 6), (16, 3)))
    return {"w1": w1, "w2": w2}, x, y


@functools.cache
def ratio_of(recipe, check_vma):
    """What a recipe's gradient is of the right one, taken inside shard_map; or that the devices' copies differ."""
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
    "own loss": "Each device has the gradient of its own rows' mean. What becomes of eight such gradients in the last "
    "step, and what is the mean over all rows made of?",
    "pmean of the loss": "A pmean is a psum and a division by eight. Unchecked, its transpose is a pmean again: what "
    "gradient does each device hold behind that?",
    "psum of the loss": "Unchecked, the transpose of psum is psum: of eight cotangents, all 1. What gradient does each "
    "device then hold before the last step?",
}
same_with_vma_off = TableExercise(
    "same_with_vma_off", points=4, reference=lambda recipe: ratio_of(recipe, check_vma=False), questions=VMA_OFF_ASKS
)
same_with_vma_off.rows(RECIPES, LINE, argument="recipe")


@same_with_vma_off.mistake
def as_with_the_check_on(recipe):
    """That is the ratio with the check on, where JAX knows that the parameters are the same everywhere and adds their
    gradient up. Unchecked it knows nothing of that. Begin with: what does each device hold before the last step?"""
    with_check, without = ratio_of(recipe, check_vma=True), ratio_of(recipe, check_vma=False)
    return None if with_check == without else with_check


@same_with_vma_off.mistake
def took_device_0_for_all(recipe):
    """NumPy would show you a gradient here, and on device 0 it may even look like one. But nothing was added across
    the devices: each has the gradient of its own rows. Which step would have combined them?"""
    return 1.0 if ratio_of(recipe, check_vma=False) == APART else None


@same_with_vma_off.mistake
def psum_backwards_is_free(recipe):
    """Unchecked, a psum is transposed to a psum: JAX does not know that the loss is one value, and adds up eight
    cotangents for it. What multiple of its own gradient does each device then hold before the last step?"""
    return {
        "psum of the loss, then pmean": 1.0,
        "psum of the loss, then psum": 8.0,
        "pmean of the loss, then pmean": 0.125,
    }.get(recipe)


@same_with_vma_off.mistake
def saw_different_copies(recipe):
    """The last step was a collective, and after it all devices hold the same. Which multiple of the right gradient is
    it?"""
    return APART if ratio_of(recipe, check_vma=False) != APART else None


# What the forward pass of sharded parameters does to the backward pass: counted in real programs.

WIDTH, ROWS = 16, 32


def _gathered_layer(h, w_rows):
    return jnp.tanh(h @ lax.all_gather(w_rows, "data", axis=0, tiled=True))


def _fsdp_loss(layers_run):
    """The mean loss of three layers whose weights are cut over the devices; `layers_run` may keep less."""

    def body(weights, x, y):
        return lax.pmean(jnp.mean((layers_run(weights, x) - y) ** 2), "data")

    mesh = make_mesh(LINE)
    return jax.shard_map(body, mesh=mesh, in_specs=(CUT, CUT, CUT), out_specs=WHOLE)


def layers(weights, x):
    for w_rows in weights:
        x = _gathered_layer(x, w_rows)
    return x


def all_but_gathers(primitive, *_, **__):
    """A policy: keep every result for the backward pass, but for gathered weights."""
    return "all_gather" not in str(primitive)


KEPT = {
    "keeps all": layers,
    "keeps all but gathered weights": jax.checkpoint(layers, policy=all_but_gathers),
    "keeps nothing": jax.checkpoint(layers),
}


@functools.cache
def fsdp_counts(kept):
    """How often each kind of collective stands in the program, its backward pass with it."""
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
    "all_gather, keeps all but": "Each weight is gathered once on the way forward. Which layers' weights does the "
    "backward pass multiply by, and which of them are still there?",
    "all_gather, keeps all": "Three weights are cut, and each is used whole. Which of them has to be made whole a "
    "second time, if everything is kept?",
    "all_gather, keeps nothing": "Each weight is gathered on the way forward. On the way back all three layers are "
    "computed again, the last one too: what does that need?",
    "reduce_scatter": "Three weights are gathered. What is the transpose of a gather, and how often is each gradient "
    "made?",
    "all_reduce": "One number is added up over all devices, forward. Which, and what is the transpose of that step?",
}
fsdp_transpose = TableExercise("fsdp_transpose", points=3, reference=_count, questions=FSDP_ASKS)
fsdp_transpose.rows(FSDP, mesh=LINE)


@fsdp_transpose.mistake
def counted_the_way_forward(row):
    """That is what the forward pass does alone. The gradient runs the program backwards too: what does each collective
    become there?"""
    return 0 if row.startswith("reduce_scatter") else None


@fsdp_transpose.mistake
def all_reduced_each_gradient(row):
    """An all-reduce for each weight is what *replicated* parameters cost. Here a device wants the gradient of its own
    rows only, so the sum is dealt out as it is made. What is all-reduced, once, is a single number."""
    return 4 if row.startswith("all_reduce") else None


@fsdp_transpose.mistake
def loss_summed_backwards_too(row):
    """Two would be one for each way. Forward the devices' losses are added up. On the way back every device has the
    same cotangent of that sum already: what would be added up there?"""
    return 2 if row.startswith("all_reduce") else None


@fsdp_transpose.mistake
def gathered_again_for_nothing(row):
    """When everything is kept, the gathered weights are kept as well, on every device: nothing has to be gathered a
    second time. (That is why one would rather not keep them.)"""
    return 6 if row == "all_gather, keeps all" else None


@fsdp_transpose.mistake
def forgot_to_gather_again(row):
    """What is not kept has to be made once more on the way back, and for that weights must be whole again. Which of
    them does the backward pass use?"""
    return 3 if row.startswith("all_gather") and row != FSDP[0] else None


@fsdp_transpose.mistake
def every_weight_twice(row):
    """That is every weight twice. But who needs the first weight in the backward pass? The second is needed to send the
    cotangent on to the first layer. The first would send it on to x, and nobody asked for the gradient with respect to
    x."""
    return 6 if row.endswith("but gathered weights") else None


@fsdp_transpose.mistake
def scattered_twice(row):
    """Each weight has one gradient, and it is summed and dealt out once. What is gathered a second time is gathered
    for the backward pass, not differentiated once more."""
    return 6 if row == "reduce_scatter, keeps nothing" else None
