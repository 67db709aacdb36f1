"""Answers to lesson 21, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ------------------------------------------------------------------------- bet


def bet__right_passes(way, data, model, weights, activations):
    ring = lambda n, size: size * (n - 1) / n
    passes = {"dp": 2}.get(way, 3)  # gathered forwards and backwards, then dealt out
    return passes * ring(data, weights / model) + 4 * ring(model, activations / data)


# The weights are gathered once in a step, and are there when the way back comes.
def bet__wrong_gathered_once(way, data, model, weights, activations):
    ring = lambda n, size: size * (n - 1) / n
    return 2 * ring(data, weights / model) + 4 * ring(model, activations / data)


# The partial sums along model are of the whole batch's x, as many bytes as it has.
def bet__wrong_whole_batch(way, data, model, weights, activations):
    passes = 2 if way == "dp" else 3
    return passes * (data - 1) / data * weights / model + 2 * 2 * (model - 1) / model * activations


# The block is computed anew on the way back, so its sum over model is made anew as well: three all_reduces.
def bet__wrong_third_sum(way, data, model, weights, activations):
    reduced = lambda n, size: 2 * (n - 1) / n * size
    along_data = reduced(data, weights) if way == "dp" else 1.5 * reduced(data, weights / model)
    return along_data + 3 * reduced(model, activations / data)


# Every collective round a ring is one pass, (n - 1) / n of the bytes, an all_reduce as any other.
def bet__wrong_all_reduce_is_one_pass(way, data, model, weights, activations):
    one = lambda n, size: (n - 1) / n * size
    times = {"dp": 1, "fsdp": 3, "tp": 0, "both": 3}[way]
    return times * one(data, weights / model) + 2 * one(model, activations / data)


# ------------------------------------------------------------------- who_talks


def who_talks__right_strides(groups, counted, turned):
    import itertools
    import math

    strides = [math.prod(counted[k + 1 :]) for k in range(len(counted))]
    places = itertools.product(*(range(counted[k]) for k in turned))
    flat = [sum(i * strides[k] for i, k in zip(place, turned)) for place in places]
    many, width = groups
    return [flat[g * width : (g + 1) * width] for g in range(many)]


# T is the transpose, as in A.T, and the numbers behind it only say so.
def who_talks__wrong_t_is_the_transpose(groups, counted, turned):
    return np.arange(np.prod(counted)).reshape(counted).T.reshape(groups).tolist()


# turned[k] says to which place dimension k goes.
def who_talks__wrong_inverse_turn(groups, counted, turned):
    came_from = [turned.index(k) for k in range(len(turned))]
    return np.arange(np.prod(counted)).reshape(counted).transpose(came_from).reshape(groups).tolist()


# The groups stand side by side, so each of them is a column of what is read.
def who_talks__wrong_groups_are_columns(groups, counted, turned):
    many, width = groups
    grid = np.arange(many * width).reshape(counted).transpose(turned)
    return grid.reshape(width, many).T.tolist()


# One counts in the grid that has been turned, and then turns it.
def who_talks__wrong_counted_in_the_turned_grid(groups, counted, turned):
    grid = np.arange(np.prod(counted)).reshape([counted[k] for k in turned])
    return grid.transpose(turned).reshape(groups).tolist()


# --------------------------------------------------------------------- it_fits


def it_fits__right_pulled_back(weights, x, *, mesh):
    rows = NamedSharding(mesh, P("x"))

    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), rows), None

    def loss(weights):
        last, _ = lax.scan(layer, x, weights)
        return jnp.mean(last.astype(jnp.float32) ** 2)

    value, pull = jax.vjp(loss, weights)
    return pull(jnp.ones_like(value))[0]


# What is computed again is what stands inside of the checkpoint, so the more inside the better: the whole loss.
def it_fits__wrong_around_the_loss(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# What is too much are the five GiB of pred, which relu keeps, so it is relu that has to be checkpointed.
def it_fits__wrong_around_relu(weights, x, *, mesh):
    relu = jax.checkpoint(jax.nn.relu)

    def layer(h, w):
        return lax.with_sharding_constraint(h + relu(h @ w), NamedSharding(mesh, P("x"))), None

    return jax.grad(lambda weights: jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2))(weights)


# Best is the square root of the depth: checkpoints around groups of layers, and around each layer in them (each product then runs twice more).
def it_fits__wrong_groups_and_layers(weights, x, *, mesh):
    layers, *sides = weights.shape
    groups = max(k for k in range(1, layers + 1) if layers % k == 0 and k * k <= layers)

    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def group(h, some):
        return lax.scan(layer, h, some)

    def loss(weights, x):
        grouped = weights.reshape(groups, layers // groups, *sides)
        return jnp.mean(lax.scan(group, x, grouped)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# The layer is the one of the training step in part 2, relu of the product, with a checkpoint around it.
def it_fits__wrong_layer_of_part_two(weights, x, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    def loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)
