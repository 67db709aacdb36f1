"""Answers to lesson 12, written by a reader of the notebook only."""

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


def place_dp__right_map(params, batch, mesh):
    def put(spec):
        return lambda leaf: jax.device_put(leaf, NamedSharding(mesh, spec))

    return jax.tree.map(put(P()), params), jax.tree.map(put(P("data")), batch)


def place_dp__wrong_both_cut(params, batch, mesh):
    """The parameters cut as well."""
    return jax.device_put((params, batch), NamedSharding(mesh, P("data")))


def place_dp__wrong_columns(params, batch, mesh):
    """The batch cut along its features."""
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, P(None, "data")))


def place_dp__wrong_crop(params, batch, mesh):
    """Rows that do not fit are dropped, and the error hidden."""
    n = mesh.shape["data"]
    batch = {k: v[: len(v) // n * n] for k, v in batch.items()}
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, P("data")))


def place_dp__wrong_order(params, batch, mesh):
    """(batch, params)."""
    return jax.device_put(batch, NamedSharding(mesh, P("data"))), jax.device_put(params, NamedSharding(mesh, P()))


def place_dp__wrong_all_whole(params, batch, mesh):
    """Nothing cut."""
    return jax.device_put((params, batch), NamedSharding(mesh, P()))


def jit_dp__right_scan(params, x, y, *, steps, rate, mesh):
    cut = NamedSharding(mesh, P("data"))
    x, y = jax.lax.with_sharding_constraint((x, y), cut)

    def one(p, _):
        l, g = jax.value_and_grad(loss)(p, x, y)
        return descend(p, g, rate), l

    params, losses = jax.lax.scan(one, params, None, length=steps)
    return losses, params


def jit_dp__wrong_after(params, x, y, *, steps, rate, mesh):
    """Losses after each step."""
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        params = descend(params, jax.grad(loss)(params, x, y), rate)
        losses.append(loss(params, x, y))
    return jnp.stack(losses), params


def jit_dp__wrong_no_constraint(params, x, y, *, steps, rate, mesh):
    """The batch is never cut."""
    losses = []
    for _ in range(steps):
        value, g = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, g, rate)
        losses.append(value)
    return jnp.stack(losses), params


def jit_dp__wrong_result_lost(params, x, y, *, steps, rate, mesh):
    """The constraint's result is thrown away."""
    jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data")))
    jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        value, g = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, g, rate)
        losses.append(value)
    return jnp.stack(losses), params


def jit_dp__wrong_last(params, x, y, *, steps, rate, mesh):
    """The last loss only."""
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))
    for _ in range(steps):
        value, g = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, g, rate)
    return value, params


def jit_dp__wrong_columns(params, x, y, *, steps, rate, mesh):
    """x cut along its features."""
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "data")))
    losses = []
    for _ in range(steps):
        value, g = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, g, rate)
        losses.append(value)
    return jnp.stack(losses), params


def _train(reduce_loss, reduce_grad, inside=False, check=True):
    def program(params, x, y, *, steps, rate, mesh):
        def on_device(params, x, y):
            losses = []
            for _ in range(steps):
                f = (lambda p: jax.lax.pmean(loss(p, x, y), "data")) if inside else (lambda p: loss(p, x, y))
                value, g = jax.value_and_grad(f)(params)
                params = descend(params, reduce_grad(g), rate)
                losses.append(reduce_loss(value))
            return jnp.stack(losses), params

        return jax.shard_map(
            on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=check
        )(params, x, y)

    return program


def shard_map_dp__right_unchecked(params, x, y, *, steps, rate, mesh):
    """The check off, and a mean of both."""
    mean = lambda tree: jax.lax.pmean(tree, "data")
    return _train(mean, mean, check=False)(params, x, y, steps=steps, rate=rate, mesh=mesh)


def shard_map_dp__right_divided(params, x, y, *, steps, rate, mesh):
    """The check on: JAX adds up, I divide."""
    n = mesh.shape["data"]
    return _train(lambda l: jax.lax.pmean(l, "data"), lambda g: jax.tree.map(lambda a: a / n, g))(
        params, x, y, steps=steps, rate=rate, mesh=mesh
    )


def shard_map_dp__wrong_sum_as_mean(params, x, y, *, steps, rate, mesh):
    """The check on, pmean of what is a sum already."""
    mean = lambda tree: jax.lax.pmean(tree, "data")
    return _train(mean, mean)(params, x, y, steps=steps, rate=rate, mesh=mesh)


def shard_map_dp__wrong_psum(params, x, y, *, steps, rate, mesh):
    """psum for pmean, of both."""
    add = lambda tree: jax.lax.psum(tree, "data")
    return _train(add, add, check=False)(params, x, y, steps=steps, rate=rate, mesh=mesh)


def shard_map_dp__wrong_loss_local(params, x, y, *, steps, rate, mesh):
    """The loss of the first device only."""
    return _train(lambda l: l, lambda g: jax.lax.pmean(g, "data"), check=False)(
        params, x, y, steps=steps, rate=rate, mesh=mesh
    )


def shard_map_dp__wrong_no_reduction(params, x, y, *, steps, rate, mesh):
    """The gradients stay local."""
    return _train(lambda l: jax.lax.pmean(l, "data"), lambda g: g, check=False)(
        params, x, y, steps=steps, rate=rate, mesh=mesh
    )


def shard_map_dp__wrong_swapped(params, x, y, *, steps, rate, mesh):
    """(params, losses)."""
    mean = lambda tree: jax.lax.pmean(tree, "data")
    return _train(mean, mean, check=False)(params, x, y, steps=steps, rate=rate, mesh=mesh)[::-1]


def metrics__right_stacked(logits, labels, real, *, mesh):
    """One psum of three numbers."""

    def on_device(logits, labels, real):
        picked = (jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, logits.shape[1])).sum(1)
        hits = (logits.argmax(1) == labels).astype(jnp.float32)
        hit, lost, count = jax.lax.psum(jnp.stack([(hits * real).sum(), -(picked * real).sum(), real.sum()]), "data")
        return {"accuracy": hit / count, "loss": lost / count}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P())(logits, labels, real)


def metrics__wrong_mean_of_means(logits, labels, real, *, mesh):
    """Divides on each device, then pmean."""

    def on_device(logits, labels, real):
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hits = (logits.argmax(-1) == labels) * real
        return jax.lax.pmean({"accuracy": hits.sum() / real.sum(), "loss": -(picked * real).sum() / real.sum()}, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P())(logits, labels, real)


def metrics__wrong_all_rows(logits, labels, real, *, mesh):
    """Divides by all rows, padding too."""

    def on_device(logits, labels, real):
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hits = (logits.argmax(-1) == labels) * real
        return jax.lax.pmean({"accuracy": hits.mean(), "loss": -(picked * real).mean()}, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P())(logits, labels, real)


def metrics__wrong_sign(logits, labels, real, *, mesh):
    """The minus forgotten."""

    def on_device(logits, labels, real):
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hits = (logits.argmax(-1) == labels) * real
        hits, total, n = jax.lax.psum((hits.sum(), (picked * real).sum(), real.sum()), "data")
        return {"accuracy": hits / n, "loss": total / n}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P())(logits, labels, real)


def metrics__wrong_unmasked_hits(logits, labels, real, *, mesh):
    """Padding counts as right where its label fits."""

    def on_device(logits, labels, real):
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hits = logits.argmax(-1) == labels
        hits, total, n = jax.lax.psum((hits.sum(), -(picked * real).sum(), real.sum()), "data")
        return {"accuracy": hits / n, "loss": total / n}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P())(logits, labels, real)


def metrics__wrong_gathered(logits, labels, real, *, mesh):
    """Sends all rows."""

    def on_device(logits, labels, real):
        logits, labels, real = (jax.lax.all_gather(a, "data", tiled=True) for a in (logits, labels, real))
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hits = (logits.argmax(-1) == labels) * real
        return {"accuracy": hits.sum() / real.sum(), "loss": -(picked * real).sum() / real.sum()}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P(), check_vma=False)(
        logits, labels, real
    )


same_lr_question__right_factors = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.48 / 8,
    "local sum, pmean": 0.48 / 6,
    "local sum, psum": 0.48 / 48,
    "local mean, nothing, check_vma on": 0.48 / 8,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48 / 4,
}
# multiplied in place of divided
same_lr_question__wrong_times = {k: 0.48 * 0.48 / v for k, v in same_lr_question__right_factors.items()}
# thinks that nothing is combined where nothing is written
same_lr_question__wrong_nothing = {**same_lr_question__right_factors, "local mean, nothing, check_vma on": 0.48}
# thinks that the microbatches divide
same_lr_question__wrong_microbatches = {
    **same_lr_question__right_factors,
    "local mean, summed over 4 microbatches, pmean": 1.92,
}
# the sum over rows taken for one over devices
same_lr_question__wrong_mixed = {**same_lr_question__right_factors, "local sum, pmean": 0.06, "local mean, psum": 0.08}
