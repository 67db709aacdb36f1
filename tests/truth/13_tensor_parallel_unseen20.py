"""Answers to lesson 13, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- train_tp


def train_tp__right_scan(params, x, y, steps, rate, *, mesh):
    examples = NamedSharding(mesh, P("batch", None))

    def squared_error(p):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jnp.tanh(h @ p["W2"] + p["b2"])
        h = jnp.tanh(jnp.einsum("bh,hf->bf", h, p["W3"], out_sharding=examples) + p["b3"])
        return jnp.mean((h @ p["W4"] + p["b4"] - y) ** 2)

    def step(p, _):
        value, grads = jax.value_and_grad(squared_error)(p)
        return {name: p[name] - rate * grads[name] for name in p}, value

    params, losses = jax.lax.scan(step, params, length=steps)
    return losses, params


# The contraction is refused because both sides are cut, so this student made both whole before the third product.
def train_tp__wrong_reshard_first(params, x, y, steps, rate, *, mesh):
    def predict(p, x):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        hidden = jax.sharding.reshard(hidden, NamedSharding(mesh, P("batch", None)))
        w3 = jax.sharding.reshard(p["W3"], NamedSharding(mesh, P(None, None)))
        hidden = jnp.tanh(hidden @ w3 + p["b3"])
        return hidden @ p["W4"] + p["b4"]

    def loss(p):
        return jnp.mean((predict(p, x) - y) ** 2)

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params)
        losses.append(value)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    return jnp.stack(losses), params


# This student evaluates the loss behind the update, thinking that this is what the step has achieved.
def train_tp__wrong_losses_after(params, x, y, steps, rate, *, mesh):
    def loss(p):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        hidden = jnp.tanh(jnp.dot(hidden, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return jnp.mean((hidden @ p["W4"] + p["b4"] - y) ** 2)

    losses = []
    for _ in range(steps):
        grads = jax.grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
        losses.append(loss(params))
    return jnp.stack(losses), params


# Gradients are summed over the axis batch, as this student remembered from shard_map, so they are divided by its length.
def train_tp__wrong_divided_again(params, x, y, steps, rate, *, mesh):
    def loss(p):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        hidden = jnp.tanh(jnp.dot(hidden, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return jnp.mean((hidden @ p["W4"] + p["b4"] - y) ** 2)

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params)
        losses.append(value)
        params = jax.tree.map(lambda p, g: p - rate * g / mesh.shape["batch"], params, grads)
    return jnp.stack(losses), params


# This student took the loss of lesson 12: squares summed over the outputs, and the mean over examples only.
def train_tp__wrong_lesson_12_loss(params, x, y, steps, rate, *, mesh):
    def loss(p):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        hidden = jnp.tanh(jnp.dot(hidden, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return jnp.mean(jnp.sum((hidden @ p["W4"] + p["b4"] - y) ** 2, axis=-1))

    losses = []
    for _ in range(steps):
        value, grads = jax.value_and_grad(loss)(params)
        losses.append(value)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    return jnp.stack(losses), params


# ---------------------------------------------------------------- tp_costs

_whole = 4e-6 * (784 * 8192 + 8192 + 8192 * 10 + 10 + 8192)  # W1, b1, W4, b4, b3
_inner = 4e-6 * (2 * 8192 * 8192 + 8192)  # W2, W3, b2

tp_costs__right_counted = {
    "MB of parameters on a device, DP": _whole + _inner,
    "MB of parameters on a device, DP + TP": _whole + _inner / 2,
    "MB sent over batch, DP": 7 / 4 * (_whole + _inner),
    "MB sent over batch, DP + TP": 3 / 2 * (_whole + _inner / 2),
    "MB sent over model, DP + TP": 2 * 4e-6 * 2048 * 8192,
}

# There are eight devices in both cases, so this student took 2 · 7/8 for the gradients of 4 × 2 too.
tp_costs__wrong_eight_along_batch = {
    "MB of parameters on a device, DP": 563.0,
    "MB of parameters on a device, DP + TP": 294.5,
    "MB sent over batch, DP": 985.2,
    "MB sent over batch, DP + TP": 515.4,
    "MB sent over model, DP + TP": 134.2,
}

# The pair needs one all_reduce, thought this student, and forgot the one of the backward pass.
tp_costs__wrong_forward_only = {
    "MB of parameters on a device, DP": 563.0,
    "MB of parameters on a device, DP + TP": 294.5,
    "MB sent over batch, DP": 985.2,
    "MB sent over batch, DP + TP": 441.8,
    "MB sent over model, DP + TP": 67.1,
}

# Two devices along model, so this student halved all of the parameters, W1 and W4 as well.
tp_costs__wrong_all_halved = {
    "MB of parameters on a device, DP": 563.0,
    "MB of parameters on a device, DP + TP": 281.5,
    "MB sent over batch, DP": 985.2,
    "MB sent over batch, DP + TP": 422.2,
    "MB sent over model, DP + TP": 134.2,
}

# This student sums activations of all 8192 examples over model, forgetting that the rows are cut over batch.
tp_costs__wrong_all_examples = {
    "MB of parameters on a device, DP": 563.0,
    "MB of parameters on a device, DP + TP": 294.5,
    "MB sent over batch, DP": 985.2,
    "MB sent over batch, DP + TP": 441.8,
    "MB sent over model, DP + TP": 536.9,
}


# ---------------------------------------------------------------- init_rows


def init_rows__right_out_shardings(key, fan_in, fan_out, *, mesh):
    def whole(words):
        return jax.random.normal(jax.random.wrap_key_data(words), (fan_in, fan_out)) / fan_in**0.5

    return jax.jit(whole, out_shardings=NamedSharding(mesh, P("model", None)))(key)


# Every device draws its own rows, and this student thought that folding in its number makes them those of the whole.
def init_rows__wrong_fold_in(key, fan_in, fan_out, *, mesh):
    def own_rows(words):
        own = jax.random.fold_in(jax.random.wrap_key_data(words), jax.lax.axis_index("model"))
        return jax.random.normal(own, (fan_in // mesh.shape["model"], fan_out)) / fan_in**0.5

    return jax.shard_map(own_rows, mesh=mesh, in_specs=P(), out_specs=P("model", None))(key)


# A device adds up as many products as it has rows, so this student divided by the root of the local number of rows.
def init_rows__wrong_local_fan_in(key, fan_in, fan_out, *, mesh):
    rows = fan_in // mesh.shape["model"]
    w = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / rows**0.5
    return jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P("model", None)))


# The picture of the cell before this one was in this student's mind: the constraint cuts columns.
def init_rows__wrong_columns(key, fan_in, fan_out, *, mesh):
    w = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_in**0.5
    return jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P(None, "model")))


# This student took the variance for the spread, and divided by fan_in without the root.
def init_rows__wrong_no_root(key, fan_in, fan_out, *, mesh):
    w = jax.random.normal(jax.random.wrap_key_data(key), (fan_in, fan_out)) / fan_in
    return jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P("model", None)))
