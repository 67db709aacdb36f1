"""Answers to lesson 12, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    """The network: relu between its layers, the last one linear. A layer is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def descend(params, gradients, rate):
    """One step of gradient descent."""
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---------------------------------------------------------------- dp_numbers

WIDTHS_ = [784, 8192, 8192, 8192, 10]
N_ = sum((n + 1) * m for n, m in zip(WIDTHS_, WIDTHS_[1:]))  # 140,746,762

dp_numbers__right_formula = {
    "parameters": N_,
    "bytes of parameters on each device": 4 * N_,
    "bytes of x on each device": 8192 * 784 * 4 // 8,
    "bytes each device sends in a step": 7 * (N_ + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (N_ + 1),
}

# This student adds up the gradients only: the loss stays on each device, nobody needs it elsewhere.
dp_numbers__wrong_noloss = {
    "parameters": N_,
    "bytes of parameters on each device": 4 * N_,
    "bytes of x on each device": 8192 * 784 * 4 // 8,
    "bytes each device sends in a step": 7 * N_,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * N_,
}

# This student thinks that eight devices share the parameters as they share the work.
dp_numbers__wrong_shared = {
    "parameters": N_,
    "bytes of parameters on each device": 4 * N_ // 8,
    "bytes of x on each device": 8192 * 784 * 4 // 8,
    "bytes each device sends in a step": 7 * (N_ + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (N_ + 1),
}

# This student takes each row to bring a gradient of its own that must be sent: 128 times fewer rows, 128 times fewer bytes.
dp_numbers__wrong_rows = {
    "parameters": N_,
    "bytes of parameters on each device": 4 * N_,
    "bytes of x on each device": 8192 * 784 * 4 // 8,
    "bytes each device sends in a step": 7 * (N_ + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (N_ + 1) * 64 / 8192,
}

# This student has (n-1)/n V for the all_reduce (that of an all_gather), and counts the ten labels with "x".
dp_numbers__wrong_oneway = {
    "parameters": N_,
    "bytes of parameters on each device": 4 * N_,
    "bytes of x on each device": 8192 * (784 + 10) * 4 // 8,
    "bytes each device sends in a step": 7 * (N_ + 1) / 2,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (N_ + 1) / 2,
}


# ---------------------------------------------------------------- jit_dp


def jit_dp__right_scan(params, x, y, *, steps, rate, mesh):
    """(losses before each step, parameters after the last)."""
    by_rows = NamedSharding(mesh, P("data"))

    def step(p, _):
        value, g = jax.value_and_grad(loss)(p, *jax.lax.with_sharding_constraint((x, y), by_rows))
        return descend(p, g, rate), value

    p, losses = jax.lax.scan(step, params, length=steps)
    return losses, p


# This student writes down the loss after the update of each step.
def jit_dp__wrong_after(params, x, y, *, steps, rate, mesh):
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        params = descend(params, jax.grad(loss)(params, x, y), rate)
        losses.append(loss(params, x, y))
    return jnp.stack(losses), params


# This student cuts the data, but names "data" in the place of the features of x.
def jit_dp__wrong_features(params, x, y, *, steps, rate, mesh):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "data")))
    y = jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, gradients, rate)
        losses.append(value)
    return jnp.stack(losses), params


# This student believes that the compiler's all_reduce has summed means, and divides by the number of devices.
def jit_dp__wrong_divided(params, x, y, *, steps, rate, mesh):
    x, y = (jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P("data"))) for v in (x, y))
    n = mesh.shape["data"]
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, jax.tree.map(lambda g: g / n, gradients), rate)
        losses.append(value)
    return jnp.stack(losses), params


# This student does not want to leave the axis "model" idle, and cuts the rows of each W over it.
def jit_dp__wrong_weights(params, x, y, *, steps, rate, mesh):
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))
    layout = [{"W": NamedSharding(mesh, P("model")), "b": NamedSharding(mesh, P())} for _ in params]
    losses = []
    for _ in range(steps):
        params = jax.lax.with_sharding_constraint(params, layout)
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, gradients, rate)
        losses.append(value)
    return jnp.stack(losses), params


# ---------------------------------------------------------------- dropout_rng


def dropout_rng__right_numbers(key_data, x, *, hidden, mesh):
    """The same parameters everywhere, and a mask for each example."""

    def on_device(key_data, x, numbers):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        kept = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(numbers)
        return {"w": w, "h": jnp.where(kept, x @ w / 0.75, 0)}

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs={"w": P(), "h": P("data")}
    )(key_data, x, jnp.arange(x.shape[0]))


# This student numbers the rows of the array at hand, and forgets that every device begins with 0.
def dropout_rng__wrong_local(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        r = jnp.arange(x.shape[0])
        kept = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(r)
        return {"w": w, "h": jnp.where(kept, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# This student thinks that rows are dealt out like cards: device d has the examples d, d + n, d + 2n, ...
def dropout_rng__wrong_cards(key_data, x, *, hidden, mesh):
    n = mesh.shape["data"]

    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        r = jax.lax.axis_index("data") + n * jnp.arange(x.shape[0])
        kept = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(r)
        return {"w": w, "h": jnp.where(kept, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# This student drops the units and forgets to divide those that are kept by 0.75.
def dropout_rng__wrong_unscaled(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        rows = x.shape[0]
        r = jax.lax.axis_index("data") * rows + jnp.arange(rows)
        kept = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(r)
        return {"w": w, "h": (x @ w) * kept}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# This student draws one mask for the whole batch from mask_key, which does not depend on devices either, and takes its rows.
def dropout_rng__wrong_onemask(key_data, x, *, hidden, mesh):
    total = x.shape[0]

    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        every = jax.random.bernoulli(mask_key, 0.75, (total, hidden))
        kept = jax.lax.dynamic_slice_in_dim(every, jax.lax.axis_index("data") * x.shape[0], x.shape[0])
        return {"w": w, "h": jnp.where(kept, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )
