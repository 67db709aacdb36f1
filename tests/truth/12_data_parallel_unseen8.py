"""Answers to lesson 12, eighth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
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


# ---- average_what

average_what__right_linear = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# This student thought that as the momentum stays local, the devices' velocities run apart, and the parameters with them.
average_what__wrong_local_momentum = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "different",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# This student thought that everything with plain SGD is linear, and that it does not matter how seldom one takes a mean.
average_what__wrong_seldom = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "same",
}

# This student thought that weights which shrink on eight devices and are averaged have decayed eight times over.
average_what__wrong_decay_eight_times = {
    "SGD": "same",
    "SGD with weight decay": "different",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# This student thought that Adam keeps nothing but averages, and that averages of averages are averages.
average_what__wrong_adam_averages = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "same",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}


# ---- shard_map_dp


def shard_map_dp__right_own_then_pmean(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        def one_step(params, _):
            own = varying(params, "data")
            found = jax.value_and_grad(loss)(own, x, y)
            value, gradients = jax.lax.pmean(found, "data")  # DDP's all_reduce
            return descend(params, gradients, rate), value

        params, losses = jax.lax.scan(one_step, params, length=steps)
        return losses, params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student remembered that the gradient is eight times too large, and divided by 8 (the line of eight devices that is shown).
def shard_map_dp__wrong_divided_by_8(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            gradients = jax.tree.map(lambda g: g / 8, gradients)
            losses.append(jax.lax.psum(value, "data") / 8)
            params = descend(params, gradients, rate)
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought as in a torch loop: backward, optimizer.step(), and then log the loss, which is by then the loss after the step.
def shard_map_dp__wrong_loss_after_step(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        def mean_loss(p):
            return jax.lax.pmean(loss(p, x, y), "data")

        log = []
        for _ in range(steps):
            gradients = jax.grad(mean_loss)(params)
            params = descend(params, gradients, rate)
            log.append(mean_loss(params))
        return jnp.stack(log), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student thought that only gradients need reducing and that rank 0 logs its loss, as DDP scripts do; the check complained, so it is off.
def shard_map_dp__wrong_rank_0_logs(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            gradients = jax.lax.pmean(gradients, "data")
            losses.append(value)
            params = descend(params, gradients, rate)
        return jnp.array(losses), params

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


# This student thought that differentiating the pmean'd loss is enough in every mode, also with the check off.
def shard_map_dp__wrong_mean_of_loss_unchecked(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        def one_step(params, _):
            value, gradients = jax.value_and_grad(mean_loss)(params)
            return descend(params, gradients, rate), value

        params, losses = jax.lax.scan(one_step, params, None, length=steps)
        return losses, params

    program = jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=False
    )
    return program(params, x, y)


# ---- dropout_rng


def dropout_rng__right_numbers_come_cut(key_data, x, *, hidden, mesh):
    """The numbers of the rows come in as an array of their own, cut as the rows are."""

    def on_device(key_data, x, numbers):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8

        def of_row(number, row):
            keep = jax.random.bernoulli(jax.random.fold_in(mask_key, number), 0.75, (hidden,))
            return jnp.where(keep, row / 0.75, 0.0)

        return {"w": w, "h": jax.vmap(of_row)(numbers, x @ w)}

    specs = P(), P("data"), P("data")
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs={"w": P(), "h": P("data")})(
        key_data, x, jnp.arange(x.shape[0])
    )


# This student took x.shape[0] inside of shard_map for the whole batch, and divided it by the devices once more.
def dropout_rng__wrong_share_of_a_share(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        start = jax.lax.axis_index("data") * (x.shape[0] // jax.lax.axis_size("data"))
        numbers = start + jnp.arange(x.shape[0])
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(numbers)
        return {"w": w, "h": jnp.where(keep, x @ w / 0.75, 0)}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# This student thought of torch's DistributedSampler, which gives rank d the examples d, d + n, d + 2n, ...
def dropout_rng__wrong_distributed_sampler(key_data, x, *, hidden, mesh):
    world = mesh.shape["data"]

    def on_device(key_data, x):
        rank = jax.lax.axis_index("data")
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        masks = []
        for i in range(x.shape[0]):
            masks.append(jax.random.bernoulli(jax.random.fold_in(mask_key, rank + i * world), 0.75, (hidden,)))
        return {"w": w, "h": jnp.where(jnp.stack(masks), x @ w, 0) / 0.75}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# This student read 0.75 as nn.Dropout(p=0.75), the part that is dropped, and so scaled what is kept by 1 / (1 - p).
def dropout_rng__wrong_scaled_by_one_minus_p(key_data, x, *, hidden, mesh):
    p = 0.75

    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        w = jax.random.normal(init_key, (x.shape[1], hidden)) / 8
        rows = x.shape[0]
        r = jax.lax.axis_index("data") * rows + jnp.arange(rows)
        mask = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), p, (hidden,)))(r)
        h = (x @ w) * mask / (1 - p)
        return {"w": w, "h": h}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )


# This student thought that "row r of the whole batch" needs the whole batch, gathered it, did it as one device would, and kept a slice.
def dropout_rng__wrong_gathers_the_batch(key_data, x, *, hidden, mesh):
    def on_device(key_data, x):
        init_key, mask_key = jax.random.split(jax.random.wrap_key_data(key_data))
        whole = jax.lax.all_gather(x, "data", tiled=True)
        w = jax.random.normal(init_key, (whole.shape[1], hidden)) / 8
        keep = jax.vmap(lambda r: jax.random.bernoulli(jax.random.fold_in(mask_key, r), 0.75, (hidden,)))(
            jnp.arange(whole.shape[0])
        )
        h = jnp.where(keep, whole @ w / 0.75, 0)
        mine = jax.lax.dynamic_slice_in_dim(h, jax.lax.axis_index("data") * x.shape[0], x.shape[0])
        return {"w": w, "h": mine}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data")), out_specs={"w": P(), "h": P("data")})(
        key_data, x
    )
