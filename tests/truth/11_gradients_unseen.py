"""Answers to lesson 11, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def loss(params, x, y):
    """A small network's mean squared error, over the rows and over what comes out. (The notebook's.)"""
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def varying(value, axis):
    """The same value, typed as one that may differ along `axis`. (The notebook's.)"""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axis, to="varying")
    return jax.lax.pvary(value, axis)


BATCH = P(), P("data"), P("data")

# --- transposes
_TRANSPOSES = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}
transposes__right_all = dict(_TRANSPOSES)
transposes__wrong_old_rule = {**_TRANSPOSES, "psum to P(), ct 1": 8}  # the transpose of psum taken for a psum
transposes__wrong_permute = {**_TRANSPOSES, "ppermute +1, ct 0 … 7": 2}  # the wrong neighbour
transposes__wrong_pmean = {**_TRANSPOSES, "pmean to P(), ct 1": 1}  # the division forgotten
transposes__wrong_scatter = {
    **_TRANSPOSES,
    "psum_scatter, ct 0 … 7": [3] * 8,
}  # its own cotangent eight times, not all devices'
transposes__wrong_w = {**_TRANSPOSES, "w from P() to P('data'), ct 0 … 7": 3.5}  # the mean in place of the sum
transposes__wrong_gather = {**_TRANSPOSES, "all_gather to P('data'), ct 1 each": 1}  # only the own copy counts


# --- gradient_of_the_mean
def gradient_of_the_mean__right_inside(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        return jax.value_and_grad(mean_loss)(params)

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_of_the_mean__right_psum(params, x, y, *, mesh):
    def whole(params, x, y):
        return jax.lax.psum(loss(params, x, y) / mesh.shape["data"], "data")

    both = jax.shard_map(jax.value_and_grad(whole), mesh=mesh, in_specs=BATCH, out_specs=(P(), P()))
    return both(params, x, y)


def gradient_of_the_mean__wrong_own(params, x, y, *, mesh):
    # differentiates the own loss: the gradients are the sum over the devices
    def body(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return jax.lax.pmean(value, "data"), jax.lax.pmean(grads, "data")

    # (grads are the same on all devices already: a pmean does nothing to them)
    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_psum(params, x, y, *, mesh):
    # psum of the means: loss and gradients too large by the number of devices
    def body(params, x, y):
        return jax.value_and_grad(lambda params: jax.lax.psum(loss(params, x, y), "data"))(params)

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_no_loss(params, x, y, *, mesh):
    # only the gradients are returned
    def body(params, x, y):
        return jax.grad(lambda params: jax.lax.pmean(loss(params, x, y), "data"))(params)

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_order(params, x, y, *, mesh):
    # (gradients, loss)
    def body(params, x, y):
        value, grads = jax.value_and_grad(lambda params: jax.lax.pmean(loss(params, x, y), "data"))(params)
        return grads, value

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_twice(params, x, y, *, mesh):
    # the mean differentiated, and then divided by the devices again
    def body(params, x, y):
        value, grads = jax.value_and_grad(lambda params: jax.lax.pmean(loss(params, x, y), "data"))(params)
        return value, jax.tree.map(lambda g: g / jax.lax.axis_size("data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_of_the_mean__wrong_unchecked(params, x, y, *, mesh):
    # with the check off each device keeps its own gradient
    def body(params, x, y):
        return jax.value_and_grad(lambda params: jax.lax.pmean(loss(params, x, y), "data"))(params)

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P(), check_vma=False)(params, x, y)


# --- gradient_divided
def gradient_divided__right_axis_size(params, x, y, *, mesh):
    def body(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda g: g / jax.lax.axis_size("data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_divided__right_outside(params, x, y, *, mesh):
    summed = jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)
    return {name: g / mesh.shape["data"] for name, g in summed.items()}


def gradient_divided__wrong_not(params, x, y, *, mesh):
    # not divided
    return jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_divided__wrong_pmean(params, x, y, *, mesh):
    # the old recipe: the pmean of equal sums changes nothing
    def body(params, x, y):
        return jax.lax.pmean(jax.grad(loss)(params, x, y), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_divided__wrong_all_devices(params, x, y, *, mesh):
    # divides by all devices of the mesh, model included
    def body(params, x, y):
        return jax.tree.map(lambda g: g / mesh.size, jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_divided__wrong_eight(params, x, y, *, mesh):
    # the notebook's eight
    def body(params, x, y):
        return jax.tree.map(lambda g: g / 8, jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_divided__wrong_rows(params, x, y, *, mesh):
    # divides by the rows of the batch
    def body(params, x, y):
        return jax.tree.map(lambda g: g / len(x), jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


def gradient_divided__wrong_twice_sent(params, x, y, *, mesh):
    # divided, and a pmean besides: the numbers are right, but each gradient travels twice
    def body(params, x, y):
        grads = jax.tree.map(lambda g: varying(g / jax.lax.axis_size("data"), "data"), jax.grad(loss)(params, x, y))
        return jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P())(params, x, y)


# --- gradient_cast
def _cast(params, x, y, mesh, norm, combine, cast=True):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params) if cast else params
        grads = jax.grad(loss)(own, x, y)
        return norm(grads), combine(grads)

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__right_norm(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__right_flat(params, x, y, *, mesh):
    def body(params, x, y):
        grads = jax.grad(loss)({name: varying(p, "data") for name, p in params.items()}, x, y)
        flat = jnp.concatenate([grads["w1"].reshape(-1), grads["w2"].reshape(-1)])
        mean = {name: jax.lax.psum(g / mesh.shape["data"], "data") for name, g in grads.items()}
        return jnp.linalg.norm(flat).reshape(1), mean

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__wrong_squared(params, x, y, *, mesh):
    # the square root is forgotten
    return _cast(
        params, x, y, mesh, lambda g: sum(jnp.sum(a**2) for a in g.values())[None], lambda g: jax.lax.pmean(g, "data")
    )


def gradient_cast__wrong_sum_of_norms(params, x, y, *, mesh):
    # the norms of the two arrays added up, not one norm of all
    return _cast(
        params,
        x,
        y,
        mesh,
        lambda g: sum(jnp.linalg.norm(a) for a in g.values())[None],
        lambda g: jax.lax.pmean(g, "data"),
    )


def gradient_cast__wrong_psum(params, x, y, *, mesh):
    # the sum of the gradients for their mean
    norm = lambda g: jnp.sqrt(sum(jnp.sum(a**2) for a in g.values()))[None]
    return _cast(params, x, y, mesh, norm, lambda g: jax.lax.psum(g, "data"))


def gradient_cast__wrong_one_array(params, x, y, *, mesh):
    # only w1 is in the norm
    return _cast(params, x, y, mesh, lambda g: jnp.linalg.norm(g["w1"])[None], lambda g: jax.lax.pmean(g, "data"))


def gradient_cast__wrong_after(params, x, y, *, mesh):
    # the norm of the mean gradient, the same for all devices
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.lax.pmean(jax.grad(loss)(own, x, y), "data")
        return jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))[None], grads

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=(P("data"), P()))(params, x, y)


def gradient_cast__wrong_not_cast(params, x, y, *, mesh):
    # no cast: the norm of the summed gradient, and the sum divided
    norm = lambda g: jnp.sqrt(sum(jnp.sum(a**2) for a in g.values()))[None]
    n = mesh.shape["data"]
    return _cast(params, x, y, mesh, norm, lambda g: jax.tree.map(lambda a: a / n, g), cast=False)


# --- same_with_vma_off
_OFF = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}
same_with_vma_off__right_all = dict(_OFF)
same_with_vma_off__wrong_as_with_check = {
    **_OFF,
    "own loss": 8,
    "own loss, then pmean": 8,
    "own loss, then psum": 64,
    "pmean of the loss": 1,
}  # the ratios of part 5, with the check on
same_with_vma_off__wrong_divided = {
    **_OFF,
    "pmean of the loss, then pmean": 1 / 8,
    "pmean of the loss, then psum": 1,
}  # the division by 8 believed to stay
same_with_vma_off__wrong_psum_once = {
    **_OFF,
    "psum of the loss, then pmean": 1,
    "psum of the loss, then psum": 8,
}  # psum of the loss believed to be copied back, as with the check on
same_with_vma_off__wrong_first_pmean = {
    **_OFF,
    "pmean of the loss": 1,
}  # believes that a pmean in the loss makes the copies agree
same_with_vma_off__wrong_own_one = {**_OFF, "own loss": 1}  # takes device 0's gradient for the right one


# --- closed_over_params
def closed_over_params__right_inside(params, x, y, *, mesh):
    def body(x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        return jax.vmap(lambda row, target: jax.grad(loss)(own, row, target))(x, y)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))(x, y)


def closed_over_params__right_argument(params, x, y, *, mesh):
    def body(params, x, y):
        params = {name: varying(p, "data") for name, p in params.items()}
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P("data"))(params, x, y)


def closed_over_params__wrong_argument_only(params, x, y, *, mesh):
    # the parameters come in as an argument, but they are not cast: sums over the devices
    def body(params, x, y):
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)

    return jax.shard_map(body, mesh=mesh, in_specs=BATCH, out_specs=P("data"))(params, x, y)


def closed_over_params__wrong_as_it_is(params, x, y, *, mesh):
    # the program unchanged
    def of_one(row, target):
        return jax.grad(loss)(params, row, target)

    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))(x, y)


def closed_over_params__wrong_no_vmap(params, x, y, *, mesh):
    # one gradient for each device's rows, not for every row
    def body(x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        return jax.tree.map(lambda g: g[None], jax.grad(loss)(own, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))(x, y)


def closed_over_params__wrong_divided(params, x, y, *, mesh):
    # divides the summed gradients by the devices
    def of_one(row, target):
        return jax.tree.map(lambda g: g / mesh.shape["data"], jax.grad(loss)(params, row, target))

    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))(x, y)


def closed_over_params__wrong_mean(params, x, y, *, mesh):
    # cast, but then averaged over the rows and devices: one gradient for all
    def body(x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        each = jax.vmap(lambda row, target: jax.grad(loss)(own, row, target))(x, y)
        return jax.tree.map(lambda g: jax.lax.pmean(g.mean(0), "data"), each)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P())(x, y)
