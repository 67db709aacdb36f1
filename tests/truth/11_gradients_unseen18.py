"""Answers to lesson 11, eighteenth batch, written by a reader of the notebook only."""

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


# ----------------------------------------------------------- custom_vjp_pair


def custom_vjp_pair__right_STOPPED(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    def g(part):
        # the sum forwards; backwards only the first term is seen, and that is the identity
        return part + jax.lax.stop_gradient(jax.lax.psum(part, "model") - part)

    def body(params, x, y):
        def local_loss(params, x):
            out = g(jnp.tanh(f(x) @ params["w1"]) @ params["w2"])
            return jnp.mean((out - y) ** 2)

        return jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# f belongs where the column-cut product is, so I wrap what comes out of x @ w1.
def custom_vjp_pair__wrong_FONPRODUCT(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct,))

    def body(params, x, y):
        def local_loss(params, x):
            hidden = jnp.tanh(f(x @ params["w1"]))
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        return jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# Every device has a part of the loss, so g comes last and adds up the devices' losses (a number is cheap to send).
def custom_vjp_pair__wrong_LOSSADDED(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct,))

    def body(params, x, y):
        def local_loss(params, x):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return g(jnp.mean((hidden @ params["w2"] - y) ** 2))

        return jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# The sum's cotangent is one for all the devices together, so in g's way back each device takes its n-th of it.
def custom_vjp_pair__wrong_SHARED(params, x, y, *, mesh):
    n = mesh.shape["model"]

    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct / n,))

    def body(params, x, y):
        def local_loss(params, x):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        return jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# Only g needs a rule; x's gradients differ from device to device, and copies are made equal with a pmean at the end.
def custom_vjp_pair__wrong_PMEANFORF(params, x, y, *, mesh):
    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct,))

    def body(params, x, y):
        def local_loss(params, x):
            hidden = jnp.tanh(x @ params["w1"])
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        value, (by_params, by_x) = jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)
        return value, (by_params, jax.lax.pmean(by_x, "model"))

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# ------------------------------------------------------------- gradient_cast


def gradient_cast__right_VDOT(params, x, y, *, mesh):
    n = mesh.shape["data"]

    def body(params, x, y):
        own = jax.grad(loss)({name: varying(p, "data") for name, p in params.items()}, x, y)
        length = jnp.sqrt(sum(jnp.vdot(g, g) for g in own.values()))
        return length.reshape(1), jax.tree.map(lambda g: jax.lax.psum(g / n, "data"), own)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()))(
        params, x, y
    )


# The length of a gradient in several arrays is the lengths of the arrays, added up.
def gradient_cast__wrong_NORMSADDED(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = sum(jnp.linalg.norm(g) for g in jax.tree.leaves(grads))
        return norm[None], jax.lax.pmean(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# The loss of the batch is the pmean, so that is what I differentiate; with cast parameters I then only have to psum.
def gradient_cast__wrong_MEANLOSS(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(own)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], jax.lax.psum(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# What was copied forwards is added backwards, so the devices' own gradients are psummed to be those of the whole batch.
def gradient_cast__wrong_PSUM(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], jax.lax.psum(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# out_specs=P("data") gives one norm for each device anyway, so I can take it of the gradients that I return.
def gradient_cast__wrong_NORMLAST(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.lax.pmean(jax.grad(loss)(own, x, y), "data")
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], grads

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# ------------------------------------------------------ gradient_of_the_mean


def gradient_of_the_mean__right_PSUMOFSHARES(params, x, y, *, mesh):
    n = mesh.shape["data"]

    def body(params, x, y):
        def of_all(params):
            return jax.lax.psum(loss(params, x, y) / n, "data")

        return jax.value_and_grad(of_all)(params)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# To be safe the gradients are averaged as well: equal copies do not change by it.
def gradient_of_the_mean__wrong_TWICE(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        value, grads = jax.value_and_grad(mean_loss)(params)
        return value, jax.lax.pmean(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P())(params, x, y)


# I add the losses up inside and make the mean of it afterwards: the loss is what has to be divided by n.
def gradient_of_the_mean__wrong_LOSSDIVIDED(params, x, y, *, mesh):
    def body(params, x, y):
        def summed(params):
            return jax.lax.psum(loss(params, x, y), "data")

        value, grads = jax.value_and_grad(summed)(params)
        return value / jax.lax.axis_size("data"), grads

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P())(params, x, y)


# With a pmean in the loss the gradient is right, and part 4 says that the check may then be turned off.
def gradient_of_the_mean__wrong_UNCHECKED(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        return jax.value_and_grad(mean_loss)(params)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


# The mean over the devices is the sum divided by how many devices the mesh has.
def gradient_of_the_mean__wrong_ALLDEVICES(params, x, y, *, mesh):
    def body(params, x, y):
        def mean_loss(params):
            return jax.lax.psum(loss(params, x, y), "data") / mesh.size

        return jax.value_and_grad(mean_loss)(params)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P())(params, x, y)
