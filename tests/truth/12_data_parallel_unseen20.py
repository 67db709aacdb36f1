"""Answers to lesson 12, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
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


# ---------------------------------------------------------------- same_lr_question

same_lr_question__right_factors = {
    row: 0.48 / factor
    for row, factor in {
        "local mean, pmean": 1,
        "local mean, psum": 8,
        "local sum, pmean": 6,
        "local sum, psum": 6 * 8,
        "local mean, nothing, check_vma on": 8,
        "local sum / 48, psum": 1,
        "local mean, summed over 4 microbatches, pmean": 4,
    }.items()
}

# With nothing written to combine the devices, this student thought that a device's gradient stays the mean of its own rows.
same_lr_question__wrong_nothing_is_local = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.48,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# The four microbatches together are the device's rows once, so this student thought that summing them changes nothing.
same_lr_question__wrong_rows_once = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48,
}

# This student took the 6 and the 8 for each other: rows for what is added over devices, devices for what is added over rows.
same_lr_question__wrong_six_for_eight = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.08,
    "local sum, pmean": 0.06,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.08,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# This student thought that a sum divided by 48 is already the mean, and that a psum then makes it eight times too large.
same_lr_question__wrong_psum_always_eight = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.06,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}


# ---------------------------------------------------------------- shard_map_dp


def shard_map_dp__right_scan_varying(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        def step(params, _):
            found = jax.value_and_grad(loss)(varying(params, "data"), x, y)
            value, gradients = jax.lax.pmean(found, "data")
            return descend(params, gradients, rate), value

        params, losses = jax.lax.scan(step, params, length=steps)
        return losses, params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# The gradient arrives summed over devices, so this student divided it by the number of devices of the mesh, all axes of it.
def shard_map_dp__wrong_mesh_size(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            losses.append(jax.lax.pmean(value, "data"))
            gradients = jax.tree.map(lambda g: g / mesh.size, gradients)
            params = descend(params, gradients, rate)
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# A mean of updates is the update by the mean, thought this student, so one mean of the parameters at the very end is enough.
def shard_map_dp__wrong_mean_at_end(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(own, x, y)
            losses.append(jax.lax.pmean(value, "data"))
            own = descend(own, gradients, rate)
        return jnp.stack(losses), jax.lax.pmean(own, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# This student differentiates the averaged loss and thought that the check is only for types, so it may be switched off.
def shard_map_dp__wrong_check_off(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(mean_loss)(params)
            losses.append(value)
            params = descend(params, gradients, rate)
        return jnp.stack(losses), params

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=False
    )(params, x, y)


# This student thought that a step's loss is the one that it reaches, and computed it with the new parameters.
def shard_map_dp__wrong_loss_after(params, x, y, *, steps, rate, mesh):
    def on_device(params, x, y):
        def mean_loss(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        losses = []
        for _ in range(steps):
            params = descend(params, jax.grad(mean_loss)(params), rate)
            losses.append(mean_loss(params))
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# ---------------------------------------------------------------- place_dp


def place_dp__right_leaf_by_leaf(params, batch, mesh):
    def rows(leaf):
        return jax.device_put(leaf, NamedSharding(mesh, P("data", *[None] * (np.ndim(leaf) - 1))))

    everywhere = NamedSharding(mesh, P())
    return jax.tree.map(lambda leaf: jax.device_put(leaf, everywhere), params), {k: rows(v) for k, v in batch.items()}


# Every device should get a share of the examples, so this student dealt them out over all axes that the mesh has.
def place_dp__wrong_all_axes(params, batch, mesh):
    params = jax.device_put(params, NamedSharding(mesh, P()))
    batch = jax.device_put(batch, NamedSharding(mesh, P(mesh.axis_names)))
    return params, batch


# This student thought of x and y as matrices, and named a second dimension which an array of labels does not have.
def place_dp__wrong_matrices_only(params, batch, mesh):
    return (
        jax.device_put(params, NamedSharding(mesh, P())),
        jax.device_put(batch, NamedSharding(mesh, P("data", None))),
    )


# This student thought it kinder to leave out the last rows than to fail where the batch cannot be cut evenly.
def place_dp__wrong_trimmed(params, batch, mesh):
    n = mesh.shape["data"]
    batch = {name: value[: len(value) // n * n] for name, value in batch.items()}
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, P("data")))


# This student mixed up examples and features: the batch's last dimension is cut, each device sees a part of every example.
def place_dp__wrong_features(params, batch, mesh):
    def cut(leaf):
        return jax.device_put(leaf, NamedSharding(mesh, P(*[None] * (np.ndim(leaf) - 1), "data")))

    return jax.device_put(params, NamedSharding(mesh, P())), jax.tree.map(cut, batch)
