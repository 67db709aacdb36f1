"""Answers to lesson 11, twelfth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- gradient_divided


def gradient_divided__right_outside(params, x, y, *, mesh):
    specs = P(), P("data"), P("data")
    added = jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=specs, out_specs=P())(params, x, y)
    return jax.tree.map(lambda g: g / mesh.shape["data"], added)


# This student divides by the number of all devices, also of those along model, over which nothing was added.
def gradient_divided__wrong_all_devices(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.tree.map(lambda g: g / mesh.size, jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student divides, and then takes the pmean "to be the same everywhere": the right numbers, sent twice.
def gradient_divided__wrong_sent_twice(params, x, y, *, mesh):
    def body(params, x, y):
        grads = jax.tree.map(lambda g: g / jax.lax.axis_size("data"), jax.grad(loss)(params, x, y))
        return jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that out_specs=P() is what adds up, and turned the check off: own gradients, divided, never added.
def gradient_divided__wrong_unchecked(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.tree.map(lambda g: g / mesh.shape["data"], jax.grad(loss)(params, x, y))

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


# This student thought that a sum over rows came out, and divides by the rows of the batch, though each loss is a mean already.
def gradient_divided__wrong_by_rows(params, x, y, *, mesh):
    specs = P(), P("data"), P("data")
    added = jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=specs, out_specs=P())(params, x, y)
    return jax.tree.map(lambda g: g / x.shape[0], added)


# ---------------------------------------------------------------- fsdp_transpose

layers = 3

fsdp_transpose__right_counted = {
    "all_gather, keeps all": layers,
    "reduce_scatter, keeps all": layers,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": layers + layers,
    "reduce_scatter, keeps nothing": layers,
    "all_gather, keeps all but gathered weights": layers + (layers - 1),
}

# This student thought that the transpose of the loss's pmean is a psum again.
fsdp_transpose__wrong_psum_back = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 2,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# This student knows that no cotangent goes through the first weights, and forgot that going forward once more needs them.
fsdp_transpose__wrong_first_never_again = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 5,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thought that each gather has its reduce_scatter, so that six gathers make six of them.
fsdp_transpose__wrong_scatter_for_each_gather = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps all but gathered weights": 5,
}

# This student took over the single layer of the example: with the policy no gather is repeated.
fsdp_transpose__wrong_as_with_one_layer = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 3,
}


# ---------------------------------------------------------------- closed_over_params


def closed_over_params__right_as_argument(params, x, y, *, mesh):
    def body(params, rows, targets):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(own, rows, targets)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("data"))(params, x, y)


# This student casts inside of what is differentiated: the gradient is still that with respect to the uncast parameters.
def closed_over_params__wrong_cast_in_the_loss(params, x, y, *, mesh):
    def of_one(row, target):
        def own_loss(params):
            own = jax.tree.map(lambda p: varying(p, "data"), params)
            return loss(own, row, target)

        return jax.grad(own_loss)(params)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# This student divides the sum by the number of devices, as for the batch; but these are sums of different rows' gradients.
def closed_over_params__wrong_divided(params, x, y, *, mesh):
    def of_one(row, target):
        grads = jax.grad(loss)(params, row, target)
        return jax.tree.map(lambda g: g / jax.lax.axis_size("data"), grads)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# This student casts along every axis of the mesh, "to be safe": right where data is the only one, else it stops at out_specs.
def closed_over_params__wrong_all_axes(params, x, y, *, mesh):
    def body(rows, targets):
        own = jax.tree.map(lambda p: varying(p, mesh.axis_names), params)
        return jax.vmap(lambda row, target: jax.grad(loss)(own, row, target))(rows, targets)

    specs = P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# This student took "own gradient" for one of each device: the gradient of its rows' mean, with a dimension for the devices.
def closed_over_params__wrong_one_per_device(params, x, y, *, mesh):
    def body(rows, targets):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        return jax.tree.map(lambda g: g[None], jax.grad(loss)(own, rows, targets))

    specs = P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)
