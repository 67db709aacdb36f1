"""Correct answers to 11_gradients, each spelled differently from the lesson's model solution.

All of them must earn full points: the grader sees what a program does, not how it is written.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

ROWS = P(), P("data"), P("data")
CUT = {"w1": P(None, "model"), "w2": P("model", None)}


def network(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def squared(w, x, y):
    return jnp.sum((x @ w - y) ** 2)


def may_vary(value):
    return lax.pcast(value, "data", to="varying") if hasattr(lax, "pcast") else lax.pvary(value, "data")


def dp_gradient_outside__sum_over_all(params, x, y, *, mesh):
    """Sums of squares, divided by the number of all elements."""
    entries = y.size

    @partial(jax.shard_map, mesh=mesh, in_specs=ROWS, out_specs=P())
    def go(params, x, y):
        errors = jnp.tanh(x @ params["w1"]) @ params["w2"] - y
        return lax.psum(jnp.sum(errors**2), "data") / entries

    return go(params, x, y)


def dp_gradient_outside__mean_behind(params, x, y, *, mesh):
    """Every device returns its loss, and the mean is taken outside."""
    go = jax.shard_map(lambda *own: network(*own)[None], mesh=mesh, in_specs=ROWS, out_specs=P("data"))
    return go(params, x, y).mean()


def gradient_of_the_mean__divided(params, x, y, *, mesh):
    """Dividing is as good."""

    def go(*own):
        value, grads = jax.value_and_grad(network)(*own)
        return lax.pmean(value, "data"), jax.tree.map(lambda g: g / mesh.shape["data"], grads)

    return jax.shard_map(go, mesh=mesh, in_specs=ROWS, out_specs=P())(params, x, y)


def gradient_of_the_mean__unchecked(params, x, y, *, mesh):
    """Unchecked, the common recipe is correct."""

    def go(*own):
        return lax.pmean(jax.value_and_grad(network)(*own), "data")

    return jax.shard_map(go, mesh=mesh, in_specs=ROWS, out_specs=P(), check_vma=False)(params, x, y)


def gradient_divided__scaled_loss(params, x, y, *, mesh):
    def go(params, x, y):
        return jax.grad(lambda p: network(p, x, y) / lax.psum(1, "data"))(params)

    return jax.shard_map(go, mesh=mesh, in_specs=ROWS, out_specs=P())(params, x, y)


def gradient_divided__of_the_mean(params, x, y, *, mesh):
    """Differentiating the mean is as good."""

    def go(params, x, y):
        return jax.grad(lambda p: lax.pmean(network(p, x, y), "data"))(params)

    return jax.shard_map(go, mesh=mesh, in_specs=ROWS, out_specs=P())(params, x, y)


def gradient_cast__unchecked(params, x, y, *, mesh):
    def go(*own):
        grads = jax.grad(network)(*own)
        return jnp.sqrt(sum((g**2).sum() for g in grads.values())).reshape(1), lax.pmean(grads, "data")

    return jax.shard_map(go, mesh=mesh, in_specs=ROWS, out_specs=(P("data"), P()), check_vma=False)(params, x, y)


def gradient_cast__stacked(params, x, y, *, mesh):
    """The norm of one long vector, and a sum of gradients that are divided first."""

    def go(params, x, y):
        grads = jax.grad(network)(jax.tree.map(may_vary, params), x, y)
        flat = jnp.concatenate([g.ravel() for g in grads.values()])
        return jnp.linalg.norm(flat)[None], jax.tree.map(lambda g: lax.psum(g / mesh.shape["data"], "data"), grads)

    return jax.shard_map(go, mesh=mesh, in_specs=ROWS, out_specs=(P("data"), P()))(params, x, y)


def closed_over_params__unchecked(params, x, y, *, mesh):
    def of_one(row, target):
        return jax.grad(network)(params, row, target)

    return jax.shard_map(
        jax.vmap(of_one), mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"), check_vma=False
    )(x, y)


def closed_over_params__cast_inside(params, x, y, *, mesh):
    """The cast is in the function of one row, closed over as before."""

    def of_one(row, target):
        return jax.grad(network)(jax.tree.map(may_vary, params), row, target)

    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))(x, y)


def closed_over_params__row_by_row(params, x, y, *, mesh):
    def go(params, x, y):
        own = jax.tree.map(may_vary, params)
        return lax.map(lambda row: jax.grad(network)(own, *row), (x, y))

    return jax.shard_map(go, mesh=mesh, in_specs=ROWS, out_specs=P("data"))(params, x, y)


def custom_vjp_pair__checked(params, x, y, *, mesh):
    """With check_vma, JAX inserts both rules."""

    def local(params, x, y):
        hidden = jnp.tanh(x @ params["w1"])
        return jnp.mean((lax.psum(hidden @ params["w2"], "model") - y) ** 2)

    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)), mesh=mesh, in_specs=(CUT, P(), P()), out_specs=(P(), (CUT, P()))
    )(params, x, y)


def custom_vjp_pair__from_outside(params, x, y, *, mesh):
    """The gradient from outside needs no rule either."""

    def local(params, x, y):
        hidden = jnp.tanh(x @ params["w1"])
        return jnp.mean((lax.psum(hidden @ params["w2"], "model") - y) ** 2)

    whole = jax.shard_map(local, mesh=mesh, in_specs=(CUT, P(), P()), out_specs=P())
    return jax.value_and_grad(whole, argnums=(0, 1))(params, x, y)


def one_all_reduce__by_shard_map(w, xs, ys, *, mesh):
    """Each device sums its own gradients; one psum at the end."""

    def go(w, xs, ys):
        own = may_vary(w)
        total, _ = lax.scan(lambda sum_, batch: (sum_ + jax.grad(squared)(own, *batch), None), 0 * own, (xs, ys))
        return lax.psum(total, "data")

    rows = P(None, "data", None)
    return jax.shard_map(go, mesh=mesh, in_specs=(P(None, None), rows, rows), out_specs=P(None, None))(w, xs, ys)


def one_all_reduce__all_at_once(w, xs, ys, *, mesh):
    """No loop: correct, if the full batch fits."""
    return jax.grad(squared)(w, xs, ys)


def one_all_reduce__by_types(w, xs, ys, *, mesh):
    """A replica of w whose gradient is unreduced; before JAX 0.9, the gradient is written out instead."""
    part, whole = NamedSharding(mesh, P(unreduced={"data"})), NamedSharding(mesh, P())
    if jax.__version_info__ < (0, 9):
        parts = [jnp.dot((x + x).T, x @ w - y, out_sharding=part) for x, y in zip(xs, ys, strict=True)]
        return jax.sharding.reshard(sum(parts[1:], parts[0]), whole)
    copy = jax.sharding.reshard(w, NamedSharding(mesh, P(reduced={"data"})))

    def add(total, batch):
        return total + jax.grad(squared)(copy, *batch), None

    start = jax.sharding.reshard(jnp.zeros_like(w), part)
    return jax.sharding.reshard(lax.scan(add, start, (xs, ys))[0], whole)
