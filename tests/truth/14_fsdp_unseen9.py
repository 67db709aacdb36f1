"""Answers to lesson 14, ninth batch, written by a reader of the notebook only."""

import math

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


# ---- fsdp_gradient


def _gathered(shares):
    return jax.tree.map(lambda share: jax.lax.all_gather(share, "fsdp", tiled=True), shares)


def fsdp_gradient__right_part_of_the_mean(params, x, y, *, mesh):
    def on_device(shares, x, y):
        def my_part(shares):
            return loss(_gathered(shares), x, y) / jax.lax.axis_size("fsdp")

        part, gradients = jax.value_and_grad(my_part)(shares)
        return jax.lax.psum(part, "fsdp"), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


# Thought: never average shares, says the lesson; so I average whole gradients as in data parallelism, and each device cuts its own rows out of the mean.
def fsdp_gradient__wrong_mean_then_own_rows(params, x, y, *, mesh):
    def on_device(shares, x, y):
        value, whole = jax.value_and_grad(loss)(_gathered(shares), x, y)
        value, whole = jax.lax.pmean((value, whole), "fsdp")
        me = jax.lax.axis_index("fsdp")

        def own_rows(gradient, share):
            rows = share.shape[0]
            return jax.lax.dynamic_slice_in_dim(gradient, me * rows, rows, axis=0)

        return value, jax.tree.map(own_rows, whole, shares)

    specs = P("fsdp"), P("fsdp"), P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P("fsdp")))(params, x, y)


# Thought: FSDP forgets what it has gathered and gathers again on the way back, so the network goes into a jax.checkpoint.
def fsdp_gradient__wrong_forgets_here_already(params, x, y, *, mesh):
    def on_device(shares, x, y):
        @jax.checkpoint
        def gather_and_use(shares, x, y):
            return loss(_gathered(shares), x, y)

        return jax.value_and_grad(lambda s: jax.lax.pmean(gather_and_use(s, x, y), "fsdp"))(shares)

    specs = P("fsdp"), P("fsdp"), P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P("fsdp")))(params, x, y)


# Thought: a reduce_scatter adds up, so a gradient that comes out of it has still to be divided by the devices, whatever was differentiated.
def fsdp_gradient__wrong_divided_besides(params, x, y, *, mesh):
    def on_device(shares, x, y):
        def mean_loss(shares):
            return jax.lax.pmean(loss(_gathered(shares), x, y), "fsdp")

        value, gradients = jax.value_and_grad(mean_loss)(shares)
        n = jax.lax.axis_size("fsdp")
        return value, jax.tree.map(lambda g: g / n, gradients)

    specs = P("fsdp"), P("fsdp"), P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P("fsdp")))(params, x, y)


# Thought: the loss of the whole batch is the sum over devices of their losses; only the gradients are too large by n, as the ratios have shown.
def fsdp_gradient__wrong_sum_of_losses_told(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(shares, x, y):
        own, gradients = jax.value_and_grad(lambda s: loss(_gathered(s), x, y))(shares)
        return jax.lax.psum(own, "fsdp"), [{k: g / n for k, g in layer.items()} for layer in gradients]

    specs = P("fsdp"), P("fsdp"), P("fsdp")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P("fsdp")))(params, x, y)


# ---- begin_fsdp


def begin_fsdp__right_zeros_laid_alike(params, mesh):
    by_rows, everywhere = NamedSharding(mesh, P("fsdp", None)), NamedSharding(mesh, P())
    layouts = [{name: by_rows if name == "W" else everywhere for name in layer} for layer in params]

    def zeros():
        return jax.device_put(jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), params), layouts)

    return jax.device_put(params, layouts), {name: zeros() for name in ("mean", "square")}


# Thought: moments belong to the optimizer, and the optimizer's state is what is in shares in every stage from 1 on, biases' moments included.
def begin_fsdp__wrong_all_moments_cut(params, mesh):
    shares, copies = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    laid = [{"W": jax.device_put(layer["W"], shares), "b": jax.device_put(layer["b"], copies)} for layer in params]
    zeros = jax.tree.map(lambda leaf: jax.device_put(np.zeros_like(leaf), shares), params)
    return laid, {"mean": zeros, "square": jax.tree.map(jnp.zeros_like, zeros)}


# Thought: where to cut is what shard_axis decides, the longest dimension that can be cut.
def begin_fsdp__wrong_longest_dimension(params, mesh):
    n = mesh.shape["fsdp"]

    def lay_out(leaf):
        fits = [k for k, length in enumerate(leaf.shape) if length % n == 0]
        if leaf.ndim < 2 or not fits:
            return jax.device_put(leaf, NamedSharding(mesh, P()))
        cut = max(fits, key=lambda k: leaf.shape[k])
        spec = P(*("fsdp" if k == cut else None for k in range(leaf.ndim)))
        return jax.device_put(leaf, NamedSharding(mesh, spec))

    laid = jax.tree.map(lay_out, params)
    return laid, {name: jax.tree.map(jnp.zeros_like, laid) for name in ("mean", "square")}


# Thought: each parameter has its mean and its square, so every leaf gets a small dict of two.
def begin_fsdp__wrong_two_for_each_leaf(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    laid = jax.device_put(params, layouts)
    moments = jax.tree.map(lambda p: {"mean": jnp.zeros_like(p), "square": jnp.zeros_like(p)}, laid)
    return laid, moments


# Thought: one of Adam's float32 arrays is a copy of the weight, the master copy; the mean begins at the weights, only the square at zero.
def begin_fsdp__wrong_mean_is_the_master_copy(params, mesh):
    layouts = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    laid = jax.device_put(params, layouts)
    return laid, {"mean": jax.tree.map(jnp.copy, laid), "square": jax.tree.map(jnp.zeros_like, laid)}


# ---- shard_axis


def shard_axis__right_one_pass(shape, n, smallest):
    cut, entries = "whole", 1
    for k, length in enumerate(shape):
        entries *= length
        if length % n == 0 and (cut == "whole" or length > shape[cut]):
            cut = k
    return "whole" if entries < smallest else cut


# Thought: pairs of length and dimension sort by themselves, and the largest pair is the longest dimension.
def shard_axis__wrong_last_of_several(shape, n, smallest):
    if math.prod(shape) < smallest:
        return "whole"
    pairs = [(length, k) for k, length in enumerate(shape) if length % n == 0]
    return max(pairs)[1] if pairs else "whole"


# Thought: what matters for a small message is what one device has, so the share is what must have `smallest` entries.
def shard_axis__wrong_entries_of_the_share(shape, n, smallest):
    fits = [k for k in range(len(shape)) if shape[k] % n == 0]
    if not fits or math.prod(shape) // n < smallest:
        return "whole"
    return max(fits, key=lambda k: shape[k])


# Thought: a dimension of exactly n would leave rows of length 1, no dimension at all, so it must be longer than n.
def shard_axis__wrong_longer_than_n(shape, n, smallest):
    if math.prod(shape) < smallest:
        return "whole"
    fits = [k for k, length in enumerate(shape) if length > n and length % n == 0]
    if not fits:
        return "whole"
    longest = max(shape[k] for k in fits)
    return next(k for k in fits if shape[k] == longest)


# Thought: a dimension is too small to be cut if it has fewer than `smallest` entries along it.
def shard_axis__wrong_length_of_the_dimension(shape, n, smallest):
    best = None
    for k, length in enumerate(shape):
        if length < smallest or length % n:
            continue
        if best is None or length > shape[best]:
            best = k
    return "whole" if best is None else best
