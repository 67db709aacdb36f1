"""Answers to lesson 21, fifteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))


def order_of_devices__right_numpy(ring, lengths, wraps):
    places = np.array([tuple(place) for place in ring])
    apart = np.abs(np.roll(places, -1, axis=0) - places)
    around = np.where(np.array(wraps, bool), np.array(lengths) - apart, apart)
    return int(np.minimum(apart, around).sum(axis=1).max())


# Thought: n chips have n - 1 steps between them.
def order_of_devices__wrong_open(ring, lengths, wraps):
    def step(a, b):
        return sum(min(abs(p - q), n - abs(p - q)) if w else abs(p - q) for p, q, n, w in zip(a, b, lengths, wraps))

    return max(step(a, b) for a, b in zip(ring[:-1], ring[1:]))


# Thought: a message goes along both dimensions at once, so the longer of the two counts.
def order_of_devices__wrong_diagonal(ring, lengths, wraps):
    def step(a, b):
        return max(min(abs(p - q), n - abs(p - q)) if w else abs(p - q) for p, q, n, w in zip(a, b, lengths, wraps))

    return max(step(a, b) for a, b in zip(ring, [*ring[1:], ring[0]]))


# Thought: along a closed dimension one counts forwards, modulo its length.
def order_of_devices__wrong_one_way(ring, lengths, wraps):
    worst = 0
    for a, b in zip(ring, [*ring[1:], ring[0]]):
        wires = sum((q - p) % n if w else abs(q - p) for p, q, n, w in zip(a, b, lengths, wraps))
        worst = max(worst, wires)
    return worst


# Thought: a pod is a torus or it is not: only if both dimensions are closed can a step go around.
def order_of_devices__wrong_both_or_none(ring, lengths, wraps):
    worst = 0
    for a, b in zip(ring, [*ring[1:], ring[0]]):
        wires = 0
        for p, q, n in zip(a, b, lengths):
            n_wires = abs(p - q)
            wires += min(n_wires, n - n_wires) if all(wraps) else n_wires
        worst = max(worst, wires)
    return worst


def it_fits__right_policy(weights, x, *, mesh):
    rows = NamedSharding(mesh, P("x"))

    @jax.checkpoint
    def turn(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), rows), None

    def stack_loss(ws):
        last, _ = lax.scan(turn, x, ws)
        return jnp.mean(jnp.square(last.astype(jnp.float32)))

    return jax.grad(stack_loss)(weights)


# Thought: checkpoint is put around what is to be differentiated, the loss.
def it_fits__wrong_around_loss(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# Thought: products are dear, so keep them and compute only relu again; that gets rid of the `pred`.
def it_fits__wrong_keeps_products(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    cheap = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)

    def loss(weights, x):
        return jnp.mean(lax.scan(cheap, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# Thought: the layer is that of the step further above, relu(h @ w) (copied from the first `layer`).
def it_fits__wrong_first_layer(weights, x, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    def loss(weights):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights)


# Thought: more checkpoints save more: groups of layers in a checkpoint, and each layer in one of its own.
def it_fits__wrong_groups(weights, x, *, mesh):
    group = next(k for k in (8, 4, 2, 1) if weights.shape[0] % k == 0)

    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def layers(h, ws):
        return lax.scan(layer, h, ws)

    def loss(weights):
        grouped = weights.reshape(-1, group, *weights.shape[1:])
        return jnp.mean(lax.scan(layers, x, grouped)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights)


def two_slices__right_passes(way, weights, chips, slices):
    passes = {"data": 2, "fsdp": 3}[way]  # an all_reduce is two passes
    piece = weights / (chips * slices)
    return passes * (slices - 1) * piece


# Thought: the ring over the slices carries all weights.
def two_slices__wrong_all_weights(way, weights, chips, slices):
    passes = 2 if way == "data" else 3
    return passes * (slices - 1) / slices * weights


# Thought: in "fsdp" the ring goes over all chips of all slices, so n is all of them.
def two_slices__wrong_all_chips(way, weights, chips, slices):
    if way == "data":
        return 2 * (slices - 1) / slices * weights / chips
    n = chips * slices
    return 3 * (n - 1) / n * weights / chips


# Thought: FSDP gathers the weights once and scatters the gradients once, which is as much as an all_reduce.
def two_slices__wrong_two_passes(way, weights, chips, slices):
    b = weights / chips
    gather = scatter = (slices - 1) / slices * b
    return 2 * (slices - 1) / slices * b if way == "data" else gather + scatter


# Thought: every chip sends what it has to each of the other slices.
def two_slices__wrong_to_everyone(way, weights, chips, slices):
    b = weights / chips
    return {"data": 2, "fsdp": 3}[way] * (slices - 1) * b
