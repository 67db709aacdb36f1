"""Answers to lesson 13, eighth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---- where_it_goes

where_it_goes__right_by_hand = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# This student learned "biases and relus come after the psum" by heart, and applied it to both layers.
where_it_goes__wrong_both_layers_after = {
    "adding b1 to the hidden layer": "after the sum",
    "relu of the hidden layer": "after the sum",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# This student thought of attention, where each device takes the softmax of its own heads and needs nobody.
where_it_goes__wrong_softmax_own = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "on the parts",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# This student thought that b2 can be dealt out as b2 / n on each part, and that halving belongs on the parts, as halves are smaller to send.
where_it_goes__wrong_b2_over_n = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "either way",
    "relu of the result": "after the sum",
    "halving the result": "on the parts",
}

# This student thought that relu is linear but for the sign, tried it with two positive parts, and found no difference.
where_it_goes__wrong_relu_positive_parts = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "either way",
    "halving the result": "either way",
}


# ---- train_tp


def train_tp__right_einsum(params, x, y, steps, rate, *, mesh):
    ends = {3: NamedSharding(mesh, P("batch", None))}  # the one product whose layout is open

    def cost(p, x, y):
        h = x
        for k in (1, 2, 3, 4):
            h = jnp.einsum("bi,io->bo", h, p[f"W{k}"], out_sharding=ends.get(k)) + p[f"b{k}"]
            if k < 4:
                h = jnp.tanh(h)
        return jnp.mean(jnp.square(h - y))

    def one(p, x, y):
        value, g = jax.value_and_grad(cost)(p, x, y)
        return value, {name: p[name] - rate * g[name] for name in p}

    def all_steps(p, x, y):
        values = []
        for _ in range(steps):
            value, p = one(p, x, y)
            values.append(value)
        return jnp.stack(values), p

    return jax.jit(all_steps)(params, x, y)


# This student took the loss of lesson 12 with him: the squares of a row added up, and the mean over the batch only.
def train_tp__wrong_loss_of_lesson_12(params, x, y, steps, rate, *, mesh):
    def predict(p, x):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        hidden = jnp.tanh(hidden @ p["W2"] + p["b2"])
        hidden = jnp.tanh(jnp.dot(hidden, p["W3"], out_sharding=NamedSharding(mesh, P("batch", None))) + p["b3"])
        return hidden @ p["W4"] + p["b4"]

    def loss(p, x, y):
        return jnp.mean(jnp.sum((predict(p, x) - y) ** 2, axis=-1))

    @jax.jit
    def step(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return value, jax.tree.map(lambda p, g: p - rate * g, p, grads)

    losses = []
    for _ in range(steps):
        value, params = step(params, x, y)
        losses.append(value)
    return jnp.stack(losses), params


# This student copied the forward pass from lesson 10 ("you repaired it there"), with its relu, and added the fourth layer.
def train_tp__wrong_relu_of_lesson_10(params, x, y, steps, rate, *, mesh):
    def predict(x, W1, b1, W2, b2, W3, b3, W4, b4):
        hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
        hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
        hidden = jax.nn.relu(jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", None))) + b3)
        return jnp.dot(hidden, W4) + b4

    def loss(p, x, y):
        return jnp.mean((predict(x, **p) - y) ** 2)

    step = jax.jit(jax.value_and_grad(loss))
    losses = []
    for _ in range(steps):
        value, grads = step(params, x, y)
        losses.append(value)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    return jnp.stack(losses), params


# This student updates "in place", one parameter after the other, and takes each gradient with the parameters as they stand by then.
def train_tp__wrong_one_after_the_other(params, x, y, steps, rate, *, mesh):
    rows = NamedSharding(mesh, P("batch", None))

    def loss(p, x, y):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jnp.tanh(h @ p["W2"] + p["b2"])
        h = jnp.tanh(jnp.dot(h, p["W3"], out_sharding=rows) + p["b3"])
        return jnp.mean((h @ p["W4"] + p["b4"] - y) ** 2)

    def run(p, x, y):
        p = dict(p)
        losses = []
        for _ in range(steps):
            losses.append(loss(p, x, y))
            for name in p:
                p[name] = p[name] - rate * jax.grad(loss)(p, x, y)[name]
        return jnp.stack(losses), p

    return jax.jit(run)(params, x, y)


# This student let the second layer end as P("batch", None), so that the third has nothing open any more: hidden units and W3 travel.
def train_tp__wrong_hidden_whole(params, x, y, steps, rate, *, mesh):
    rows = NamedSharding(mesh, P("batch", None))

    def loss(p, x, y):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        h = jax.sharding.reshard(jnp.tanh(h @ p["W2"] + p["b2"]), rows)
        h = jnp.tanh(h @ jax.sharding.reshard(p["W3"], NamedSharding(mesh, P())) + p["b3"])
        return jnp.mean((h @ p["W4"] + p["b4"] - y) ** 2)

    @jax.jit
    def step(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return value, jax.tree.map(lambda p, g: p - rate * g, p, grads)

    losses = []
    for _ in range(steps):
        value, params = step(params, x, y)
        losses.append(value)
    return jnp.stack(losses), params


# ---- pair_sends

pair_sends__wrong_counted_at_4096 = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],  # the hidden units, and W2
    "rows, then rows": ["all_reduce", "all_to_all"],
    "rows, then columns": ["all_gather"] * 2,
    "bytes: columns, then rows": 2 * (2 - 1) // 2 * (32 // 4) * 48 * 4,
    "examples from which on gathering W1 and W2 sends less": (64 * 256 + 256 * 48) * 4 / 2 / 48,
}

# This student forgot that the batch is cut over four, and took the result for [32, 48] on each device.
pair_sends__wrong_whole_batch = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_to_all", "all_reduce"],
    "rows, then columns": ["all_gather", "all_gather"],
    "bytes: columns, then rows": 32 * 48 * 4,
    "examples from which on gathering W1 and W2 sends less": 57_344 / (48 * 4),
}

# This student did not measure: by lesson 07 each product with rows is a sum, and what is then cut by columns is gathered at the end.
pair_sends__wrong_by_the_book = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_reduce", "all_reduce"],
    "rows, then columns": ["all_reduce", "all_gather"],
    "bytes: columns, then rows": 1536,
    "examples from which on gathering W1 and W2 sends less": 1195,
}

# This student thought that after "columns, then columns" the hidden layer is gathered once, and the result stays as it is cut.
pair_sends__wrong_result_stays_cut = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather"],
    "rows, then rows": ["all_reduce", "all_to_all"],
    "rows, then columns": ["all_gather", "all_gather"],
    "bytes: columns, then rows": 1536,
    "examples from which on gathering W1 and W2 sends less": 1195,
}

# This student counted the gathered matrices whole, though half of them a device has already, and is not sent.
pair_sends__wrong_gathers_counted_whole = {
    "columns, then rows": ["all_reduce"],
    "columns, then columns": ["all_gather", "all_gather"],
    "rows, then rows": ["all_reduce", "all_to_all"],
    "rows, then columns": ["all_gather", "all_gather"],
    "bytes: columns, then rows": 1536,
    "examples from which on gathering W1 and W2 sends less": (64 * 256 * 4 + 256 * 48 * 4) / 48,
}
