"""Answers to lesson 11, twenty-second batch, written by a reader of the notebook only."""

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


# ---- gradient_divided


def gradient_divided__right_outside(params, x, y, *, mesh):
    """The gradients of the whole batch, by way of each device's own."""
    added = jax.shard_map(jax.grad(loss), mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)
    return {name: g / mesh.shape["data"] for name, g in added.items()}


# Each device divides its gradient by the number of devices, then they are added, as one does with MPI_Allreduce.
def gradient_divided__wrong_then_psum(params, x, y, *, mesh):
    def body(params, x, y):
        grads = jax.grad(loss)(params, x, y)
        n = mesh.shape["data"]
        return jax.tree.map(lambda g: jax.lax.psum(g / n, "data"), grads)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# The sum is over the devices, so divide by how many devices the mesh has (but only those along data were added up).
def gradient_divided__wrong_all_devices(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.tree.map(lambda g: g / mesh.size, jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# What was added are the gradients of rows, and the mean over a batch divides by its rows (but each device's loss is a mean already).
def gradient_divided__wrong_rows(params, x, y, *, mesh):
    batch = x.shape[0]

    def body(params, x, y):
        return jax.tree.map(lambda g: g / batch, jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Turns the check off, to be sure of getting each device's own gradient, and divides: out_specs=P() is taken to add them up.
def gradient_divided__wrong_unchecked(params, x, y, *, mesh):
    def body(params, x, y):
        return jax.tree.map(lambda g: g / mesh.shape["data"], jax.grad(loss)(params, x, y))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P(), check_vma=False)(
        params, x, y
    )


# ---- same_with_vma_off

same_with_vma_off__right_table = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# The pmean in the loss divides by 8 and is not undone on the way back: every device has an eighth of its own gradient.
same_with_vma_off__wrong_division_stays = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1 / 8,
    "pmean of the loss, then psum": 1,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# A pmean of the loss is the same number on all devices, so its gradient must be the same on all, and it is that of the mean.
same_with_vma_off__wrong_one_loss = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 1,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# out_specs=P() wants one value, so shard_map adds up what still differs when it leaves.
same_with_vma_off__wrong_spec_adds = {
    "own loss": 8,
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 8,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# The backward pass of a plain psum is a copy, check or no check, so a psum of the loss is like the own loss; only pmean is special.
same_with_vma_off__wrong_psum_copies = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 1,
    "psum of the loss, then psum": 8,
}


# ---- one_all_reduce


def one_all_reduce__right_cast(w, xs, ys, *, mesh):
    """The gradient of all small batches together, with one all-reduce."""

    def body(w, xs, ys):
        of_each = jax.vmap(jax.grad(squares), in_axes=(None, 0, 0))(varying(w, "data"), xs, ys)
        return jax.lax.psum(of_each.sum(0), "data")

    rows = P(None, "data", None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, None), rows, rows), out_specs=P(None, None))(w, xs, ys)


# The types do it: w is whole, so the gradient of every small batch is whole, and the compiler will merge the sums.
def one_all_reduce__wrong_every_turn(w, xs, ys, *, mesh):
    total = jax.grad(squares)(w, xs[0], ys[0])
    for x, y in zip(xs[1:], ys[1:]):
        total = total + jax.grad(squares)(w, x, y)
    return reshard(total, NamedSharding(mesh, P()))


# Inside of shard_map every device has its own rows, hence its own gradient; add them, then psum once (forgets the cast).
def one_all_reduce__wrong_no_cast(w, xs, ys, *, mesh):
    def body(w, xs, ys):
        total = sum(jax.grad(squares)(w, x, y) for x, y in zip(xs, ys))
        return jax.lax.psum(total, "data")

    rows = P(None, "data", None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, None), rows, rows), out_specs=P(None, None))(w, xs, ys)


# Gradients of a data-parallel batch are averaged over the devices (but squares is a sum over rows, not a mean).
def one_all_reduce__wrong_pmean(w, xs, ys, *, mesh):
    def body(w, xs, ys):
        own = varying(w, "data")
        total = sum(jax.grad(squares)(own, x, y) for x, y in zip(xs, ys))
        return jax.lax.pmean(total, "data")

    rows = P(None, "data", None)
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, None), rows, rows), out_specs=P(None, None))(w, xs, ys)


# Begins with the first part, since zeros cannot be added to it, and then goes over all of the batches, the first one again.
def one_all_reduce__wrong_first_twice(w, xs, ys, *, mesh):
    later = NamedSharding(mesh, P(unreduced={"data"}))

    def part(x, y):
        return jnp.dot(2 * x.T, x @ w - y, out_sharding=later)

    total = part(xs[0], ys[0])
    for x, y in zip(xs, ys):
        total = total + part(x, y)
    return reshard(total, NamedSharding(mesh, P()))
