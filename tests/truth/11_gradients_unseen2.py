"""Answers to lesson 11, second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
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


def dp_gradient_outside__right_sum_divided(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y) / mesh.shape["data"], "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def dp_gradient_outside__wrong_sum(params, x, y, *, mesh):
    """The sum of the devices' means."""
    body = lambda params, x, y: jax.lax.psum(loss(params, x, y), "data")
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def dp_gradient_outside__wrong_eight(params, x, y, *, mesh):
    """Divides by the notebook's eight devices, whatever the mesh has along data."""
    body = lambda params, x, y: jax.lax.psum(loss(params, x, y), "data") / 8
    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


def dp_gradient_outside__wrong_unchecked(params, x, y, *, mesh):
    """Each device's own loss, promised to be the same on all."""
    specs = P(), P("data"), P("data")
    return jax.shard_map(loss, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


def dp_gradient_outside__wrong_gradients(params, x, y, *, mesh):
    """Returns the gradients, where the loss was asked for."""

    def mean_loss(params):
        body = lambda params, x, y: jax.lax.pmean(loss(params, x, y), "data")
        return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)

    return jax.grad(mean_loss)(params)


def _unchecked(body, mesh, params, x, y):
    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    specs = dict(in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())))
    return jax.shard_map(body, mesh=mesh, check_vma=False, **specs)(params, x, y)


def _pair():
    """f: nothing, then psum. g: psum, then nothing."""
    f = jax.custom_vjp(lambda v: v)
    f.defvjp(lambda v: (v, None), lambda kept, ct: (jax.lax.psum(ct, "model"),))
    g = jax.custom_vjp(lambda v: jax.lax.psum(v, "model"))
    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda kept, ct: (ct,))
    return f, g


def custom_vjp_pair__right_lambdas(params, x, y, *, mesh):
    f, g = _pair()

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean(jnp.square(g(hidden @ params["w2"]) - y))

    return _unchecked(jax.value_and_grad(local, argnums=(0, 1)), mesh, params, x, y)


def custom_vjp_pair__wrong_plain_psum(params, x, y, *, mesh):
    """A plain psum for g: unchecked it is a psum backwards as well, and all gradients are n times too large."""
    f, _ = _pair()

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean((jax.lax.psum(hidden @ params["w2"], "model") - y) ** 2)

    return _unchecked(jax.value_and_grad(local, argnums=(0, 1)), mesh, params, x, y)


def custom_vjp_pair__wrong_no_f(params, x, y, *, mesh):
    """f is forgotten: each device has a part of the gradient of x."""
    _, g = _pair()

    def local(params, x, y):
        hidden = jnp.tanh(x @ params["w1"])
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    return _unchecked(jax.value_and_grad(local, argnums=(0, 1)), mesh, params, x, y)


def custom_vjp_pair__wrong_exchanged(params, x, y, *, mesh):
    """g where x comes in and f where the parts meet."""
    f, g = _pair()

    def local(params, x, y):
        hidden = jnp.tanh(g(x) @ params["w1"])
        return jnp.mean((f(hidden @ params["w2"]) - y) ** 2)

    return _unchecked(jax.value_and_grad(local, argnums=(0, 1)), mesh, params, x, y)


def custom_vjp_pair__wrong_pmean(params, x, y, *, mesh):
    """f averages the cotangents that it should add."""
    _, g = _pair()
    f = jax.custom_vjp(lambda v: v)
    f.defvjp(lambda v: (v, None), lambda kept, ct: (jax.lax.pmean(ct, "model"),))

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    return _unchecked(jax.value_and_grad(local, argnums=(0, 1)), mesh, params, x, y)


fsdp_transpose__right_five = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# all weights are gathered again with the policy, the first layer's too
fsdp_transpose__wrong_first_layer_too = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 6,
}

# the all_reduce has a transpose that sends
fsdp_transpose__wrong_two_reduces = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 2,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# who gathers twice scatters twice
fsdp_transpose__wrong_scatters_twice = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps all but gathered weights": 5,
}

# the count of the one-layer example: with the policy nothing is gathered again
fsdp_transpose__wrong_as_one_layer = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 3,
}


def one_all_reduce__right_shard_map(w, xs, ys, *, mesh):
    """The parts written out and added up on each device; one psum."""

    def body(w, xs, ys):
        errors = jnp.einsum("kni,io->kno", xs, w) - ys
        parts = [2 * x.T @ e for x, e in zip(xs, errors)]
        return jax.lax.psum(sum(parts), "data")

    cut = P(None, "data", None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, None), cut, cut), out_specs=P(None, None))(w, xs, ys)


def one_all_reduce__wrong_every_turn(w, xs, ys, *, mesh):
    """Right numbers, and an all-reduce for each small batch."""
    total = jax.grad(squares)(w, xs[0], ys[0])
    for x, y in zip(xs[1:], ys[1:]):
        total = total + jax.grad(squares)(w, x, y)
    return total


def one_all_reduce__wrong_half(w, xs, ys, *, mesh):
    """The 2 of the square is missing."""
    parts = NamedSharding(mesh, P(unreduced={"data"}))
    total = None
    for x, y in zip(xs, ys):
        part = jnp.dot(x.T, x @ w - y, out_sharding=parts)
        total = part if total is None else total + part
    return reshard(total, NamedSharding(mesh, P()))


def one_all_reduce__wrong_last(w, xs, ys, *, mesh):
    """= for +=: the last small batch only."""
    parts = NamedSharding(mesh, P(unreduced={"data"}))
    for x, y in zip(xs, ys):
        total = jnp.dot(2 * x.T, x @ w - y, out_sharding=parts)
    return reshard(total, NamedSharding(mesh, P()))


def one_all_reduce__wrong_averaged(w, xs, ys, *, mesh):
    """The mean over the small batches and the devices, where the sum was asked for."""

    def body(w, xs, ys):
        own = varying(w, "data")
        parts = [jax.grad(squares)(own, x, y) for x, y in zip(xs, ys)]
        return jax.lax.pmean(sum(parts) / len(parts), "data")

    cut = P(None, "data", None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, None), cut, cut), out_specs=P(None, None))(w, xs, ys)
