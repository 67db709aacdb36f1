"""Answers to lesson 11, fourteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- closed_over_params
def closed_over_params__right_in_axes(params, x, y, *, mesh):
    """The gradient of every row's loss, cut over data as the rows are."""

    def body(params, rows, targets):
        own = {name: varying(p, "data") for name, p in params.items()}
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(own, rows, targets)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))(params, x, y)


# This student thought that the closure is to blame, and that parameters that come in as an argument are each device's own.
def closed_over_params__wrong_argument(params, x, y, *, mesh):
    """The gradient of every row's loss, cut over data as the rows are."""

    def body(params, rows, targets):
        return jax.vmap(lambda row, target: jax.grad(loss)(params, row, target))(rows, targets)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))(params, x, y)


# This student thought that a sum over the devices is undone by dividing by their number.
def closed_over_params__wrong_divided(params, x, y, *, mesh):
    """The gradient of every row's loss, cut over data as the rows are."""

    def of_one(row, target):
        grads = jax.grad(loss)(params, row, target)
        return jax.tree.map(lambda g: g / mesh.shape["data"], grads)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# This student thought that the cast may stand anywhere before the loss, and put it inside of what is differentiated.
def closed_over_params__wrong_cast_inside(params, x, y, *, mesh):
    """The gradient of every row's loss, cut over data as the rows are."""

    def own_loss(params, row, target):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        return loss(own, row, target)

    def of_one(row, target):
        return jax.grad(own_loss)(params, row, target)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# This student thought that "own" means to vary along every axis of the mesh, not only along the one that cuts the rows.
def closed_over_params__wrong_every_axis(params, x, y, *, mesh):
    """The gradient of every row's loss, cut over data as the rows are."""

    def of_one(row, target):
        own = jax.tree.map(lambda p: varying(p, mesh.axis_names), params)
        return jax.grad(loss)(own, row, target)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# ---------------------------------------------------------------- gradient_of_the_mean
def gradient_of_the_mean__right_psum_of_shares(params, x, y, *, mesh):
    """(loss, gradients) of the whole batch."""

    def body(params, x, y):
        def share(params):
            return jax.lax.psum(loss(params, x, y) / mesh.shape["data"], "data")

        return jax.value_and_grad(share)(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that the mean is the sum over all devices there are, also those that hold the same rows or are not in the mesh.
def gradient_of_the_mean__wrong_device_count(params, x, y, *, mesh):
    """(loss, gradients) of the whole batch."""

    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.psum(loss(params, x, y), "data") / jax.device_count()

        return jax.value_and_grad(mean_loss)(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that the mean of the devices' losses and the mean of their gradients can be taken afterwards, both in one pmean.
def gradient_of_the_mean__wrong_afterwards(params, x, y, *, mesh):
    """(loss, gradients) of the whole batch."""

    def body(params, x, y):
        return jax.lax.pmean(jax.value_and_grad(loss)(params, x, y), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that only the loss has been averaged by the pmean in it, so that the gradients need one of their own.
def gradient_of_the_mean__wrong_sent_twice(params, x, y, *, mesh):
    """(loss, gradients) of the whole batch."""

    def body(params, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)
        return value, jax.tree.map(lambda g: jax.lax.pmean(g, "data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that with the mean already in the loss the check of shard_map is not needed, and can be left off.
def gradient_of_the_mean__wrong_check_off(params, x, y, *, mesh):
    """(loss, gradients) of the whole batch."""

    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        return jax.value_and_grad(mean_loss)(params)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


# ---------------------------------------------------------------- transposes
transposes__right_sums = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [k for k in range(8)],
    "w from P() to P('data'), ct 0 … 7": sum(range(8)),
}

# This student thought that the transpose of psum is always psum, over eight cotangents of 1 (and of 1/8 for pmean).
transposes__wrong_old_sentence = {
    "psum to P(), ct 1": 8,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student thought that what is equal on all eight devices is one result, whatever out_specs says.
transposes__wrong_one_result = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 1,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 1,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student thought that the way back leads device 3 to its neighbour on the other side, device 2.
transposes__wrong_neighbour = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 2,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student thought that the eight numbers of device 3 all went into the sum that device 3 keeps.
transposes__wrong_own_sum = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [3, 3, 3, 3, 3, 3, 3, 3],
    "w from P() to P('data'), ct 0 … 7": 28,
}
