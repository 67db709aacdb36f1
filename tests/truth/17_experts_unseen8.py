"""Answers to lesson 17, eighth batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("expert",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- dropless


def dropless__right_add(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    E, k = w_in.shape[0], experts.shape[1]
    choice = experts.ravel()
    order = jnp.argsort(choice, stable=True)
    sizes = (choice[:, None] == jnp.arange(E)).sum(axis=0).astype(jnp.int32)
    token = order // k
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[token], w_in, sizes)), w_out, sizes)
    return x.at[token].add(weights.ravel()[order][:, None] * done)


# Lays the choices out column by column in the head (all first choices, then all second): sorted place j is token order[j] % T.
def dropless__wrong_columns(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    T = x.shape[0]
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=w_in.shape[0])
    rows = x[order % T]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(rows, w_in, sizes)), w_out, sizes)
    back = jnp.zeros_like(done).at[order].set(done).reshape(T, -1, x.shape[1])
    return x + jnp.sum(weights[:, :, None] * back, axis=1)


# The groups are those experts that somebody wants; np.unique counts them, and zeros at the end make up the number of experts.
def dropless__wrong_unique(x, weights, experts, w_in, w_out):
    x, weights, w_in, w_out = map(jnp.asarray, (x, weights, w_in, w_out))
    choice = np.asarray(experts).reshape(-1)
    order = np.argsort(choice, kind="stable")
    _, counts = np.unique(choice, return_counts=True)
    sizes = jnp.asarray(np.pad(counts, (0, len(w_in) - len(counts))), jnp.int32)
    k = experts.shape[1]
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, sizes)), w_out, sizes)
    back = jnp.zeros_like(done).at[order].set(done).reshape(-1, k, x.shape[1])
    return x + (weights[:, :, None] * back).sum(axis=1)


# Writes each result home to its token ("there it has to be written"), and forgets that a token has k of them: the last one stays.
def dropless__wrong_last_stays(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    k = experts.shape[1]
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    sizes = jnp.bincount(choice, length=w_in.shape[0])
    token = order // k
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[token], w_in, sizes)), w_out, sizes)
    done = done * weights.reshape(-1)[order][:, None]
    return x + jnp.zeros_like(x).at[token].set(done)


# Gives ragged_dot the places where the groups end, in place of their sizes.
def dropless__wrong_ends(x, weights, experts, w_in, w_out):
    x, weights, experts, w_in, w_out = map(jnp.asarray, (x, weights, experts, w_in, w_out))
    k = experts.shape[1]
    choice = experts.reshape(-1)
    order = jnp.argsort(choice, stable=True)
    ends = jnp.cumsum(jnp.bincount(choice, length=w_in.shape[0]))
    done = jax.lax.ragged_dot(jax.nn.relu(jax.lax.ragged_dot(x[order // k], w_in, ends)), w_out, ends)
    back = jnp.zeros_like(done).at[order].set(done).reshape(-1, k, x.shape[1])
    return x + jnp.einsum("tk,tkd->td", weights, back)


# ---------------------------------------------------------------- moe_gradients


def _given_loss(mesh):
    """The lines that stand in the answer cell."""

    def exchange(buffer):
        return jax.lax.all_to_all(buffer, "expert", 0, 0, tiled=True)

    def loss(p, x, y):
        logits = x @ p["router"]
        gate = jnp.max(jax.nn.softmax(logits), axis=1, keepdims=True)
        mine = jax.nn.one_hot(jnp.argmax(logits, axis=1), mesh.shape["expert"])
        there = exchange(mine.T[:, :, None] * x)
        back = exchange(jax.nn.relu(there @ p["w_in"][0]) @ p["w_out"][0])
        return jnp.mean((x + gate * jnp.einsum("tn,ntd->td", mine, back) - y) ** 2)

    return loss


def moe_gradients__right_list(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))
    loss = _given_loss(mesh)

    def each(p, x, y):
        return loss(p, x, y)[None]  # an array with one loss for each device

    losses = jax.shard_map(each, mesh=mesh, in_specs=(layouts, both, both), out_specs=both)
    return jax.value_and_grad(lambda p: jnp.mean(losses(p, x, y)))(params)


# Gradients are averaged after value_and_grad, each over the axes where it has copies; that JAX had added them up already, and that
# an average of equal sums is that sum, is forgotten.
def moe_gradients__wrong_summed_already(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))
    loss = _given_loss(mesh)

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        copies = {"router": ("data", "expert"), "w_in": ("data",), "w_out": ("data",)}
        return (
            jax.lax.pmean(value, ("data", "expert")),
            {name: jax.lax.pmean(grads[name], copies[name]) for name in grads},
        )

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts))(params, x, y)


# Without the check one does it oneself: router over both axes, experts over data, "along expert nothing is to be added up", and so
# nothing to be divided by either (the tokens of the neighbours have come by all_to_all with their own means).
def moe_gradients__wrong_no_division(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))
    loss = _given_loss(mesh)

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        router = jax.lax.pmean(grads["router"], ("data", "expert"))
        of_experts = {name: jax.lax.pmean(grads[name], "data") for name in ("w_in", "w_out")}
        return jax.lax.pmean(value, ("data", "expert")), {"router": router, **of_experts}

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts), check_vma=False
    )(params, x, y)


# Data parallelism as in lesson 12: every gradient is averaged over all devices that have seen other tokens, the experts' too.
def moe_gradients__wrong_all_alike(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))
    loss = _given_loss(mesh)

    def on_device(p, x, y):
        value_and_grads = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda a: jax.lax.pmean(a, mesh.axis_names), value_and_grads)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, both, both), out_specs=(P(), layouts), check_vma=False
    )(params, x, y)


# Along data everything is a copy, so the loss has to be averaged along expert only; of the equal losses along data the first will do.
def moe_gradients__wrong_data_is_a_copy(params, x, y, *, mesh):
    layouts = {"router": P(), "w_in": P("expert"), "w_out": P("expert")}
    both = P(("data", "expert"))
    loss = _given_loss(mesh)

    def group(p, x, y):
        return jax.lax.pmean(loss(p, x, y), "expert")[None]

    losses = jax.shard_map(group, mesh=mesh, in_specs=(layouts, both, both), out_specs=P("data"))
    return jax.value_and_grad(lambda p: losses(p, x, y)[0])(params)


# ---------------------------------------------------------------- capacity_numbers


def capacity_numbers__right_loops(wanted, factor, width):
    n, E = len(wanted), len(wanted[0])
    choices = int(sum(wanted[0]))
    capacity = math.ceil(factor * choices / E)
    lost = sum(max(int(count) - capacity, 0) for row in wanted for count in row)
    free = sum(max(capacity - int(count), 0) for row in wanted for count in row)
    local = E // n  # experts on a device
    return {
        "capacity": capacity,
        "dropped": lost / (n * choices),
        "empty": free / (n * E * capacity),
        "bytes": 2 * (E - local) * capacity * width * 2,
    }


# The slots of an expert are one pool: what device 0 does not need, device 1 may use.
def capacity_numbers__wrong_pool(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = math.ceil(factor * wanted[0].sum() / E)
    kept = np.minimum(wanted.sum(axis=0), n * capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * E * capacity)),
        "bytes": 2 * (n - 1) * (E // n) * capacity * width * 2,
    }


# A device keeps the row of *one* expert, "row e is for the device with expert e", also where it has several experts.
def capacity_numbers__wrong_one_row(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    capacity = math.ceil(factor * wanted[0].sum() / E)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float((wanted.sum() - kept) / wanted.sum()),
        "empty": float(1 - kept / (n * E * capacity)),
        "bytes": 2 * (E - 1) * capacity * width * 2,
    }


# Slots that stay empty are the slots that there are beyond the choices; a dropped choice, too, is counted as if it filled one.
def capacity_numbers__wrong_spare(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    choices = wanted.sum(axis=1)[0]
    capacity = int(np.ceil(factor * choices / E))
    slots = E * capacity
    return {
        "capacity": capacity,
        "dropped": float(np.maximum(wanted - capacity, 0).sum() / (n * choices)),
        "empty": float(max(slots - choices, 0) / slots),
        "bytes": int(2 * (n - 1) * slots // n * width * 2),
    }


# First the fair share, rounded up as tokens are whole; then the factor, and rounded up again.
def capacity_numbers__wrong_rounded_twice(wanted, factor, width):
    wanted = np.asarray(wanted)
    n, E = wanted.shape
    fair = math.ceil(wanted[0].sum() / E)
    capacity = math.ceil(factor * fair)
    kept = np.minimum(wanted, capacity).sum()
    return {
        "capacity": capacity,
        "dropped": float(1 - kept / wanted.sum()),
        "empty": float(1 - kept / (n * E * capacity)),
        "bytes": 2 * (n - 1) * (E // n) * capacity * width * 2,
    }
