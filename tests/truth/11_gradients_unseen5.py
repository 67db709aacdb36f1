"""Answers to lesson 11, fifth batch, written by a reader of the notebook only."""

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


# ---- gradient_cast


def gradient_cast__right_vdot(params, x, y, *, mesh):
    def on_device(params, x, y):
        own = {name: varying(value, "data") for name, value in params.items()}
        grads = jax.grad(loss)(own, x[0], y[0])
        length = sum(jnp.vdot(g, g) for g in grads.values()) ** 0.5
        return length.reshape(1), {name: jax.lax.psum(g, "data") / mesh.shape["data"] for name, g in grads.items()}

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# Did not cast, and divided afterwards: the gradients are right, and the norms are all that of the sum.
def gradient_cast__wrong_uncast(params, x, y, *, mesh):
    def on_device(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], jax.tree.map(lambda g: g / mesh.shape["data"], grads)

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# Took the norm after the mean: the same number for every device.
def gradient_cast__wrong_late(params, x, y, *, mesh):
    def on_device(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.lax.pmean(jax.grad(loss)(own, x, y), "data")
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], grads

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# Thought that the length of all arrays is the sum of their lengths.
def gradient_cast__wrong_sumofnorms(params, x, y, *, mesh):
    def on_device(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = sum(jnp.linalg.norm(g) for g in jax.tree.leaves(grads))
        return norm[None], jax.lax.pmean(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# Added the devices' gradients up and forgot that the loss of the batch is a mean.
def gradient_cast__wrong_summed(params, x, y, *, mesh):
    def on_device(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], jax.lax.psum(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# ---- custom_vjp_pair


def custom_vjp_pair__right_factory(params, x, y, *, mesh):
    def same(v):
        return v

    def added(v):
        return jax.lax.psum(v, "model")

    def ways(forward, backward):
        """A function that does one thing forwards and another backwards."""
        function = jax.custom_vjp(lambda v: forward(v))
        function.defvjp(lambda v: (forward(v), None), lambda kept, cotangent: (backward(cotangent),))
        return function

    enter, leave = ways(same, added), ways(added, same)

    def on_device(params, x, y):
        def local_loss(params, x):
            out = leave(jnp.tanh(enter(x) @ params["w1"]) @ params["w2"])
            return jnp.mean((out - y) ** 2)

        return jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# Thought that psum itself is g: backwards it adds the equal cotangents up once more.
def custom_vjp_pair__wrong_plainpsum(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, cotangent: (jax.lax.psum(cotangent, "model"),))

    def on_device(params, x, y):
        def local_loss(params, x):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return jnp.mean((jax.lax.psum(hidden @ params["w2"], "model") - y) ** 2)

        return jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# Thought that the devices' parts of the cotangent of x are averaged.
def custom_vjp_pair__wrong_mean(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    f.defvjp(lambda v: (v, None), lambda _, cotangent: (jax.lax.pmean(cotangent, "model"),))
    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, cotangent: (cotangent,))

    def on_device(params, x, y):
        def local_loss(params, x):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        return jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# Put f around the first product instead of around x: adds the cotangents of different hidden units.
def custom_vjp_pair__wrong_late(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    f.defvjp(lambda v: (v, None), lambda _, cotangent: (jax.lax.psum(cotangent, "model"),))
    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, cotangent: (cotangent,))

    def on_device(params, x, y):
        def local_loss(params, x):
            hidden = jnp.tanh(f(x @ params["w1"]))
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        return jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# Thought that the parts may meet in the loss: adds the devices' losses in place of their outputs.
def custom_vjp_pair__wrong_lossadded(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    f.defvjp(lambda v: (v, None), lambda _, cotangent: (jax.lax.psum(cotangent, "model"),))
    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, cotangent: (cotangent,))

    def on_device(params, x, y):
        def local_loss(params, x):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return g(jnp.mean((hidden @ params["w2"] - y) ** 2))

        return jax.value_and_grad(local_loss, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# ---- closed_over_params


def closed_over_params__right_in_axes(params, x, y, *, mesh):
    def on_device(params, x, y):
        own = {name: varying(value, "data") for name, value in params.items()}
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(own, x, y)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))(params, x, y)


# Thought that the gradients are merely n times too large, and divided.
def closed_over_params__wrong_divided(params, x, y, *, mesh):
    def of_one(row, target):
        grads = jax.grad(loss)(params, row, target)
        return jax.tree.map(lambda g: g / mesh.shape["data"], grads)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# Cast the gradients instead of the parameters: too late, they have been added up.
def closed_over_params__wrong_castafter(params, x, y, *, mesh):
    def of_one(row, target):
        return jax.grad(loss)(params, row, target)

    def on_device(x, y):
        return jax.tree.map(lambda g: varying(g, "data"), jax.vmap(of_one)(x, y))

    specs = P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# Cast inside of what is differentiated, so that the gradient goes back through the cast, and is added up there.
def closed_over_params__wrong_castinside(params, x, y, *, mesh):
    def of_one(row, target):
        def own_loss(params):
            own = jax.tree.map(lambda p: varying(p, "data"), params)
            return loss(own, row, target)

        return jax.grad(own_loss)(params)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# Took one gradient for each device instead of one for each row.
def closed_over_params__wrong_perdevice(params, x, y, *, mesh):
    def on_device(x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        return jax.tree.map(lambda g: g[None], jax.grad(loss)(own, x, y))

    specs = P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)
