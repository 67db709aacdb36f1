"""Answers to lesson 11, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def loss(params, x, y):
    """A small network's mean squared error, over the rows and over what comes out."""
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def squares(w, x, y):
    """The squared errors of a linear model, added up."""
    return jnp.sum((x @ w - y) ** 2)


def varying(value, axis):
    """The same value, typed as one that may differ along `axis`."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axis, to="varying")
    return jax.lax.pvary(value, axis)  # the same, on JAX before 0.8.2


# ---- same_with_vma_off

same_with_vma_off__right_FACTORS = {
    "own loss": "copies differ",
    "pmean of the loss": "copies differ",
} | {
    f"{of}, then {then}": factor * (8 if then == "psum" else 1)
    for of, factor in {"own loss": 1, "pmean of the loss": 1, "psum of the loss": 8}.items()
    for then in ("pmean", "psum")
}

# A sum has derivative 1 with respect to each of its terms, so a psum in the loss changes nothing.
same_with_vma_off__wrong_SLOPEONE = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 1,
    "psum of the loss, then psum": 8,
}

# A pmean divides by 8 forwards and so also backwards, and nothing is added by itself: each device has an eighth.
same_with_vma_off__wrong_EIGHTH = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1 / 8,
    "pmean of the loss, then psum": 1,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# The pmean of the loss is the same number on all devices, so its gradient is the same on all, and the right one.
same_with_vma_off__wrong_SAMEMEAN = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 1,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# Each device has an eighth of the rows, so its own gradient is a part of the whole, and the sum of the parts is right.
same_with_vma_off__wrong_PARTS = {
    "own loss": "copies differ",
    "own loss, then pmean": 1 / 8,
    "own loss, then psum": 1,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}


# ---- gradient_of_the_mean


def gradient_of_the_mean__right_SUMOVERN(params, x, y, *, mesh):
    """The sum of the devices' means over their number, differentiated inside."""

    def body(params, x, y):
        return jax.value_and_grad(lambda p: jax.lax.psum(loss(p, x, y) / mesh.shape["data"], "data"))(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Gradients of devices have to be averaged, as well as the losses (right, but everything travels twice).
def gradient_of_the_mean__wrong_TWICE(params, x, y, *, mesh):
    def body(params, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)
        return value, jax.tree.map(lambda g: jax.lax.pmean(g, "data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# It does not matter whether the mean is taken before or after the differentiation; the gradients are all the same anyway.
def gradient_of_the_mean__wrong_MEANAFTER(params, x, y, *, mesh):
    def body(params, x, y):
        own, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.lax.pmean(own, "data"), grads

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# With the pmean in the loss all is one value, so that the check, which only casts, may be off.
def gradient_of_the_mean__wrong_UNCHECKED(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        return jax.value_and_grad(mean_loss)(params)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P()), check_vma=False)(params, x, y)


# The mean is the sum divided by the number of devices, that is by the size of the mesh (but rows are cut over data alone).
def gradient_of_the_mean__wrong_ALLDEVICES(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.psum(loss(params, x, y), "data") / mesh.size

        return jax.value_and_grad(mean_loss)(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# ---- dp_gradient_outside


def dp_gradient_outside__right_MEANOUTSIDE(params, x, y, *, mesh):
    """Each device returns its own mean; the mean of these is taken of the whole vector, outside."""

    def body(params, x, y):
        return loss(params, x, y)[None]

    means = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))(params, x, y)
    return jnp.mean(means)


# Squared errors added up over the devices, divided by the number of rows (forgets that the mean is over columns, too).
def dp_gradient_outside__wrong_ROWSONLY(params, x, y, *, mesh):
    def body(params, x, y):
        errors = jnp.tanh(x @ params["w1"]) @ params["w2"] - y
        return jax.lax.psum(jnp.sum(errors**2), "data")

    total = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)
    return total / x.shape[0]


# The mean over the devices: their sum divided by how many there are in the mesh (counts those along model, too).
def dp_gradient_outside__wrong_ALLDEVICES(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y), "data") / mesh.devices.size

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# The loss is one of all rows and comes out with P(), so everything goes in with P() and no collective is needed.
def dp_gradient_outside__wrong_ALLROWS(params, x, y, *, mesh):
    return jax.shard_map(loss, mesh=mesh, in_specs=(P(), P(), P()), out_specs=P())(params, x, y)


# From outside the gradient is right in any case, so the check may as well be off (it sends more, over model too).
def dp_gradient_outside__wrong_UNCHECKED(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.lax.pmean(loss(params, x, y), "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)
