"""Answers to lesson 12, twenty-second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network: relu between its layers, the last one linear. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def descend(params, gradients, rate):
    """One step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---------------------------------------------------------------- accumulate


def accumulate__right_strided(params, x, y, *, microbatches, mesh):
    """(loss, gradients) of the whole batch, each device's rows in turns."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)
        total = nothing
        for k in range(microbatches):  # turn k has the rows k, k + microbatches, ...
            total = jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, x[k::microbatches], y[k::microbatches]))
        parts = microbatches * mesh.shape["data"]
        return jax.lax.psum(jax.tree.map(lambda t: t / parts, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thinks that a running total must be the total of all devices, so the mean is taken within every turn.
def accumulate__wrong_each_turn(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        begin = jnp.float32(0), jax.tree.map(jnp.zeros_like, params)

        def turn(total, rows):
            found = jax.lax.pmean(jax.value_and_grad(loss)(own, *rows), "data")
            return jax.tree.map(jnp.add, total, found), None

        parts = tuple(a.reshape(microbatches, -1, a.shape[-1]) for a in (x, y))
        total, _ = jax.lax.scan(turn, begin, parts)
        return jax.tree.map(lambda t: t / microbatches, total)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student divides the gradients by the turns and thinks that the loss, being a mean already, only has to be averaged over devices.
def accumulate__wrong_loss_undivided(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, rows):
            value, grads = jax.value_and_grad(loss)(own, rows[0], rows[1])
            return (total[0] + value, jax.tree.map(jnp.add, total[1], grads)), None

        xs = x.reshape(microbatches, x.shape[0] // microbatches, x.shape[1])
        ys = y.reshape(microbatches, y.shape[0] // microbatches, y.shape[1])
        (value, grads), _ = jax.lax.scan(turn, nothing, (xs, ys))
        grads = jax.tree.map(lambda g: g / microbatches, grads)
        return jax.lax.pmean((value, grads), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thinks that gradients of different rows are added up over devices, and has divided (by the turns) once already.
def accumulate__wrong_psum(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, rows):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *rows)), None

        xs, ys = (jnp.stack(jnp.split(a, microbatches)) for a in (x, y))
        total, _ = jax.lax.scan(turn, nothing, (xs, ys))
        return jax.lax.psum(jax.tree.map(lambda t: t / microbatches, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student begins with the first microbatch in place of zeros, and then lets the loop go over all of them, the first once more.
def accumulate__wrong_first_twice(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        xs = x.reshape(microbatches, -1, x.shape[-1])
        ys = y.reshape(microbatches, -1, y.shape[-1])
        find = jax.value_and_grad(loss)

        def turn(total, rows):
            return jax.tree.map(jnp.add, total, find(own, *rows)), None

        total, _ = jax.lax.scan(turn, find(own, xs[0], ys[0]), (xs, ys))
        return jax.lax.pmean(jax.tree.map(lambda t: t / microbatches, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# -------------------------------------------------------------- average_what

average_what__right_linear = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# This student thinks that whatever is remembered locally drifts apart, momentum as well as Adam's averages.
average_what__wrong_memory = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "different",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# This student thinks that clipping only multiplies a gradient by a number, and that multiplying by a number is linear.
average_what__wrong_clipping = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "same",
    "SGD, averaged after every second step": "different",
}

# This student thinks that two linear steps are a linear step, so it does not matter when the average is taken.
average_what__wrong_later = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "same",
}

# This student thinks that Adam keeps averages, which are linear, while weight decay multiplies the parameters and is applied on eight devices.
average_what__wrong_decay = {
    "SGD": "same",
    "SGD with weight decay": "different",
    "SGD with momentum": "same",
    "Adam": "same",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# ---------------------------------------------------------- same_lr_question

same_lr_question__right_factors = {
    name: 0.48 / factor
    for name, factor in {
        "local mean, pmean": 1,
        "local mean, psum": 8,
        "local sum, pmean": 6,
        "local sum, psum": 48,
        "local mean, nothing, check_vma on": 8,
        "local sum / 48, psum": 1,
        "local mean, summed over 4 microbatches, pmean": 4,
    }.items()
}

# This student thinks that where no collective is written nothing is combined, so the local mean's gradient has the right size.
same_lr_question__wrong_nothing = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.48,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# This student has mixed up rows and devices: takes a psum for 6 times too large, and a local sum for 8 times.
same_lr_question__wrong_swapped = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.48 / 6,
    "local sum, pmean": 0.48 / 8,
    "local sum, psum": 0.48 / 48,
    "local mean, nothing, check_vma on": 0.48 / 6,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48 / 4,
}

# This student corrects for devices only, and does not see that a sum over rows is larger than their mean (nor that / 48 is there for a reason).
same_lr_question__wrong_devices_only = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.48,
    "local sum, psum": 0.06,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.06,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# This student thinks that each microbatch has a quarter of the rows, so its gradient is a quarter and the four add up to the whole.
same_lr_question__wrong_quarters = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48,
}
