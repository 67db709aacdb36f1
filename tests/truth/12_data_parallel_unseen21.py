"""Answers to lesson 12, twenty-first batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- jit_dp


def jit_dp__right_scan(params, x, y, *, steps, rate, mesh):
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))

    def step(params, _):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return descend(params, gradients, rate), value

    params, losses = jax.lax.scan(step, params, length=steps)
    return losses, params


# Thought that the loss of a step is what it has reached, so measured with the new parameters.
def jit_dp__wrong_after_step(params, x, y, *, steps, rate, mesh):
    by_rows = NamedSharding(mesh, P("data"))
    x = jax.lax.with_sharding_constraint(x, by_rows)
    y = jax.lax.with_sharding_constraint(y, by_rows)
    losses = []
    for _ in range(steps):
        params = descend(params, jax.grad(loss)(params, x, y), rate)
        losses.append(loss(params, x, y))
    return jnp.stack(losses), params


# Thought that, as in MPI, the gradient arrives as a sum over the devices and has to be divided by their number.
def jit_dp__wrong_divided(params, x, y, *, steps, rate, mesh):
    n = mesh.shape["data"]
    by_rows = NamedSharding(mesh, P("data"))
    x = jax.lax.with_sharding_constraint(x, by_rows)
    y = jax.lax.with_sharding_constraint(y, by_rows)
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: g / n, gradients)
        params = descend(params, gradients, rate)
        losses.append(value)
    return jnp.stack(losses), params


# Took the idle axis model for columns of the weights, since it "is there to be used": then hidden units have to travel.
def jit_dp__wrong_columns_too(params, x, y, *, steps, rate, mesh):
    by_rows = NamedSharding(mesh, P("data"))
    x = jax.lax.with_sharding_constraint(x, by_rows)
    y = jax.lax.with_sharding_constraint(y, by_rows)
    layouts = [{"W": NamedSharding(mesh, P(None, "model")), "b": NamedSharding(mesh, P("model"))} for _ in params]
    params = jax.lax.with_sharding_constraint(params, layouts)
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, gradients, rate)
        losses.append(value)
    return jnp.stack(losses), params


# Copied the cell with the grid, P(rows, columns): x and y are cut over both axes, so features are divided, too.
def jit_dp__wrong_both_axes(params, x, y, *, steps, rate, mesh):
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data", "model")))
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, gradients, rate)
        losses.append(value)
    return jnp.stack(losses), params


# ---------------------------------------------------------------- dp_numbers

dp_numbers__right_counted = {
    "parameters": 140_746_762,
    "bytes of parameters on each device": 562_987_048,
    "bytes of x on each device": 3_211_264,
    "bytes each device sends in a step": 985_227_341,
    "bytes each device sends in a step, with 64 rows instead of 8192": 985_227_341,
}

# Counted the gradients' all_reduce only, and forgot that the loss is one number more.
dp_numbers__wrong_no_loss = {
    "parameters": 140_746_762,
    "bytes of parameters on each device": 4 * 140_746_762,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * 140_746_762,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * 140_746_762,
}

# Thought that eight devices share the parameters as they share the examples.
dp_numbers__wrong_parameters_cut = {
    "parameters": 140_746_762,
    "bytes of parameters on each device": 4 * 140_746_762 // 8,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * 140_746_763,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * 140_746_763,
}

# Took the price of one pass round the ring, (n-1)/n V, which is a reduce_scatter without the all_gather behind it.
dp_numbers__wrong_one_pass = {
    "parameters": 140_746_762,
    "bytes of parameters on each device": 4 * 140_746_762,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 / 8 * 4 * 140_746_763,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 / 8 * 4 * 140_746_763,
}

# Wrote down all of x instead of a device's share, and believed that what is sent shrinks with the rows (64 / 8192).
dp_numbers__wrong_rows = {
    "parameters": 140_746_762,
    "bytes of parameters on each device": 4 * 140_746_762,
    "bytes of x on each device": 8192 * 784 * 4,
    "bytes each device sends in a step": 7 * 140_746_763,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * 140_746_763 // 128,
}


# ---------------------------------------------------------------- dropout_rng


def dropout_rng__right_numbers_cut(key_data, x, *, hidden, mesh):
    def on_device(key_data, x, numbers):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8

        def kept(r):
            return jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,))

        return {"w": w, "h": jnp.where(jax.vmap(kept)(numbers), (x @ w) / 0.75, 0)}

    program = jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs={"w": P(), "h": P("data")}
    )
    return program(key_data, x, jnp.arange(x.shape[0]))


# Thought that folding in the device first and then the local row makes every example's key its own, which is enough.
def dropout_rng__wrong_device_then_row(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        own_key = jax.random.fold_in(mask_key, jax.lax.axis_index("data"))
        masks = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(own_key, r), 0.75, (hidden,)))(
            jnp.arange(x.shape[0])
        )
        return {"w": w, "h": jnp.where(masks, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# Multiplied the device's number by the rows of the whole x (the outer one) instead of those of a share.
def dropout_rng__wrong_whole_batch(key_data, x, *, hidden, mesh):
    rows = x.shape[0]

    def on_device(key_data, own):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (own.shape[1], hidden)) / 8
        numbers = jax.lax.axis_index("data") * rows + jnp.arange(own.shape[0])
        masks = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(numbers)
        return {"w": w, "h": jnp.where(masks, own @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# Made one draw for the whole share, keyed by its first row, and thought that its lines are the masks of single rows.
def dropout_rng__wrong_one_draw(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        rows = x.shape[0]
        key = jax.random.fold_in(mask_key, jax.lax.axis_index("data") * rows)
        keep = jax.random.bernoulli(key, 0.75, (rows, hidden))
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# Read the mask as in "dropout 0.75": a unit is dropped where the draw is true.
def dropout_rng__wrong_true_is_dropped(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        rows = x.shape[0]
        numbers = jax.lax.axis_index("data") * rows + jnp.arange(rows)
        drop = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(numbers)
        return {"w": w, "h": jnp.where(drop, 0, x @ w / 0.75)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )
