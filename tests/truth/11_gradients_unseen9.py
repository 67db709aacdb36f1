"""Answers to lesson 11, ninth batch, written by a reader of the notebook only."""

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


# ---- fsdp_transpose

_LAYERS = 3
fsdp_transpose__right_counted = {
    "all_gather, keeps all": _LAYERS,
    "reduce_scatter, keeps all": _LAYERS,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 2 * _LAYERS,
    "reduce_scatter, keeps nothing": _LAYERS,
    "all_gather, keeps all but gathered weights": _LAYERS + (_LAYERS - 1),
}

# Thought: every all_gather has its reduce_scatter on the way back, so where there are six gathers there are six reduce_scatters.
fsdp_transpose__wrong_one_for_each_gather = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps all but gathered weights": 5,
}

# Thought: the last layer has just been computed when the way back begins, so it need not be gathered again; and the first need not, since nobody asks for x.
fsdp_transpose__wrong_last_is_still_there = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 5,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 4,
}

# Thought: the lesson's example gathered once with this policy as well, since the gradient with respect to the weights needs x and the cotangent only; so nothing is gathered again with three layers either.
fsdp_transpose__wrong_as_with_one_layer = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 3,
}

# Thought: the pmean of the loss is copied to all devices, and what is copied forwards is added backwards, so it makes a second all_reduce.
fsdp_transpose__wrong_pmean_backwards = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 2,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}


# ---- closed_over_params


def closed_over_params__right_copies_of_rows(params, x, y, *, mesh):
    def on_device(params, rows, targets):
        def a_copy_each(p):
            return varying(jnp.broadcast_to(p, (rows.shape[0], *p.shape)), "data")

        def total(copies):
            return jnp.sum(jax.vmap(loss)(copies, rows, targets))

        return jax.grad(total)(jax.tree.map(a_copy_each, params))

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("data"))(params, x, y)


# Thought: the function that is differentiated should see varying parameters, so I cast them where they are used.
def closed_over_params__wrong_cast_inside_the_loss(params, x, y, *, mesh):
    def of_one(row, target):
        def own_loss(p):
            own = jax.tree.map(lambda leaf: varying(leaf, "data"), p)
            return loss(own, row, target)

        return jax.grad(own_loss)(params)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# Thought: the bug is the closure, as the name says; handed in as an argument and mapped over by nobody, the parameters are the devices' own.
def closed_over_params__wrong_not_by_closure(params, x, y, *, mesh):
    gradient_of_rows = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))
    program = jax.shard_map(gradient_of_rows, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))
    return program(params, x, y)


# Thought: the gradient comes as a sum over the devices, and the lesson's cure for that is to divide by their number.
def closed_over_params__wrong_divided(params, x, y, *, mesh):
    devices = mesh.shape["data"]

    def of_one(row, target):
        return jax.tree.map(lambda g: g / devices, jax.grad(loss)(params, row, target))

    def on_device(rows, targets):
        return jax.vmap(of_one)(rows, targets)

    specs = P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# Thought: the device's own gradient is what is wanted, cast before; one gradient for a device's rows, with a dimension in front to be cut along, as with the norms.
def closed_over_params__wrong_one_for_each_device(params, x, y, *, mesh):
    def on_device(rows, targets):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        gradient = jax.grad(loss)(own, rows, targets)
        return jax.tree.map(lambda g: g[None], gradient)

    specs = P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# ---- gradient_of_the_mean


def gradient_of_the_mean__right_pulled_back(params, x, y, *, mesh):
    def on_device(params, x, y):
        def of_all(params):
            return jax.lax.psum(loss(params, x, y), "data") / jax.lax.axis_size("data")

        value, pull_back = jax.vjp(of_all, params)
        (gradients,) = pull_back(jnp.ones_like(value))
        return value, gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# Thought: with check_vma off nothing is added behind my back, so the mean that I write is the only thing that happens.
def gradient_of_the_mean__wrong_unchecked(params, x, y, *, mesh):
    def on_device(params, x, y):
        return jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


# Thought: a mean over the devices is the sum over the number of devices, and the mesh has mesh.size of them.
def gradient_of_the_mean__wrong_all_devices_of_the_mesh(params, x, y, *, mesh):
    def on_device(params, x, y):
        def mean_loss(params):
            return jax.lax.psum(loss(params, x, y) / mesh.size, "data")

        return jax.value_and_grad(mean_loss)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: only the gradient is n times too large, so I differentiate the sum and divide the gradient; the loss is what the devices' losses add up to.
def gradient_of_the_mean__wrong_loss_is_the_sum(params, x, y, *, mesh):
    n = mesh.shape["data"]

    def on_device(params, x, y):
        value, gradients = jax.value_and_grad(lambda p: jax.lax.psum(loss(p, x, y), "data"))(params)
        return value, jax.tree.map(lambda g: g / n, gradients)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: the loss of the whole batch needs the whole batch, so rows are gathered first, and the pmean only tells the types that all have the same.
def gradient_of_the_mean__wrong_rows_gathered(params, x, y, *, mesh):
    def on_device(params, x, y):
        all_x, all_y = (jax.lax.all_gather(rows, "data", axis=0, tiled=True) for rows in (x, y))

        def mean_loss(params):
            return jax.lax.pmean(loss(params, all_x, all_y), "data")

        return jax.value_and_grad(mean_loss)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)
