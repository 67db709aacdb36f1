"""Answers to lesson 14, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
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


zero_table__right_numbers = {
    "bytes of a parameter, stage 0": 16,
    "bytes of a parameter, stage 1": 5.5,
    "bytes of a parameter, stage 2": 3.75,
    "bytes of a parameter, stage 3": 2,
    "bytes sent, stage 1 ÷ stage 0": 1,
    "bytes sent, stage 3 ÷ stage 0": 1.5,
}
# stage 1 divides the gradients, stage 2 the weights
zero_table__wrong_shifted = {
    **zero_table__right_numbers,
    "bytes of a parameter, stage 1": 2 + 14 / 8,
    "bytes of a parameter, stage 2": 2,
}
# stage 3 gathers once
zero_table__wrong_once = {**zero_table__right_numbers, "bytes sent, stage 3 ÷ stage 0": 1}
# three passes against one
zero_table__wrong_three = {**zero_table__right_numbers, "bytes sent, stage 3 ÷ stage 0": 3}
# the master copy forgotten: 8 bytes of optimizer
zero_table__wrong_master = {
    **zero_table__right_numbers,
    "bytes of a parameter, stage 0": 12,
    "bytes of a parameter, stage 1": 5,
    "bytes of a parameter, stage 2": 3.25,
    "bytes of a parameter, stage 3": 1.5,
}
# reduce_scatter counted, all_gather forgotten
zero_table__wrong_half = {**zero_table__right_numbers, "bytes sent, stage 1 ÷ stage 0": 0.5}


def shard_axis__right_sorted(shape, n, smallest):
    """Sorted by length and place."""
    candidates = sorted((-length, place) for place, length in enumerate(shape) if length % n == 0)
    if not candidates or math.prod(shape) < smallest:
        return "whole"
    return candidates[0][1]


def shard_axis__wrong_longest(shape, n, smallest):
    """The longest, then whether n divides it."""
    if math.prod(shape) < smallest or not shape:
        return "whole"
    k = max(range(len(shape)), key=lambda k: shape[k])
    return k if shape[k] % n == 0 else "whole"


def shard_axis__wrong_last(shape, n, smallest):
    """The last of several of one length."""
    fits = [k for k, length in enumerate(shape) if length % n == 0]
    if math.prod(shape) < smallest or not fits:
        return "whole"
    return max(fits, key=lambda k: (shape[k], k))


def shard_axis__wrong_first(shape, n, smallest):
    """The first that n divides."""
    if math.prod(shape) >= smallest:
        for k, length in enumerate(shape):
            if length % n == 0:
                return k
    return "whole"


def shard_axis__wrong_at_most(shape, n, smallest):
    """<= smallest stays whole."""
    fits = [k for k, length in enumerate(shape) if length % n == 0]
    if math.prod(shape) <= smallest or not fits:
        return "whole"
    return max(fits, key=lambda k: shape[k])


def shard_axis__wrong_length(shape, n, smallest):
    """The length in place of its number."""
    fits = [length for length in shape if length % n == 0]
    if math.prod(shape) < smallest or not fits:
        return "whole"
    return max(fits)


def _layer(body, check=True, out=P("fsdp")):
    def program(w, b, x, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=(P("fsdp"),) * 3, out_specs=out, check_vma=check)(w, b, x)

    return program


def fsdp_layer__right_reshaped(w, b, x, *, mesh):
    """Gathers untiled, and reshapes."""

    def on_device(w, b, x):
        W = jax.lax.all_gather(w, "fsdp").reshape(-1, w.shape[1])
        B = jax.lax.all_gather(b, "fsdp").reshape(-1)
        return jnp.maximum(x @ W + B, 0)

    return _layer(on_device)(w, b, x, mesh)


def fsdp_layer__wrong_untiled(w, b, x, *, mesh):
    """tiled forgotten."""

    def on_device(w, b, x):
        return jax.nn.relu(x @ jax.lax.all_gather(w, "fsdp") + jax.lax.all_gather(b, "fsdp"))

    return _layer(on_device)(w, b, x, mesh)


def fsdp_layer__wrong_bias_local(w, b, x, *, mesh):
    """The own part of the bias, repeated."""

    def on_device(w, b, x):
        W = jax.lax.all_gather(w, "fsdp", tiled=True)
        return jax.nn.relu(x @ W + jnp.tile(b, W.shape[1] // len(b)))

    return _layer(on_device)(w, b, x, mesh)


def fsdp_layer__wrong_no_relu(w, b, x, *, mesh):
    """No relu."""

    def on_device(w, b, x):
        W, B = (jax.lax.all_gather(a, "fsdp", tiled=True) for a in (w, b))
        return x @ W + B

    return _layer(on_device)(w, b, x, mesh)


def fsdp_layer__wrong_x_gathered(w, b, x, *, mesh):
    """x is gathered too, and the own rows cut out again."""

    def on_device(w, b, x):
        rows = len(x)
        W, B, X = (jax.lax.all_gather(a, "fsdp", tiled=True) for a in (w, b, x))
        y = jax.nn.relu(X @ W + B)
        return jax.lax.dynamic_slice_in_dim(y, jax.lax.axis_index("fsdp") * rows, rows)

    return _layer(on_device)(w, b, x, mesh)


def fsdp_layer__wrong_relu_before_bias(w, b, x, *, mesh):
    """relu before the bias."""

    def on_device(w, b, x):
        W, B = (jax.lax.all_gather(a, "fsdp", tiled=True) for a in (w, b))
        return jax.nn.relu(x @ W) + B

    return _layer(on_device)(w, b, x, mesh)


def fsdp_gradient__right_divided(params, x, y, *, mesh):
    """The sum of the local losses, divided afterwards."""
    n = mesh.shape["fsdp"]

    def on_device(shares, x, y):
        def local(shares):
            return loss(jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares), x, y) / n

        value, g = jax.value_and_grad(local)(shares)
        return jax.lax.psum(value, "fsdp"), g

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


def fsdp_gradient__wrong_sum(params, x, y, *, mesh):
    """The local loss differentiated: n times too large."""

    def on_device(shares, x, y):
        def local(shares):
            return loss(jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares), x, y)

        value, g = jax.value_and_grad(local)(shares)
        return jax.lax.pmean(value, "fsdp"), g

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


def fsdp_gradient__wrong_pmean_shares(params, x, y, *, mesh):
    """pmean of gradients that belong to different rows."""

    def on_device(shares, x, y):
        def local(shares):
            return loss(jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares), x, y)

        value, g = jax.value_and_grad(local)(shares)
        return jax.lax.pmean(value, "fsdp"), jax.tree.map(lambda a: jax.lax.pmean(a, "fsdp"), g)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")), check_vma=False)(
        params, x, y
    )


def fsdp_gradient__wrong_own_rows(params, x, y, *, mesh):
    """Differentiated at the whole weights; own rows of the own gradient, nothing added up."""

    def on_device(shares, x, y):
        whole = jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares)
        value, g = jax.value_and_grad(loss)(whole, x, y)
        me = jax.lax.axis_index("fsdp")
        g = jax.tree.map(lambda a, s: jax.lax.dynamic_slice_in_dim(a, me * len(s), len(s)), g, shares)
        return jax.lax.pmean(value, "fsdp"), g

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")), check_vma=False)(
        params, x, y
    )


def fsdp_gradient__wrong_loss_sum(params, x, y, *, mesh):
    """psum of the means for the loss."""

    def on_device(shares, x, y):
        def total(shares):
            return jax.lax.psum(
                loss(jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares), x, y), "fsdp"
            )

        return jax.value_and_grad(total)(shares)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=(P(), P("fsdp")))(params, x, y)


def fsdp_gradient__wrong_only_gradients(params, x, y, *, mesh):
    """The loss is not returned."""

    def on_device(shares, x, y):
        def mean(shares):
            return jax.lax.pmean(
                loss(jax.tree.map(lambda s: jax.lax.all_gather(s, "fsdp", tiled=True), shares), x, y), "fsdp"
            )

        return jax.grad(mean)(shares)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("fsdp"), out_specs=P("fsdp"))(params, x, y)


def begin_fsdp__right_named(params, mesh):
    lies = {"W": NamedSharding(mesh, P("fsdp", None)), "b": NamedSharding(mesh, P())}
    params = [{name: jax.device_put(leaf, lies[name]) for name, leaf in layer.items()} for layer in params]
    return params, {kind: jax.tree.map(lambda p: jnp.zeros_like(p), params) for kind in ("mean", "square")}


def begin_fsdp__wrong_order(params, mesh):
    """Moments made before the layout: they stay whole."""
    moments = {"mean": jax.tree.map(jnp.zeros_like, params), "square": jax.tree.map(jnp.zeros_like, params)}
    lies = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    return jax.device_put(params, lies), moments


def begin_fsdp__wrong_all_cut(params, mesh):
    """Biases cut as well."""
    params = jax.device_put(params, NamedSharding(mesh, P("fsdp")))
    return params, {"mean": jax.tree.map(jnp.zeros_like, params), "square": jax.tree.map(jnp.zeros_like, params)}


def begin_fsdp__wrong_columns(params, mesh):
    """By columns."""
    lies = [{"W": NamedSharding(mesh, P(None, "fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, lies)
    return params, {"mean": jax.tree.map(jnp.zeros_like, params), "square": jax.tree.map(jnp.zeros_like, params)}


def begin_fsdp__wrong_moments_are_params(params, mesh):
    """The moments begin as the parameters."""
    lies = [{"W": NamedSharding(mesh, P("fsdp")), "b": NamedSharding(mesh, P())} for _ in params]
    params = jax.device_put(params, lies)
    return params, {"mean": params, "square": params}
