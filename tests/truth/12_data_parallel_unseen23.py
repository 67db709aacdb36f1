"""Answers to lesson 12, twenty-third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def predict(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def descend(params, gradients, rate):
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def varying(tree, axes):
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ---------------------------------------------------------------- dp_numbers

_N = sum(n * m + m for n, m in ((784, 8192), (8192, 8192), (8192, 8192), (8192, 10)))

dp_numbers__right_PLUSONE = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * (_N + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (_N + 1),
}

# Only gradients are added up over devices; the loss is a mean, which each device has anyway.
dp_numbers__wrong_NOLOSS = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * _N,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * _N,
}

# An all_reduce costs (n-1)/n of the bytes, as an all_gather does (the second half of it forgotten).
dp_numbers__wrong_ONEPASS = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * (_N + 1) // 2,
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (_N + 1) // 2,
}

# Fewer rows, fewer gradients: what is sent shrinks with the batch, 64/8192 of it.
dp_numbers__wrong_FEWERROWS = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N,
    "bytes of x on each device": 8192 // 8 * 784 * 4,
    "bytes each device sends in a step": 7 * (_N + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (_N + 1) * 64 / 8192,
}

# Everything is dealt out to the eight: parameters too, and a row of the batch is 784 + 10 numbers, x with its y.
dp_numbers__wrong_XANDY = {
    "parameters": _N,
    "bytes of parameters on each device": 4 * _N // 8,
    "bytes of x on each device": 8192 // 8 * (784 + 10) * 4,
    "bytes each device sends in a step": 7 * (_N + 1),
    "bytes each device sends in a step, with 64 rows instead of 8192": 7 * (_N + 1),
}

# -------------------------------------------------------------- shard_map_dp


def shard_map_dp__right_SUMMED(params, x, y, *, steps, rate, mesh):
    n = mesh.shape["data"]

    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, summed = jax.value_and_grad(loss)(params, x, y)  # arrives summed over data
            losses.append(jax.lax.psum(value, "data") / n)
            params = descend(params, summed, rate / n)
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# As in DDP: gradient of the own rows, then pmean of the gradients (but with the check on they are the sum already).
def shard_map_dp__wrong_DDPHABIT(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, g = jax.value_and_grad(loss)(params, x, y)
            g = jax.tree.map(lambda a: jax.lax.pmean(a, "data"), g)
            losses.append(jax.lax.pmean(value, "data"))
            params = descend(params, g, rate)
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# The loss that belongs to a step is the one that the step has reached.
def shard_map_dp__wrong_LOSSAFTER(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        def whole(p):
            return jax.lax.pmean(loss(p, x, y), "data")

        losses = []
        for _ in range(steps):
            params = descend(params, jax.grad(whole)(params), rate)
            losses.append(whole(params))
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# SGD is linear, so averaging can wait: every device trains on its own, and one mean at the end makes one model of them.
def shard_map_dp__wrong_MEANATEND(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        own, losses = varying(params, "data"), []
        for _ in range(steps):
            value, g = jax.value_and_grad(loss)(own, x, y)
            losses.append(value)
            own = descend(own, g, rate)
        return jax.lax.pmean((jnp.stack(losses), own), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# The gradient is the sum over the devices, so divide it by the number of devices (of the whole mesh, not of its axis "data").
def shard_map_dp__wrong_MESHSIZE(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, g = jax.value_and_grad(loss)(params, x, y)
            g = jax.tree.map(lambda a: a / mesh.size, g)
            losses.append(jax.lax.pmean(value, "data"))
            params = descend(params, g, rate)
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# --------------------------------------------------------------- dropout_rng


def dropout_rng__right_NUMBERED(key_data, x, *, hidden, mesh):
    def on_device(key_data, x, numbers):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(numbers)
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    program = jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs={"w": P(), "h": P("data")}
    )
    return program(key_data, x, jnp.arange(x.shape[0]))


# A key for each device, and of it a key for each of its rows: then no two rows of the batch have the same.
def dropout_rng__wrong_FOLDTWICE(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        mine = jax.random.fold_in(mask_key, jax.lax.axis_index("data"))
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mine, r), 0.75, (hidden,)))(
            jnp.arange(x.shape[0])
        )
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# Rows are dealt out in turns as by DistributedSampler: device d has rows d, d + n, d + 2n, ...
def dropout_rng__wrong_STRIDED(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        rows = jax.lax.axis_index("data") + mesh.shape["data"] * jnp.arange(x.shape[0])
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(rows)
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# As torch.nn.Dropout(0.75): 0.75 is the probability to drop, what is true is dropped, and the rest is divided by 0.25.
def dropout_rng__wrong_DROPP(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        rows = jax.lax.axis_index("data") * x.shape[0] + jnp.arange(x.shape[0])
        drop = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(rows)
        return {"w": w, "h": jnp.where(drop, 0, x @ w / 0.25)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# x inside is x, so its rows are numbered 0, 1, 2, ... (on every device).
def dropout_rng__wrong_LOCALROWS(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(
            jnp.arange(x.shape[0])
        )
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )
