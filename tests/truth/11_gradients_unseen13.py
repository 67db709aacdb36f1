"""Answers to lesson 11, thirteenth batch, written by a reader of the notebook only."""

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

same_with_vma_off__right_factors = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 8 * (1 / 8),
    "pmean of the loss, then psum": 8 * (1 / 8) * 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 8 * 8,
}

# The mean of the loss is the same number on all devices, so its gradient must be the same everywhere, and right.
same_with_vma_off__wrong_onemean = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 1,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# With the check off nothing is sent backwards at all, so a psum in the loss just hands each device its cotangent 1.
same_with_vma_off__wrong_psumsilent = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 1,
    "psum of the loss, then psum": 8,
}

# pmean backwards is only the division by 8 (its psum is forgotten), so each device holds an eighth of its own gradient.
same_with_vma_off__wrong_eighth = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1 / 8,
    "pmean of the loss, then psum": 1,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# The parameters still come in with P(), so their gradient is still added up; only a psum that stands there changes.
same_with_vma_off__wrong_stilladded = {
    "own loss": 8,
    "own loss, then pmean": 8,
    "own loss, then psum": 64,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}


# ---- gradient_cast


def gradient_cast__right_flat(params, x, y, *, mesh):
    """(the norm of each device's own gradient, the gradients of the whole batch)."""
    from jax.flatten_util import ravel_pytree

    def body(params, x, y):
        own = {name: varying(value, "data") for name, value in params.items()}
        flat, back = ravel_pytree(jax.grad(loss)(own, x, y))
        length = jnp.sqrt(jnp.sum(flat * flat))
        return length.reshape(1), back(jax.lax.pmean(flat, "data"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()))(
        params, x, y
    )


# Thinks that dividing by the number of devices turns the summed gradient back into each device's own: no cast.
def gradient_cast__wrong_nocast(params, x, y, *, mesh):
    def body(params, x, y):
        n = jax.lax.axis_size("data")
        grads = jax.tree.map(lambda g: g / n, jax.grad(loss)(params, x, y))
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], grads

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# The length of the whole gradient is the sum of the lengths of its arrays (and not the root of the sum of squares).
def gradient_cast__wrong_sumofnorms(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = 0
        for g in grads.values():
            norm = norm + jnp.linalg.norm(g)
        return norm[None], jax.lax.pmean(grads, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()))(
        params, x, y
    )


# The leading dimension counts the devices, so the sum is divided by x.shape[0] (which is 1 on a device).
def gradient_cast__wrong_blockshape(params, x, y, *, mesh):
    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads)))
        devices = x.shape[0]
        mean = jax.tree.map(lambda g: jax.lax.psum(g, "data") / devices, grads)
        return norm[None], mean

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# Once the first layer varies, everything after it varies too, so only w1 is cast; w2's gradient stays the sum.
def gradient_cast__wrong_firstonly(params, x, y, *, mesh):
    def body(params, x, y):
        own = dict(params)
        own["w1"] = varying(params["w1"], "data")
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grads.values()))
        return norm[None], {name: jax.lax.pmean(g, "data") for name, g in grads.items()}

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P("data"), P()))(
        params, x, y
    )


# ---- custom_vjp_pair


def custom_vjp_pair__right_oneway(params, x, y, *, mesh):
    """(loss, (gradients with respect to params, to x)), unchecked, of a layer cut over model."""

    def add(v):
        return jax.lax.psum(v, "model")

    def same(v):
        return v

    def with_rule(there, back):
        rule = jax.custom_vjp(lambda v: there(v))
        rule.defvjp(lambda v: (there(v), None), lambda _, cotangent: (back(cotangent),))
        return rule

    enter, leave = with_rule(same, add), with_rule(add, same)

    def local(params, x, y):
        hidden = jnp.tanh(enter(x) @ params["w1"])
        return jnp.mean(jnp.square(leave(hidden @ params["w2"]) - y))

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(cut, P(), P()),
        out_specs=(P(), (cut, P())),
        check_vma=False,
    )(params, x, y)


# Only the input needs a rule of its own: g adds up, and a psum does that already.
def custom_vjp_pair__wrong_plainpsum(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda kept, ct: (jax.lax.psum(ct, "model"),))

    def local_loss(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        out = jax.lax.psum(hidden @ params["w2"], "model")
        return jnp.mean((out - y) ** 2)

    specs = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local_loss, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(specs, P(), P()),
        out_specs=(P(), (specs, P())),
        check_vma=False,
    )(params, x, y)


# Every device makes its own error first, and g adds up the errors: y is subtracted once on each device.
def custom_vjp_pair__wrong_errorsadded(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    def f_forward(v):
        return v, None

    def f_backward(kept, cotangent):
        return (jax.lax.psum(cotangent, "model"),)

    f.defvjp(f_forward, f_backward)

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    def g_forward(v):
        return jax.lax.psum(v, "model"), None

    def g_backward(kept, cotangent):
        return (cotangent,)

    g.defvjp(g_forward, g_backward)

    def local_loss(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        error = g(hidden @ params["w2"] - y)
        return jnp.mean(error**2)

    specs = {"w1": P(None, "model"), "w2": P("model", None)}
    body = jax.value_and_grad(local_loss, argnums=(0, 1))
    return jax.shard_map(body, mesh=mesh, in_specs=(specs, P(), P()), out_specs=(P(), (specs, P())), check_vma=False)(
        params, x, y
    )


# Puts f around the result of the first product: adds cotangents of hidden units that are different on each device.
def custom_vjp_pair__wrong_fafter(params, x, y, *, mesh):
    f = jax.custom_vjp(lambda v: v)
    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))
    g = jax.custom_vjp(lambda v: jax.lax.psum(v, "model"))
    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct,))

    def local_loss(params, x, y):
        hidden = jnp.tanh(f(x @ params["w1"]))
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    specs = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local_loss, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(specs, P(), P()),
        out_specs=(P(), (specs, P())),
        check_vma=False,
    )(params, x, y)


# Unchecked nothing is added by itself, so all gradients are added by hand: also those of weights that are cut.
def custom_vjp_pair__wrong_addsweights(params, x, y, *, mesh):
    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda kept, ct: (ct,))

    def local_loss(params, x, y):
        hidden = jnp.tanh(x @ params["w1"])
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    def body(params, x, y):
        value, grads = jax.value_and_grad(local_loss, argnums=(0, 1))(params, x, y)
        return value, jax.lax.psum(grads, "model")

    specs = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(specs, P(), P()), out_specs=(P(), (specs, P())), check_vma=False)(
        params, x, y
    )
