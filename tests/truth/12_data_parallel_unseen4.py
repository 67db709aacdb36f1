"""Answers to lesson 12, fourth batch, written by a reader of the notebook only."""

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


def varying(tree, axes):
    """The same arrays, marked as ones that may differ along these axes (`lax.pvary` until JAX 0.8.1)."""
    if hasattr(jax.lax, "pcast"):
        return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: jax.lax.pvary(leaf, axes), tree)


# ------------------------------------------------------------------ average_what

average_what__right_linear = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# This student thought that momentum which stays local drifts apart, so that the runs must differ.
average_what__wrong_local_memory = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "different",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# This student thought that with plain SGD all is linear, so two steps may be averaged as well as one.
average_what__wrong_two_steps_linear = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "same",
}

# This student thought that clipping is a multiplication by a number, and so linear.
average_what__wrong_clipping_scales = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "same",
    "SGD, averaged after every second step": "different",
}

# This student thought that weight decay acts on every device's copy and so is counted once a device, and that momentum remembers.
average_what__wrong_decay_counted = {
    "SGD": "same",
    "SGD with weight decay": "different",
    "SGD with momentum": "different",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}


# ------------------------------------------------------------------ accumulate


def accumulate__right_strided(params, x, y, *, microbatches, mesh):
    """Every microbatches-th row belongs to one turn; a Python loop."""

    def on_device(params, x, y):
        own = varying(params, "data")
        total = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)
        for turn in range(microbatches):
            found = jax.value_and_grad(loss)(own, x[turn::microbatches], y[turn::microbatches])
            total = jax.tree.map(lambda t, f: t + f / microbatches, total, found)
        return jax.lax.pmean(total, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that the pmean at the end divides by everything that there is to divide by.
def accumulate__wrong_not_divided(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, rows):
            found = jax.value_and_grad(loss)(own, *rows)
            return jax.tree.map(jnp.add, total, found), None

        parts = tuple(a.reshape(microbatches, -1, a.shape[-1]) for a in (x, y))
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.lax.pmean(total, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that turns are averaged but devices, which have different rows, are added up.
def accumulate__wrong_psum(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, rows):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *rows)), None

        parts = x.reshape(microbatches, -1, x.shape[-1]), y.reshape(microbatches, -1, y.shape[-1])
        total, _ = jax.lax.scan(turn, nothing, parts)
        total = jax.tree.map(lambda t: t / microbatches, total)
        return jax.lax.psum(total, "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that each turn's gradient has to be averaged over the devices before it may be added.
def accumulate__wrong_every_turn(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        total = None
        for part_x, part_y in zip(jnp.split(x, microbatches), jnp.split(y, microbatches)):
            found = jax.lax.pmean(jax.value_and_grad(loss)(own, part_x, part_y), "data")
            total = found if total is None else jax.tree.map(jnp.add, total, found)
        return jax.tree.map(lambda t: t / microbatches, total)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# This student thought that `microbatches` is the number of rows in a turn, and divides by it all the same.
def accumulate__wrong_rows_for_turns(params, x, y, *, microbatches, mesh):
    def on_device(params, x, y):
        own = varying(params, "data")
        nothing = varying(jnp.float32(0), "data"), jax.tree.map(jnp.zeros_like, own)

        def turn(total, rows):
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(own, *rows)), None

        parts = x.reshape(-1, microbatches, x.shape[-1]), y.reshape(-1, microbatches, y.shape[-1])
        total, _ = jax.lax.scan(turn, nothing, parts)
        return jax.lax.pmean(jax.tree.map(lambda t: t / microbatches, total), "data")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P())(params, x, y)


# ------------------------------------------------------------------ clip_by_global_norm


def clip_by_global_norm__right_global_view(gradients, *, limit, mesh):
    """No shard_map: the norm of the whole arrays, and the layouts asked for again."""
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    norm = jnp.sqrt(sum(jnp.vdot(g, g) if g.ndim == 1 else jnp.sum(g * g) for g in gradients.values()))
    factor = jnp.where(norm > limit, limit / norm, 1.0)
    clipped = {
        name: jax.lax.with_sharding_constraint(g * factor, NamedSharding(mesh, specs[name]))
        for name, g in gradients.items()
    }
    return clipped, norm


# This student thought that the devices along data hold parts as well, and sums the squares over both axes.
def clip_by_global_norm__wrong_both_axes(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        parts = sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(parts, ("data", "model")) + jnp.sum(g["b2"] ** 2))
        factor = jnp.minimum(1, limit / norm)
        return jax.tree.map(lambda leaf: leaf * factor, g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# This student thought that every leaf is to be shortened by its own norm; only the number returned is that of all.
def clip_by_global_norm__wrong_leaf_by_leaf(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        squares = {name: jnp.sum(leaf**2) for name, leaf in g.items()}
        squares = {name: s if name == "b2" else jax.lax.psum(s, "model") for name, s in squares.items()}
        clipped = {name: leaf * jnp.minimum(1, limit / jnp.sqrt(squares[name])) for name, leaf in g.items()}
        return clipped, jnp.sqrt(sum(squares.values()))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# This student thought that the norm to be reported is the one that the returned gradients have.
def clip_by_global_norm__wrong_norm_after(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        parts = sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2"))
        norm = jnp.sqrt(jax.lax.psum(parts, "model") + jnp.sum(g["b2"] ** 2))
        factor = jnp.minimum(1, limit / norm)
        return jax.tree.map(lambda leaf: leaf * factor, g), norm * factor

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# This student took the root on each device and added the roots (a norm of norms without squares), b2 outside.
def clip_by_global_norm__wrong_roots_added(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        own = jnp.sqrt(sum(jnp.sum(g[name] ** 2) for name in ("W1", "b1", "W2")))
        norm = jax.lax.psum(own, "model") + jnp.sqrt(jnp.sum(g["b2"] ** 2))
        factor = jnp.minimum(1, limit / norm)
        return jax.tree.map(lambda leaf: leaf * factor, g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)
