"""§ 6: shares inside a slice, copies between the slices."""

from __future__ import annotations

import jax
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import BytesSent, Case, ProgramExercise, Turns
from grader.jax_versions import varying
from grader.lessons.fsdp.network import (
    CUT,
    averaged,
    batch_drawn,
    entries,
    gathered,
    laid,
    layers_drawn,
    own,
    rows_of,
    scaled,
)
from grader.lessons.shared import bytes_sent, device_map, loss

BOTH = "slice", "fsdp"
ROWS = P(BOTH)

hybrid = ProgramExercise(
    "hybrid", points=6, reference=jax.jit(jax.value_and_grad(loss)), mesh_shapes=((2, 4), (4, 2), (2, 2))
)


@hybrid.cases
def _(draw):
    mesh = draw.mesh(*BOTH)
    slices, n = mesh["slice"], mesh["fsdp"]
    rows, *widths = draw.lengths(4, divisible_by=8)
    params = layers_drawn(draw, widths)
    leaves, share = len(jax.tree.leaves(params)), entries(params) // n
    inside = bytes_sent("all_gather", share, n) + bytes_sent("reduce_scatter", n * share, n)
    between = bytes_sent("all_reduce", share, slices)
    return Case(
        {"params": params, **batch_drawn(draw, rows, widths, ROWS)},
        mesh,
        (P(), laid(params)),
        limits=[
            BytesSent(inside + between + 4 * bytes_sent("all_reduce", 1, n * slices)),
            Turns({"all_gather": leaves, "reduce_scatter": leaves, "all_reduce": leaves + 3}),
        ],
        roundings=rows + 2 * sum(widths),
    )


def _hybrid(params, x, y, mesh, body, check_vma=False, spec=CUT):
    specs = jax.tree.map(lambda _: spec, params)
    return device_map(body, mesh, (specs, ROWS, ROWS), (P(), specs), check_vma)(params, x, y)


def _inside(p, x, y):
    """A slice's loss and its gradients, in shares: what is left is the mean over the slices."""
    value, gradients = jax.value_and_grad(lambda p: loss(gathered(p), x, y))(p)
    return averaged(value), scaled(gradients, 1 / lax.axis_size("fsdp"))


@hybrid.mistake
def whole_gradients_between_slices(params, x, y, *, mesh):
    """The values are right, and the slow wire carries too much: look at what is reduced over `slice`. It has the shape
    of the whole matrix, not of a share. Where the shares do not vary over `slice`, JAX adds up their gradient where
    they meet the examples: behind the gather, so on the way back *before* the reduce_scatter. In which type do the
    shares have to enter, so that you decide when?"""

    def body(p, x, y):
        return jax.value_and_grad(lambda p: averaged(loss(gathered(p), x, y), BOTH))(p)

    return _hybrid(params, x, y, mesh, body, True)


@hybrid.mistake
def averaged_what_was_added(params, x, y, *, mesh):
    """The gradients are too large by the number of slices. Where the shares do not vary over `slice`, JAX has added
    them up already (whole ones, ahead of the reduce_scatter); a mean over `slice` behind that changes nothing, as its
    terms are all the same. In which type do the shares have to enter, so that the mean is left to you?"""

    def body(p, x, y):
        found = jax.value_and_grad(lambda p: averaged(loss(gathered(p), x, y)))(p)
        return averaged(found, "slice")

    return _hybrid(params, x, y, mesh, body, True)


@hybrid.mistake
def added_by_jax(params, x, y, *, mesh):
    """The gradients are too large by the number of slices. Where the shares do not vary over `slice`, JAX adds up the
    gradients of all slices, and whole ones, ahead of the reduce_scatter. A mean of shares is due: in which type do the
    shares have to enter, so that it is left to you?"""

    def body(p, x, y):
        value, gradients = jax.value_and_grad(lambda p: averaged(loss(gathered(p), x, y)))(p)
        return averaged(value, "slice"), gradients

    return _hybrid(params, x, y, mesh, body, True)


@hybrid.mistake
def slices_never_meet(params, x, y, *, mesh):
    """Inside of each slice all is well, but the slices never meet: each has the gradient of its own examples, and after
    a step they have different weights. Which sum is missing, and over which axis?"""

    def body(p, x, y):
        value, gradients = _inside(p, x, y)
        return averaged(value, "slice"), gradients

    return _hybrid(params, x, y, mesh, body)


@hybrid.mistake
def slices_added_up(params, x, y, *, mesh, check_vma=False):
    """The gradients are too large by the number of slices: were those of the slices added up? Each of them is that of
    the mean of its slice's examples already. How does one combine means?"""

    def body(p, x, y):
        value, gradients = _inside(varying(p, "slice") if check_vma else p, x, y)
        return averaged(value, "slice"), jax.tree.map(lambda g: lax.psum(g, "slice"), gradients)

    return _hybrid(params, x, y, mesh, body, check_vma)


@hybrid.mistake
def divided_by_the_slices_only(params, x, y, *, mesh, check_vma=False):
    """The gradients are too large by the number of devices of a slice. Inside of a slice the reduce_scatter adds, and
    what it adds are gradients of means. How many means have been added up in all? (With the check off, a pmean of the
    loss divides no gradient.)"""

    def body(p, x, y):
        p = varying(p, "slice") if check_vma else p
        value, gradients = jax.value_and_grad(lambda p: loss(gathered(p), x, y))(p)
        return averaged(value, BOTH), averaged(gradients, "slice")

    return _hybrid(params, x, y, mesh, body, check_vma)


@hybrid.mistake
def averaged_over_both_axes(params, x, y, *, mesh):
    """The gradients were averaged over `fsdp` as well. Along `fsdp` the devices own different rows, and their mean is
    no gradient of anything. Along which axis do devices hold the *same* share?"""

    def body(p, x, y):
        value, gradients = jax.value_and_grad(lambda p: loss(gathered(p), x, y))(p)
        return averaged((value, gradients), BOTH)

    return _hybrid(params, x, y, mesh, body)


@hybrid.mistake
def shares_of_every_device(params, x, y, *, mesh):
    """The weights were cut over `slice` too. That holds less on each device, but the slow wire now carries weights on
    the way forwards and their whole gradients on the way back, and the result is not laid out as it should be. Inside a
    slice one has shares; between slices, copies."""

    def body(p, x, y):
        return jax.value_and_grad(lambda p: averaged(loss(gathered(p, BOTH), x, y), BOTH))(p)

    return _hybrid(params, x, y, mesh, body, True, spec=ROWS)


@hybrid.mistake
def reduced_everywhere_then_cut(params, x, y, *, mesh):
    """The values are right. But the gradients of the *gathered* weights were averaged over all devices, and then cut:
    the whole gradient crosses the slow wire, and every device holds it. First let the reduce_scatter cut it, inside the
    slice; then only shares are left to send."""

    def body(p, x, y):
        value, gradients = averaged(jax.value_and_grad(loss)(gathered(p), x, y), BOTH)
        return value, rows_of(gradients, own)

    return _hybrid(params, x, y, mesh, body)
