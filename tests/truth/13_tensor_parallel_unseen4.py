"""Answers to lesson 13, fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

# ------------------------------------------------------------------ pair_sends

# This student was sure of the fourth row, and did not measure.
pair_sends__wrong_unmeasured = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather"] * 2,
    "rows, then rows": ["all_reduce", "all_to_all"],
    "rows, then columns": ["all_gather"] * 2,
    "bytes: columns, then rows": 2 * (1 / 2) * (32 // 4) * 48 * 4,
    "examples from which on gathering W1 and W2 sends less": (64 * 256 + 256 * 48) * 4 / 2 / 48,
}

# This student took the whole result, all 32 rows, for what a device adds up.
pair_sends__wrong_whole_result = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_to_all", "all_reduce"],
    "rows, then columns": ["all_gather", "all_gather"],
    "bytes: columns, then rows": 2 * 1 / 2 * 32 * 48 * 4,
    "examples from which on gathering W1 and W2 sends less": 57344 / 192,
}

# This student went by the textbook: a cut contraction is finished by a sum, cut outputs by a gather.
pair_sends__wrong_textbook = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_reduce", "all_reduce"],
    "rows, then columns": ["all_reduce", "all_gather"],
    "bytes: columns, then rows": 1536,
    "examples from which on gathering W1 and W2 sends less": 1195,
}

# This student counted an all_reduce as (n - 1)/n, forgetting that it goes round twice.
pair_sends__wrong_once_round = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_to_all", "all_reduce"],
    "rows, then columns": ["all_gather", "all_gather"],
    "bytes: columns, then rows": 768,
    "examples from which on gathering W1 and W2 sends less": 57344 / 24,
}

# This student thought of the crossing in examples on one device, not in the whole batch.
pair_sends__wrong_examples_of_a_device = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_to_all", "all_reduce"],
    "rows, then columns": ["all_gather", "all_gather"],
    "bytes: columns, then rows": 1536,
    "examples from which on gathering W1 and W2 sends less": 299,
}


# ------------------------------------------------------------------ train_tp


def train_tp__right_scan(params, x, y, steps, rate, *, mesh):
    """The loop as a scan."""

    def value_of(p):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jnp.tanh(h @ p["W2"] + p["b2"])
        h = jnp.tanh(jnp.dot(h, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return jnp.mean(jnp.square(h @ p["W4"] + p["b4"] - y))

    def turn(p, _):
        value, slopes = jax.value_and_grad(value_of)(p)
        return {name: p[name] - rate * slopes[name] for name in p}, value

    params, losses = jax.lax.scan(turn, params, None, length=steps)
    return losses, params


# This student reported the loss of the new parameters, so the curve is one step ahead.
def train_tp__wrong_loss_after(params, x, y, steps, rate, *, mesh):
    def value_of(p):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jnp.tanh(h @ p["W2"] + p["b2"])
        h = jnp.tanh(jnp.dot(h, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return jnp.mean((h @ p["W4"] + p["b4"] - y) ** 2)

    losses = []
    for _ in range(steps):
        grads = jax.grad(value_of)(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
        losses.append(value_of(params))
    return jnp.stack(losses), params


# This student thought that the third product needs whole hidden units and a whole W3, and gathers both.
def train_tp__wrong_whole_operands(params, x, y, steps, rate, *, mesh):
    def value_of(p):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jnp.tanh(h @ p["W2"] + p["b2"])
        h = jax.sharding.reshard(h, NamedSharding(mesh, P("batch", None)))
        w3 = jax.sharding.reshard(p["W3"], NamedSharding(mesh, P(None, None)))
        h = jnp.tanh(h @ w3 + p["b3"])
        return jnp.mean((h @ p["W4"] + p["b4"] - y) ** 2)

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(value_of)(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
        losses.append(value)
    return jnp.stack(losses), params


# This student carried the loss over from the lesson before: summed over outputs, averaged over examples.
def train_tp__wrong_sum_over_outputs(params, x, y, steps, rate, *, mesh):
    def value_of(p):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jnp.tanh(h @ p["W2"] + p["b2"])
        h = jnp.tanh(jnp.dot(h, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return jnp.mean(jnp.sum((h @ p["W4"] + p["b4"] - y) ** 2, axis=-1))

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(value_of)(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
        losses.append(value)
    return jnp.stack(losses), params


# This student thought that gradients of copies arrive summed over batch (as inside shard_map), and divides once more.
def train_tp__wrong_divided_again(params, x, y, steps, rate, *, mesh):
    def value_of(p):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jnp.tanh(h @ p["W2"] + p["b2"])
        h = jnp.tanh(jnp.dot(h, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return jnp.mean((h @ p["W4"] + p["b4"] - y) ** 2)

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(value_of)(params)
        params = jax.tree.map(lambda p, g: p - rate * g / mesh.shape["batch"], params, grads)
        losses.append(value)
    return jnp.stack(losses), params


# ------------------------------------------------------------------ tp_block

LAYOUTS = {
    "scale_1": P(),
    "w_qkv": P(None, "model"),
    "w_out": P("model"),
    "scale_2": P(),
    "W1": P(None, "model"),
    "W2": P("model", None),
}


def norm(x, scale):
    """Each token of x[B, T, D], divided by the root of the mean of its squares, times scale[D]."""
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def attend(x, w_qkv, w_out):
    """Causal attention over all tokens of x[B, T, D] by the heads of w_qkv[D, H, 3, K] and w_out[H, K, D]."""
    q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
    logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    logits = jnp.where(jnp.tri(x.shape[1], dtype=bool), logits, -jnp.inf)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
    return jnp.einsum("bthk,hkd->btd", mixed, w_out)


def tp_block__right_tokens_first(params, x, *, mesh):
    """Each pair through one helper, with tokens moved to the front for the two collectives."""

    def with_pair(x, scale, pair):
        tokens = jax.lax.all_gather(jnp.swapaxes(norm(x, scale), 0, 1), "model", tiled=True)
        parts = pair(jnp.swapaxes(tokens, 0, 1))
        own = jax.lax.psum_scatter(jnp.swapaxes(parts, 0, 1), "model", tiled=True)
        return x + jnp.swapaxes(own, 0, 1)

    def on_device(p, x):
        x = with_pair(x, p["scale_1"], lambda h: attend(h, p["w_qkv"], p["w_out"]))
        return with_pair(x, p["scale_2"], lambda h: jax.nn.silu(h @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# This student let both pairs begin with the same x, as if the second line did not read the first one's result.
def tp_block__wrong_side_by_side(params, x, *, mesh):
    def on_device(p, x):
        def gather(x):
            return jax.lax.all_gather(x, "model", axis=1, tiled=True)

        def scatter(parts):
            return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

        first = scatter(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        second = scatter(jax.nn.silu(gather(norm(x, p["scale_2"])) @ p["W1"]) @ p["W2"])
        return x + first + second

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# This student ends each pair by an all_reduce and keeps the own tokens of it: right numbers, more bytes.
def tp_block__wrong_all_reduce(params, x, *, mesh):
    def on_device(p, x):
        def gather(x):
            return jax.lax.all_gather(x, "model", axis=1, tiled=True)

        def finish(parts):
            own = x.shape[1]
            return jax.lax.dynamic_slice_in_dim(
                jax.lax.psum(parts, "model"), jax.lax.axis_index("model") * own, own, axis=1
            )

        h = x + finish(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return h + finish(jax.nn.silu(gather(norm(h, p["scale_2"])) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# This student added x before the sum is scattered, so that it is added once for each device along model.
def tp_block__wrong_residual_in_the_sum(params, x, *, mesh):
    def on_device(p, x):
        def scatter(parts):
            return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

        whole = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        x = scatter(whole + attend(norm(whole, p["scale_1"]), p["w_qkv"], p["w_out"]))
        whole = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        return scatter(whole + jax.nn.silu(norm(whole, p["scale_2"]) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# This student thought that the second pair looks at one token at a time, so that nobody needs other tokens for it, only the sum.
def tp_block__wrong_no_gather_for_the_mlp(params, x, *, mesh):
    def on_device(p, x):
        tokens = jax.lax.all_gather(norm(x, p["scale_1"]), "model", axis=1, tiled=True)
        parts = attend(tokens, p["w_qkv"], p["w_out"])
        x = x + jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)
        return x + jax.lax.psum(jax.nn.silu(norm(x, p["scale_2"]) @ p["W1"]) @ p["W2"], "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )
