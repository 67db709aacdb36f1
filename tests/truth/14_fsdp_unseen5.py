"""Answers to lesson 14, fifth batch, written by a reader of the notebook only."""

import math

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


# ---------------------------------------------------------------- fsdp_gradient


def fsdp_gradient__right_share_of_the_loss(params, x, y, *, mesh):
    n, cut = mesh.shape["fsdp"], P("fsdp")

    def on_device(shares, x, y):
        def own_share_of_the_loss(shares):
            whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), shares)
            return loss(whole, x, y) / n

        value, gradients = jax.value_and_grad(own_share_of_the_loss)(shares)
        return jax.lax.psum(value, "fsdp"), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=(cut, cut, cut), out_specs=(P(), cut))(params, x, y)


# The student takes the mean of the printed loss only; the gradients are sums of eight means, and it does not show.
def fsdp_gradient__wrong_mean_of_the_value_only(params, x, y, *, mesh):
    def on_device(params, x, y):
        def whole_loss(shares):
            whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), shares)
            return loss(whole, x, y)

        value, gradients = jax.value_and_grad(whole_loss)(params)
        return jax.lax.pmean(value, "fsdp"), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# The factor was eight in the lesson, so the student divides by eight, whatever the mesh is.
def fsdp_gradient__wrong_always_eight(params, x, y, *, mesh):
    def on_device(params, x, y):
        def whole_loss(shares):
            whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), shares)
            return loss(whole, x, y)

        value, gradients = jax.value_and_grad(whole_loss)(params)
        return jax.lax.pmean(value, "fsdp"), jax.tree.map(lambda g: g / 8, gradients)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# As in data parallelism: whole gradients are averaged by a pmean, and then each device cuts out its own rows.
def fsdp_gradient__wrong_all_reduce_then_cut(params, x, y, *, mesh):
    def on_device(params, x, y):
        whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), params)
        value, gradients = jax.value_and_grad(loss)(whole, x, y)

        def own(gradient, share):
            gradient = jax.lax.pmean(gradient, "fsdp")
            return jax.lax.dynamic_slice_in_dim(gradient, jax.lax.axis_index("fsdp") * len(share), len(share))

        return jax.lax.pmean(value, "fsdp"), jax.tree.map(own, gradients, params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Gradients are averaged, and losses of parts are added up, thinks the student: the loss is a sum of means.
def fsdp_gradient__wrong_loss_added_up(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, x, y):
        def whole_loss(shares):
            whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), shares)
            return jax.lax.psum(loss(whole, x, y), "fsdp")

        value, gradients = jax.value_and_grad(whole_loss)(params)
        return value, jax.tree.map(lambda g: g / n, gradients)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# ---------------------------------------------------------------- shard_axis


def shard_axis__right_one_pass(shape, n, smallest):
    best = None
    for axis, length in enumerate(shape):
        if length % n == 0 and (best is None or length > shape[best]):
            best = axis
    return "whole" if best is None or math.prod(shape) < smallest else best


# The student looks for the longest dimension first, and asks only then whether n divides it.
def shard_axis__wrong_longest_first(shape, n, smallest):
    if not shape or math.prod(shape) < smallest:
        return "whole"
    longest = max(range(len(shape)), key=lambda k: shape[k])
    return longest if shape[longest] % n == 0 else "whole"


# "Fewer than smallest" is read as "at most": an array of just that many entries stays whole.
def shard_axis__wrong_at_most(shape, n, smallest):
    fits = [k for k, length in enumerate(shape) if length % n == 0]
    if math.prod(shape) <= smallest or not fits:
        return "whole"
    return max(fits, key=lambda k: shape[k])


# Sorting by length and taking the last gives the last of several equal dimensions, which the student does not notice.
def shard_axis__wrong_last_of_several(shape, n, smallest):
    fits = sorted((length, k) for k, length in enumerate(shape) if length % n == 0)
    if math.prod(shape) < smallest or not fits:
        return "whole"
    return fits[-1][1]


# What is too small for a collective is the piece that a device would hold, the student thinks, and compares that.
def shard_axis__wrong_size_of_the_piece(shape, n, smallest):
    fits = [k for k, length in enumerate(shape) if length % n == 0]
    if not fits or math.prod(shape) // n < smallest:
        return "whole"
    return max(fits, key=lambda k: shape[k])


# ---------------------------------------------------------------- fsdp_scan


def fsdp_scan__right_own_part(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        def one_layer(h, share):
            return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", axis=0, tiled=True))

        def own_part(stack):
            remembered = jax.checkpoint(one_layer)
            h, _ = jax.lax.scan(lambda h, share: (remembered(h, share), None), x, stack)
            return jnp.mean((h - y) ** 2) / jax.lax.axis_size("fsdp")

        value, gradient = jax.value_and_grad(own_part)(stack)
        return jax.lax.psum(value, "fsdp"), gradient

    rows, shares = P("fsdp"), P(None, "fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(shares, rows, rows), out_specs=(P(), shares))(stack, x, y)


# The gather stands in front of what is checkpointed, so the gathered weight is an argument, and is kept.
def fsdp_scan__wrong_gather_outside(stack, x, y, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return jnp.tanh(h @ w)

    def on_device(stack, x, y):
        def loss(stack):
            def turn(h, share):
                w = jax.lax.all_gather(share, "fsdp", tiled=True)
                return layer(h, w), None

            h, _ = jax.lax.scan(turn, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(loss)(stack)

    specs = P(None, "fsdp"), P("fsdp"), P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P(None, "fsdp")))(stack, x, y)


# One checkpoint around the whole loss: the student thinks that then nothing at all is kept.
def fsdp_scan__wrong_checkpoint_of_the_loss(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def loss(stack):
            def layer(h, share):
                return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

            h, _ = jax.lax.scan(layer, x, stack)
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(loss)(stack)

    specs = P(None, "fsdp"), P("fsdp"), P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P(None, "fsdp")))(stack, x, y)


# Fewer and larger collectives are better, so the student gathers the stack once, and checkpoints the layers that use it.
def fsdp_scan__wrong_stack_at_once(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, w):
            return jnp.tanh(h @ w), None

        def loss(stack):
            h, _ = jax.lax.scan(layer, x, jax.lax.all_gather(stack, "fsdp", axis=1, tiled=True))
            return jax.lax.pmean(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(loss)(stack)

    specs = P(None, "fsdp"), P("fsdp"), P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P(None, "fsdp")))(stack, x, y)


# The devices' losses are combined by a psum, though each of them is a mean already.
def fsdp_scan__wrong_psum_of_means(stack, x, y, *, mesh):
    def on_device(stack, x, y):
        @jax.checkpoint
        def layer(h, share):
            return jnp.tanh(h @ jax.lax.all_gather(share, "fsdp", tiled=True)), None

        def loss(stack):
            h, _ = jax.lax.scan(layer, x, stack)
            return jax.lax.psum(jnp.mean((h - y) ** 2), "fsdp")

        return jax.value_and_grad(loss)(stack)

    specs = P(None, "fsdp"), P("fsdp"), P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P(None, "fsdp")))(stack, x, y)
