"""Answers to lesson 12, thirteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network: relu between its layers, the last one linear. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def descend(params, gradients, rate):
    """One step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---------------------------------------------------------------- clip_by_global_norm


def clip_by_global_norm__right_shared(gradients, *, limit, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        devices = mesh.shape["model"]
        mine = sum(
            jnp.sum(jnp.square(g[name])) / (1 if "model" in tuple(layouts[name]) else devices) for name in layouts
        )
        norm = jnp.sqrt(jax.lax.psum(mine, "model"))
        factor = jnp.where(norm > limit, limit / norm, 1.0)
        return {name: leaf * factor for name, leaf in g.items()}, norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts,), out_specs=(layouts, P()))(gradients)


# This student thought that a norm over all devices of the mesh needs a psum over both of its axes.
def clip_by_global_norm__wrong_bothaxes(gradients, *, limit, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        cut = sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(cut, ("data", "model")) + jnp.sum(g["b2"] ** 2))
        factor = jnp.minimum(1.0, limit / norm)
        return jax.tree.map(lambda leaf: leaf * factor, g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts,), out_specs=(layouts, P()))(gradients)


# This student thought that each array is shortened when its own norm is above the limit.
def clip_by_global_norm__wrong_eachleaf(gradients, *, limit, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        squares = {name: jax.lax.psum(jnp.sum(g[name] ** 2), "model") for name in ("W1", "b1", "W2")}
        squares["b2"] = jnp.sum(g["b2"] ** 2)
        clipped = {name: g[name] * jnp.minimum(1.0, limit / jnp.sqrt(squares[name])) for name in g}
        return clipped, jnp.sqrt(sum(squares.values()))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts,), out_specs=(layouts, P()))(gradients)


# This student thought that the gradients are simply multiplied by limit / norm, and forgot those that are short enough.
def clip_by_global_norm__wrong_always(gradients, *, limit, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        cut = sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(cut, "model") + jnp.sum(g["b2"] ** 2))
        return jax.tree.map(lambda leaf: leaf * (limit / norm), g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts,), out_specs=(layouts, P()))(gradients)


# This student thought that the norm to report is that of what is returned.
def clip_by_global_norm__wrong_after(gradients, *, limit, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        def total(g):
            cut = sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2"))
            return jnp.sqrt(jax.lax.psum(cut, "model") + jnp.sum(g["b2"] ** 2))

        factor = jnp.minimum(1.0, limit / total(g))
        g = jax.tree.map(lambda leaf: leaf * factor, g)
        return g, total(g)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts,), out_specs=(layouts, P()))(gradients)


# ---------------------------------------------------------------- place_dp


def place_dp__right_leafwise(params, batch, mesh):
    rows = {name: NamedSharding(mesh, P("data", *[None] * (np.ndim(leaf) - 1))) for name, leaf in batch.items()}
    copies = jax.tree.map(lambda leaf: NamedSharding(mesh, P(*[None] * np.ndim(leaf))), params)
    return jax.device_put(params, copies), jax.device_put(batch, rows)


# This student thought that the examples are dealt out over all devices of the mesh, whatever its axes.
def place_dp__wrong_allaxes(params, batch, mesh):
    params = jax.device_put(params, NamedSharding(mesh, P()))
    batch = jax.device_put(batch, NamedSharding(mesh, P(mesh.axis_names)))
    return params, batch


# This student thought that rows which do not fill all devices had better be dropped, as a DataLoader does with drop_last.
def place_dp__wrong_droplast(params, batch, mesh):
    n = mesh.shape["data"]
    batch = {name: leaf[: len(leaf) // n * n] for name, leaf in batch.items()}
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, P("data")))


# This student thought that parameters are copied to all devices anyway, so that only the batch has to be put.
def place_dp__wrong_paramsleft(params, batch, mesh):
    return jax.device_put(params), jax.device_put(batch, NamedSharding(mesh, P("data")))


# This student thought that only matrices have rows to deal out, and that a vector stays whole as a bias does.
def place_dp__wrong_vectors(params, batch, mesh):
    def lay(leaf):
        return jax.device_put(leaf, NamedSharding(mesh, P("data") if leaf.ndim > 1 else P()))

    return jax.device_put(params, NamedSharding(mesh, P())), jax.tree.map(lay, batch)


# ---------------------------------------------------------------- shard_map_dp


def shard_map_dp__right_scan(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        def step(params, _):
            own = jax.value_and_grad(loss)(varying(params, "data"), x, y)
            value, gradients = jax.lax.pmean(own, "data")
            return descend(params, gradients, rate), value

        params, losses = jax.lax.scan(step, params, length=steps)
        return losses, params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that a step reports the loss which it has reached.
def shard_map_dp__wrong_lossafter(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        def whole_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        losses = []
        for _ in range(steps):
            params = descend(params, jax.grad(whole_loss)(params), rate)
            losses.append(whole_loss(params))
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thought that for plain descent one may as well average the parameters, once, when all steps are done.
def shard_map_dp__wrong_averageatend(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(own, x, y)
            losses.append(value)
            own = descend(own, gradients, rate)
        return jax.lax.pmean((jnp.stack(losses), own), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thought: the gradient comes summed, eight times too large, so divide by eight.
def shard_map_dp__wrong_eight(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            losses.append(jax.lax.pmean(value, "data"))
            params = descend(params, jax.tree.map(lambda g: g / 8, gradients), rate)
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thought that the gradient of the averaged loss is the averaged gradient, with or without the check.
def shard_map_dp__wrong_checkoff(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(lambda p: jax.lax.pmean(loss(p, x, y), "data"))(params)
            losses.append(value)
            params = descend(params, gradients, rate)
        return jnp.stack(losses), params

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=False
    )(params, x, y)
