"""§ 4, 6: gradients of a mean, taken inside shard_map and outside of it.

Each program is compared with the gradient of the same loss on one device.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Besides, BytesSent, Case, Draw, ProgramExercise, TakenInside, Turns
from grader.jax_versions import varying
from grader.lessons.shared import bytes_sent

BATCH = P("data")


def loss(params, x, y):
    """The lesson's network and its loss: a mean over the rows and over the outputs."""
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def network(draw: Draw, first: P = P(), second: P = P(), batch: P = BATCH) -> tuple[dict, int]:
    """Arguments for the loss, and the number of roundings that an element of a gradient goes through."""
    rows, a, b, c = draw.lengths(4, divisible_by=8)
    params = {"w1": Array(draw.values(a, b) / 40, first), "w2": Array(draw.values(b, c) / 40, second)}
    given = {
        "params": params,
        "x": Array(draw.values(rows, a) / 10, batch),
        "y": Array(draw.values(rows, c) / 10, batch),
    }
    return given, 2 * (rows + a + b + c)


def _on_devices(body, mesh, out, check_vma=True):
    """`body` of the full parameters and of each device's rows."""
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), BATCH, BATCH), out_specs=out, check_vma=check_vma)


def each(params, change):
    return jax.tree.map(change, params)


# From outside (§ 6): the loss is a program on many devices, and that is what is differentiated.

dp_gradient_outside = ProgramExercise("dp_gradient_outside", points=4, reference=loss)


@dp_gradient_outside.cases
def _(draw: Draw) -> Case:
    given, roundings = network(draw)
    mesh = draw.mesh("data", "model")
    entries = [*(p.value.size for p in given["params"].values()), 1, 1, 1, 1]  # and a few single values
    enough = sum(bytes_sent("all_reduce", n, mesh["data"]) for n in entries)
    limits = [BytesSent(enough), Besides(1)]  # the mean of the devices' losses may be left to the compiler
    return Case(given, mesh, P(), limits=limits, cotangents=Array(np.float32(1), P()), roundings=roundings)


def _outside(combine, check_vma=True):
    def program(params, x, y, *, mesh):
        return _on_devices(lambda *own: combine(loss(*own), mesh), mesh, P(), check_vma)(params, x, y)

    return program


@dp_gradient_outside.mistake
def sum_of_means(params, x, y, *, mesh, check_vma=False):
    """The loss was n times too large: each device's loss is a mean over its own rows, and the sum of n means is n
    times their mean. Dividing a sum by the *local* number of rows makes such a mean, too. Which collective averages
    means?"""
    return _outside(lambda own, _: lax.psum(own, "data"), check_vma)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def never_divided(params, x, y, *, mesh):
    """The result was the sum over all rows and all outputs, never divided. The loss is a mean. By how many
    elements, on all devices together, should the sum be divided?"""

    def body(params, x, y):
        return lax.psum(loss(params, x, y) * y.size, "data")

    return _on_devices(body, mesh, P())(params, x, y)


@dp_gradient_outside.mistake
def divided_by_every_device(params, x, y, *, mesh):
    """The loss was too small, by a factor of the number of devices along `model`. The rows are sharded over `data`
    only, so devices along `model` hold the same rows. How many terms does your sum have?"""
    return _outside(lambda own, mesh: lax.psum(own, "data") / mesh.size)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def loss_of_its_own_rows(params, x, y, *, mesh, check_vma=False):
    """Each device returned the loss of its own rows, although `out_specs=P()` declares that all devices hold the
    same value. Which collective makes that true, and over which axis?"""
    return _outside(lambda own, _: own, check_vma)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def summed_over_both_axes(params, x, y, *, mesh):
    """The loss was summed over `model` too, although devices along `model` hold the same rows and the same loss. So
    every row was counted more than once. (Newer versions of JAX refuse this.) Over which axis are the rows sharded?"""

    def combine(own, mesh):
        return lax.psum(own, ("data", "model")) / mesh.shape["data"]

    return _outside(combine)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def left_unchecked(params, x, y, *, mesh):
    """The gradients were correct, but too much was sent. Without `check_vma`, JAX doesn't know that devices along
    `model` compute the same, so it also summed over that axis. What is different if the check of `shard_map` is on?"""
    return _outside(lambda own, _: lax.pmean(own, "data"), check_vma=False)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def gathered_the_batch(params, x, y, *, mesh):
    """The gradients were correct, but the program gathered the batch, and every device computed the loss of all
    rows: n times the work. If the loss is a mean, what does a device need to know about the rows of the others?"""

    def body(params, x, y):
        return loss(params, *(lax.all_gather(part, "data", tiled=True) for part in (x, y)))

    return _on_devices(body, mesh, P(), check_vma=False)(params, x, y)


# Inside (§ 4): the mean over all devices is differentiated.

gradient_of_the_mean = ProgramExercise("gradient_of_the_mean", points=4, reference=jax.value_and_grad(loss))


@gradient_of_the_mean.cases
def _(draw: Draw) -> Case:
    given, roundings = network(draw)
    mesh = draw.mesh("data", "model")
    # The loss, each parameter's gradient; and, without check_vma, the loss once more in the backward pass.
    entries = [*(p.value.size for p in given["params"].values()), 1, 1]
    enough = sum(bytes_sent("all_reduce", n, mesh["data"]) for n in entries)
    return Case(
        given,
        mesh,
        (P(), {"w1": P(), "w2": P()}),
        limits=[TakenInside(), BytesSent(enough)],
        roundings=roundings,
    )


def _inside(combine, then, check_vma=True):
    """Loss and gradient of the losses after `combine`, taken on the devices; `then` is applied to the gradient."""

    def program(params, x, y, *, mesh):
        def body(params, x, y):
            value, grads = jax.value_and_grad(lambda p: combine(loss(p, x, y)))(params)
            return value if combine is _mean else _mean(value), each(grads, then)

        return _on_devices(body, mesh, P(), check_vma)(params, x, y)

    return program


def keep(value):
    return value


def _sum(value):
    return lax.psum(value, "data")


def _mean(value):
    return lax.pmean(value, "data")


@gradient_of_the_mean.mistake
def gradient_of_its_own_loss(params, x, y, *, mesh):
    """The loss was correct, and its gradient n times too large: it is the sum of the gradients of n means. With
    `check_vma` on, JAX sums the gradients of replicated parameters. Which loss did you differentiate, and which one
    should it be?"""
    return _inside(keep, keep)(params, x, y, mesh=mesh)


@gradient_of_the_mean.mistake
def summed_once_more(params, x, y, *, mesh):
    """The gradient was too large by a factor of n or more. JAX had already summed it over the devices, so a psum
    multiplied it by n, and a pmean changed nothing. What should be averaged instead, and where?"""
    return _inside(_mean, _sum)(params, x, y, mesh=mesh)


@gradient_of_the_mean.mistake
def averaged_once_more(params, x, y, *, mesh):
    """The values were correct, but every gradient was sent twice, and gradients are most of what training sends.
    The last pmean averaged equal values. What is the type of the gradient before it: does it vary?"""
    return _inside(_mean, _mean)(params, x, y, mesh=mesh)


@gradient_of_the_mean.mistake
def differentiated_a_sum(params, x, y, *, mesh):
    """Loss and gradient were both n times too large. The devices' losses were summed, and each of them is a mean
    over that device's rows. Which collective takes the mean of means?"""

    def body(params, x, y):
        return jax.value_and_grad(lambda p: _sum(loss(p, x, y)))(params)

    return _on_devices(body, mesh, P())(params, x, y)


@gradient_of_the_mean.mistake
def returned_its_own_loss(params, x, y, *, mesh):
    """The returned loss differed between devices, as the loss of a device's own rows does, but `out_specs` declare
    it the same on all. What combines the losses, for the result and for the gradient?"""

    def body(params, x, y):
        return jax.value_and_grad(loss)(params, x, y)

    return _on_devices(body, mesh, P())(params, x, y)


@gradient_of_the_mean.mistake
def taken_outside(params, x, y, *, mesh):
    """Loss and gradient were correct, but `jax.value_and_grad` was outside `shard_map`. The exercise differentiates
    inside. Which function of `params` could the body differentiate?"""
    return jax.value_and_grad(_on_devices(lambda *own: _mean(loss(*own)), mesh, P()))(params, x, y)


@gradient_of_the_mean.mistake
def gradients_before_the_loss(params, x, y, *, mesh):
    """The gradients came before the loss. `jax.value_and_grad` returns a value first, and then gradients. Which order
    does the exercise ask for?"""
    value, grads = gradient_of_the_mean.reference(params, x, y)
    return grads, value


@gradient_of_the_mean.mistake
def without_the_loss(params, x, y, *, mesh):
    """The result was the gradients alone, without the loss. `jax.grad` returns only gradients. Which transformation
    also returns the value of the function?"""
    return gradient_of_the_mean.reference(params, x, y)[1]


@gradient_of_the_mean.mistake
def mean_loss_unchecked(params, x, y, *, mesh):
    """Each device held the gradient of its own rows only. Without `check_vma`, JAX doesn't know that the parameters
    are replicated, so it doesn't sum their gradients. What changes if the check of `shard_map` is on?"""
    return _inside(_mean, keep, check_vma=False)(params, x, y, mesh=mesh)


# Inside (§ 6): the devices' own gradients, which JAX sums, are divided.

gradient_divided = ProgramExercise("gradient_divided", points=3, reference=jax.grad(loss))


@gradient_divided.cases
def _(draw: Draw) -> Case:
    given, roundings = network(draw)
    return Case(
        given,
        draw.mesh("data", "model"),
        {"w1": P(), "w2": P()},
        limits=[Turns({"all_reduce": 2})],
        roundings=roundings,
    )


def _local(then, check_vma=True):
    """The gradient of each device's own loss, with `then` applied to it."""

    def program(params, x, y, *, mesh):
        def body(params, x, y):
            return each(jax.grad(loss)(params, x, y), then)

        return _on_devices(body, mesh, P(), check_vma)(params, x, y)

    return program


@gradient_divided.mistake
def local_gradient(params, x, y, *, mesh):
    """The gradient was exactly n times too large: it is a sum of the gradients of n means. With `check_vma` on, JAX
    sums the gradients of replicated parameters. How do you get the mean of n terms from their sum?"""
    return _local(keep)(params, x, y, mesh=mesh)


@gradient_divided.mistake
def local_then_mean(params, x, y, *, mesh):
    """The gradient was n times too large. This is what the common recipe gives with `check_vma` on: the gradient is
    already summed and the same on all devices, and a pmean of equal values changes nothing. What, other than a
    collective, is missing?"""
    return _local(_mean)(params, x, y, mesh=mesh)


@gradient_divided.mistake
def local_then_sum(params, x, y, *, mesh):
    """The gradient was n² times too large. JAX had already summed it, and a psum added n equal sums. How often does
    each gradient have to be sent, and what is left to do on each device?"""
    return _local(_sum)(params, x, y, mesh=mesh)


@gradient_divided.mistake
def divided_by_the_mesh(params, x, y, *, mesh):
    """The gradient was too small: it was divided by the number of all devices. But the sum has only as many terms
    as there are devices along `data`, because devices along `model` hold replicas. What is the length of that axis
    on any mesh?"""
    return _local(lambda g: g / mesh.size)(params, x, y, mesh=mesh)


@gradient_divided.mistake
def divided_without_a_sum(params, x, y, *, mesh):
    """Each device returned its own gradient, divided by n, although `out_specs` declare the same value on all
    devices. Without `check_vma`, JAX sums nothing. Where does the sum come from if the check of `shard_map` is on?"""
    return _local(lambda g: g / lax.axis_size("data"), check_vma=False)(params, x, y, mesh=mesh)


# Inside (§ 4): varying parameters have varying gradients, which you can look at.

gradient_cast = ProgramExercise("gradient_cast", points=4, reference=lambda params, x, y: _norms_and_mean(params, x, y))


def _norms_and_mean(params, x, y):
    grads = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, y)
    return jax.vmap(_norm)(grads), each(grads, lambda g: g.mean(axis=0))


def _norm(grads):
    return jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))


@gradient_cast.cases
def _(draw: Draw) -> Case:
    mesh = draw.mesh("data", "model")
    n = mesh["data"]
    given, roundings = network(draw)
    for name in ("x", "y"):
        whole = given[name].value
        given[name] = Array(whole.reshape(n, -1, whole.shape[1]), BATCH)
    return Case(
        given, mesh, (BATCH, {"w1": P(), "w2": P()}), limits=[Turns({"all_reduce": 2})], roundings=2 * roundings
    )


def _cast(combine, then, check_vma=True, cast=True, out=P()):
    """The norm of each device's gradient with respect to varying parameters, and the gradient after `then`."""

    def program(params, x, y, *, mesh):
        def body(params, x, y):
            own = each(params, lambda p: varying(p, "data")) if cast else params
            grads = jax.grad(lambda p: combine(loss(p, x, y)))(own)
            return _norm(grads)[None], each(grads, then)

        return _on_devices(body, mesh, (BATCH, out), check_vma)(params, x, y)

    return program


@gradient_cast.mistake
def cast_then_summed(params, x, y, *, mesh):
    """The norms were correct, and the gradient was n times too large. You summed the devices' gradients, and each
    is that of a mean over one device's rows. What is the gradient of the mean over all rows?"""
    return _cast(keep, _sum)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def averaged_loss_and_gradient(params, x, y, *, mesh):
    """Norms and gradient were both 1/n of the expected ones: they were divided once too often. If the loss is
    averaged before it is differentiated, each device gets 1/n of its own gradient. Which of the two divisions has
    to go?"""
    return _cast(_mean, _mean)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def averaged_loss_summed_gradient(params, x, y, *, mesh):
    """The gradient was correct, but the norms were 1/n of the expected ones. A device's part in the gradient of the
    *mean* loss is 1/n of its own gradient. Which loss should each device differentiate?"""
    return _cast(_mean, _sum)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def cast_and_left(params, x, y, *, mesh, check_vma=False):
    """A value that varies over `data` was declared replicated: the gradient of a device's own loss that no
    collective combined, or the norms, if one `out_specs=P()` stands for everything. Which part of your result
    varies, and what does its spec say?"""
    return _cast(keep, keep, check_vma)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def gradients_before_the_norms(params, x, y, *, mesh):
    """The gradients came before the norms. Which order does the exercise ask for?"""
    norms, mean = _norms_and_mean(params, x, y)
    return mean, norms


def _norms_by(norm, norms_first=True):
    """Cast and averaged as expected, with the `norm` of each device's gradient or, otherwise, of their mean."""

    def program(params, x, y, *, mesh):
        def body(params, x, y):
            own = jax.grad(loss)(each(params, lambda p: varying(p, "data")), x, y)
            mean = each(own, _mean)
            return norm(own if norms_first else mean)[None], mean

        return _on_devices(body, mesh, (BATCH, P()))(params, x, y)

    return program


@gradient_cast.mistake
def norm_of_the_mean(params, x, y, *, mesh):
    """The gradient was correct, but all norms were equal: they are the norm of the *averaged* gradient. By then,
    the devices' own gradients are gone. When do you have to take the norms?"""
    return _norms_by(_norm, norms_first=False)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def norm_of_the_first_array(params, x, y, *, mesh):
    """The gradient was correct, but the norms were those of the gradient of w1 alone. A network's gradient is all
    of its arrays together, as one long vector. Which arrays does your norm leave out?"""
    return _norms_by(lambda grads: jnp.sqrt(jnp.sum(grads["w1"] ** 2)))(params, x, y, mesh=mesh)


@gradient_cast.mistake
def norms_added_up(params, x, y, *, mesh):
    """The gradient was correct, but the norms of the gradients of w1 and w2 were added. Together they are one long
    vector, whose norm is a single square root. Of which sum?"""
    return _norms_by(lambda grads: sum(jnp.sqrt(jnp.sum(g**2)) for g in jax.tree.leaves(grads)))(
        params, x, y, mesh=mesh
    )


@gradient_cast.mistake
def norms_without_a_root(params, x, y, *, mesh):
    """The gradient was correct, but the norms were still squared: they are sums of squares. Which step of a norm is
    missing?"""
    return _norms_by(lambda grads: sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))(params, x, y, mesh=mesh)


@gradient_cast.mistake
def not_cast(params, x, y, *, mesh):
    """All norms were equal and too large: they are norms of a gradient that was already summed over the devices.
    JAX sums the gradient of replicated parameters. Which cast changes that?"""
    return _cast(keep, _mean, cast=False)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def not_cast_but_divided(params, x, y, *, mesh):
    """The gradient was correct, but all norms were equal: they are norms of the gradient summed over the devices.
    JAX sums the gradient of replicated parameters before you can look at it. How do you keep it from doing that?"""

    def program(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return varying(_norm(grads)[None], "data"), each(grads, lambda g: g / lax.axis_size("data"))

    return _on_devices(program, mesh, (BATCH, P()))(params, x, y)
