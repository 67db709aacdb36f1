"""Answers to lesson 12, fifth batch, written by a reader of the notebook only."""

import functools

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


# ---------------------------------------------------------------- place_dp


def place_dp__right_leaf_by_leaf(params, batch, mesh):
    everywhere, by_rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    params = jax.tree.map(lambda leaf: jax.device_put(leaf, everywhere), params)
    return params, {name: jax.device_put(array, by_rows) for name, array in batch.items()}


# The batch is divided over all the devices there are, so the student cuts it over every axis of the mesh, not only "data".
def place_dp__wrong_all_axes(params, batch, mesh):
    params = jax.device_put(params, NamedSharding(mesh, P()))
    batch = jax.device_put(batch, NamedSharding(mesh, P(mesh.axis_names)))
    return params, batch


# Only the inputs are examples, thinks the student; labels are small and every device may have all of them.
def place_dp__wrong_labels_whole(params, batch, mesh):
    whole, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    lies = {name: cut if name == "x" else whole for name in batch}
    return jax.device_put(params, whole), jax.device_put(batch, lies)


# A batch that does not divide would stop the run, so the student leaves out the last rows, as data loaders do (drop_last).
def place_dp__wrong_drops_the_rest(params, batch, mesh):
    n = mesh.shape["data"]
    batch = jax.tree.map(lambda array: array[: len(array) // n * n], batch)
    return jax.device_put(params, NamedSharding(mesh, P())), jax.device_put(batch, NamedSharding(mesh, P("data")))


# Parameters that are cut nowhere need no layout, the student thinks: jit will hand out copies by itself.
def place_dp__wrong_params_left_at_home(params, batch, mesh):
    return params, jax.device_put(batch, NamedSharding(mesh, P("data")))


# ---------------------------------------------------------------- jit_dp


def jit_dp__right_scan(params, x, y, *, steps, rate, mesh):
    rows = NamedSharding(mesh, P("data"))
    x, y = (jax.lax.with_sharding_constraint(array, rows) for array in (x, y))

    def step(params, _):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return descend(params, gradients, rate), value

    params, losses = jax.lax.scan(step, params, length=steps)
    return losses, params


# The student records the loss that the step has reached, not the one that it began with.
def jit_dp__wrong_loss_after_the_step(params, x, y, *, steps, rate, mesh):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data")))
    y = jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        params = descend(params, jax.grad(loss)(params, x, y), rate)
        losses.append(loss(params, x, y))
    return jnp.stack(losses), params


# The mesh has a second axis, and an axis that nobody uses is a waste, so the student cuts the weights over "model" as well.
def jit_dp__wrong_weights_over_model(params, x, y, *, steps, rate, mesh):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data")))
    y = jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))
    columns = NamedSharding(mesh, P(None, "model"))
    losses = []
    for _ in range(steps):
        params = [layer | {"W": jax.lax.with_sharding_constraint(layer["W"], columns)} for layer in params]
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


# The all_reduce adds up one gradient from each device along data, so the student believes the sum has still to be divided.
def jit_dp__wrong_divides_once_more(params, x, y, *, steps, rate, mesh):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data")))
    y = jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: g / mesh.shape["data"], gradients)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


# A constraint is taken for an instruction about a variable: its result is thrown away, and nothing is cut.
def jit_dp__wrong_constraint_thrown_away(params, x, y, *, steps, rate, mesh):
    for array in (x, y):
        jax.lax.with_sharding_constraint(array, NamedSharding(mesh, P("data")))
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        losses.append(value)
        params = descend(params, gradients, rate)
    return jnp.stack(losses), params


# ---------------------------------------------------------------- donate


def donate__right_reduce(state, batches):
    given = jax.tree.leaves(state)
    lies = jax.tree.map(lambda leaf: leaf.sharding, state)
    last = functools.reduce(compiled(momentum_step, donate_argnums=(0,), out_shardings=lies), batches, state)
    return last, len([leaf for leaf in given if not leaf.is_deleted()])


# Arguments are counted from 1, this student believes, so it is the batch that is given away.
def donate__wrong_argument_one(state, batches):
    given = jax.tree.leaves(state)
    step = compiled(momentum_step, donate_argnums=1)
    for batch in batches:
        state = step(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in given)


# At the end the student asks the leaves of what the name `state` means by then: the last state, not the given one.
def donate__wrong_asks_the_last_state(state, batches):
    step = compiled(momentum_step, donate_argnums=0)
    for batch in batches:
        state = step(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in jax.tree.leaves(state))


# One must not lose the caller's arrays, thinks the student, so the steps run in the memory of a copy.
def donate__wrong_works_on_a_copy(state, batches):
    given = jax.tree.leaves(state)
    current = jax.tree.map(jnp.copy, state)
    step = compiled(momentum_step, donate_argnums=0)
    for batch in batches:
        current = step(current, batch)
    return current, sum(not leaf.is_deleted() for leaf in given)


# The given state is to go, so the student donates it in the first step, and sees no need to donate any later state.
def donate__wrong_only_the_first_step(state, batches):
    given = jax.tree.leaves(state)
    first, later = compiled(momentum_step, donate_argnums=0), compiled(momentum_step)
    for number, batch in enumerate(batches):
        state = later(state, batch) if number else first(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in given)
