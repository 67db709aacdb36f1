"""Answers to lesson 14, twenty-fourth batch, written by a reader of the notebook only."""

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


# ---- zero1_step


def zero1_step__right_scaled_loss(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def mine(p):
        return p.reshape(n, p.shape[0] // n, *p.shape[1:])[jax.lax.axis_index("fsdp")]

    def shared(g):
        return jax.lax.psum_scatter(g, "fsdp", scatter_dimension=0, tiled=True)

    def everybodys(p):
        return jax.lax.all_gather(p, "fsdp", axis=0, tiled=True)

    def on_device(params, moments, x, y):
        g = jax.grad(lambda p: loss(p, x, y) / n)(params)
        own, moments = adam(jax.tree.map(mine, params), moments, jax.tree.map(shared, g))
        return jax.tree.map(everybodys, own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student averaged the losses and thought that psum_scatter then sums the right shares; with the check off, the gradient of the pmean is still the whole local one.
def zero1_step__wrong_pmean_of_losses(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        def mean_loss(p):
            return jax.lax.pmean(loss(p, x, y), "fsdp")

        def own_rows(p):
            rows = p.shape[0] // jax.lax.axis_size("fsdp")
            return jax.lax.dynamic_slice_in_dim(p, jax.lax.axis_index("fsdp") * rows, rows)

        gradients = jax.grad(mean_loss)(params)
        gradients = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True), gradients)
        own, moments = adam(jax.tree.map(own_rows, params), moments, gradients)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student got the own rows of the weights as those of the gradients, by a mean that is scattered; the values are right, and half as many bytes again travel.
def zero1_step__wrong_weights_scattered(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def scattered_mean(tree):
        return jax.tree.map(lambda a: jax.lax.psum_scatter(a, "fsdp", tiled=True) / n, tree)

    def on_device(params, moments, x, y):
        gradients = jax.grad(loss)(params, x, y)
        own, moments = adam(scattered_mean(params), moments, scattered_mean(gradients))
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student averaged whole gradients as in data parallelism and cut the own rows out afterwards.
def zero1_step__wrong_pmean_then_cut(params, moments, x, y, *, mesh):
    def on_device(params, moments, x, y):
        me, n = jax.lax.axis_index("fsdp"), jax.lax.axis_size("fsdp")

        def cut(tree):
            return jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, me * (len(a) // n), len(a) // n), tree)

        gradients = jax.lax.pmean(jax.grad(loss)(params, x, y), "fsdp")
        own, moments = adam(cut(params), moments, cut(gradients))
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# This student let the own rows of the weights begin at the device's number, not at that number times the rows.
def zero1_step__wrong_begins_at_me(params, moments, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, moments, x, y):
        me = jax.lax.axis_index("fsdp")
        gradients = jax.grad(loss)(params, x, y)
        shares = jax.tree.map(lambda g: jax.lax.psum_scatter(g, "fsdp", tiled=True) / n, gradients)
        own = jax.tree.map(lambda p, g: jax.lax.dynamic_slice_in_dim(p, me, g.shape[0]), params, shares)
        own, moments = adam(own, moments, shares)
        return jax.tree.map(lambda p: jax.lax.all_gather(p, "fsdp", tiled=True), own), moments

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P(), P("fsdp"), P("fsdp"), P("fsdp")),
        out_specs=(P(), P("fsdp")),
        check_vma=False,
    )(params, moments, x, y)


# ---- zero_table

zero_table__right_divided = {
    "bytes of a parameter, stage 0": 2 + 2 + 12,
    "bytes of a parameter, stage 1": 2 + 2 + 12 / 8,
    "bytes of a parameter, stage 2": 2 + (2 + 12) / 8,
    "bytes of a parameter, stage 3": 16 / 8,
    "bytes sent, stage 1 ÷ stage 0": 1.0,
    "bytes sent, stage 3 ÷ stage 0": 3 / 2,
}

# This student thought that the master copy is a weight and stays whole until stage 3, so only the two moments are divided.
zero_table__wrong_master_whole = zero_table__right_divided | {
    "bytes of a parameter, stage 1": 2 + 2 + 4 + 8 / 8,
    "bytes of a parameter, stage 2": 2 + 4 + (2 + 8) / 8,
}

# This student gathered the weights once in a step and kept them for the backward pass.
zero_table__wrong_gathered_once = zero_table__right_divided | {
    "bytes sent, stage 3 ÷ stage 0": 1.0,
}

# This student thought that stage 1 sends a reduce_scatter in place of an all_reduce, and forgot that the new weights travel.
zero_table__wrong_scatter_only = zero_table__right_divided | {
    "bytes sent, stage 1 ÷ stage 0": 0.5,
}

# This student counted an all_reduce as one transfer, so both stages' transfers are counted against one.
zero_table__wrong_all_reduce_is_one = zero_table__right_divided | {
    "bytes sent, stage 1 ÷ stage 0": 2.0,
    "bytes sent, stage 3 ÷ stage 0": 3.0,
}

# ---- shard_axis


def shard_axis__right_in_one_pass(shape, n, smallest):
    best, longest = "whole", 0
    if math.prod(shape) >= smallest:
        for k, size in enumerate(shape):
            if size % n == 0 and size > longest:
                best, longest = k, size
    return best


# This student looked for the longest dimension first, and asked only then whether n divides it.
def shard_axis__wrong_longest_first(shape, n, smallest):
    if math.prod(shape) < smallest or not shape:
        return "whole"
    k = shape.index(max(shape))
    return k if shape[k] % n == 0 else "whole"


# This student compared pairs of length and place, so that of several dimensions of one length the last one wins.
def shard_axis__wrong_last_of_several(shape, n, smallest):
    fits = [(size, k) for k, size in enumerate(shape) if size % n == 0]
    if math.prod(shape) < smallest or not fits:
        return "whole"
    return max(fits)[1]


# This student thought that it is a device's share that must have enough entries.
def shard_axis__wrong_share_is_small(shape, n, smallest):
    fits = [k for k, size in enumerate(shape) if size % n == 0]
    share = math.prod(shape) // n
    if not fits or share < smallest:
        return "whole"
    return max(fits, key=lambda k: shape[k])


# This student thought that arrays of exactly `smallest` entries stay whole, too.
def shard_axis__wrong_at_most_smallest(shape, n, smallest):
    fits = [k for k in range(len(shape)) if shape[k] % n == 0]
    if len(fits) == 0 or math.prod(shape) <= smallest:
        return "whole"
    return sorted(fits, key=lambda k: -shape[k])[0]
