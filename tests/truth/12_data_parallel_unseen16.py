"""Answers to lesson 12, sixteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- same_lr_question

same_lr_question__right_factors = {
    "local mean, pmean": 0.48 / 1,
    "local mean, psum": 0.48 / 8,
    "local sum, pmean": 0.48 / 6,
    "local sum, psum": 0.48 / (6 * 8),
    "local mean, nothing, check_vma on": 0.48 / 8,
    "local sum / 48, psum": 0.48 * 48 / (6 * 8),
    "local mean, summed over 4 microbatches, pmean": 0.48 / 4,
}

# Nothing is written to combine the devices, so each one steps by the mean of its own rows, which has the right size.
same_lr_question__wrong_own = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.48,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# pmean makes the mean over everything that was added up, rows and turns too, so whatever ends in it needs no correction.
same_lr_question__wrong_meanofall = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.48,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.48,
}

# With 8 devices whose gradients are added one multiplies the rate by 8, as everybody says.
same_lr_question__wrong_times = {
    "local mean, pmean": 0.48,
    "local mean, psum": 3.84,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 3.84,
    "local sum / 48, psum": 0.48,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}

# A psum over 8 devices is 8 times too large whatever went in: the 48 has made a mean already, so an 8 is left.
same_lr_question__wrong_alwayseight = {
    "local mean, pmean": 0.48,
    "local mean, psum": 0.06,
    "local sum, pmean": 0.08,
    "local sum, psum": 0.01,
    "local mean, nothing, check_vma on": 0.06,
    "local sum / 48, psum": 0.06,
    "local mean, summed over 4 microbatches, pmean": 0.12,
}


# ---------------------------------------------------------------- accumulate


def accumulate__right_strided(params, x, y, *, microbatches, mesh):
    """(loss, gradients) of the whole batch, each device's rows in turns."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def deal(rows):  # like cards: row k goes to turn k % microbatches
            return rows.reshape(-1, microbatches, *rows.shape[1:]).swapaxes(0, 1)

        def turn(total, cards):
            found = jax.value_and_grad(loss)(own, *cards)
            return jax.tree.map(lambda t, f: t + f / microbatches, total, found), None

        total, _ = jax.lax.scan(turn, nothing, (deal(x), deal(y)))
        return jax.lax.pmean(total, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Adds the gradients up, but hands back as loss whatever the last turn happened to have.
def accumulate__wrong_lastloss(params, x, y, *, microbatches, mesh):
    """(loss, gradients) of the whole batch, each device's rows in turns."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, part):
            value, grads = jax.value_and_grad(loss)(own, *part)
            return (value, jax.tree.map(jnp.add, total[1], grads)), None

        parts = jax.tree.map(lambda a: a.reshape(microbatches, -1, a.shape[1]), (x, y))
        (value, grads), _ = jax.lax.scan(turn, nothing, parts)
        grads = jax.tree.map(lambda g: g / microbatches, grads)
        return jax.lax.pmean((value, grads), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# Takes `microbatches` for the number of rows in a microbatch, instead of the number of turns.
def accumulate__wrong_rowseach(params, x, y, *, microbatches, mesh):
    """(loss, gradients) of the whole batch, each device's rows in turns."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)
        turns = x.shape[0] // microbatches
        xs = x.reshape(turns, microbatches, x.shape[1])
        ys = y.reshape(turns, microbatches, y.shape[1])

        def turn(total, part):
            part_x, part_y = part
            new = jax.value_and_grad(loss)(own, part_x, part_y)
            return jax.tree.map(jnp.add, total, new), None

        total, _ = jax.lax.scan(turn, nothing, (xs, ys))
        total = jax.tree.map(lambda t: t / turns, total)
        return jax.lax.pmean(total, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Averages over the devices in every turn, so that the running total is the same everywhere (it is, but it is sent each time).
def accumulate__wrong_everyturn(params, x, y, *, microbatches, mesh):
    """(loss, gradients) of the whole batch, each device's rows in turns."""

    def on_device(params, x, y):
        own = varying(params, "data")
        total = jnp.float32(0), jax.tree.map(jnp.zeros_like, params)
        for part_x, part_y in zip(jnp.split(x, microbatches), jnp.split(y, microbatches)):
            found = jax.lax.pmean(jax.value_and_grad(loss)(own, part_x, part_y), "data")
            total = jax.tree.map(jnp.add, total, found)
        return jax.tree.map(lambda t: t / microbatches, total)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Remembers that gradients in shard_map arrive summed, and divides by the devices, although `own` varies and pmean divides too.
def accumulate__wrong_twice(params, x, y, *, microbatches, mesh):
    """(loss, gradients) of the whole batch, each device's rows in turns."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)
        n = jax.lax.axis_size("data")

        def turn(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *part)), None

        parts = tuple(a.reshape(microbatches, -1, a.shape[-1]) for a in (x, y))
        value, grads = jax.lax.scan(turn, nothing, parts)[0]
        value = value / microbatches
        grads = jax.tree.map(lambda g: g / (microbatches * n), grads)
        return jax.lax.pmean((value, grads), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# ---------------------------------------------------------------- shard_map_dp


def shard_map_dp__right_localgradient(params, x, y, *, steps, rate, mesh):
    """(losses before each step, parameters after the last)."""

    def on_device(params, x, y):
        def step(params, _):
            mine = jax.value_and_grad(loss)(varying(params, "data"), x, y)
            value, gradients = jax.lax.pmean(mine, "data")
            return descend(params, gradients, rate), value

        params, losses = jax.lax.scan(step, params, length=steps)
        return losses, params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Divides the summed gradient by all devices of the mesh, not by those along "data": right where there is no other axis.
def shard_map_dp__wrong_alldevices(params, x, y, *, steps, rate, mesh):
    """(losses before each step, parameters after the last)."""

    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(params, x, y)  # summed already
            gradients = jax.tree.map(lambda g: g / mesh.size, gradients)
            losses.append(jax.lax.pmean(value, "data"))
            params = descend(params, gradients, rate)
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# Lets each device train on its own rows for all steps, and averages the models once, at the end.
def shard_map_dp__wrong_attheend(params, x, y, *, steps, rate, mesh):
    """(losses before each step, parameters after the last)."""

    def on_device(params, x, y):
        own = varying(params, "data")
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(own, x, y)
            own = descend(own, gradients, rate)
            losses.append(value)
        return jax.lax.pmean((jnp.stack(losses), own), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Notes the loss after the update, when the new parameters are known.
def shard_map_dp__wrong_after(params, x, y, *, steps, rate, mesh):
    """(losses before each step, parameters after the last)."""

    def on_device(params, x, y):
        def whole(params):
            return jax.lax.pmean(loss(params, x, y), "data")

        losses = []
        for _ in range(steps):
            params = descend(params, jax.grad(whole)(params), rate)
            losses.append(whole(params))
        return jnp.stack(losses), params

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))(params, x, y)


# Only gradients need an average, the loss is just for printing; switched the check off because it complained about the losses.
def shard_map_dp__wrong_ownloss(params, x, y, *, steps, rate, mesh):
    """(losses before each step, parameters after the last)."""

    def on_device(params, x, y):
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            gradients = jax.lax.pmean(gradients, "data")
            params = descend(params, gradients, rate)
            losses.append(value)
        return jnp.stack(losses), params

    run = jax.shard_map(
        on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=False
    )
    return run(params, x, y)
