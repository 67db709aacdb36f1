"""§ 4–5: gradients of a mean, taken outside of shard_map and inside of it.

Each program is held against the gradient of the same loss on one device.
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
    """The network and the loss of the lesson: a mean over the batch, and over what comes out."""
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def network(draw: Draw, first: P = P(), second: P = P(), batch: P = BATCH) -> tuple[dict, int]:
    """Arguments for the loss, and through how many roundings an entry of a gradient goes.

    Forwards and backwards there are sums over the features, the hidden units, the results and the rows.
    """
    rows, a, b, c = draw.lengths(4, divisible_by=8)
    params = {"w1": Array(draw.values(a, b) / 40, first), "w2": Array(draw.values(b, c) / 40, second)}
    given = {
        "params": params,
        "x": Array(draw.values(rows, a) / 10, batch),
        "y": Array(draw.values(rows, c) / 10, batch),
    }
    return given, 2 * (rows + a + b + c)


def _on_devices(body, mesh, out, check_vma=True):
    """`body` of the whole parameters and a part of the batch."""
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), BATCH, BATCH), out_specs=out, check_vma=check_vma)


def each(params, change):
    return jax.tree.map(change, params)


# The gradient from outside: the loss is a program on many devices, and jax.grad is taken of that.

dp_gradient_outside = ProgramExercise("dp_gradient_outside", points=4, reference=loss)


@dp_gradient_outside.cases
def _(draw: Draw) -> Case:
    given, roundings = network(draw)
    mesh = draw.mesh("data", "model")
    entries = [*(p.value.size for p in given["params"].values()), 1, 1, 1, 1]  # and a few single numbers
    enough = sum(bytes_sent("all_reduce", n, mesh["data"]) for n in entries)
    limits = [BytesSent(enough), Besides(1)]  # the mean of the devices' losses may be left to the compiler
    return Case(given, mesh, P(), limits=limits, cotangents=Array(np.float32(1), P()), roundings=roundings)


def _outside(combine, check_vma=True):
    def program(params, x, y, *, mesh):
        return _on_devices(lambda *own: combine(loss(*own), mesh), mesh, P(), check_vma)(params, x, y)

    return program


@dp_gradient_outside.mistake
def sum_of_means(params, x, y, *, mesh, check_vma=False):
    """n times too large: the sum of n means, each over a device's own rows, is n times the mean. (A sum divided by the
    *local* number of rows is such a mean.) Which collective averages means?"""
    return _outside(lambda own, _: lax.psum(own, "data"), check_vma)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def never_divided(params, x, y, *, mesh):
    """That is the sum over all rows and all results, divided by nothing. The loss is a mean. By how many numbers, on
    all devices together, does it have to be divided?"""

    def body(params, x, y):
        return lax.psum(loss(params, x, y) * y.size, "data")

    return _on_devices(body, mesh, P())(params, x, y)


@dp_gradient_outside.mistake
def divided_by_every_device(params, x, y, *, mesh):
    """Too small by the number of devices along `model`. The batch is cut over `data` only: devices along the other axis
    have the same rows. If you divide, by how many: how many terms has the sum?"""
    return _outside(lambda own, mesh: lax.psum(own, "data") / mesh.size)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def loss_of_its_own_rows(params, x, y, *, mesh, check_vma=False):
    """Each device returned the loss of its own rows, and out_specs=P() promises that all of them have the same number.
    Which collective over which axis makes that true?"""
    return _outside(lambda own, _: own, check_vma)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def summed_over_both_axes(params, x, y, *, mesh):
    """Along `model` the devices hold the same rows and the same loss. Over that axis too a sum would count every row
    several times, and a mean tells nothing new. JAX refuses both (an older one does not). Over which axis was the batch
    cut?"""

    def combine(own, mesh):
        return lax.psum(own, ("data", "model")) / mesh.shape["data"]

    return _outside(combine)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def left_unchecked(params, x, y, *, mesh):
    """The gradients are right. But unchecked, JAX does not know that devices along `model` do the same, and adds up
    over that axis as well, also the gradients with respect to x and y. With the check on none of that is sent."""
    return _outside(lambda own, _: lax.pmean(own, "data"), check_vma=False)(params, x, y, mesh=mesh)


@dp_gradient_outside.mistake
def gathered_the_batch(params, x, y, *, mesh):
    """The batch was gathered, and every device computed the loss of all rows: right, and n times the work, with the
    data sent round. What does a device have to know of the others' rows, if the loss is a mean?"""

    def body(params, x, y):
        return loss(params, *(lax.all_gather(part, "data", tiled=True) for part in (x, y)))

    return _on_devices(body, mesh, P(), check_vma=False)(params, x, y)


# Inside, the first way: what is differentiated is the mean over all devices.

gradient_of_the_mean = ProgramExercise("gradient_of_the_mean", points=4, reference=jax.value_and_grad(loss))


@gradient_of_the_mean.cases
def _(draw: Draw) -> Case:
    given, roundings = network(draw)
    mesh = draw.mesh("data", "model")
    # The loss, each parameter's gradient; and, where the check is off, the loss once more on the way back.
    entries = [*(p.value.size for p in given["params"].values()), 1, 1]
    enough = sum(bytes_sent("all_reduce", n, mesh["data"]) for n in entries)
    return Case(
        given,
        mesh,
        (P(), {"w1": P(), "w2": P()}),
        limits=[Turns({"all_reduce": 4}), TakenInside(), BytesSent(enough)],
        roundings=roundings,
    )


def _inside(combine, then, check_vma=True):
    """Loss and gradient of `combine`d losses, taken on the devices; `then` is done to the gradient."""

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
    """The loss is right, and its gradient n times too large: a sum of the gradients of n means. (Where the parameters
    are the same on all devices, JAX adds these up, with the check on.) Of which loss is the gradient due, and of which
    did you take it?"""
    return _inside(keep, keep)(params, x, y, mesh=mesh)


@gradient_of_the_mean.mistake
def summed_once_more(params, x, y, *, mesh):
    """Your last collective found a gradient that JAX had added up already, the same on all devices. A psum of n equal
    numbers multiplies by n. A pmean of them changes none, and then the sum was one of n means. What has to be averaged
    instead, and where?"""
    return _inside(_mean, _sum)(params, x, y, mesh=mesh)


@gradient_of_the_mean.mistake
def averaged_once_more(params, x, y, *, mesh):
    """The numbers are right: a mean of equal numbers changes none. But every gradient travels twice, and gradients are
    most of what training sends. Print the type of the gradient before your pmean: does it vary?"""
    return _inside(_mean, _mean)(params, x, y, mesh=mesh)


@gradient_of_the_mean.mistake
def differentiated_a_sum(params, x, y, *, mesh):
    """Loss and gradient are n times too large, as where the devices' losses are added up, each of them a mean over its
    own rows. Which collective takes the mean?"""

    def body(params, x, y):
        return jax.value_and_grad(lambda p: _sum(loss(p, x, y)))(params)

    return _on_devices(body, mesh, P())(params, x, y)


@gradient_of_the_mean.mistake
def returned_its_own_loss(params, x, y, *, mesh):
    """What is returned differs from device to device, as the loss of a device's own rows does, and out_specs promise
    the same on all of them. What combines the losses, for the result and for the gradient?"""

    def body(params, x, y):
        return jax.value_and_grad(loss)(params, x, y)

    return _on_devices(body, mesh, P())(params, x, y)


@gradient_of_the_mean.mistake
def taken_outside(params, x, y, *, mesh):
    """Loss and gradient are right, but `jax.value_and_grad` stands around the shard_map. Inside, what is differentiated
    is a function of `params` in the body, and the body returns its value and its gradient."""
    return jax.value_and_grad(_on_devices(lambda *own: _mean(loss(*own)), mesh, P()))(params, x, y)


@gradient_of_the_mean.mistake
def mean_loss_unchecked(params, x, y, *, mesh):
    """Without the check nobody knows that the parameters are the same everywhere, so nobody adds up their gradient:
    each device holds that of its own rows. With the check on, the gradient of the mean loss comes out complete."""
    return _inside(_mean, keep, check_vma=False)(params, x, y, mesh=mesh)


# The second way: the devices' own gradients, which JAX adds up; to be divided.

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
    """The gradient of each device's own loss, and what is done to it."""

    def program(params, x, y, *, mesh):
        def body(params, x, y):
            return each(jax.grad(loss)(params, x, y), then)

        return _on_devices(body, mesh, P(), check_vma)(params, x, y)

    return program


@gradient_divided.mistake
def local_gradient(params, x, y, *, mesh):
    """Exactly n times too large: a sum of n means. (Where the parameters come in the same on all devices, JAX adds
    their gradient up, with the check on.) What is the mean of the whole batch, in terms of that sum?"""
    return _local(keep)(params, x, y, mesh=mesh)


@gradient_divided.mistake
def local_then_mean(params, x, y, *, mesh):
    """n times too large, as by the recipe of every older tutorial: local gradient, then pmean. With the check on the
    gradient is the same on all devices already; a mean of equal numbers changes none, and a sum multiplies them by n.
    What is missing is no collective."""
    return _local(_mean)(params, x, y, mesh=mesh)


@gradient_divided.mistake
def local_then_sum(params, x, y, *, mesh):
    """n² times too large, as where JAX has added the gradients up, and a psum adds n equal sums once more. Neither is
    the mean that was asked for. How often must something travel here, and what is left to do on each device?"""
    return _local(_sum)(params, x, y, mesh=mesh)


@gradient_divided.mistake
def divided_by_the_mesh(params, x, y, *, mesh):
    """What you divided by is as large as the number of all devices, but the sum has as many terms as there are devices
    along `data`: the others hold copies. `jax.lax.axis_size` tells the length of an axis, on every mesh."""
    return _local(lambda g: g / mesh.size)(params, x, y, mesh=mesh)


@gradient_divided.mistake
def divided_without_a_sum(params, x, y, *, mesh):
    """With the check off nobody added the gradients up: each device divided its own by n and kept it, while out_specs
    promise the same on all. Where does the sum come from when the check is on?"""
    return _local(lambda g: g / lax.axis_size("data"), check_vma=False)(params, x, y, mesh=mesh)


# The third way: parameters that may differ have gradients that may differ. Needed where one looks at these.

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
    """The norm of each device's gradient, by parameters that may differ, and what is done to the gradient."""

    def program(params, x, y, *, mesh):
        def body(params, x, y):
            own = each(params, lambda p: varying(p, "data")) if cast else params
            grads = jax.grad(lambda p: combine(loss(p, x, y)))(own)
            return _norm(grads)[None], each(grads, then)

        return _on_devices(body, mesh, (BATCH, out), check_vma)(params, x, y)

    return program


@gradient_cast.mistake
def cast_then_summed(params, x, y, *, mesh):
    """The norms are right: each device has its own gradient now. Adding these up gives a sum of n means. The gradient
    of the whole batch is their mean."""
    return _cast(keep, _sum)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def averaged_loss_and_gradient(params, x, y, *, mesh):
    """Norms and gradient are 1/n of what they should be: divided once too often. A loss that is averaged before it is
    differentiated gives each device 1/n of its own gradient. Which division has to go, if the norms are to be those of
    a device's *own* loss?"""
    return _cast(_mean, _mean)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def averaged_loss_summed_gradient(params, x, y, *, mesh):
    """The gradient is right, and the norms are 1/n of what they should be. Where the mean of all losses is
    differentiated, a device's part of that is 1/n of its own gradient: of which loss should each device take the
    gradient?"""
    return _cast(_mean, _sum)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def cast_and_left(params, x, y, *, mesh, check_vma=False):
    """Every device has a gradient of its own, and nobody has combined them. out_specs=P() promises one gradient for
    all. Which collective is left for you to write?"""
    return _cast(keep, keep, check_vma)(params, x, y, mesh=mesh)


def _norms_by(norm, norms_first=True):
    """Cast and averaged as is due; the norms by `norm`, of each device's gradient or, else, of their mean."""

    def program(params, x, y, *, mesh):
        def body(params, x, y):
            own = jax.grad(loss)(each(params, lambda p: varying(p, "data")), x, y)
            mean = each(own, _mean)
            return norm(own if norms_first else mean)[None], mean

        return _on_devices(body, mesh, (BATCH, P()))(params, x, y)

    return program


@gradient_cast.mistake
def norm_of_the_mean(params, x, y, *, mesh):
    """The gradient is right. But all norms are the same, since they are the norm of the *averaged* gradient: by then
    the devices' own gradients are gone. Take the norms before these are combined, by you or by JAX."""
    return _norms_by(_norm, norms_first=False)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def norm_of_the_first_array(params, x, y, *, mesh):
    """The gradient is right. But the norm is that of w1's gradient alone: the gradient of a network is all of its
    arrays together, one long vector."""
    return _norms_by(lambda grads: jnp.sqrt(jnp.sum(grads["w1"] ** 2)))(params, x, y, mesh=mesh)


@gradient_cast.mistake
def norms_added_up(params, x, y, *, mesh):
    """The gradient is right. The norm of w1's gradient and that of w2's were added up. The two together are one long
    vector, and its norm is one root: of what sum?"""
    return _norms_by(lambda grads: sum(jnp.sqrt(jnp.sum(g**2)) for g in jax.tree.leaves(grads)))(
        params, x, y, mesh=mesh
    )


@gradient_cast.mistake
def norms_without_a_root(params, x, y, *, mesh):
    """The gradient is right. The norms are still squared: a sum of squares, whose root was not taken."""
    return _norms_by(lambda grads: sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))(params, x, y, mesh=mesh)


@gradient_cast.mistake
def not_cast(params, x, y, *, mesh):
    """All norms are the same, and too large: they are norms of the sum over all devices. If no psum of yours made it,
    JAX did: parameters that are the same everywhere have a gradient that is. Which cast changes that?"""
    return _cast(keep, _mean, cast=False)(params, x, y, mesh=mesh)


@gradient_cast.mistake
def not_cast_but_divided(params, x, y, *, mesh):
    """The gradient is right. But all norms are the same: they are norms of the sum over all devices. Where parameters
    are the same everywhere JAX adds up before you can look. How do you keep it from adding?"""

    def program(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return varying(_norm(grads)[None], "data"), each(grads, lambda g: g / lax.axis_size("data"))

    return _on_devices(program, mesh, (BATCH, P()))(params, x, y)
