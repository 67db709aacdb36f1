"""Answers to lesson 11, tenth batch, written by a reader of the notebook only."""

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


# ------------------------------------------------------------ one_all_reduce


def one_all_reduce__right_scan(w, xs, ys, *, mesh):
    def on_device(w, xs, ys):
        own = varying(w, "data")
        nothing = varying(jnp.zeros(w.shape, w.dtype), "data")

        def turn(total, batch):
            return total + jax.grad(squares)(own, *batch), None

        total, _ = jax.lax.scan(turn, nothing, (xs, ys))
        return jax.lax.psum(total, "data")

    rows = P(None, "data", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P())(w, xs, ys)


# Thought: gradients of the devices are averaged, as in every recipe of data parallelism (forgot that squares is a sum).
def one_all_reduce__wrong_averaged(w, xs, ys, *, mesh):
    def on_device(w, xs, ys):
        own = varying(w, "data")
        total = sum(jax.grad(squares)(own, x, y) for x, y in zip(xs, ys))
        return jax.lax.pmean(total, "data")

    rows = P(None, "data", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P())(w, xs, ys)


# Thought: the 2 has to go into the product before anything is unreduced, and x @ w is the product that is still allowed to be scaled.
def one_all_reduce__wrong_two_inside(w, xs, ys, *, mesh):
    apart = NamedSharding(mesh, P(unreduced={"data"}))
    total = None
    for x, y in zip(xs, ys):
        part = jnp.dot(x.T, 2 * (x @ w) - y, out_sharding=apart)
        total = part if total is None else total + part
    return reshard(total, NamedSharding(mesh, P()))


# Thought: psum stands once in the program, in the body of the loop, so there is one all-reduce.
def one_all_reduce__wrong_once_in_the_text(w, xs, ys, *, mesh):
    def on_device(w, xs, ys):
        own = varying(w, "data")

        def turn(total, batch):
            x, y = batch
            return total + jax.lax.psum(jax.grad(squares)(own, x, y), "data"), None

        return jax.lax.scan(turn, jnp.zeros(w.shape, w.dtype), (xs, ys))[0]

    rows = P(None, "data", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P())(w, xs, ys)


# Thought: the parts are apart over data, so adding them up puts the sum back over data, as the rows are.
def one_all_reduce__wrong_back_over_data(w, xs, ys, *, mesh):
    copy = reshard(w, NamedSharding(mesh, P(reduced={"data"})))
    part = jax.jit(jax.grad(squares))
    total = part(copy, xs[0], ys[0])
    for k in range(1, xs.shape[0]):
        total = total + part(copy, xs[k], ys[k])
    return reshard(total, NamedSharding(mesh, P("data", None)))


# ----------------------------------------------------------- custom_vjp_pair


def one_way_and_other(there, back):
    """A function that is `there` forwards and `back` backwards."""

    @jax.custom_vjp
    def both(v):
        return there(v)

    both.defvjp(lambda v: (there(v), None), lambda kept, cotangent: (back(cotangent),))
    return both


def over_model(v):
    return jax.lax.psum(v, "model")


def same(v):
    return v


def custom_vjp_pair__right_factory(params, x, y, *, mesh):
    f, g = one_way_and_other(same, over_model), one_way_and_other(over_model, same)

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        error = g(hidden @ params["w2"]) - y
        return jnp.mean(error * error)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(cut, P(), P()),
        out_specs=(P(), (cut, P())),
        check_vma=False,
    )(params, x, y)


# Thought: the errors of all parts meet in g, so the target is taken off before (it is taken off once on every device).
def custom_vjp_pair__wrong_target_on_each(params, x, y, *, mesh):
    f, g = one_way_and_other(same, over_model), one_way_and_other(over_model, same)

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean(g(hidden @ params["w2"] - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(cut, P(), P()),
        out_specs=(P(), (cut, P())),
        check_vma=False,
    )(params, x, y)


# Thought: a sum of n parts has one cotangent, of which each part gets its n-th.
def custom_vjp_pair__wrong_a_share_of_the_cotangent(params, x, y, *, mesh):
    n = mesh.shape["model"]

    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct / n,))

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


# Thought: f belongs where the cut begins to matter, that is between the two layers, where every device has its own hidden units.
def custom_vjp_pair__wrong_f_around_hidden(params, x, y, *, mesh):
    f, g = one_way_and_other(same, over_model), one_way_and_other(over_model, same)

    def local(params, x, y):
        hidden = f(jnp.tanh(x @ params["w1"]))
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(
        jax.value_and_grad(local, argnums=(0, 1)),
        mesh=mesh,
        in_specs=(cut, P(), P()),
        out_specs=(P(), (cut, P())),
        check_vma=False,
    )(params, x, y)


# Thought: an unchecked psum makes every gradient n times too large, so take psum for g and divide all gradients by n (one all-reduce more backwards).
def custom_vjp_pair__wrong_divided_afterwards(params, x, y, *, mesh):
    n = mesh.shape["model"]
    f = one_way_and_other(same, over_model)

    def local(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean((jax.lax.psum(hidden @ params["w2"], "model") - y) ** 2)

    def body(params, x, y):
        value, grads = jax.value_and_grad(local, argnums=(0, 1))(params, x, y)
        return value, jax.tree.map(lambda g: g / n, grads)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# --------------------------------------------------------- same_with_vma_off

same_with_vma_off__right_by_hand = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# Thought: the transpose of pmean adds the devices' gradients, so that after it every device has the mean gradient.
same_with_vma_off__wrong_mean_is_shared = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 1,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# Thought: only psum is psum backwards; a pmean's cotangent is an eighth on each device and stays that.
same_with_vma_off__wrong_pmean_divides = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1 / 8,
    "pmean of the loss, then psum": 1,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# Thought: the psum of the loss is already eight times the mean, and its psum backwards makes another eight of it.
same_with_vma_off__wrong_eight_twice = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 64,
    "psum of the loss, then psum": 512,
}

# Thought: unchecked, JAX adds up over every axis that a spec does not name, so copies that differ are added when they leave through P().
same_with_vma_off__wrong_added_at_the_door = {
    "own loss": 8,
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 8,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}
