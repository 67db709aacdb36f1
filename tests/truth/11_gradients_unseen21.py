"""Answers to lesson 11, twenty-first batch, written by a reader of the notebook only."""

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


def custom_vjp_pair__right_g_by_stop_gradient(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    def g(part):
        still = jax.lax.stop_gradient(part)
        return part + (jax.lax.psum(still, "model") - still)

    def local_loss(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    body = jax.value_and_grad(local_loss, argnums=(0, 1))
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# g is a psum, and psum there is already; only f needs a rule of its own.
def custom_vjp_pair__wrong_plain_psum(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    def local_loss(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean((jax.lax.psum(hidden @ params["w2"], "model") - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    body = jax.value_and_grad(local_loss, argnums=(0, 1))
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# x is whole on every device, so its gradient is, too, and f would change nothing.
def custom_vjp_pair__wrong_without_f(params, x, y, *, mesh):
    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct,))

    def local_loss(params, x, y):
        hidden = jnp.tanh(x @ params["w1"])
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    body = jax.value_and_grad(local_loss, argnums=(0, 1))
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# f belongs to the first product as g does to the second: each goes around its result.
def custom_vjp_pair__wrong_f_after_product(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (ct,))

    def local_loss(params, x, y):
        hidden = jnp.tanh(f(x @ params["w1"]))
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    body = jax.value_and_grad(local_loss, argnums=(0, 1))
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


# Every device has a cotangent of the sum, and they have to be brought together: the mean of them is the one (numbers right, one all-reduce too many).
def custom_vjp_pair__wrong_g_backwards_pmean(params, x, y, *, mesh):
    @jax.custom_vjp
    def f(v):
        return v

    f.defvjp(lambda v: (v, None), lambda _, ct: (jax.lax.psum(ct, "model"),))

    @jax.custom_vjp
    def g(v):
        return jax.lax.psum(v, "model")

    g.defvjp(lambda v: (jax.lax.psum(v, "model"), None), lambda _, ct: (jax.lax.pmean(ct, "model"),))

    def local_loss(params, x, y):
        hidden = jnp.tanh(f(x) @ params["w1"])
        return jnp.mean((g(hidden @ params["w2"]) - y) ** 2)

    cut = {"w1": P(None, "model"), "w2": P("model", None)}
    body = jax.value_and_grad(local_loss, argnums=(0, 1))
    return jax.shard_map(body, mesh=mesh, in_specs=(cut, P(), P()), out_specs=(P(), (cut, P())), check_vma=False)(
        params, x, y
    )


def closed_over_params__right_unchecked(params, x, y, *, mesh):
    of_rows = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))
    return jax.shard_map(
        of_rows, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"), check_vma=False
    )(params, x, y)


# The closure is the trouble: params should come in as an argument, with P().
def closed_over_params__wrong_as_argument(params, x, y, *, mesh):
    of_rows = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))
    return jax.shard_map(of_rows, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))(params, x, y)


# What comes out is n devices' gradients too much, so it is divided by n, as in `gradient_divided`.
def closed_over_params__wrong_divided(params, x, y, *, mesh):
    def of_one(row, target):
        grads = jax.grad(loss)(params, row, target)
        return jax.tree.map(lambda g: g / mesh.shape["data"], grads)

    specs = P("data"), P("data")
    return jax.shard_map(jax.vmap(of_one), mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# The parameters have to vary over the mesh, that is over all of its axes (right where `data` is the only one).
def closed_over_params__wrong_varies_along_all(params, x, y, *, mesh):
    def body(x, y):
        own = jax.tree.map(lambda p: varying(p, mesh.axis_names), params)
        return jax.vmap(lambda row, target: jax.grad(loss)(own, row, target))(x, y)

    specs = P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


# Varying in, own gradient out: each device's own gradient is what is wanted, one more dimension to cut it along.
def closed_over_params__wrong_one_per_device(params, x, y, *, mesh):
    def body(x, y):
        own = jax.tree.map(lambda p: varying(p, "data"), params)
        return jax.tree.map(lambda g: g[None], jax.grad(loss)(own, x, y))

    specs = P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, y)


transposes__right_counted = {
    "psum to P(), ct 1": 1.0,
    "psum to P('data'), ct 1 each": 8.0,
    "pmean to P(), ct 1": 0.125,
    "all_gather to P('data'), ct 1 each": 8.0,
    "all_gather to P(), ct 0 … 7": 3.0,
    "ppermute +1, ct 0 … 7": 4.0,
    "psum_scatter, ct 0 … 7": [float(k) for k in range(8)],
    "w from P() to P('data'), ct 0 … 7": float(sum(range(8))),
}

# The transpose of psum is psum: even the one cotangent of a P() result is added up over eight devices.
transposes__wrong_psum_is_psum = {
    "psum to P(), ct 1": 8,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# Backwards a permute goes the other way, so that device 3 gets its cotangent from device 2.
transposes__wrong_permute_other_way = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 2,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# Device 3 keeps one sum, with the cotangent 3, and that is copied to all of its eight terms.
transposes__wrong_own_sum_copied = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [3] * 8,
    "w from P() to P('data'), ct 0 … 7": 28,
}

# Only what device 3 itself returns counts for device 3: one copy of the sum, one copy of its block, its own use of w.
transposes__wrong_own_result_only = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 1,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 1,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 3,
}
