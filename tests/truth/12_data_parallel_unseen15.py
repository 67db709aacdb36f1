"""Answers to lesson 12, fifteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- clip_by_global_norm
def clip_by_global_norm__right_masked_tree(gradients, *, limit, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        own = sum(jnp.vdot(g[name], g[name]) for name in g if "model" in layouts[name])
        squares = jax.lax.psum(own, "model") + jnp.vdot(g["b2"], g["b2"])
        norm = jnp.sqrt(squares)
        factor = jnp.where(norm > limit, limit / jnp.where(norm > 0, norm, 1.0), 1.0)
        return {name: leaf * factor for name, leaf in g.items()}, norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts,), out_specs=(layouts, P()))(gradients)


# The student thought that every leaf's squares are a part, so that all four go into one psum (b2 counted once a device).
def clip_by_global_norm__wrong_psum_of_all(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        squares = jax.lax.psum(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(g)), "model")
        norm = jnp.sqrt(squares)
        factor = jnp.minimum(1.0, limit / norm)
        return jax.tree.map(lambda leaf: leaf * factor, g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# The student clipped each leaf by its own norm (that is "clip by norm", per tensor), and reports the global norm rightly.
def clip_by_global_norm__wrong_leaf_by_leaf(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        squares = {name: jnp.sum(leaf**2) for name, leaf in g.items()}
        cut = jax.lax.psum({name: squares[name] for name in ("W1", "b1", "W2")}, "model")
        squares = cut | {"b2": squares["b2"]}
        clipped = {name: g[name] * jnp.minimum(1.0, limit / jnp.sqrt(squares[name])) for name in g}
        return clipped, jnp.sqrt(sum(squares.values()))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# The student thought that the norm of the clipped gradients is the one to log, and returned norm * factor.
def clip_by_global_norm__wrong_norm_after(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        squares = jax.lax.psum(jnp.sum(g["W1"] ** 2) + jnp.sum(g["b1"] ** 2) + jnp.sum(g["W2"] ** 2), "model")
        norm = jnp.sqrt(squares + jnp.sum(g["b2"] ** 2))
        factor = jnp.minimum(1.0, limit / norm)
        return jax.tree.map(lambda leaf: leaf * factor, g), norm * factor

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# The student always scales to length `limit` ("normalise"), and forgot that short gradients stay as they are.
def clip_by_global_norm__wrong_always_scaled(gradients, *, limit, mesh):
    specs = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(g):
        squares = jax.lax.psum(jnp.sum(g["W1"] ** 2) + jnp.sum(g["b1"] ** 2) + jnp.sum(g["W2"] ** 2), "model")
        norm = jnp.sqrt(squares + jnp.sum(g["b2"] ** 2))
        return jax.tree.map(lambda leaf: leaf * (limit / norm), g), norm

    return jax.shard_map(on_device, mesh=mesh, in_specs=(specs,), out_specs=(specs, P()))(gradients)


# ---------------------------------------------------------------- jit_dp
def jit_dp__right_scan(params, x, y, *, steps, rate, mesh):
    rows = NamedSharding(mesh, P("data"))

    @jax.jit
    def train(params, x, y):
        x, y = (jax.lax.with_sharding_constraint(a, rows) for a in (x, y))

        def step(params, _):
            value, gradients = jax.value_and_grad(loss)(params, x, y)
            return descend(params, gradients, rate), value

        params, losses = jax.lax.scan(step, params, length=steps)
        return losses, params

    return train(params, x, y)


# The student mixed up the dimensions of x: the spec names its second one, so features are cut over data and not examples.
def jit_dp__wrong_transposed_cut(params, x, y, *, steps, rate, mesh):
    cut = NamedSharding(mesh, P(None, "data"))
    x = jax.lax.with_sharding_constraint(x, cut)
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


# The student appended the loss after the update, thinking that the loss of a step is the one it reaches.
def jit_dp__wrong_loss_after(params, x, y, *, steps, rate, mesh):
    cut = NamedSharding(mesh, P("data"))
    x, y = jax.lax.with_sharding_constraint((x, y), cut)
    losses = []
    for _ in range(steps):
        params = descend(params, jax.grad(loss)(params, x, y), rate)
        losses.append(loss(params, x, y))
    return jnp.stack(losses), params


# The student carried the by-hand habit over: a sum over devices has happened, so the gradient must be divided by their number.
def jit_dp__wrong_divided_again(params, x, y, *, steps, rate, mesh):
    cut = NamedSharding(mesh, P("data"))
    x, y = jax.lax.with_sharding_constraint((x, y), cut)
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: g / mesh.shape["data"], gradients)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


# The student took the wrong one of the two axes: the examples are cut over model, and data has copies.
def jit_dp__wrong_cut_over_model(params, x, y, *, steps, rate, mesh):
    cut = NamedSharding(mesh, P("model"))
    x, y = jax.lax.with_sharding_constraint((x, y), cut)
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


# ---------------------------------------------------------------- average_what
average_what__right_linear = {
    "SGD": "same",
    "SGD with weight decay": "same",
    "SGD with momentum": "same",
    "Adam": "different",
    "SGD, gradients clipped on each device": "different",
    "SGD, averaged after every second step": "different",
}

# The student thought: the velocities stay local, so they drift apart and momentum is another run.
average_what__wrong_momentum_local = average_what__right_linear | {"SGD with momentum": "different"}

# The student thought: SGD is linear, so it does not matter after how many steps one averages.
average_what__wrong_any_interval = average_what__right_linear | {"SGD, averaged after every second step": "same"}

# The student thought: decay multiplies the parameters, and on eight devices it is applied eight times.
average_what__wrong_decay_eightfold = average_what__right_linear | {"SGD with weight decay": "different"}

# The student thought: what has state is different, what has none is the same; clipping has none.
average_what__wrong_stateless_is_same = average_what__right_linear | {
    "SGD with momentum": "different",
    "SGD, gradients clipped on each device": "same",
}
