"""Answers to lesson 14, seventh batch, written by a reader of the notebook only."""

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


def fsdp_gradient__right_DIVIDED_AFTER(params, x, y, *, mesh):
    n = mesh.shape["fsdp"]

    def on_device(params, x, y):
        def own_loss(shares):
            whole = [
                {name: jax.lax.all_gather(leaf, "fsdp", axis=0, tiled=True) for name, leaf in layer.items()}
                for layer in shares
            ]
            return loss(whole, x, y)

        value, summed = jax.value_and_grad(own_loss)(params)
        return jax.lax.pmean(value, "fsdp"), jax.tree.map(lambda g: g / n, summed)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Averages the gradients over the devices as in data parallelism, though every device has other rows.
def fsdp_gradient__wrong_MEAN_OF_SHARES(params, x, y, *, mesh):
    def body(params, x, y):
        def f(shares):
            return loss(jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares), x, y)

        return jax.lax.pmean(jax.value_and_grad(f)(params), "fsdp")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=(P(), P("fsdp")))(params, x, y)


# Averages the loss that is reported, after differentiating the own one: the gradients are the sum of n means.
def fsdp_gradient__wrong_LOSS_AVERAGED_LATE(params, x, y, *, mesh):
    def gathered(shares):
        return jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)

    def body(params, x, y):
        value, grads = jax.value_and_grad(lambda shares: loss(gathered(shares), x, y))(params)
        return jax.lax.pmean(value, "fsdp"), grads

    specs = P("fsdp"), P("fsdp"), P("fsdp")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=(P(), P("fsdp")))(params, x, y)


# Gathers before it differentiates, adds up whole gradients and cuts out the own rows: right, but an all_reduce for each leaf.
def fsdp_gradient__wrong_WHOLE_GRADIENTS(params, x, y, *, mesh):
    def body(params, x, y):
        whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), params)
        value, grads = jax.value_and_grad(loss)(whole, x, y)
        grads = jax.lax.pmean(grads, "fsdp")
        me = jax.lax.axis_index("fsdp")

        def own_rows(g, share):
            return jax.lax.dynamic_slice_in_dim(g, me * share.shape[0], share.shape[0], axis=0)

        return jax.lax.pmean(value, "fsdp"), jax.tree.map(own_rows, grads, params)

    return jax.shard_map(body, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# Differentiates the mean of the losses, and divides the summed gradients by n as well: n times too small.
def fsdp_gradient__wrong_DIVIDED_TWICE(params, x, y, *, mesh):
    def on_device(params, x, y):
        def mean_loss(shares):
            whole = jax.tree.map(lambda leaf: jax.lax.all_gather(leaf, "fsdp", axis=0, tiled=True), shares)
            return jax.lax.pmean(loss(whole, x, y), "fsdp")

        value, grads = jax.value_and_grad(mean_loss)(params)
        n = jax.lax.axis_size("fsdp")
        return value, jax.tree.map(lambda g: g / n, grads)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


# ---- begin_fsdp


def begin_fsdp__right_PUT_ZEROS(params, mesh):
    cut = {"W": NamedSharding(mesh, P("fsdp", None)), "b": NamedSharding(mesh, P(None))}
    laid = [{name: jax.device_put(layer[name], cut[name]) for name in layer} for layer in params]

    def zeros():
        return jax.tree.map(lambda p: jax.device_put(np.zeros(p.shape, p.dtype), p.sharding), laid)

    return laid, {"mean": zeros(), "square": zeros()}


# Makes the moments of the parameters as they came, before they are laid out.
def begin_fsdp__wrong_MOMENTS_FIRST(params, mesh):
    moments = {"mean": jax.tree.map(jnp.zeros_like, params), "square": jax.tree.map(jnp.zeros_like, params)}
    rows, whole = NamedSharding(mesh, P("fsdp")), NamedSharding(mesh, P())
    params = jax.device_put(params, [{"W": rows, "b": whole} for _ in params])
    return params, moments


# Cuts everything over fsdp, the biases too, as the exercises further on do.
def begin_fsdp__wrong_BIASES_CUT(params, mesh):
    params = jax.device_put(params, NamedSharding(mesh, P("fsdp")))
    zeros = lambda: jax.tree.map(jnp.zeros_like, params)
    return params, {"mean": zeros(), "square": zeros()}


# Takes "by rows" to mean that rows stay whole: cuts the second dimension.
def begin_fsdp__wrong_SECOND_DIMENSION(params, mesh):
    def layout(leaf):
        return NamedSharding(mesh, P(None, "fsdp") if leaf.ndim == 2 else P())

    params = jax.tree.map(lambda leaf: jax.device_put(leaf, layout(leaf)), params)
    return params, {which: jax.tree.map(jnp.zeros_like, params) for which in ("mean", "square")}


# Gives each leaf a dict of its moments, in place of a dict of two trees.
def begin_fsdp__wrong_DICT_IN_EACH_LEAF(params, mesh):
    shardings = [{"W": NamedSharding(mesh, P("fsdp", None)), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, shardings)
    moments = jax.tree.map(lambda p: {"mean": jnp.zeros_like(p), "square": jnp.zeros_like(p)}, params)
    return params, moments


# ---- zero_table

zero_table__right_SUMS = {
    "bytes of a parameter, stage 0": 2 + 2 + 12,
    "bytes of a parameter, stage 1": 2 + 2 + 12 / 8,
    "bytes of a parameter, stage 2": 2 + (2 + 12) / 8,
    "bytes of a parameter, stage 3": (2 + 2 + 12) / 8,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 3 / 2,
}

# Thinks that stage 1 divides the gradients, and stage 2 also the optimizer.
zero_table__wrong_GRADIENTS_FIRST = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 14.25,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}

# Counts collectives and not bytes: two in place of one, three in place of one.
zero_table__wrong_COLLECTIVES_COUNTED = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2.0,
    "bytes sent, stage 1 ÷ stage 0": 2,
    "bytes sent, stage 3 ÷ stage 0": 3,
}

# Forgets that the backward pass gathers the weights again.
zero_table__wrong_GATHERED_ONCE = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.0,
}

# Thinks that the optimizer has two moments and nothing else, 8 bytes: forgets the master copy where it is divided.
zero_table__wrong_NO_MASTER_COPY = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 4 + 8 / 8,
    "bytes of a parameter, stage 2": 2 + 10 / 8,
    "bytes of a parameter, stage 3": 12 / 8,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}
