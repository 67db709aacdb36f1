"""Answers to lesson 11, fourth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- dp_gradient_outside


def dp_gradient_outside__right_sum_then_share(params, x, y, *, mesh):
    """The means are added up inside, and divided by their number outside."""

    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y), "data")

    added = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())
    return added(params, x, y) / mesh.shape["data"]


# This student adds up the devices' losses, as if each were a sum over its rows.
def dp_gradient_outside__wrong_sum_of_means(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student divides the sum by all the devices of the mesh, also those along model.
def dp_gradient_outside__wrong_all_devices(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y) / mesh.size, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thinks that each device's loss is a sum over its rows, and divides by the rows of the whole batch.
def dp_gradient_outside__wrong_divided_by_rows(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y), "data")

    added = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)
    return added / x.shape[0]


# This student turns the check off, as older programs do: the numbers are right, and more is sent on the way back.
def dp_gradient_outside__wrong_check_off(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.lax.pmean(loss(params, x, y), "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


# ---------------------------------------------------------------- same_with_vma_off

same_with_vma_off__right_psum_backwards = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# This student thinks that the gradient of one mean is one value, and the same on all devices, checked or not.
same_with_vma_off__wrong_one_mean_one_gradient = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 1,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# This student thinks that the 1/8 of a pmean in the loss stays in the gradient, since backwards nothing is added.
same_with_vma_off__wrong_an_eighth_stays = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1 / 8,
    "pmean of the loss, then psum": 1,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# This student thinks that the transpose of psum does nothing here either, so that a psum in the loss counts for nothing.
same_with_vma_off__wrong_psum_counts_nothing = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 1,
    "psum of the loss, then psum": 8,
}

# This student thinks that a psum of the gradients of means over two rows is right, and a pmean an eighth of it, where the loss is a device's own.
same_with_vma_off__wrong_psum_is_right = {
    "own loss": "copies differ",
    "own loss, then pmean": 1 / 8,
    "own loss, then psum": 1,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# ---------------------------------------------------------------- fsdp_transpose

fsdp_transpose__right_two_again = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thinks that the pmean is an all_reduce forwards and another one backwards.
fsdp_transpose__wrong_pmean_twice = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 2,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thinks that the policy gathers every layer's weights again, as if it kept nothing.
fsdp_transpose__wrong_all_gathered_again = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 6,
}

# This student thinks that the last layer's weights are still there when the backward pass begins, and the first layer's are not needed.
fsdp_transpose__wrong_last_is_still_there = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 5,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 4,
}

# This student thinks that each gather in the program, also one that is done again, has its own transpose.
fsdp_transpose__wrong_a_scatter_for_each_gather = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps all but gathered weights": 5,
}
