"""Answers to lesson 14, nineteenth batch, written by a reader of the notebook only."""

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


def gathered_(tree):
    return jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", tiled=True), tree)


# ---------------------------------------------------------------- prefetch

FORWARD_ = dict(in_specs=(P(), P(None, "fsdp"), P("fsdp")), out_specs=P("fsdp"))


def prefetch__right_counting(embed, stack, x, *, mesh):
    """tanh layers of x · embed, each gathered while the one before it is multiplied."""

    def on_device(embed, stack, x):
        def layer(l):
            share = jax.lax.dynamic_index_in_dim(stack, l, keepdims=False)
            return jax.lax.all_gather(share, "fsdp", tiled=True)

        def turn(l, carry):
            h, w = carry
            return jnp.tanh(h @ w), layer(l)

        h, w = jax.lax.fori_loop(1, stack.shape[0], turn, (jnp.tanh(x @ embed), layer(0)))
        return jnp.tanh(h @ w)

    return jax.shard_map(on_device, mesh=mesh, **FORWARD_)(embed, stack, x)


# This student writes the gather above the product in the same turn, and takes that for gathering meanwhile.
def prefetch__wrong_sameturn(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def turn(h, share):
            w = jax.lax.all_gather(share, "fsdp", tiled=True)
            return jnp.tanh(h @ w), None

        return jax.lax.scan(turn, jnp.tanh(x @ embed), stack)[0]

    return jax.shard_map(on_device, mesh=mesh, **FORWARD_)(embed, stack, x)


# This student makes L turns, each of which gathers the next layer: after the last one that is layer 0 once more.
def prefetch__wrong_roundabout(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def turn(carry, share):
            h, w = carry
            return (jnp.tanh(h @ w), jax.lax.all_gather(share, "fsdp", tiled=True)), None

        first = jnp.tanh(x @ embed), jax.lax.all_gather(stack[0], "fsdp", tiled=True)
        (h, _), _ = jax.lax.scan(turn, first, jnp.roll(stack, -1, axis=0))
        return h

    return jax.shard_map(on_device, mesh=mesh, **FORWARD_)(embed, stack, x)


# This student multiplies by the layer that the turn has just gathered, not by the one it was handed: layer 0 is never used.
def prefetch__wrong_skipsfirst(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        def turn(carry, share):
            h, w = carry
            w = jax.lax.all_gather(share, "fsdp", tiled=True)
            return (jnp.tanh(h @ w), w), None

        first = jnp.tanh(x @ embed), jax.lax.all_gather(stack[0], "fsdp", tiled=True)
        (h, w), _ = jax.lax.scan(turn, first, stack[1:])
        return jnp.tanh(h @ w)

    return jax.shard_map(on_device, mesh=mesh, **FORWARD_)(embed, stack, x)


# This student thinks that a gather in front of everything has the most time: all layers at once, beside the embedding.
def prefetch__wrong_allahead(embed, stack, x, *, mesh):
    def on_device(embed, stack, x):
        layers = jax.lax.all_gather(stack, "fsdp", axis=1, tiled=True)
        return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), jnp.tanh(x @ embed), layers)[0]

    return jax.shard_map(on_device, mesh=mesh, **FORWARD_)(embed, stack, x)


# ---------------------------------------------------------------- fsdp_gradient


def fsdp_gradient__right_eighths(params, x, y, *, mesh):
    """(loss, gradients) for parameters in shares; the gradients are laid out as the parameters."""
    n = mesh.shape["fsdp"]

    def on_device(shares, x, y):
        part, gradients = jax.value_and_grad(lambda s: loss(gathered_(s), x, y) / n)(shares)
        return jax.lax.psum(part, "fsdp"), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


# This student takes a mean of loss and gradients over the devices, as in data parallelism.
def fsdp_gradient__wrong_pmean(params, x, y, *, mesh):
    def on_device(shares, x, y):
        found = jax.value_and_grad(lambda s: loss(gathered_(s), x, y))(shares)
        return jax.tree.map(lambda v: jax.lax.pmean(v, "fsdp"), found)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


# This student gathers before differentiating, sums the whole gradients and cuts the own rows out of them.
def fsdp_gradient__wrong_allreduce(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(shares, x, y):
        value, g = jax.value_and_grad(loss)(gathered_(shares), x, y)
        value, g = jax.lax.pmean((value, g), "fsdp")
        me = jax.lax.axis_index("fsdp")
        return value, jax.tree.map(lambda v: v.reshape(n, -1, *v.shape[1:])[me], g)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


# This student averages the losses, and then divides the gradients as well, since a reduce_scatter only sums.
def fsdp_gradient__wrong_twice(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(shares, x, y):
        value, g = jax.value_and_grad(lambda s: jax.lax.pmean(loss(gathered_(s), x, y), "fsdp"))(shares)
        return value, jax.tree.map(lambda v: v / n, g)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


# This student averages only the number that is returned, after the differentiation: gradients are a sum of means.
def fsdp_gradient__wrong_late(params, x, y, *, mesh):
    def on_device(shares, x, y):
        value, gradients = jax.value_and_grad(lambda s: loss(gathered_(s), x, y))(shares)
        return jax.lax.pmean(value, "fsdp"), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


# ---------------------------------------------------------------- zero1_step

ZERO1_ = dict(in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")), out_specs=(P(), P("fsdp")), check_vma=False)


def zero1_step__right_reshaped(params, moments, x, y, *, mesh):
    """One step of Adam: (params, moments), weights whole, moments in shares."""
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        g = jax.grad(lambda p: loss(p, x, y) / n)(params)
        g = jax.tree.map(lambda v: jax.lax.psum_scatter(v, "fsdp", tiled=True), g)
        own = jax.tree.map(lambda v: v.reshape(n, -1, *v.shape[1:])[me], params)
        own, moments = adam(own, moments, g)
        return gathered_(own), moments

    return jax.shard_map(on_device, mesh=mesh, **ZERO1_)(params, moments, x, y)


# This student forgets that the scattered gradient is a sum of n means (and that Adam would hide it, but for the moments).
def zero1_step__wrong_sum(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        g = jax.tree.map(lambda v: jax.lax.psum_scatter(v, "fsdp", tiled=True), jax.grad(loss)(params, x, y))
        own = jax.tree.map(lambda v, s: jax.lax.dynamic_slice_in_dim(v, me * len(s), len(s)), params, g)
        own, moments = adam(own, moments, g)
        return gathered_(own), moments

    return jax.shard_map(on_device, mesh=mesh, **ZERO1_)(params, moments, x, y)


# This student averages the gradients as in data parallelism, and lets each device cut its own rows out of the mean.
def zero1_step__wrong_allreduce(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        g = jax.lax.pmean(jax.grad(loss)(params, x, y), "fsdp")
        own_g, own = jax.tree.map(lambda v: v.reshape(n, -1, *v.shape[1:])[me], (g, params))
        own, moments = adam(own, moments, own_g)
        return gathered_(own), moments

    return jax.shard_map(on_device, mesh=mesh, **ZERO1_)(params, moments, x, y)


# This student takes the own rows of the own gradient: what the others' examples say about these rows is never asked.
def zero1_step__wrong_ownexamples(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        g = jax.grad(loss)(params, x, y)
        own_g, own = jax.tree.map(lambda v: v.reshape(n, -1, *v.shape[1:])[me], (g, params))
        own, moments = adam(own, moments, own_g)
        return gathered_(own), moments

    return jax.shard_map(on_device, mesh=mesh, **ZERO1_)(params, moments, x, y)


# This student lets the own rows of the weights begin at row number me, and not at me times the rows of a share.
def zero1_step__wrong_begin(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        g = jax.tree.map(lambda v: jax.lax.psum_scatter(v, "fsdp", tiled=True) / n, jax.grad(loss)(params, x, y))
        own = jax.tree.map(lambda v, s: jax.lax.dynamic_slice_in_dim(v, me, len(s)), params, g)
        own, moments = adam(own, moments, g)
        return gathered_(own), moments

    return jax.shard_map(on_device, mesh=mesh, **ZERO1_)(params, moments, x, y)
