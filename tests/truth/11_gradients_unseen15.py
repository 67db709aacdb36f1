"""Answers to lesson 11, fifteenth batch, written by a reader of the notebook only."""

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


def _with_rules(there, back):
    """A function of one argument, and how its cotangent goes back."""

    @jax.custom_vjp
    def function(v):
        return there(v)

    function.defvjp(lambda v: (there(v), None), lambda kept, ct: (back(ct),))
    return function


def _same(v):
    return v


def _summed(v):
    return jax.lax.psum(v, "model")


def _meaned(v):
    return jax.lax.pmean(v, "model")


# ---- custom_vjp_pair


def custom_vjp_pair__right_factory(params, x, y, *, mesh):
    f, g = _with_rules(_same, _summed), _with_rules(_summed, _same)

    def body(w1, w2, x, y):
        def own(w1, w2, x):
            error = g(jnp.tanh(f(x) @ w1) @ w2) - y
            return jnp.mean(jnp.square(error))

        value, (d1, d2, dx) = jax.value_and_grad(own, argnums=(0, 1, 2))(w1, w2, x)
        return value, ({"w1": d1, "w2": d2}, dx)

    columns, rows = P(None, "model"), P("model", None)
    return jax.shard_map(
        body,
        mesh=mesh,
        in_specs=(columns, rows, P(), P()),
        out_specs=(P(), ({"w1": columns, "w2": rows}, P())),
        check_vma=False,
    )(params["w1"], params["w2"], x, y)


# A psum is a sum forwards and a copy backwards, so that g needs no rule; only f is written.
def custom_vjp_pair__wrong_plain_psum(params, x, y, *, mesh):
    f = _with_rules(_same, _summed)

    def body(params, x, y):
        def own(params, x):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return jnp.mean((jax.lax.psum(hidden @ params["w2"], "model") - y) ** 2)

        return jax.value_and_grad(own, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# Gradients of parameters have to be added over the devices as well, so f goes around everything that comes in.
def custom_vjp_pair__wrong_f_around_all(params, x, y, *, mesh):
    f, g = _with_rules(_same, _summed), _with_rules(_summed, _same)

    def body(params, x, y):
        def own(params, x):
            params = jax.tree.map(f, params)
            hidden = jnp.tanh(f(x) @ params["w1"])
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        return jax.value_and_grad(own, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# Every device has a gradient with respect to the same x, and copies of one value are averaged, not added.
def custom_vjp_pair__wrong_mean_for_x(params, x, y, *, mesh):
    f, g = _with_rules(_same, _meaned), _with_rules(_summed, _same)

    def body(params, x, y):
        def own(params, x):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        return jax.value_and_grad(own, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# To be sure that the cotangent is the same on all devices, g averages it backwards: right numbers, one all-reduce too many.
def custom_vjp_pair__wrong_g_averages_back(params, x, y, *, mesh):
    f, g = _with_rules(_same, _summed), _with_rules(_summed, _meaned)

    def body(params, x, y):
        def own(params, x):
            hidden = jnp.tanh(f(x) @ params["w1"])
            return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

        return jax.value_and_grad(own, argnums=(0, 1))(params, x)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# ---- same_with_vma_off

_differ = "copies differ"
same_with_vma_off__right_products = {
    "own loss": _differ,
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": _differ,
    "pmean of the loss, then pmean": 8 / 8,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 8 * 8,
}

# The parameters come in with P(), so the gradient of the own loss is the sum over the devices, check or no check.
same_with_vma_off__wrong_still_summed = {
    "own loss": 8,
    "own loss, then pmean": 8,
    "own loss, then psum": 64,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# A pmean in the loss divides by 8 on the way back, and nothing is added up there when the check is off.
same_with_vma_off__wrong_mean_divides = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1 / 8,
    "pmean of the loss, then psum": 1,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# The pmean of the loss is one number on all devices, so that its gradient is one as well.
same_with_vma_off__wrong_one_loss_one_gradient = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 1,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# What was added is copied backwards: a psum in the loss changes nothing in a device's gradient.
same_with_vma_off__wrong_psum_copies = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 1,
    "psum of the loss, then psum": 8,
}

# ---- fsdp_transpose

_layers = 3
fsdp_transpose__right_counted = {
    "all_gather, keeps all": _layers,
    "reduce_scatter, keeps all": _layers,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 2 * _layers,
    "reduce_scatter, keeps nothing": _layers,
    "all_gather, keeps all but gathered weights": _layers + (_layers - 1),
}

# Weights that are not kept have to be gathered again, all three: the policy saves only arithmetic.
fsdp_transpose__wrong_policy_all_again = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 6,
}

# The pmean of the loss has a psum as its transpose, which is one all_reduce more.
fsdp_transpose__wrong_pmean_back = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 2,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 5,
}

# What is gathered twice was copied twice, so its gradient is scattered twice.
fsdp_transpose__wrong_scatter_for_each_gather = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 6,
    "reduce_scatter, keeps nothing": 6,
    "all_gather, keeps all but gathered weights": 5,
}

# The last layer is still there when the backward pass begins, so that it is not gathered again (and the first is not needed).
fsdp_transpose__wrong_last_still_there = {
    "all_gather, keeps all": 3,
    "reduce_scatter, keeps all": 3,
    "all_reduce, keeps all": 1,
    "all_gather, keeps nothing": 5,
    "reduce_scatter, keeps nothing": 3,
    "all_gather, keeps all but gathered weights": 4,
}
