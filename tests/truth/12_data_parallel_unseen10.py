"""Answers to lesson 12, tenth batch, written by a reader of the notebook only."""

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


# ---- donate


def donate__right_reduce(state, batches):
    layout = jax.tree.map(lambda leaf: leaf.sharding, state)
    step = compiled(momentum_step, donate_argnums=(0,), out_shardings=layout)
    given = jax.tree.leaves(state)
    last = functools.reduce(step, batches, state)
    return last, sum(1 - leaf.is_deleted() for leaf in given)


# counts the arguments from 1, so that 1 is the state (it is the batch that is given away)
def donate__wrong_counts_from_one(state, batches):
    given = jax.tree.leaves(state)
    step = compiled(momentum_step, donate_argnums=1)
    for batch in batches:
        state = step(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in given)


# thinks that `state` is still the given one at the end, and asks the leaves of the new one
def donate__wrong_asks_the_new_state(state, batches):
    step = compiled(momentum_step, donate_argnums=0)
    for batch in batches:
        state = step(state, batch)
    exist = [leaf for leaf in jax.tree.leaves(state) if not leaf.is_deleted()]
    return state, len(exist)


# takes the number asked for to be that of the arrays which were given away
def donate__wrong_counts_the_deleted(state, batches):
    given = jax.tree.leaves(state)
    step = compiled(momentum_step, donate_argnums=0)
    for batch in batches:
        state = step(state, batch)
    return state, sum(leaf.is_deleted() for leaf in given)


# thinks that only the given state is somebody's to give away: what the steps make themselves is a jit's own business
def donate__wrong_first_step_only(state, batches):
    given = jax.tree.leaves(state)
    first, later = compiled(momentum_step, donate_argnums=0), compiled(momentum_step)
    for k, batch in enumerate(batches):
        state = (later if k else first)(state, batch)
    return state, sum(not leaf.is_deleted() for leaf in given)


# ---- jit_dp


def jit_dp__right_scan(params, x, y, *, steps, rate, mesh):
    x, y = jax.lax.with_sharding_constraint((x, y), NamedSharding(mesh, P("data")))

    def step(params, _):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        return descend(params, gradients, rate), value

    params, losses = jax.lax.scan(step, params, length=steps)
    return losses, params


# thinks that a constraint changes the array it is given, and goes on with the old names
def jit_dp__wrong_constraint_dropped(params, x, y, *, steps, rate, mesh):
    cut = NamedSharding(mesh, P("data"))
    jax.lax.with_sharding_constraint(x, cut)
    jax.lax.with_sharding_constraint(y, cut)
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, gradients, rate)
        losses.append(value)
    return jnp.stack(losses), params


# notes the loss of the parameters that a step has made, not of those that it began with
def jit_dp__wrong_loss_after(params, x, y, *, steps, rate, mesh):
    cut = NamedSharding(mesh, P("data"))
    x, y = jax.lax.with_sharding_constraint(x, cut), jax.lax.with_sharding_constraint(y, cut)
    losses = []
    for _ in range(steps):
        params = descend(params, jax.grad(loss)(params, x, y), rate)
        losses.append(loss(params, x, y))
    return jnp.stack(losses), params


# thinks that an axis of the mesh which is not used is wasted, and cuts the features over `model` too (as the grid of part 1)
def jit_dp__wrong_features_too(params, x, y, *, steps, rate, mesh):
    both = NamedSharding(mesh, P("data", "model"))
    x, y = jax.lax.with_sharding_constraint((x, y), both)
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        params = descend(params, gradients, rate)
        losses.append(value)
    return jnp.stack(losses), params


# lesson 11 in the wrong place: gradients of cut rows arrive summed over the devices, so divides by their number under jit
def jit_dp__wrong_divided(params, x, y, *, steps, rate, mesh):
    cut = NamedSharding(mesh, P("data"))
    x, y = jax.lax.with_sharding_constraint(x, cut), jax.lax.with_sharding_constraint(y, cut)
    losses = []
    for _ in range(steps):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        gradients = jax.tree.map(lambda g: g / mesh.shape["data"], gradients)
        params = descend(params, gradients, rate)
        losses.append(value)
    return jnp.stack(losses), params


# ---- metrics


def metrics__right_one_vector(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        log_p = jax.nn.log_softmax(logits)
        at_label = jnp.arange(logits.shape[-1]) == labels[:, None]
        missing = -jnp.sum(jnp.where(at_label, log_p, 0), axis=-1)
        hit = jnp.argmax(logits, axis=-1) == labels
        mine = jnp.stack([jnp.where(real > 0, what, 0).sum() for what in (jnp.ones_like(real), hit, missing)])
        rows, hits, losses = jax.lax.psum(mine, "data")
        return {"accuracy": hits / rows, "loss": losses / rows}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"), P("data"), P("data")), out_specs=P())(
        logits, labels, real
    )


# has read that padding has the label 0, and takes the label for the mask: real rows of class 0 are left out
def metrics__wrong_label_as_mask(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        real = (labels > 0).astype(logits.dtype)
        log_p = jax.nn.log_softmax(logits)
        losses = -jnp.take_along_axis(log_p, labels[:, None], axis=-1)[:, 0]
        hits = (jnp.argmax(logits, axis=-1) == labels) * real
        count = jax.lax.psum(real.sum(), "data")
        return {
            "accuracy": jax.lax.psum(hits.sum(), "data") / count,
            "loss": jax.lax.psum((losses * real).sum(), "data") / count,
        }

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P())(logits, labels, real)


# masks what goes in: thinks that rows whose logits are zero add nothing (each adds log C to the loss, and "predicts" class 0)
def metrics__wrong_masks_logits(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        logits = logits * real[:, None]
        losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hits = (jnp.argmax(logits, axis=-1) == labels).astype(real.dtype)
        count, hits, losses = jax.lax.psum((real.sum(), hits.sum(), losses.sum()), "data")
        return {"accuracy": hits / count, "loss": losses / count}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P())(logits, labels, real)


# thinks a mean over real rows can only be taken where all the rows are, and gathers them
def metrics__wrong_gathers_rows(logits, labels, real, *, mesh):
    def on_device(*arrays):
        logits, labels, real = (jax.lax.all_gather(a, "data", tiled=True) for a in arrays)
        losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hits = jnp.argmax(logits, axis=-1) == labels
        return {"accuracy": (hits * real).sum() / real.sum(), "loss": (losses * real).sum() / real.sum()}

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P(), check_vma=False)(
        logits, labels, real
    )


# keeps the habit of training for the loss (a loss is averaged by pmean) and counts by psum: the loss is n times too small
def metrics__wrong_pmean_over_psum(logits, labels, real, *, mesh):
    def on_device(logits, labels, real):
        losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
        hits = jnp.argmax(logits, axis=-1) == labels
        count = jax.lax.psum(real.sum(), "data")
        return {
            "accuracy": jax.lax.psum((hits * real).sum(), "data") / count,
            "loss": jax.lax.pmean((losses * real).sum(), "data") / count,
        }

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("data"),) * 3, out_specs=P())(logits, labels, real)
