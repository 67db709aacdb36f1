"""Answers to lesson 14, eleventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
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


def gathered(tree):
    return jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), tree)


# ---------------------------------------------------------------- hybrid
def hybrid__right_PSUM_OF_SHARES(params, x, y, *, mesh):
    # The mean over all devices is differentiated at shares of one's own slice: each slice has its term, and a psum adds them.
    def on_device(params, x, y):
        def value(own):
            return jax.lax.pmean(loss(gathered(own), x, y), ("slice", "fsdp"))

        total, terms = jax.value_and_grad(value)(varying(params, "slice"))
        return total, jax.tree.map(lambda g: jax.lax.psum(g, "slice"), terms)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# Averages over both axes before differentiating and the gradients over slice once more: divided by the slices twice.
def hybrid__wrong_DIVIDED_TWICE(params, x, y, *, mesh):
    def on_device(params, x, y):
        own = varying(params, "slice")
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(gathered(p), x, y), ("slice", "fsdp")))(own)
        return value, jax.tree.map(lambda g: jax.lax.pmean(g, "slice"), grads)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# Differentiates the local mean and thinks that the reduce_scatter of the way back averages over fsdp: it adds up.
def hybrid__wrong_SCATTER_AVERAGES(params, x, y, *, mesh):
    def on_device(params, x, y):
        value, grads = jax.value_and_grad(lambda p: loss(gathered(p), x, y))(varying(params, "slice"))
        return jax.lax.pmean(value, ("slice", "fsdp")), jax.lax.pmean(grads, "slice")

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# Casts the weights where they are used, that is after the gather: the whole gradient is added over slice, then scattered.
def hybrid__wrong_CAST_LATE(params, x, y, *, mesh):
    def on_device(params, x, y):
        def value(shares):
            whole = varying(gathered(shares), "slice")
            return jax.lax.pmean(loss(whole, x, y), ("slice", "fsdp"))

        return jax.value_and_grad(value)(params)

    rows = P(("slice", "fsdp"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), rows, rows), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# The local gradient is of an own slice and own examples, so "average both over all that the batch is cut over": averages
# different rows of the gradient with each other.
def hybrid__wrong_MEAN_OVER_THE_BATCH_AXES(params, x, y, *, mesh):
    axes = ("slice", "fsdp")

    def on_device(params, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(gathered(p), x, y), "fsdp"))(
            varying(params, "slice")
        )
        return jax.lax.pmean(value, "slice"), jax.tree.map(lambda g: jax.lax.pmean(g, axes), grads)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"), P(axes), P(axes)), out_specs=(P(), P("fsdp")))(
        params, x, y
    )


# ---------------------------------------------------------------- fsdp_step
def squares(layers, name):
    return sum(jnp.sum(layer[name] ** 2) for layer in layers)


def whole_weights(layers):
    return [{"W": jax.lax.all_gather(layer["W"], "fsdp", tiled=True), "b": layer["b"]} for layer in layers]


def fsdp_step__right_SUM_OF_TERMS(params, moments, x, y, *, limit, mesh):
    # No pmean: a device's term of the batch's loss is its mean divided by n; JAX adds the terms up on the way back.
    specs = [{"W": P("fsdp"), "b": P()} for _ in params]
    both, n = {"mean": specs, "square": specs}, mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        term, grads = jax.value_and_grad(lambda p: loss(whole_weights(p), x, y) / n)(params)
        value, of_W = jax.lax.psum((term, squares(grads, "W")), "fsdp")
        factor = jnp.minimum(1, limit / jnp.sqrt(of_W + squares(grads, "b")))
        return value, *adam(params, moments, jax.tree.map(lambda g: factor * g, grads))

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(specs, both, P("fsdp"), P("fsdp")), out_specs=(P(), specs, both)
    )(params, moments, x, y)


# Every device has squares, and squares add up: all of them go through the psum, those of the biases as well.
def fsdp_step__wrong_ALL_SQUARES_SUMMED(params, moments, x, y, *, limit, mesh):
    specs = [{"W": P("fsdp"), "b": P()} for _ in params]
    both = {"mean": specs, "square": specs}

    def on_device(params, moments, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(whole_weights(p), x, y), "fsdp"))(params)
        norm = jnp.sqrt(jax.lax.psum(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)), "fsdp"))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), grads)
        return value, *adam(params, moments, grads)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(specs, both, P("fsdp"), P("fsdp")), out_specs=(P(), specs, both)
    )(params, moments, x, y)


# "JAX adds up what belongs to whole leaves", so she divides the biases' gradients by n, though the losses were averaged already.
def fsdp_step__wrong_BIASES_DIVIDED(params, moments, x, y, *, limit, mesh):
    specs = [{"W": P("fsdp"), "b": P()} for _ in params]
    both = {"mean": specs, "square": specs}

    def on_device(params, moments, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(whole_weights(p), x, y), "fsdp"))(params)
        grads = [{"W": g["W"], "b": g["b"] / mesh.shape["fsdp"]} for g in grads]
        norm = jnp.sqrt(jax.lax.psum(squares(grads, "W"), "fsdp") + squares(grads, "b"))
        return value, *adam(params, moments, jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), grads))

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(specs, both, P("fsdp"), P("fsdp")), out_specs=(P(), specs, both)
    )(params, moments, x, y)


# Shortens each leaf by its own norm: no leaf is longer than the limit then, which he takes for the same thing.
def fsdp_step__wrong_LEAF_BY_LEAF(params, moments, x, y, *, limit, mesh):
    specs = [{"W": P("fsdp"), "b": P()} for _ in params]
    both = {"mean": specs, "square": specs}

    def on_device(params, moments, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(whole_weights(p), x, y), "fsdp"))(params)

        def clipped(g, square):
            return g * jnp.minimum(1, limit / jnp.sqrt(square))

        grads = [
            {
                "W": clipped(g["W"], jax.lax.psum(jnp.sum(g["W"] ** 2), "fsdp")),
                "b": clipped(g["b"], jnp.sum(g["b"] ** 2)),
            }
            for g in grads
        ]
        return value, *adam(params, moments, grads)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(specs, both, P("fsdp"), P("fsdp")), out_specs=(P(), specs, both)
    )(params, moments, x, y)


# The norm of the whole gradient needs the whole gradient, he thinks, and gathers it (with a pmean of the equal norms for the check).
def fsdp_step__wrong_GATHERS_GRADIENTS(params, moments, x, y, *, limit, mesh):
    specs = [{"W": P("fsdp"), "b": P()} for _ in params]
    both = {"mean": specs, "square": specs}

    def on_device(params, moments, x, y):
        value, grads = jax.value_and_grad(lambda p: jax.lax.pmean(loss(whole_weights(p), x, y), "fsdp"))(params)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(whole_weights(grads))))
        norm = jax.lax.pmean(norm, "fsdp")
        return value, *adam(params, moments, jax.tree.map(lambda g: g * jnp.minimum(1, limit / norm), grads))

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(specs, both, P("fsdp"), P("fsdp")), out_specs=(P(), specs, both)
    )(params, moments, x, y)


# ---------------------------------------------------------------- fsdp_scan
def fsdp_scan__right_TERMS(stack, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def layer(h, share):
        return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

    def on_device(stack, x, y):
        def term(shares):  # this device's part of the mean over the batch
            h, _ = jax.lax.scan(jax.checkpoint(layer), x, shares)
            return jnp.mean((h - y) ** 2) / n

        value, gradient = jax.value_and_grad(term)(stack)
        return jax.lax.psum(value, "fsdp"), gradient

    cut = P(None, "fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P("fsdp"), P("fsdp")), out_specs=(P(), cut))(stack, x, y)


# Checkpoints the product only: an argument of what is done again is kept, and here that is the gathered layer.
def fsdp_scan__wrong_PRODUCT_ONLY(stack, x, y, *, mesh):
    @jax.checkpoint
    def multiply(h, w):
        return jnp.tanh(h @ w)

    def layer(h, share):
        return multiply(h, jax.lax.all_gather(share, "fsdp", tiled=True)), None

    def on_device(stack, x, y):
        def value(shares):
            h, _ = jax.lax.scan(layer, x, shares)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    cut = P(None, "fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P("fsdp"), P("fsdp")), out_specs=(P(), cut))(stack, x, y)


# One checkpoint around the whole network, "then only the shares are kept": on the way back the scan runs anew and keeps L layers.
def fsdp_scan__wrong_AROUND_ALL(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def value(shares):
            def layer(h, share):
                return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

            h, _ = jax.lax.scan(layer, x, shares)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(value)(stack)

    cut = P(None, "fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P("fsdp"), P("fsdp")), out_specs=(P(), cut))(stack, x, y)


# Averages the loss after differentiating, and only the loss: the gradient is the sum of n means.
def fsdp_scan__wrong_SUM_OF_MEANS(stack, x, y, *, mesh):
    @jax.checkpoint
    def layer(h, share):
        return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

    def on_device(stack, x, y):
        def value(shares):
            return jnp.mean((jax.lax.scan(layer, x, shares)[0] - y) ** 2)

        found, gradient = jax.value_and_grad(value)(stack)
        return jax.lax.pmean(found, "fsdp"), gradient

    cut = P(None, "fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P("fsdp"), P("fsdp")), out_specs=(P(), cut))(stack, x, y)


# Keeps to data parallelism: local loss and gradient, then the pmean of both; the gradients are different rows.
def fsdp_scan__wrong_MEAN_OF_SHARES(stack, x, y, *, mesh):
    @jax.checkpoint
    def layer(h, share):
        return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

    def on_device(stack, x, y):
        def value(shares):
            return jnp.mean((jax.lax.scan(layer, x, shares)[0] - y) ** 2)

        return jax.lax.pmean(jax.value_and_grad(value)(stack), "fsdp")

    cut = P(None, "fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, P("fsdp"), P("fsdp")), out_specs=(P(), cut))(stack, x, y)
