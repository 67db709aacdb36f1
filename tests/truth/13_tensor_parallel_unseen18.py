"""Answers to lesson 13, eighteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- pair_sends
_both_matrices = 4 * (64 * 256 + 256 * 48) // 2  # bytes: gathered between two devices

# Took the second product's operand for gathered, too, where its parts are added up (written as a right answer).
pair_sends__wrong_counted = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_reduce", "all_to_all"],
    "rows, then columns": ["all_gather"] * 2,
    "bytes: columns, then rows": 2 * (2 - 1) / 2 * (32 // 4) * 48 * 4,
    "examples from which on gathering W1 and W2 sends less": _both_matrices / (48 * 4 / 4),
}

# This student thought that a contraction cut in the weights alone is summed: each W by rows ends in an all_reduce, each by columns in a gather.
pair_sends__wrong_rows_mean_sums = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_reduce", "all_reduce"],
    "rows, then columns": ["all_reduce", "all_gather"],
    "bytes: columns, then rows": 8 * 48 * 4,
    "examples from which on gathering W1 and W2 sends less": 57344 / 48,
}

# This student gathered the hidden layer for the second product, and forgot that the outputs are then in parts, or W2 is.
pair_sends__wrong_one_gather = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather"],
    "rows, then rows": ["all_to_all", "all_reduce"],
    "rows, then columns": ["all_gather", "all_gather"],
    "bytes: columns, then rows": 1536,
    "examples from which on gathering W1 and W2 sends less": 1195,
}

# This student took n = 8, all devices of the mesh, for the all_reduce, though it is between the two along model.
pair_sends__wrong_n_is_eight = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_to_all", "all_reduce"],
    "rows, then columns": ["all_gather", "all_gather"],
    "bytes: columns, then rows": 2 * 7 / 8 * 8 * 48 * 4,
    "examples from which on gathering W1 and W2 sends less": 57344 / (2 * 7 / 8 * 48),
}

# This student set 57,344 bytes equal to those of the examples that a device has, and gave these, not those of the whole batch.
pair_sends__wrong_examples_of_a_device = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_to_all", "all_reduce"],
    "rows, then columns": ["all_gather", "all_gather"],
    "bytes: columns, then rows": 1536,
    "examples from which on gathering W1 and W2 sends less": 57344 / (48 * 4),
}

# ---------------------------------------------------------------- tp_costs
_SIZES = {"W1": 784 * 8192, "b1": 8192, "W2": 8192**2, "b2": 8192, "W3": 8192**2, "b3": 8192, "W4": 8192 * 10, "b4": 10}


def _megabytes(cut=(), n=2):
    """MB of parameters on a device, where those named are cut over n."""
    return sum(4 * size / (n if name in cut else 1) for name, size in _SIZES.items()) / 1e6


def _all_reduce(megabytes, n):
    return 2 * (n - 1) / n * megabytes


_DP, _TP = _megabytes(), _megabytes(("W2", "b2", "W3"))
_ACTIVATIONS = 8192 / 4 * 8192 * 4 / 1e6

tp_costs__right_helpers = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _TP,
    "MB sent over batch, DP": _all_reduce(_DP, 8),
    "MB sent over batch, DP + TP": _all_reduce(_TP, 4),
    "MB sent over model, DP + TP": 2 * _all_reduce(_ACTIVATIONS, 2),
}

# This student knew the pair's one psum of the forward pass, and thought that its way back needs none.
tp_costs__wrong_forward_only = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _TP,
    "MB sent over batch, DP": _all_reduce(_DP, 8),
    "MB sent over batch, DP + TP": _all_reduce(_TP, 4),
    "MB sent over model, DP + TP": _all_reduce(_ACTIVATIONS, 2),
}

# This student thought that gradients are still added over all eight devices, of which each has half of the matrices.
tp_costs__wrong_eight_again = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _TP,
    "MB sent over batch, DP": _all_reduce(_DP, 8),
    "MB sent over batch, DP + TP": _all_reduce(_TP, 8),
    "MB sent over model, DP + TP": 2 * _all_reduce(_ACTIVATIONS, 2),
}

# This student thought that two devices along model halve the whole model, W1 and W4 with it.
tp_costs__wrong_all_halved = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _DP / 2,
    "MB sent over batch, DP": _all_reduce(_DP, 8),
    "MB sent over batch, DP + TP": _all_reduce(_DP / 2, 4),
    "MB sent over model, DP + TP": 2 * _all_reduce(_ACTIVATIONS, 2),
}

# This student took the layer's global shape [8192, 8192] for what a device puts into the sum over model.
tp_costs__wrong_global_activations = {
    "MB of parameters on a device, DP": _DP,
    "MB of parameters on a device, DP + TP": _TP,
    "MB sent over batch, DP": _all_reduce(_DP, 8),
    "MB sent over batch, DP + TP": _all_reduce(_TP, 4),
    "MB sent over model, DP + TP": 2 * _all_reduce(8192 * 8192 * 4 / 1e6, 2),
}


# ---------------------------------------------------------------- tp_grads
def tp_grads__right_sum_then_divide(params, x, y, *, mesh):
    """(loss, gradients) of the pair, batch cut over `batch` and hidden units over `model`."""
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    entries = y.size  # of the whole batch

    def on_device(p, x, y):
        def whole_loss(p):
            hidden = jnp.tanh(x @ p["W1"] + p["b1"])
            error = jax.lax.psum(hidden @ p["W2"], "model") + p["b2"] - y
            return jax.lax.psum(jnp.sum(error**2), "batch") / entries

        return jax.value_and_grad(whole_loss)(p)

    rows = P("batch", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, rows, rows), out_specs=(P(), layouts))(params, x, y)


# This student knew from data parallelism that one averages the gradients over batch after differentiating, and did not see that they come summed.
def tp_grads__wrong_pmean_afterwards(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def own_loss(p):
            hidden = jnp.tanh(x @ p["W1"] + p["b1"])
            return jnp.mean((jax.lax.psum(hidden @ p["W2"], "model") + p["b2"] - y) ** 2)

        value, grads = jax.value_and_grad(own_loss)(p)
        return jax.lax.pmean(value, "batch"), jax.tree.map(lambda g: jax.lax.pmean(g, "batch"), grads)

    rows = P("batch", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, rows, rows), out_specs=(P(), layouts))(params, x, y)


# This student thought of the second layer as one step, product and bias, and took the sum over model of both.
def tp_grads__wrong_bias_in_the_sum(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def layer(h, w, b):
        return h @ w + b

    def on_device(p, x, y):
        def whole_loss(p):
            hidden = jnp.tanh(layer(x, p["W1"], p["b1"]))
            out = jax.lax.psum(layer(hidden, p["W2"], p["b2"]), "model")
            return jax.lax.pmean(jnp.mean((out - y) ** 2), "batch")

        return jax.value_and_grad(whole_loss)(p)

    rows = P("batch", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, rows, rows), out_specs=(P(), layouts))(params, x, y)


# This student differentiated the sum of the means and then divided what is printed, the loss, but not its gradients.
def tp_grads__wrong_only_loss_divided(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    n = mesh.shape["batch"]

    def on_device(p, x, y):
        def summed_loss(p):
            hidden = jnp.tanh(x @ p["W1"] + p["b1"])
            out = jax.lax.psum(hidden @ p["W2"], "model") + p["b2"]
            return jax.lax.psum(jnp.mean((out - y) ** 2), "batch")

        value, grads = jax.value_and_grad(summed_loss)(p)
        return value / n, grads

    rows = P("batch", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, rows, rows), out_specs=(P(), layouts))(params, x, y)


# This student saw the ratio 2 of the recipe with the check off, and repaired it by a division of every leaf, b2 too.
def tp_grads__wrong_recipe_divided(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    n = mesh.shape["model"]

    def on_device(p, x, y):
        def own_loss(p):
            hidden = jnp.tanh(x @ p["W1"] + p["b1"])
            return jnp.mean((jax.lax.psum(hidden @ p["W2"], "model") + p["b2"] - y) ** 2)

        value, grads = jax.value_and_grad(own_loss)(p)
        return jax.lax.pmean(value, "batch"), jax.tree.map(lambda g: jax.lax.pmean(g, "batch") / n, grads)

    rows = P("batch", None)
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, rows, rows), out_specs=(P(), layouts), check_vma=False
    )(params, x, y)
