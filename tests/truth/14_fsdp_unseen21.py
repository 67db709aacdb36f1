"""Answers to lesson 14, twenty-first batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- zero_table

zero_table__right_numbers = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}

# Thought that what has been gathered for the forward pass is still there on the way back: one gather, one scatter.
zero_table__wrong_one_gather = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 2 + 2 + 12 / 8,
    "bytes of a parameter, stage 2": 2 + 14 / 8,
    "bytes of a parameter, stage 3": 16 / 8,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1,
}

# Counted collectives: one in stage 0, two in stage 1, three in stage 3, each at the price of one.
zero_table__wrong_collectives_counted = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 2 + 2 + 12 / 8,
    "bytes of a parameter, stage 2": 2 + 14 / 8,
    "bytes of a parameter, stage 3": 16 / 8,
    "bytes sent, stage 1 ÷ stage 0": 2,
    "bytes sent, stage 3 ÷ stage 0": 3,
}

# Read each line of the table by itself: stage 2 cuts the gradients only, stage 3 the weights only.
zero_table__wrong_not_cumulative = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 2 + 2 + 12 / 8,
    "bytes of a parameter, stage 2": 2 + 2 / 8 + 12,
    "bytes of a parameter, stage 3": 2 / 8 + 2 + 12,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}

# Took only the two moments (8 bytes) for the optimizer's; the master copy of the weight stays whole.
zero_table__wrong_master_whole = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 2 + 2 + 4 + 8 / 8,
    "bytes of a parameter, stage 2": 2 + 4 + (2 + 8) / 8,
    "bytes of a parameter, stage 3": 4 + (2 + 2 + 8) / 8,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}


# ---------------------------------------------------------------- shard_axis


def shard_axis__right_sorted(shape, n, smallest):
    if math.prod(shape) < smallest:
        return "whole"
    fits = sorted((-length, k) for k, length in enumerate(shape) if length % n == 0)
    return fits[0][1] if fits else "whole"


# Took the longest dimension first and only then asked whether n divides it.
def shard_axis__wrong_longest_first(shape, n, smallest):
    if not shape or math.prod(shape) < smallest:
        return "whole"
    longest = max(range(len(shape)), key=lambda k: shape[k])
    return longest if shape[longest] % n == 0 else "whole"


# Compared pairs (length, place), so of several equally long ones the last is found.
def shard_axis__wrong_last_of_several(shape, n, smallest):
    fits = [(length, k) for k, length in enumerate(shape) if length % n == 0]
    if math.prod(shape) < smallest or not fits:
        return "whole"
    return max(fits)[1]


# Filtered the lengths and returned the place in the filtered list instead of the place in the shape.
def shard_axis__wrong_place_in_filtered(shape, n, smallest):
    fits = [length for length in shape if length % n == 0]
    if math.prod(shape) < smallest or not fits:
        return "whole"
    return fits.index(max(fits))


# Asked whether a device's share would be too small, instead of the whole array.
def shard_axis__wrong_size_of_share(shape, n, smallest):
    fits = [k for k in range(len(shape)) if shape[k] % n == 0]
    if not fits or math.prod(shape) // n < smallest:
        return "whole"
    return max(fits, key=lambda k: shape[k])


# ---------------------------------------------------------------- fsdp_gradient


def fsdp_gradient__right_an_nth(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, x, y):
        def contribution(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return loss(whole, x, y) / n

        value, gradients = jax.value_and_grad(contribution)(params)
        return jax.lax.psum(value, "fsdp"), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Went on as in data parallelism: mean of the gradients over the devices, although they are different rows.
def fsdp_gradient__wrong_mean_of_shares(params, x, y, *, mesh):
    def on_device(params, x, y):
        def own_loss(shares):
            return loss(jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares), x, y)

        value, gradients = jax.value_and_grad(own_loss)(params)
        mine = jax.tree.map(lambda g: varying(jax.lax.pmean(g, "fsdp"), "fsdp"), gradients)
        return jax.lax.pmean(value, "fsdp"), mine

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Thought that the loss of the whole batch is the sum of what the devices find, so a psum stands in front of the grad.
def fsdp_gradient__wrong_sum_of_means(params, x, y, *, mesh):
    def on_device(params, x, y):
        def total(shares):
            whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
            return jax.lax.psum(loss(whole, x, y), "fsdp")

        return jax.value_and_grad(total)(params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Gathered before differentiating and then kept the own rows of the gradient: nobody adds those of the other examples.
def fsdp_gradient__wrong_own_examples_only(params, x, y, *, mesh):
    def on_device(params, x, y):
        whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), params)
        value, gradients = jax.value_and_grad(loss)(whole, x, y)
        me = jax.lax.axis_index("fsdp")

        def own_rows(g, share):
            rows = share.shape[0]
            return jax.lax.dynamic_slice_in_dim(g, me * rows, rows)

        return jax.lax.pmean(value, "fsdp"), jax.tree.map(own_rows, gradients, params)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Right numbers by what DDP does: all_reduce of the whole gradients, then cut out the own rows (twice the bytes).
def fsdp_gradient__wrong_all_reduce(params, x, y, *, mesh):
    def on_device(params, x, y):
        whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), params)
        value, gradients = jax.lax.pmean(jax.value_and_grad(loss)(whole, x, y), "fsdp")
        me = jax.lax.axis_index("fsdp")
        own = jax.tree.map(lambda g, s: jax.lax.dynamic_slice_in_dim(g, me * s.shape[0], s.shape[0]), gradients, params)
        return value, own

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)
