"""Answers to lesson 11, sixteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- gradient_of_the_mean


def gradient_of_the_mean__right_shares(params, x, y, *, mesh):
    n = mesh.shape["data"]

    def body(params, x, y):
        share, grads = jax.value_and_grad(lambda p: loss(p, x, y) / n)(params)
        return jax.lax.psum(share, "data"), grads

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# The loss of all is the sum of the devices' losses, so a psum makes it the loss of the whole batch.
def gradient_of_the_mean__wrong_psum(params, x, y, *, mesh):
    def body(params, x, y):
        def total(params):
            return jax.lax.psum(loss(params, x, y), "data")

        return jax.value_and_grad(total)(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Loss and gradients of the own rows, and both averaged at the end: the mean of gradients is the gradient of the mean.
def gradient_of_the_mean__wrong_afterwards(params, x, y, *, mesh):
    def body(params, x, y):
        both = jax.value_and_grad(loss)(params, x, y)
        return jax.lax.pmean(both, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# The loss is averaged over the devices, and the gradients, made by each device, still have to be averaged too.
def gradient_of_the_mean__wrong_twice(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        value, grads = jax.value_and_grad(mean_loss)(params)
        return value, jax.tree.map(lambda g: jax.lax.pmean(g, "data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# The pmean does all the adding that there is, so JAX's own adding is switched off, lest it add a second time.
def gradient_of_the_mean__wrong_unchecked(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        return jax.value_and_grad(mean_loss)(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)(
        params, x, y
    )


# ---------------------------------------------------------------- gradient_divided


def gradient_divided__right_weighted(params, x, y, *, mesh):
    all_rows = x.shape[0]

    def body(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda g: g * (x.shape[0] / all_rows), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# The sum is over all devices of the mesh, so it is divided by the number of devices.
def gradient_divided__wrong_meshsize(params, x, y, *, mesh):
    def body(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda g: g / mesh.size, grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# What comes out has been added up over the rows of the whole batch, so the mean is that by the number of rows.
def gradient_divided__wrong_rows(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.grad(loss)(params, x, y)

    summed = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)
    return jax.tree.map(lambda g: g / x.shape[0], summed)


# Dividing is all that is left to do, and JAX's check of what varies only gets in the way of it, so it is off.
def gradient_divided__wrong_unchecked(params, x, y, *, mesh):
    def body(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        n = jax.lax.axis_size("data")
        return jax.tree.map(lambda g: g / n, grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)(
        params, x, y
    )


# With a cast each device has the gradient of its own rows, and the whole batch's is their sum: nothing to divide then.
def gradient_divided__wrong_castandsum(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        return jax.lax.psum(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# ---------------------------------------------------------------- gradient_cast


def gradient_cast__right_flat(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.grad(loss)({name: varying(p, "data") for name, p in params.items()}, x, y)
        flat = jnp.concatenate([g.reshape(-1) for g in jax.tree.leaves(own)])
        n = jax.lax.axis_size("data")
        return jnp.sqrt(jnp.vdot(flat, flat))[None], jax.tree.map(lambda g: jax.lax.psum(g / n, "data"), own)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()))(
        params, x, y
    )


# The gradients have to differ, so it is the gradients that are cast to varying.
def gradient_cast__wrong_castlate(params, x, y, *, mesh):
    def body(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        own = jax.tree.map(lambda g: varying(g, "data"), grads)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(own)))
        return norm[None], jax.lax.pmean(own, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()))(
        params, x, y
    )


# The cast takes away the psum that JAX would have put in, so that psum is what is put back by hand.
def gradient_cast__wrong_psumback(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], jax.tree.map(lambda g: jax.lax.psum(g, "data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()))(
        params, x, y
    )


# The length of a dict of gradients is the sum of the lengths of its arrays.
def gradient_cast__wrong_addedlengths(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = sum(jnp.sqrt(jnp.sum(g**2)) for g in jax.tree.leaves(grads))
        return norm[None], jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()))(
        params, x, y
    )


# Only w1 meets the cut rows as a value that is the same on all; after it everything varies, so w2 needs no cast.
def gradient_cast__wrong_onlyfirst(params, x, y, *, mesh):
    def body(params, x, y):
        own = {**params, "w1": varying(params["w1"], "data")}
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], jax.tree.map(lambda g: jax.lax.pmean(g, "data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()))(
        params, x, y
    )
