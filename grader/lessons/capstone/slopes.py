"""§ 4: the gradients of every parameter, each laid out as its parameter is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, ProgramExercise
from grader.lessons.capstone.drawn import (
    AXIS_NAMES,
    MESHES,
    batch_drawn,
    compiled_quickly,
    norms_summed,
    params_drawn,
    roundings,
    scalars_summed,
    sequence_summed,
    sizes_drawn,
    tokens_summed,
    weights_gathered,
    weights_scattered,
)
from grader.lessons.capstone.model import mean_loss
from grader.lessons.capstone.sharded import ROWS, SPECS, local_logits, local_loss, token_losses
from grader.lessons.shared import device_map
from grader.transformer.model import NORMS

gradients = ProgramExercise(
    "gradients",
    points=8,
    reference=compiled_quickly(jax.value_and_grad(mean_loss)),
    mesh_shapes=MESHES,
    after="loss",
    taught_in=("11_gradients", "14_fsdp"),
)


@gradients.cases
def _(draw):
    mesh = draw.mesh(*AXIS_NAMES)
    sizes = sizes_drawn(draw, mesh)
    return Case(
        {"params": params_drawn(draw, sizes), **batch_drawn(draw, sizes)},
        mesh,
        (P(), SPECS),
        limits=[BytesSent(backward_sent(sizes, mesh) + scalars_summed(8))],
        roundings=roundings(sizes, passes=3) + 2 * sizes["vocabulary"],
        parts=("loss", "gradients"),
    )


def backward_sent(sizes, mesh) -> int:
    """Bytes that each device sends for a loss and its gradients, the layers done a second time for the way back."""
    return (
        2 * weights_gathered(sizes, mesh)
        + weights_scattered(sizes, mesh)
        + 3 * sequence_summed(sizes, mesh)
        + tokens_summed(mesh, 10)
        + norms_summed(sizes)
    )


def _gradients(params, tokens, targets, mesh, body, check_vma=True):
    return device_map(body, mesh, (SPECS, ROWS, ROWS), (P(), SPECS), check_vma)(params, tokens, targets)


def _sums(params, tokens, targets):
    """The losses of a device's own tokens, added up, and how many they are."""
    return jnp.sum(token_losses(local_logits(params, tokens), targets)), jnp.sum(targets >= 0)


def _own_mean(params, tokens, targets):
    total, count = _sums(params, tokens, targets)
    return total / count


def _averaged(tree, axes="data"):
    return jax.tree.map(lambda leaf: lax.pmean(leaf, axes), tree)


@gradients.mistake
def same_lines_with_the_check_off(params, tokens, targets, *, mesh):
    """Is the check off? There a psum's transpose is a psum again, so what comes back through each of the loss's psums
    is as many times too large as devices took part; and the norm scales, of which every device has a copy, are added up
    by nobody. Lesson 11 has the rule; the check is there to be left on."""
    return _gradients(params, tokens, targets, mesh, jax.value_and_grad(local_loss), False)


@gradients.mistake
def means_of_all_devices_added(params, tokens, targets, *, mesh):
    """This is the gradient of a *sum* of means, as many as there are devices along `data`. With the check on, the
    gradients of all devices are added up on their way back: if each differentiates the mean over its own tokens, what
    comes of that? What should be differentiated instead?"""

    def body(params, tokens, targets):
        value, slopes = jax.value_and_grad(_own_mean)(params, tokens, targets)
        return lax.pmean(value, "data"), slopes

    return _gradients(params, tokens, targets, mesh, body)


@gradients.mistake
def averaged_once_more(params, tokens, targets, *, mesh):
    """These are the right gradients, averaged over `data`. The devices have *different* rows of each matrix: the mean
    of row 0 of one and row 0 of the next is no gradient of anything. (Norm scales, of which all have copies, came
    through unharmed.) What has the transpose of the all_gather done already?"""

    def body(params, tokens, targets):
        value, slopes = jax.value_and_grad(local_loss)(params, tokens, targets)
        return value, _averaged(slopes)

    return _gradients(params, tokens, targets, mesh, body)


@gradients.mistake
def slopes_alone(params, tokens, targets, *, mesh):
    """The gradients were returned, and the loss was not. Which function of JAX gives both, the value first?"""
    mapped = device_map(jax.grad(local_loss), mesh, (SPECS, ROWS, ROWS), SPECS, True)
    return mapped(params, tokens, targets)


@gradients.mistake
def slopes_of_the_mean_of_means(params, tokens, targets, *, mesh):
    """This is the gradient of a mean of the devices' means, where a token counts for more on a device that has few real
    ones. The loss of gate 3 divides one sum by another: differentiate that."""

    def averaged(params, tokens, targets):
        return lax.pmean(_own_mean(params, tokens, targets), "data")

    return _gradients(params, tokens, targets, mesh, jax.value_and_grad(averaged))


def _by_hand(norms_over, divided=True):
    """With the check off: a device's own part of the loss, and the norm scales added up over these axes."""

    def body(params, tokens, targets):
        count = lax.psum(jnp.sum(targets >= 0), "data") * (lax.axis_size("model") if divided else 1)
        value, slopes = jax.value_and_grad(lambda p: _sums(p, tokens, targets)[0] / count)(params)
        summed = {name: lax.psum(slopes[name], norms_over) if norms_over else slopes[name] for name in NORMS}
        return lax.psum(value, ("data", "model") if divided else "data"), {**slopes, **summed}

    return body


@gradients.mistake
def norm_scales_not_added_over_model(params, tokens, targets, *, mesh):
    """All matrices are right, and the norm scales are not. Between the layers the sequence is cut, so along `model` too
    every device has normed *other* tokens, and its gradient of a scale is one part of the sum. (Without that cut it
    would have been a copy.) Over which axes do copies of a parameter meet different tokens?"""
    return _gradients(params, tokens, targets, mesh, _by_hand("data"), False)


@gradients.mistake
def norm_scales_not_added_at_all(params, tokens, targets, *, mesh):
    """All matrices are right, and the norm scales are not: with the check off nobody adds up their gradients. No
    all_gather leads to them, so no reduce_scatter leads back. What is missing for parameters that are whole
    everywhere?"""
    return _gradients(params, tokens, targets, mesh, _by_hand(()), False)


@gradients.mistake
def counted_by_every_device_along_model(params, tokens, targets, *, mesh):
    """Every gradient is as many times too large as there are devices along `model`. With the check off JAX
    differentiates the sum of what all devices return, and a loss that is the same along `model` is in it that often.
    What is each one's share of it?"""
    return _gradients(params, tokens, targets, mesh, _by_hand(("data", "model"), divided=False), False)
