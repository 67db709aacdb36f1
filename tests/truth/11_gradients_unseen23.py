"""Answers to lesson 11, twenty-third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
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


# ---------------------------------------------------------------- transposes

transposes__right_sums = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": sum([1] * 8),
    "pmean to P(), ct 1": 0.125,
    "all_gather to P('data'), ct 1 each": sum([1] * 8),
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 3 + 1,
    "psum_scatter, ct 0 … 7": list(range(8)),
    "w from P() to P('data'), ct 0 … 7": sum(range(8)),
}

# Thought that the transpose of psum is psum, also where out_specs=P() makes one value of it.
transposes__wrong_psum = {
    "psum to P(), ct 1": 8,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# Thought of device 3's own entry of the result only, and not of the copies of its number on the other devices.
transposes__wrong_own_result = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 1,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 1,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 0, 0, 3, 0, 0, 0, 0],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# Thought "a ppermute goes backwards the other way", so that device 3 gets what stands one further back: at 2.
transposes__wrong_permute = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 2,
    "psum_scatter, ct 0 … 7": list(range(8)),
    "w from P() to P('data'), ct 0 … 7": 28,
}

# Thought that the transpose of an all_gather adds up eight devices' cotangents, also where there is just one result.
transposes__wrong_gather = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 8 * 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": list(range(8)),
    "w from P() to P('data'), ct 0 … 7": 28,
}


# ---------------------------------------------------------------- closed_over_params


def closed_over_params__right_unchecked(params, x, y, *, mesh):
    """The gradient of every row's loss, cut over data as the rows are."""
    each_row = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))
    specs = P(), P("data"), P("data")
    return jax.shard_map(each_row, mesh=mesh, in_specs=specs, out_specs=P("data"), check_vma=False)(params, x, y)


# Thought that the closure is the trouble, and that parameters which come in as an argument have a gradient of their own.
def closed_over_params__wrong_argument(params, x, y, *, mesh):
    def body(params, x, y):
        def of_one(row, target):
            return jax.grad(loss)(params, row, target)

        return jax.vmap(of_one)(x, y)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("data"))(params, x, y)


# Thought that with the check off there is still a sum over the devices to be divided away.
def closed_over_params__wrong_off_and_divided(params, x, y, *, mesh):
    n = mesh.shape["data"]

    def of_one(params, row, target):
        grads = jax.grad(loss)(params, row, target)
        return jax.tree.map(lambda g: g / n, grads)

    body = jax.vmap(of_one, in_axes=(None, 0, 0))
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"), check_vma=False)(
        params, x, y
    )


# Thought that the parameters must be cast along all axes of the mesh, which out_specs=P("data") allows on a line only.
def closed_over_params__wrong_all_axes(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, mesh.axis_names), params)
        return jax.vmap(lambda row, target: jax.grad(loss)(own, row, target))(x, y)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))(params, x, y)


# Thought that shard_map makes the trouble, so did without: vmap of grad on the whole arrays, and a layout at the end.
def closed_over_params__wrong_no_shard_map(params, x, y, *, mesh):
    grads = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)
    cut = NamedSharding(mesh, P("data"))
    return jax.tree.map(lambda g: jax.lax.with_sharding_constraint(g, cut), grads)


# ---------------------------------------------------------------- gradient_of_the_mean


def gradient_of_the_mean__right_shares(params, x, y, *, mesh):
    """(loss, gradients) of the whole batch."""
    devices = mesh.shape["data"]

    def body(params, x, y):
        def total(p):
            return jax.lax.psum(loss(p, x, y) / devices, "data")  # every device's share of the mean, added up

        return jax.value_and_grad(total)(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# Thought that the gradient comes out summed over the devices even if the mean is differentiated, and divided once more.
def gradient_of_the_mean__wrong_divided_again(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        value, grads = jax.value_and_grad(mean_loss)(params)
        return value, jax.tree.map(lambda g: g / jax.lax.axis_size("data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought that a loss divided by the number of devices is averaged by a pmean; the gradients are right, the loss is n times too small.
def gradient_of_the_mean__wrong_small_loss(params, x, y, *, mesh):
    def body(params, x, y):
        n = jax.lax.axis_size("data")
        value, grads = jax.value_and_grad(lambda p: loss(p, x, y) / n)(params)
        return jax.lax.pmean(value, "data"), grads

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought that the pmean in the loss is all there is to it, and the check may as well be off: every device keeps its own gradient.
def gradient_of_the_mean__wrong_unchecked(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


# Thought that the gradients must still be averaged to be the same on all devices: right numbers, and each travels twice.
def gradient_of_the_mean__wrong_twice(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(p):
            return jax.lax.pmean(loss(p, x, y), "data")

        value, grads = jax.value_and_grad(mean_loss)(params)
        grads = jax.lax.pmean(grads, "data")
        return value, grads

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)
