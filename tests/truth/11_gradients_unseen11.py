"""Answers to lesson 11, eleventh batch, written by a reader of the notebook only."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def loss(params, x, y):
    """A small network's mean squared error, over the rows and over what comes out."""
    return jnp.mean((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2)


def squares(w, x, y):
    """The squared errors of a linear model, added up."""
    return jnp.sum((x @ w - y) ** 2)


def varying(value, axis):
    """The same value, typed as one that may differ along `axis`."""
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, axis, to="varying")
    return jax.lax.pvary(value, axis)  # the same, on JAX before 0.8.2


# ---------------------------------------------------------------- transposes

DEVICES, ME = 8, 3
CT = list(range(DEVICES))

transposes__right_counted = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": sum([1] * DEVICES),
    "pmean to P(), ct 1": 1 / DEVICES,
    "all_gather to P('data'), ct 1 each": sum([1] * DEVICES),  # my number is in every device's copy
    "all_gather to P(), ct 0 … 7": CT[ME],
    "ppermute +1, ct 0 … 7": CT[(ME + 1) % DEVICES],
    "psum_scatter, ct 0 … 7": CT,
    "w from P() to P('data'), ct 0 … 7": sum(CT),
}

# The transpose of psum is psum, always: also the one cotangent of a value with P() is added up over eight devices.
transposes__wrong_psum_is_psum = {
    "psum to P(), ct 1": 8,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# Cotangents travel with the permute as numbers do, so that device 3 gets the one from device 2.
transposes__wrong_from_the_left = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": CT[(ME - 1) % DEVICES],
    "psum_scatter, ct 0 … 7": CT,
    "w from P() to P('data'), ct 0 … 7": 28,
}

# Device 3 keeps sum 3, so its eight numbers all get cotangent 3; and the copies of a gather are added, so it gets the sum of all.
transposes__wrong_own_sum_and_all_copies = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": sum(CT),
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [CT[ME]] * DEVICES,
    "w from P() to P('data'), ct 0 … 7": 28,
}

# With P('data') every device returns a value of its own, so device 3 has to do with the cotangent of its own value only.
transposes__wrong_own_value_only = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 1,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 1,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": CT,
    "w from P() to P('data'), ct 0 … 7": 3,
}


# ---------------------------------------------------------------- one_all_reduce


def one_all_reduce__right_scan_in_shard_map(w, xs, ys, *, mesh):
    """The gradient of all small batches together, with one all-reduce."""
    rows = P(None, "data", None)

    def on_device(w, xs, ys):
        own = varying(w, "data")

        def one_more(total, batch):
            return total + jax.grad(squares)(own, *batch), None

        nothing_yet = varying(jnp.zeros(w.shape, w.dtype), "data")
        total, _ = jax.lax.scan(one_more, nothing_yet, (xs, ys))
        return jax.lax.psum(total, "data")

    return jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P()))(w, xs, ys)


def part_of_one(w, x, y, mesh):
    """A small batch's gradient, its sum over the devices put off."""
    return jnp.dot(2 * x.T, x @ w - y, out_sharding=NamedSharding(mesh, P(unreduced={"data"})))


# Adds the gradients in one jitted function, and believes that the compiler adds first and sends once.
def one_all_reduce__wrong_compiler_will(w, xs, ys, *, mesh):
    """The gradient of all small batches together, with one all-reduce."""

    @jax.jit
    def together(w, xs, ys):
        total = jax.grad(squares)(w, xs[0], ys[0])
        for x, y in zip(xs[1:], ys[1:]):
            total = total + jax.grad(squares)(w, x, y)
        return reshard(total, NamedSharding(mesh, P()))

    return together(w, xs, ys)


# Gradients are averaged over the devices, as in the recipes of part 5; but `squares` is a sum, and no mean.
def one_all_reduce__wrong_averaged(w, xs, ys, *, mesh):
    """The gradient of all small batches together, with one all-reduce."""
    rows = P(None, "data", None)

    def on_device(w, xs, ys):
        own = varying(w, "data")
        parts = [jax.grad(squares)(own, x, y) for x, y in zip(xs, ys)]
        return jax.lax.pmean(functools.reduce(jnp.add, parts), "data")

    return jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P()))(w, xs, ys)


# Begins with the first part, as zeros cannot be added to one, and then goes through all batches, the first one again.
def one_all_reduce__wrong_first_twice(w, xs, ys, *, mesh):
    """The gradient of all small batches together, with one all-reduce."""
    total = part_of_one(w, xs[0], ys[0], mesh)
    for x, y in zip(xs, ys):
        total = total + part_of_one(w, x, y, mesh)
    return reshard(total, NamedSharding(mesh, P()))


# Inside shard_map each device has its own rows, so its gradient is its own part until the psum; forgets what the cast of w does.
def one_all_reduce__wrong_added_already(w, xs, ys, *, mesh):
    """The gradient of all small batches together, with one all-reduce."""
    rows = P(None, "data", None)

    def on_device(w, xs, ys):
        def all_my_squares(w):
            return sum(squares(w, x, y) for x, y in zip(xs, ys))

        my_part = jax.grad(all_my_squares)(w)
        return jax.lax.psum(my_part, "data")

    return jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=(P(), rows, rows), out_specs=P()))(w, xs, ys)


# ---------------------------------------------------------------- dp_gradient_outside


def dp_gradient_outside__right_mean_outside(params, x, y, *, mesh):
    """The mean loss over the whole batch."""

    def one_per_device(params, x, y):
        return loss(params, x, y)[None]

    losses = jax.shard_map(one_per_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P("data"))
    return jnp.mean(losses(params, x, y))


# The loss of the whole batch is what all devices' losses add up to.
def dp_gradient_outside__wrong_added(params, x, y, *, mesh):
    """The mean loss over the whole batch."""

    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# A mean over the batch divides by the batch's rows; forgets that `loss` is a mean over what comes out as well.
def dp_gradient_outside__wrong_by_rows(params, x, y, *, mesh):
    """The mean loss over the whole batch."""
    all_rows = x.shape[0]

    def body(params, x, y):
        errors = jnp.tanh(x @ params["w1"]) @ params["w2"] - y
        return jax.lax.psum(jnp.sum(errors**2), "data") / all_rows

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Outside, the gradient is right with the check off, too, so turns it off to be safe from the casts that nobody wrote.
def dp_gradient_outside__wrong_unchecked(params, x, y, *, mesh):
    """The mean loss over the whole batch."""

    def body(params, x, y):
        return jax.lax.pmean(loss(params, x, y), "data")

    specs = P(), P("data"), P("data")
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(params, x, y)


# The mean over all devices is the sum divided by the number of devices of the mesh (right where `model` has one device only).
def dp_gradient_outside__wrong_all_devices(params, x, y, *, mesh):
    """The mean loss over the whole batch."""

    def share(own):
        return own / mesh.size

    def body(params, x, y):
        return jax.lax.psum(share(loss(params, x, y)), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)
