"""Answers to lesson 14, fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("fsdp",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network of lesson 12: relu between its layers. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def adam(params, moments, gradients):
    """One step of Adam on trees, without the corrections for its start: (params, moments)."""
    mean = jax.tree.map(lambda m, g: m + 0.1 * (g - m), moments["mean"], gradients)
    square = jax.tree.map(lambda s, g: s + 0.01 * (g**2 - s), moments["square"], gradients)
    params = jax.tree.map(lambda p, m, s: p - m / (64 * (jnp.sqrt(s) + 1e-8)), params, mean, square)
    return params, {"mean": mean, "square": square}


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ------------------------------------------------------------------ begin_fsdp


def begin_fsdp__right_leaf_by_leaf(params, mesh):
    """Every leaf put for itself; zeros of the host go straight to where they belong."""
    where = {"W": NamedSharding(mesh, P("fsdp", None)), "b": NamedSharding(mesh, P())}

    def lay(tree):
        return [{name: jax.device_put(leaf, where[name]) for name, leaf in layer.items()} for layer in tree]

    zeros = [{name: np.zeros(leaf.shape, leaf.dtype) for name, leaf in layer.items()} for layer in params]
    return lay(params), {"mean": lay(zeros), "square": lay(zeros)}


# This student thought that "by rows" means that every row is divided, and cuts the second dimension.
def begin_fsdp__wrong_columns(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P(None, "fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    return params, {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}


# This student made the moments of the host's arrays, before anything was cut.
def begin_fsdp__wrong_moments_first(params, mesh):
    moments = {name: jax.tree.map(jnp.zeros_like, params) for name in ("mean", "square")}
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    return jax.device_put(params, layouts), moments


# This student turned the tree of moments inside out: for each leaf a dict of mean and square.
def begin_fsdp__wrong_inside_out(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, layouts)
    moments = jax.tree.map(lambda p: {"mean": jnp.zeros_like(p), "square": jnp.zeros_like(p)}, params)
    return params, moments


# This student cuts the matrices but thought that moments, which every device updates, are whole like the biases.
def begin_fsdp__wrong_moments_whole(params, mesh):
    whole = NamedSharding(mesh, P())
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": whole} for _ in params]
    zeros = jax.device_put(jax.tree.map(np.zeros_like, params), whole)
    return jax.device_put(params, layouts), {"mean": zeros, "square": zeros}


# ------------------------------------------------------------------ zero1_step


def zero1_step__right_reshape(params, moments, x, y, *, mesh):
    """Own rows by a reshape; the division by n goes into the loss."""
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.grad(lambda p: loss(p, x, y) / n)(params)
        summed = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), gradients)
        own = jax.tree.map(lambda p: p.reshape(n, -1, *p.shape[1:])[me], params)
        own, moments = adam(own, moments, summed)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student took the reduce_scatter's sum of means for the mean.
def zero1_step__wrong_sum(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), gradients)
        own = jax.tree.map(lambda p, g: jax.lax.dynamic_slice_in_dim(p, me * g.shape[0], g.shape[0]), params, gradients)
        own, moments = adam(own, moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student averages the gradients as in data parallelism, and takes the own rows of the average: an all_reduce.
def zero1_step__wrong_all_reduce(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")

        def rows(whole):
            size = whole.shape[0] // n
            return jax.lax.dynamic_slice_in_dim(whole, me * size, size)

        gradients = jax.lax.pmean(jax.grad(loss)(params, x, y), "fsdp")
        own, moments = adam(jax.tree.map(rows, params), moments, jax.tree.map(rows, gradients))
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student thought that device d owns every n-th row from d on, while the reduce_scatter deals out blocks.
def zero1_step__wrong_every_nth_row(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / n, gradients)
        own = jax.tree.map(lambda p: p.reshape(-1, n, *p.shape[1:])[:, me], params)
        own, moments = adam(own, moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student thought that who owns rows updates them by its own examples' gradient, and that the gather makes all alike.
def zero1_step__wrong_own_examples_only(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")

        def rows(whole):
            size = whole.shape[0] // n
            return jax.lax.dynamic_slice_in_dim(whole, me * size, size)

        gradients = jax.tree.map(rows, jax.grad(loss)(params, x, y))
        own, moments = adam(jax.tree.map(rows, params), moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# ------------------------------------------------------------------ fsdp_step


def _specs(params):
    shares = [{"W": P("fsdp"), "b": P()} for _ in params]
    return shares, {"mean": shares, "square": shares}


def fsdp_step__right_by_hand(params, moments, x, y, *, limit, mesh):
    """Biases cast to varying, so that one psum adds up the loss and their gradients."""
    n = mesh.shape["fsdp"]
    shares, two = _specs(params)

    def on_device(params, moments, x, y):
        def part(ws, bs):
            whole = [{"W": jax.lax.all_gather(w, "fsdp", tiled=True), "b": b} for w, b in zip(ws, bs)]
            return loss(whole, x, y) / n

        ws, bs = [layer["W"] for layer in params], varying([layer["b"] for layer in params], "fsdp")
        value, (gw, gb) = jax.value_and_grad(part, argnums=(0, 1))(ws, bs)
        value, gb = jax.lax.psum((value, gb), "fsdp")
        squares = jax.lax.psum(sum(jnp.sum(g**2) for g in gw), "fsdp") + sum(jnp.sum(g**2) for g in gb)
        factor = jnp.minimum(1.0, limit / jnp.sqrt(squares))
        gradients = [{"W": factor * w, "b": factor * b} for w, b in zip(gw, gb)]
        return value, *adam(params, moments, gradients)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(shares, two, P("fsdp"), P("fsdp")), out_specs=(P(), shares, two)
    )(params, moments, x, y)


# This student adds the squares of all leaves over the devices, also those of the biases, which all devices have.
def fsdp_step__wrong_copies_summed(params, moments, x, y, *, limit, mesh):
    shares, two = _specs(params)

    def on_device(params, moments, x, y):
        def mean_loss(own):
            whole = [{"W": jax.lax.all_gather(l["W"], "fsdp", tiled=True), "b": l["b"]} for l in own]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        value, g = jax.value_and_grad(mean_loss)(params)
        norm = jnp.sqrt(jax.lax.psum(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g)), "fsdp"))
        g = jax.tree.map(lambda leaf: leaf * jnp.minimum(1, limit / norm), g)
        return value, *adam(params, moments, g)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(shares, two, P("fsdp"), P("fsdp")), out_specs=(P(), shares, two)
    )(params, moments, x, y)


# This student clips only what is in shares: the biases count neither in the norm nor are they shortened.
def fsdp_step__wrong_matrices_only(params, moments, x, y, *, limit, mesh):
    shares, two = _specs(params)

    def on_device(params, moments, x, y):
        def mean_loss(own):
            whole = [{"W": jax.lax.all_gather(l["W"], "fsdp", tiled=True), "b": l["b"]} for l in own]
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        value, g = jax.value_and_grad(mean_loss)(params)
        norm = jnp.sqrt(jax.lax.psum(sum(jnp.sum(l["W"] ** 2) for l in g), "fsdp"))
        g = [{"W": l["W"] * jnp.minimum(1, limit / norm), "b": l["b"]} for l in g]
        return value, *adam(params, moments, g)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(shares, two, P("fsdp"), P("fsdp")), out_specs=(P(), shares, two)
    )(params, moments, x, y)


# This student differentiates the own loss and averages loss and gradients afterwards, as in data parallelism, shares too.
def fsdp_step__wrong_shares_averaged(params, moments, x, y, *, limit, mesh):
    shares, two = _specs(params)

    def on_device(params, moments, x, y):
        def own_loss(own):
            whole = [{"W": jax.lax.all_gather(l["W"], "fsdp", tiled=True), "b": l["b"]} for l in own]
            return loss(whole, x, y)

        value, g = jax.value_and_grad(own_loss)(params)
        value, g = jax.lax.pmean((value, g), "fsdp")
        squares_w, squares_b = (sum(jnp.sum(l[name] ** 2) for l in g) for name in ("W", "b"))
        norm = jnp.sqrt(jax.lax.psum(squares_w, "fsdp") + squares_b)
        g = jax.tree.map(lambda leaf: leaf * jnp.minimum(1, limit / norm), g)
        return value, *adam(params, moments, g)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(shares, two, P("fsdp"), P("fsdp")), out_specs=(P(), shares, two)
    )(params, moments, x, y)


# This student gathers first, differentiates by whole weights, averages whole gradients, and keeps the own rows: too many bytes.
def fsdp_step__wrong_whole_gradients(params, moments, x, y, *, limit, mesh):
    shares, two = _specs(params)

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        whole = [{"W": jax.lax.all_gather(l["W"], "fsdp", tiled=True), "b": varying(l["b"], "fsdp")} for l in params]
        value, g = jax.lax.pmean(jax.value_and_grad(loss)(whole, x, y), "fsdp")
        norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g)))
        g = jax.tree.map(lambda leaf: leaf * jnp.minimum(1, limit / norm), g)
        own = [
            {"W": jax.lax.dynamic_slice_in_dim(l["W"], me * p["W"].shape[0], p["W"].shape[0]), "b": l["b"]}
            for l, p in zip(g, params)
        ]
        return value, *adam(params, moments, own)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(shares, two, P("fsdp"), P("fsdp")), out_specs=(P(), shares, two)
    )(params, moments, x, y)
