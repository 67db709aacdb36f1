"""§ 5: one step of training: microbatches, one norm for all gradients, AdamW on what each device owns."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, InPlace, ProgramExercise
from grader.lessons.capstone.drawn import (
    AXIS_NAMES,
    batch_drawn,
    compiled_quickly,
    scalars_summed,
    sizes_drawn,
    state_drawn,
)
from grader.lessons.capstone.model import one_step
from grader.lessons.capstone.sharded import STATE, accumulated, local_loss, local_step, squares
from grader.lessons.capstone.slopes import backward_sent
from grader.lessons.shared import device_map
from grader.transformer.model import NORMS
from grader.transformer.training import DECAY, LIMIT, RATE, WARMUP, accumulate, adamw, clipped

MICRO = 2
MICROBATCHES = P(None, "data")

step = ProgramExercise(
    "step",
    points=8,
    reference=compiled_quickly(one_step),
    mesh_shapes=((4, 2), (2, 4)),
    after="gradients",
    taught_in=("12_data_parallel", "14_fsdp"),
)


@step.cases
def _(draw):
    mesh = draw.mesh(*AXIS_NAMES)
    sizes = sizes_drawn(draw, mesh)
    state, micro = state_drawn(draw, sizes), MICRO if mesh["data"] == 4 else MICRO + 1
    return Case(
        {"state": state, **batch_drawn(draw, sizes, micro)},
        mesh,
        (STATE, P()),
        limits=[
            BytesSent(micro * backward_sent(sizes, mesh) + scalars_summed(8 * micro + 16)),
            InPlace(tuple(str(leaf.value.dtype) for leaf in jax.tree.leaves(state))),
        ],
        roundings=300,  # k roundings of either sign come to about √k of them; a step hardly moves the parameters
        parts=("state", "loss"),
    )


def _step(state, tokens, targets, mesh, body, check_vma=True, out=STATE, donated=(0,)):
    ins = STATE, MICROBATCHES, MICROBATCHES
    mapped = device_map(body, mesh, ins, (out, P()), check_vma)
    return jax.jit(mapped, donate_argnums=donated)(state, tokens, targets)


def _with_norm(norm):
    """A right step, but for the norm that decides about clipping."""

    def body(state, tokens, targets):
        value, slopes = accumulated(state["params"], tokens, targets)
        return adamw(state, clipped(slopes, norm(slopes))), value

    return body


def _of_all(slopes):
    return sum(jnp.sum(g**2) for g in slopes.values())


@step.mistake
def copies_counted_by_every_device(state, tokens, targets, *, mesh):
    """The squares of the norm scales are in the norm eight times: every device has a copy of them. The norm comes out
    too large, and the gradients are shortened too much. Which leaves are parts, whose squares are added over the
    devices, and which are copies?"""
    body = _with_norm(lambda slopes: jnp.sqrt(lax.psum(_of_all(slopes), ("data", "model"))))
    return _step(state, tokens, targets, mesh, body)


@step.mistake
def norm_of_own_shares(state, tokens, targets, *, mesh):
    """Every device clipped by the norm of what it holds itself: all are too small, each device has another, and parts
    of one matrix are shortened by different factors. (Even the copies of a norm scale then drift apart.) What does
    every device have to know of the others' shares?"""
    return _step(state, tokens, targets, mesh, _with_norm(lambda slopes: jnp.sqrt(_of_all(slopes))), False)


@step.mistake
def added_over_data_alone(state, tokens, targets, *, mesh):
    """The squares were added over `data` alone. The matrices are cut over `model` as well: the squares of the other
    heads, hidden units and words are missing."""

    def norm(slopes):
        cut = _of_all({name: g for name, g in slopes.items() if name not in NORMS})
        return jnp.sqrt(lax.psum(cut, "data") + _of_all({name: slopes[name] for name in NORMS}))

    return _step(state, tokens, targets, mesh, _with_norm(norm), False)


@step.mistake
def squares_averaged_over_data(state, tokens, targets, *, mesh):
    """The squares of the matrices were added over `model`, and averaged over `data`. The devices along `data` have
    other parts of each matrix: their squares are terms of the one sum."""

    def norm(slopes):
        cut = _of_all({name: g for name, g in slopes.items() if name not in NORMS})
        return jnp.sqrt(lax.psum(lax.pmean(cut, "data"), "model") + _of_all({name: slopes[name] for name in NORMS}))

    return _step(state, tokens, targets, mesh, _with_norm(norm))


@step.mistake
def no_root_of_the_squares(state, tokens, targets, *, mesh):
    """The gradients were divided by the sum of all squares. The norm is the root of that."""
    return _step(state, tokens, targets, mesh, _with_norm(squares))


@step.mistake
def gradients_never_clipped(state, tokens, targets, *, mesh):
    """The gradients went into Adam as long as they were: nothing was clipped."""
    return _step(state, tokens, targets, mesh, _with_norm(lambda slopes: jnp.float32(LIMIT)))


@step.mistake
def norm_scales_decay(state, tokens, targets, *, mesh):
    """Weight decay pulled the norm scales towards 0 as well. Decay is for matrices: a scale that shrinks only makes the
    next matrix grow. (All leaves of the layers are stacked, so a scale has two dimensions, too: `ndim > 1` does not
    tell them apart.) What does?"""

    def body(state, tokens, targets):
        value, slopes = accumulated(state["params"], tokens, targets)
        new = adamw(state, clipped(slopes, jnp.sqrt(squares(slopes))))
        rate = RATE * jnp.minimum(1, new["count"] / WARMUP)
        decayed = {name: new["params"][name] - rate * DECAY * state["params"][name] for name in NORMS}
        return {**new, "params": {**new["params"], **decayed}}, value

    return _step(state, tokens, targets, mesh, body)


@step.mistake
def means_of_microbatches_averaged(state, tokens, targets, *, mesh):
    """Every microbatch was divided by its own number of real tokens, and these means were averaged. Microbatches have
    different numbers of real tokens: add up losses, and divide once, by the number in all of them."""

    return _step(state, tokens, targets, mesh, _by_own_means(len(tokens)))


@step.mistake
def means_of_microbatches_added(state, tokens, targets, *, mesh):
    """Every microbatch was divided by its own number of real tokens, and these means were added up. Add up losses, and
    divide once, by the number of real tokens in all microbatches."""
    return _step(state, tokens, targets, mesh, _by_own_means(1))


def _by_own_means(divided_by):
    """A step by the means of the microbatches, added up and divided by a number."""

    def body(state, tokens, targets):
        total = accumulate(local_loss, state["params"], tokens, targets)
        value, slopes = jax.tree.map(lambda leaf: leaf / divided_by, total)
        return adamw(state, clipped(slopes, jnp.sqrt(squares(slopes)))), value

    return body


@step.mistake
def last_microbatch_only(state, tokens, targets, *, mesh):
    """Loss and gradients are those of the last microbatch alone. All of them make up the batch of this step: what has
    become of the others'?"""

    def body(state, tokens, targets):
        value, slopes = jax.value_and_grad(local_loss)(state["params"], tokens[-1], targets[-1])
        return adamw(state, clipped(slopes, jnp.sqrt(squares(slopes)))), value

    return _step(state, tokens, targets, mesh, body)


@step.mistake
def counted_from_the_step_before(state, tokens, targets, *, mesh):
    """The moments are right, and the parameters moved too far or not far enough: learning rate and corrections are
    those of the step before. The first step is number 1, not 0. When is `count` raised?"""

    def body(state, tokens, targets):
        value, slopes = accumulated(state["params"], tokens, targets)
        late = {**state, "count": state["count"] - 1}
        return {**adamw(late, clipped(slopes, jnp.sqrt(squares(slopes)))), "count": state["count"] + 1}, value

    return _step(state, tokens, targets, mesh, body)


@step.mistake
def moments_of_norm_scales_cut(state, tokens, targets, *, mesh):
    """The values are right, but a moment of a norm scale comes out cut over `model`, and came in whole. The new state
    then is laid out otherwise than the old one: its memory cannot be used again, and the second step is compiled anew.
    A state comes out as it went in."""
    cut = {**STATE["mean"], "norm": P("model")}

    def body(state, tokens, targets):
        value, slopes = accumulated(state["params"], tokens, targets)
        new = adamw(state, clipped(slopes, jnp.sqrt(squares(slopes))))
        whole = new["mean"]["norm"]
        length = len(whole) // lax.axis_size("model")
        own = lax.dynamic_slice_in_dim(whole, lax.axis_index("model") * length, length)
        return {**new, "mean": {**new["mean"], "norm": own}}, value

    return _step(state, tokens, targets, mesh, body, True, {**STATE, "mean": cut})


@step.mistake
def second_state_kept(state, tokens, targets, *, mesh):
    """The new state is right, and the old one stays beside it: twice the parameters, twice the moments, for arrays that
    nobody will read again. Which argument of `jax.jit` says that an input may be written over? (A jit further out, in
    the training loop, would do as well; who calls this step alone has only what is written here.)"""
    return _step(state, tokens, targets, mesh, local_step, donated=())


@step.mistake
def count_comes_out_otherwise(state, tokens, targets, *, mesh):
    """The numbers are right, and `count` went in as a whole number and comes out as a float. So the second step is
    given other types than the first, and JAX compiles another program for it, which takes minutes for a large model. A
    state comes out as it went in: shapes, layouts, and dtypes. Where did a number with a point come in?"""

    def body(state, tokens, targets):
        new, value = local_step(state, tokens, targets)
        return {**new, "count": new["count"].astype(jnp.float32)}, value

    return _step(state, tokens, targets, mesh, body)
