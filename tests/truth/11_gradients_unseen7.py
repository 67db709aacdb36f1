"""Answers to lesson 11, seventh batch, written by a reader of the notebook only."""

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


# ---- closed_over_params


def closed_over_params__right_IN_AXES(params, x, y, *, mesh):
    def on_device(params, rows, targets):
        own = {name: varying(p, "data") for name, p in params.items()}
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(own, rows, targets)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))(params, x, y)


# one keyword: with the check off nothing is added by itself
def closed_over_params__right_UNCHECKED(params, x, y, *, mesh):
    def of_one(row, target):
        return jax.grad(loss)(params, row, target)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"), check_vma=False)(x, y)


# Thinks that the closure is the trouble: hands the parameters over as an argument with P(), and casts nothing.
def closed_over_params__wrong_AS_ARGUMENT(params, x, y, *, mesh):
    def of_rows(params, rows, targets):
        return jax.vmap(lambda row, target: jax.grad(loss)(params, row, target))(rows, targets)

    specs = P(), P("data"), P("data")
    return jax.shard_map(of_rows, mesh=mesh, in_specs=specs, out_specs=P("data"))(params, x, y)


# Remembers "divide": thinks that the sums over the devices are the rows' gradients, times the number of devices.
def closed_over_params__wrong_DIVIDED(params, x, y, *, mesh):
    n = mesh.shape["data"]

    def of_one(row, target):
        return jax.tree.map(lambda g: g / n, jax.grad(loss)(params, row, target))

    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))(x, y)


# Casts rightly, but takes one gradient of all rows of a device: a gradient for each device, not for each row.
def closed_over_params__wrong_ONE_PER_DEVICE(params, x, y, *, mesh):
    def on_device(rows, targets):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, rows, targets)
        return jax.tree.map(lambda g: g[None], grads)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x, y)


# Casts rightly, and then takes the mean over the devices all the same, out of habit ("third way: cast, gradient, pmean").
def closed_over_params__wrong_PMEAN_AT_THE_END(params, x, y, *, mesh):
    def on_device(x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)

        def of_one(row, target):
            return jax.grad(loss)(own, row, target)

        return jax.lax.pmean(jax.vmap(of_one)(x, y), "data")

    specs = P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# ---- gradient_of_the_mean


def gradient_of_the_mean__right_PSUM_OVER_N(params, x, y, *, mesh):
    devices = mesh.shape["data"]

    def body(params, x, y):
        return jax.value_and_grad(lambda p: jax.lax.psum(loss(p, x, y) / devices, "data"))(params)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P()))(params, x, y)


# The recipe that everybody knows: own loss, then the mean of loss and gradients.
def gradient_of_the_mean__wrong_RECIPE(params, x, y, *, mesh):
    def body(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.lax.pmean(value, "data"), jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thinks that the loss of the batch is the sum of the devices' losses.
def gradient_of_the_mean__wrong_SUM_OF_LOSSES(params, x, y, *, mesh):
    def on_device(params, x, y):
        def total_loss(params):
            return jax.lax.psum(loss(params, x, y), "data")

        return jax.value_and_grad(total_loss)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# To be on the safe side, averages the gradients once more: right, and every gradient travels twice.
def gradient_of_the_mean__wrong_ONCE_MORE(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        value, grads = jax.value_and_grad(mean_loss)(params)
        grads = jax.tree.map(lambda g: jax.lax.pmean(g, "data"), grads)
        return value, grads

    shards = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())
    return shards(params, x, y)


# Mixes two ways: casts the parameters, differentiates the mean, and averages the gradients: divided by n twice.
def gradient_of_the_mean__wrong_TWO_WAYS(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(own)
        return value, jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# ---- gradient_divided


def gradient_divided__right_OUTSIDE(params, x, y, *, mesh):
    summed = jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())
    return {name: g / mesh.shape["data"] for name, g in summed(params, x, y).items()}


# Thinks that a pmean is the division: it averages n equal sums.
def gradient_divided__wrong_PMEAN(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.lax.pmean(jax.grad(loss)(params, x, y), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Divides by the number of all devices: right on a mesh with no other axis.
def gradient_divided__wrong_ALL_DEVICES(params, x, y, *, mesh):
    def body(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda g: g / mesh.size, grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thinks that what was added up are gradients of rows, and divides by the rows of a device.
def gradient_divided__wrong_BY_ROWS(params, x, y, *, mesh):
    def body(params, x, y):
        rows = x.shape[0]
        grads = jax.grad(loss)(params, x, y)
        for name in grads:
            grads[name] = grads[name] / rows
        return grads

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Divides rightly, and averages over the devices as well, "so that all have the same": every gradient travels twice.
def gradient_divided__wrong_AND_AVERAGED(params, x, y, *, mesh):
    def body(params, x, y):
        n = jax.lax.axis_size("data")
        grads = jax.tree.map(lambda g: g / n, jax.grad(loss)(params, x, y))
        return jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)
