"""Answers to lesson 11, eighth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
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


# ---- dp_gradient_outside


def dp_gradient_outside__right_sum_of_squares(params, x, y, *, mesh):
    def body(params, rows, targets):
        errors = jnp.tanh(rows @ params["w1"]) @ params["w2"] - targets
        return jax.lax.psum(jnp.sum(errors * errors), "data")

    total = jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())
    return total(params, x, y) / y.size  # y is the whole array out here


# This student thought "world size", and divided by all devices of the mesh, those along model too.
def dp_gradient_outside__wrong_world_size(params, x, y, *, mesh):
    world_size = mesh.size

    def body(params, x, y):
        return jax.lax.psum(loss(params, x, y), "data") / world_size

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that data never needs a gradient (requires_grad=False), and detached it to send less.
def dp_gradient_outside__wrong_detached_data(params, x, y, *, mesh):
    def body(params, x, y):
        x, y = jax.lax.stop_gradient(x), jax.lax.stop_gradient(y)
        return jax.lax.pmean(loss(params, x, y), "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that the transposed cast will add up n gradients, and so divided the mean once more beforehand.
def dp_gradient_outside__wrong_divided_again(params, x, y, *, mesh):
    def body(params, x, y):
        n = jax.lax.axis_size("data")
        return jax.lax.pmean(loss(params, x, y) / n, "data")

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student took the exercise's name for what is to be returned: the gradient of the loss, not the loss.
def dp_gradient_outside__wrong_returns_gradient(params, x, y, *, mesh):
    mean = jax.shard_map(
        lambda p, x, y: jax.lax.pmean(loss(p, x, y), "data"),
        mesh=mesh,
        in_specs=(P(), P("data"), P("data")),
        out_specs=P(),
    )
    return jax.grad(mean)(params, x, y)


# ---- same_with_vma_off

_loss_factor = {"own loss": 1, "pmean of the loss": 1, "psum of the loss": 8}
_last_factor = {"pmean": 1, "psum": 8}
same_with_vma_off__right_two_factors = {
    f"{first}, then {last}": a * b for first, a in _loss_factor.items() for last, b in _last_factor.items()
} | {"own loss": "copies differ", "pmean of the loss": "copies differ"}

# This student thought that a pmean of the loss is one number on all devices, and so is then its gradient: 1, as with the check on.
same_with_vma_off__wrong_pmean_is_one = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": 1,
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# This student thought that the 1/8 of the pmean is left over, as nobody adds it up again unchecked.
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

# This student thought that unchecked each device holds a part of the gradient, whose psum is the whole one and whose pmean an eighth of it.
same_with_vma_off__wrong_parts_of_a_sum = {
    "own loss": "copies differ",
    "own loss, then pmean": 1 / 8,
    "own loss, then psum": 1,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 8,
    "psum of the loss, then psum": 64,
}

# This student counted an 8 for the psum forwards (the loss is 8 times as large) and another 8 for the psum backwards.
same_with_vma_off__wrong_psum_counts_twice = {
    "own loss": "copies differ",
    "own loss, then pmean": 1,
    "own loss, then psum": 8,
    "pmean of the loss": "copies differ",
    "pmean of the loss, then pmean": 1,
    "pmean of the loss, then psum": 8,
    "psum of the loss, then pmean": 64,
    "psum of the loss, then psum": 512,
}


# ---- transposes

transposes__right_worked_out = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": sum([1] * 8),
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8 * 1,
    "all_gather to P(), ct 0 … 7": list(range(8))[3],
    "ppermute +1, ct 0 … 7": (3 + 1) % 8,
    "psum_scatter, ct 0 … 7": list(range(8)),
    "w from P() to P('data'), ct 0 … 7": sum(range(8)),
}

# This student thought that backwards means the other way, so that device 3 gets the cotangent of device 2.
transposes__wrong_permute_direction = transposes__right_worked_out | {"ppermute +1, ct 0 … 7": 2}

# This student thought that device 3 keeps sum number 3, so that each of its eight numbers gets that one's cotangent.
transposes__wrong_scatter_own = transposes__right_worked_out | {"psum_scatter, ct 0 … 7": [3, 3, 3, 3, 3, 3, 3, 3]}

# This student took the two all_gathers for each other's: the one to P() goes to eight devices (8 times 3), the one cut over data is one entry.
transposes__wrong_gathers = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 8,
    "pmean to P(), ct 1": 0.125,
    "all_gather to P('data'), ct 1 each": 1,
    "all_gather to P(), ct 0 … 7": 24,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 28,
}

# This student thought that backwards a device sees only its own entry of what is cut over data: its 1 after a psum, its 3 for w.
transposes__wrong_own_entry_only = {
    "psum to P(), ct 1": 1,
    "psum to P('data'), ct 1 each": 1,
    "pmean to P(), ct 1": 1 / 8,
    "all_gather to P('data'), ct 1 each": 8,
    "all_gather to P(), ct 0 … 7": 3,
    "ppermute +1, ct 0 … 7": 4,
    "psum_scatter, ct 0 … 7": [0, 1, 2, 3, 4, 5, 6, 7],
    "w from P() to P('data'), ct 0 … 7": 3,
}
