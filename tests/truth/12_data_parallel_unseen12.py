"""Answers to lesson 12, twelfth batch, written by a reader of the notebook only."""

from functools import reduce

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


def momentum_step(state, batch):
    """One step with momentum. The state is a dict of "params" and "velocity"."""
    gradients = jax.grad(loss)(state["params"], batch["x"], batch["y"])
    velocity = jax.tree.map(lambda v, g: 0.5 * v + g, state["velocity"], gradients)
    return {"params": descend(state["params"], velocity, 1 / 64), "velocity": velocity}


def compiled(function, **options):
    """`jax.jit(function, **options)`; it asks first whether its arguments still exist."""
    jitted = jax.jit(function, **options)

    def call(*arguments):
        for leaf in jax.tree.leaves(arguments):
            if leaf.is_deleted():
                raise RuntimeError(f"Array has been deleted with shape={leaf.dtype}[{','.join(map(str, leaf.shape))}].")
        return jitted(*arguments)

    return call


# ---------------------------------------------------------------- accumulate


def accumulate__right_strided(params, x, y, *, microbatches, mesh):
    """(loss, gradients) of the whole batch, each device's rows in turns."""

    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)
        total = nothing
        for k in range(microbatches):  # every microbatches-th row, beginning with row k
            found = jax.value_and_grad(loss)(own, x[k::microbatches], y[k::microbatches])
            total = jax.tree.map(jnp.add, total, found)
        parts = microbatches * mesh.shape["data"]
        return jax.tree.map(lambda leaf: leaf / parts, jax.lax.psum(total, "data"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: the loop only has to add up the gradients; the loss is whatever value_and_grad said last.
def accumulate__wrong_last_loss(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)
        value, total = nothing
        for part_x, part_y in zip(jnp.split(x, microbatches), jnp.split(y, microbatches)):
            value, found = jax.value_and_grad(loss)(own, part_x, part_y)
            total = jax.tree.map(jnp.add, total, found)
        total = jax.tree.map(lambda g: g / microbatches, total)
        return jax.lax.pmean((value, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: gradients with respect to params arrive summed over data anyway, so I just divide by the devices too (a sum in every turn).
def accumulate__wrong_every_turn(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, part):
            value, found = jax.value_and_grad(loss)(params, *part)
            found = jax.tree.map(lambda g: g / mesh.shape["data"], found)
            return jax.tree.map(jnp.add, total, (value, found)), None

        parts = x.reshape(microbatches, -1, x.shape[1]), y.reshape(microbatches, -1, y.shape[1])
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.lax.pmean(jax.tree.map(lambda leaf: leaf / microbatches, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: the gradient of the whole batch is the sum of the devices' gradients, so psum; the turns are what has to be divided out.
def accumulate__wrong_psum(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *part)), None

        parts = x.reshape(microbatches, -1, x.shape[1]), y.reshape(microbatches, -1, y.shape[1])
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.lax.psum(jax.tree.map(lambda leaf: leaf / microbatches, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# Thought: "microbatches" is the number of rows of a part, so the scan goes over the dimension in front of it.
def accumulate__wrong_swapped(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, part):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *part)), None

        parts = x.reshape(-1, microbatches, x.shape[1]), y.reshape(-1, microbatches, y.shape[1])
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.lax.pmean(jax.tree.map(lambda leaf: leaf / microbatches, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# ---------------------------------------------------------------- metrics


def metrics__right_one_vector(logits, labels, real, *, mesh):
    """Accuracy and mean cross entropy over the real rows."""

    def on_device(logits, labels, real):
        target = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
        missing = jax.nn.logsumexp(logits, axis=-1) - target
        hit = jnp.argmax(logits, axis=-1) == labels
        there = real > 0
        own = jnp.stack(
            [
                jnp.sum(jnp.where(there, hit, False)).astype(jnp.float32),
                jnp.sum(jnp.where(there, missing, 0.0)),
                jnp.sum(real),
            ]
        )
        right, lost, count = jax.lax.psum(own, "data")
        return {"accuracy": right / count, "loss": lost / count}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


# Thought: each device takes the mean over its real rows (never dividing by 0), and the mean over the devices makes it global.
def metrics__wrong_mean_of_means(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        hit = (jnp.argmax(logits, axis=-1) == labels).astype(jnp.float32)
        count = jnp.maximum(real.sum(), 1.0)
        return jax.lax.pmean({"accuracy": (hit * real).sum() / count, "loss": (losses * real).sum() / count}, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


# Thought: all devices need the same answer, so gather the rows and let each compute it as a single device would.
def metrics__wrong_gathered(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        logits, labels, real = (jax.lax.all_gather(a, "data", axis=0, tiled=True) for a in (logits, labels, real))
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        hit = (jnp.argmax(logits, axis=-1) == labels).astype(jnp.float32)
        return {"accuracy": (hit * real).sum() / real.sum(), "loss": (losses * real).sum() / real.sum()}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False)(logits, labels, real)


# Thought: if the logits of the padding are made zero, those rows add nothing to the sum of losses (but log_softmax of zeros is -log C).
def metrics__wrong_zero_logits(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        log_p = jax.nn.log_softmax(logits * real[:, None])
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        hit = (jnp.argmax(logits, axis=-1) == labels) * real
        right, lost, count = jax.lax.psum((hit.sum(), losses.sum(), real.sum()), "data")
        return {"accuracy": right / count, "loss": lost / count}

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


# Thought: a device without real rows would divide by 0, so each device's count is at least 1 (before the counts are added up).
def metrics__wrong_guarded_count(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        hit = (jnp.argmax(logits, axis=-1) == labels).astype(jnp.float32)
        count = jax.lax.psum(jnp.maximum(real.sum(), 1.0), "data")
        return {
            "accuracy": jax.lax.psum((hit * real).sum(), "data") / count,
            "loss": jax.lax.psum((losses * real).sum(), "data") / count,
        }

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=P())(logits, labels, real)


# ---------------------------------------------------------------- donate


def donate__right_reduce(state, batches):
    """(the last state, how many arrays of the given one still exist)."""
    given = jax.tree.leaves(state)
    layouts = jax.tree.map(lambda leaf: leaf.sharding, state)
    last = reduce(compiled(momentum_step, donate_argnums=0, out_shardings=layouts), batches, state)
    return last, len([leaf for leaf in given if not leaf.is_deleted()])


# Thought: the caller may still need what he gave me, so I copy it first and give away only my own copy.
def donate__wrong_protects(state, batches):
    step = compiled(momentum_step, donate_argnums=0)
    mine = jax.tree.map(jnp.copy, state)
    for batch in batches:
        mine = step(mine, batch)
    return mine, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


# Thought: the velocity is an average that is still needed in the next step, so only the parameters can be given away.
def donate__wrong_only_params(state, batches):
    given = jax.tree.leaves(state)

    def apart(params, velocity, batch):
        new = momentum_step({"params": params, "velocity": velocity}, batch)
        return new["params"], new["velocity"]

    step = compiled(apart, donate_argnums=0)
    params, velocity = state["params"], state["velocity"]
    for batch in batches:
        params, velocity = step(params, velocity, batch)
    return {"params": params, "velocity": velocity}, sum(not leaf.is_deleted() for leaf in given)


# Thought: `state` is the given state, whose leaves I ask at the end (but the loop has bound the name anew).
def donate__wrong_overwritten(state, batches):
    step = compiled(momentum_step, donate_argnums=(0,))
    for batch in batches:
        state = step(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


# Thought: take batches from a list of what is still to do until it is empty (pop takes the last one first).
def donate__wrong_order(state, batches):
    step = compiled(momentum_step, donate_argnums=0)
    given, todo = jax.tree.leaves(state), list(batches)
    while todo:
        state = step(state, todo.pop())
    return state, sum(not leaf.is_deleted() for leaf in given)
