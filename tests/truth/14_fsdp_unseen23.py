"""Answers to lesson 14, twenty-third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))


def predict(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def varying(tree, axes):
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ------------------------------------------------------------- fsdp_gradient


def fsdp_gradient__right_TERMS(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(shares, x, y):
        def my_term(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return loss(whole, x, y) / n

        term, grads = jax.value_and_grad(my_term)(shares)
        return jax.lax.psum(term, "fsdp"), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Gather, differentiate, average as in data parallelism, and everybody cuts its own rows out of the mean (an all_reduce).
def fsdp_gradient__wrong_THENCUT(params, x, y, *, mesh):
    def on_device(shares, x, y):
        whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
        value, grads = jax.lax.pmean(jax.value_and_grad(loss)(whole, x, y), "fsdp")
        me = jax.lax.axis_index("fsdp")
        own = jax.tree.map(lambda g, s: jax.lax.dynamic_slice_in_dim(g, me * len(s), len(s)), grads, shares)
        return value, own

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# The gradient of the whole weights goes through psum_scatter, and then it is finished (no division by the devices).
def fsdp_gradient__wrong_NODIVISION(params, x, y, *, mesh):
    def on_device(shares, x, y):
        whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
        value, grads = jax.value_and_grad(loss)(whole, x, y)
        grads = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), grads)
        return jax.lax.pmean(value, "fsdp"), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# The loss is divided by n so that gradients come out right, and then the mean is taken of it all the same.
def fsdp_gradient__wrong_TWICE(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(shares, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return loss(whole, x, y) / n

        v, grads = jax.value_and_grad(value)(shares)
        return jax.lax.pmean(v, "fsdp"), grads

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# FSDP forgets the weights after use, so jax.checkpoint belongs around the gather (every leaf is gathered once more on the way back).
def fsdp_gradient__wrong_FORGETS(params, x, y, *, mesh):
    def on_device(shares, x, y):
        @jax.checkpoint
        def forget(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return loss(whole, x, y)

        return jax.value_and_grad(lambda s: jax.lax.pmean(forget(s), "fsdp"))(shares)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# -------------------------------------------------------------------- hybrid


def hybrid__right_ALLTERMS(params, x, y, *, mesh):
    devices = mesh.shape["slice"] * mesh.shape["fsdp"]
    rows = P(("slice", "fsdp"))

    def on_device(shares, x, y):
        def my_term(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return loss(whole, x, y) / devices

        term, grads = jax.value_and_grad(my_term)(varying(shares, "slice"))
        return jax.lax.psum(term, ("slice", "fsdp")), jax.tree.map(lambda g: jax.lax.psum(g, "slice"), grads)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# A cast to varying is what helps, and it is written where the weights are used: after the gather.
def hybrid__wrong_CASTLATE(params, x, y, *, mesh):
    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(varying(whole, "slice"), x, y), ("slice", "fsdp"))

        return jax.value_and_grad(value)(params)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# The loss of the whole batch is the mean over both axes; then the copies are averaged over slice (divided by the slices twice).
def hybrid__wrong_TWICEOVERSLICE(params, x, y, *, mesh):
    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), ("slice", "fsdp"))

        v, grads = jax.value_and_grad(value)(varying(params, "slice"))
        return v, jax.tree.map(lambda g: jax.lax.pmean(g, "slice"), grads)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# The reduce_scatter inside of a slice takes the mean of its devices, so only the mean over slice is left to write.
def hybrid__wrong_SUMINSLICE(params, x, y, *, mesh):
    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return loss(whole, x, y)

        v, grads = jax.value_and_grad(value)(varying(params, "slice"))
        return jax.lax.pmean(v, ("slice", "fsdp")), jax.tree.map(lambda g: jax.lax.pmean(g, "slice"), grads)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# The batch is cut over both axes, so loss and gradients are averaged over both at the end (shares of different rows, too).
def hybrid__wrong_MEANOFBOTH(params, x, y, *, mesh):
    def on_device(params, x, y):
        def value(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return loss(whole, x, y)

        found = jax.value_and_grad(value)(varying(params, "slice"))
        return jax.lax.pmean(found, ("slice", "fsdp"))

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# ---------------------------------------------------------------- begin_fsdp


def begin_fsdp__right_DEVICEARG(params, mesh):
    cut, whole = NamedSharding(mesh, P("fsdp", None)), NamedSharding(mesh, P())
    params = [
        {name: jax.device_put(leaf, cut if name == "W" else whole) for name, leaf in layer.items()} for layer in params
    ]

    def zeros():
        return jax.tree.map(lambda p: jnp.zeros(p.shape, p.dtype, device=p.sharding), params)

    return params, {"mean": zeros(), "square": zeros()}


# Parameters and moments are made as on one device, and then the parameters are laid out.
def begin_fsdp__wrong_ZEROSFIRST(params, mesh):
    moments = {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    return jax.device_put(params, layouts), moments


# W is [inputs, outputs], and "by rows" means that each device has some of the outputs, as the rows of torch's weight are.
def begin_fsdp__wrong_TORCHROWS(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P(None, "fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    return params, {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}


# Fully sharded: the more devices share the better, so W is cut over all axes of the mesh.
def begin_fsdp__wrong_ALLAXES(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P(mesh.axis_names)), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    return params, {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}


# Weights as told; but the moments are the optimizer's state, and that is in shares altogether, biases' moments included.
def begin_fsdp__wrong_ALLMOMENTSCUT(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    zeros = jax.tree.map(jnp.zeros_like, params)
    moments = jax.device_put({"mean": zeros, "square": zeros}, NamedSharding(mesh, P("fsdp")))
    return params, moments
