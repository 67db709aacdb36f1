"""Answers to lesson 11, twenty-fourth batch, written by a reader of the notebook only."""

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


# ---- custom_vjp_pair


def custom_vjp_pair__right_stopped(params, x, y, *, mesh):
    """(loss, (gradients with respect to params, to x)), unchecked, of a layer cut over model."""

    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda kept, ct: (jax.lax.psum(ct, "model"),))

    def g(v):
        fixed = jax.lax.stop_gradient(v)
        return v + (jax.lax.psum(fixed, "model") - fixed)  # the sum; its derivative is that of v

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(cut, P(), P()),
        out_specs=(P(), (cut, P())),
        check_vma=False,
    )(params, x, y)


# This student thought that a plain psum is g already, and that only f needs a rule of its own.
def custom_vjp_pair__wrong_plain_psum(params, x, y, *, mesh):
    """(loss, (gradients with respect to params, to x)), unchecked, of a layer cut over model."""

    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        out = jax.lax.psum(hidden @ params["w2"], "model")
        return jnp.mean((out - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(cut, P(), P()),
        out_specs=(P(), (cut, P())),
        check_vma=False,
    )(params, x, y)


# This student thought that x is the same on all devices, so that its gradient is the same by itself, and left f out.
def custom_vjp_pair__wrong_without_f(params, x, y, *, mesh):
    """(loss, (gradients with respect to params, to x)), unchecked, of a layer cut over model."""

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct,))

    def local(params, x, y):
        hidden = jnp.tanh(x @ params["w1"])
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(cut, P(), P()),
        out_specs=(P(), (cut, P())),
        check_vma=False,
    )(params, x, y)


# This student averaged the devices' cotangents of x, as one averages gradients in data parallelism.
def custom_vjp_pair__wrong_averaged(params, x, y, *, mesh):
    """(loss, (gradients with respect to params, to x)), unchecked, of a layer cut over model."""

    @jax.custom_vjp
    def f(v):
        return v

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.pmean(ct, "model"),))
    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct,))

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(cut, P(), P()),
        out_specs=(P(), (cut, P())),
        check_vma=False,
    )(params, x, y)


# This student added up the errors and not the outputs, so that y is taken off once for every device.
def custom_vjp_pair__wrong_y_inside(params, x, y, *, mesh):
    """(loss, (gradients with respect to params, to x)), unchecked, of a layer cut over model."""

    @jax.custom_vjp
    def f(v):
        return v

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))
    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct,))

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        error = g(hidden @ params["w2"] - y)
        return jnp.mean(error**2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(cut, P(), P()),
        out_specs=(P(), (cut, P())),
        check_vma=False,
    )(params, x, y)


# ---- fsdp_transpose

fsdp_transpose__right_counted = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thought that the pmean of the loss sends again on the way back.
fsdp_transpose__wrong_pmean_twice = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 2,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thought that what is computed twice forwards is also transposed twice.
fsdp_transpose__wrong_transposed_twice = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps all but gathered weights": 5,
}

# This student thought that under the policy every weight is gathered again, the first one too.
fsdp_transpose__wrong_all_again = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 6,
}

# This student remembered from lesson 09 that FSDP gathers forwards and backwards, whatever is kept, and so 3 more where nothing is.
fsdp_transpose__wrong_as_in_the_cost_lesson = {
    "all_gather, keeps all": 6,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 9,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}


# ---- gradient_cast


def gradient_cast__right_pulled_back(params, x, y, *, mesh):
    """(the norm of each device's own gradient, the gradients of the whole batch)."""
    n = mesh.shape["data"]

    def body(params, x, y):
        mine = {name: varying(p, "data") for name, p in params.items()}
        grads = jax.grad(lambda p: loss(p, x, y))(mine)
        flat = jnp.concatenate([g.reshape(-1) for g in jax.tree.leaves(grads)])
        total = jax.lax.psum(grads, "data")
        return jnp.sqrt(flat @ flat).reshape(1), jax.tree.map(lambda g: g / n, total)

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# This student measured the gradients when they had been averaged, so that every device has the length of the mean.
def gradient_cast__wrong_norm_of_mean(params, x, y, *, mesh):
    """(the norm of each device's own gradient, the gradients of the whole batch)."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.lax.pmean(jax.grad(loss)(own, x, y), "data")
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in grads.values()))
        return norm[None], grads

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# This student added up the lengths of the arrays, and took that for the length of all of them together.
def gradient_cast__wrong_norms_added(params, x, y, *, mesh):
    """(the norm of each device's own gradient, the gradients of the whole batch)."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = sum(jnp.linalg.norm(g) for g in jax.tree.leaves(grads))
        return norm[None], jax.lax.pmean(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# This student added the own gradients, since "the sum over the devices" is what the check would have made, and forgot to divide.
def gradient_cast__wrong_sum(params, x, y, *, mesh):
    """(the norm of each device's own gradient, the gradients of the whole batch)."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(loss)(own, x, y)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], jax.lax.psum(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)


# This student mixed the first way with the third: of the mean loss each device's own gradient is only an n-th, and so is its norm.
def gradient_cast__wrong_first_and_third(params, x, y, *, mesh):
    """(the norm of each device's own gradient, the gradients of the whole batch)."""

    def body(params, x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        grads = jax.grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(own)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        return norm[None], jax.lax.psum(grads, "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P("data"), P()))(params, x, y)
