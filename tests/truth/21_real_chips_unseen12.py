"""Answers to lesson 21, twelfth batch, written by a reader of the notebook only."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def shape(*lengths, spec, dtype=jnp.bfloat16):
    """An array that nobody has to make: its shape, dtype and layout."""
    return jax.ShapeDtypeStruct(lengths, dtype, sharding=NamedSharding(mesh, spec))


# ---------------------------------------------------------------- compile_for


def compile_for__right_update(shapes, dtype, specs, sizes):
    names, lengths = zip(*sizes.items())
    pod = AbstractMesh(lengths, names, axis_types=(AxisType.Auto,) * len(sizes))
    bare = [jax.ShapeDtypeStruct(tuple(whole), dtype) for whole in shapes]
    return [array.update(sharding=NamedSharding(pod, spec)) for array, spec in zip(bare, specs)]


# This student thought that a chip's compiler is given what the chip holds: the shape of a block.
def compile_for__wrong_block(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    arrays = []
    for whole, spec in zip(shapes, specs):
        layout = NamedSharding(pod, spec)
        arrays.append(jax.ShapeDtypeStruct(layout.shard_shape(tuple(whole)), dtype, sharding=layout))
    return arrays


# This student thought that the mesh at the top of the notebook will do, and that sizes is there for information.
def compile_for__wrong_mesh(shapes, dtype, specs, sizes):
    return [shape(*whole, spec=spec, dtype=dtype) for whole, spec in zip(shapes, specs)]


# This student thought that whoever writes the layouts down himself needs axes of type Explicit.
def compile_for__wrong_explicit(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Explicit,) * len(sizes))
    return [jax.ShapeDtypeStruct(whole, dtype, sharding=NamedSharding(pod, spec)) for whole, spec in zip(shapes, specs)]


# This student thought that only the arrays are imagined, and that the mesh is made of devices as ever.
def compile_for__wrong_devices(shapes, dtype, specs, sizes):
    pod = jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return [jax.ShapeDtypeStruct(whole, dtype, sharding=NamedSharding(pod, spec)) for whole, spec in zip(shapes, specs)]


# ---------------------------------------------------------------- it_fits


def it_fits__right_vjp(weights, x, *, mesh):
    rows = NamedSharding(mesh, P("x"))

    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.nothing_saveable)
    def block(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), rows)

    def of_weights(weights):
        last, _ = lax.scan(lambda h, w: (block(h, w), None), x, weights)
        return jnp.mean(last.astype(jnp.float32) ** 2)

    value, back = jax.vjp(of_weights, weights)
    (slopes,) = back(jnp.ones_like(value))
    return slopes


# This student thought that a checkpoint around everything saves the most.
def it_fits__wrong_everything(weights, x, *, mesh):
    def one(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def total(weights, x):
        return jnp.mean(lax.scan(one, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(total)(weights, x)


# This student thought that to recompute no more than one must is to keep every product, which is what is expensive.
def it_fits__wrong_products(weights, x, *, mesh):
    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
    def one(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    def total(weights, x):
        return jnp.mean(lax.scan(one, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(total)(weights, x)


# This student thought of the square-root rule: groups of layers in a checkpoint, and each layer in one more, so that a layer is computed again twice.
def it_fits__wrong_twice(weights, x, *, mesh):
    layers = len(weights)
    group = max(k for k in range(1, layers + 1) if layers % k == 0 and k * k <= layers)

    @jax.checkpoint
    def one(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def some(h, ws):
        return lax.scan(one, h, ws)[0], None

    def total(weights, x):
        groups = weights.reshape(layers // group, group, *weights.shape[1:])
        return jnp.mean(lax.scan(some, x, groups)[0].astype(jnp.float32) ** 2)

    return jax.grad(total)(weights, x)


# This student thought that the stack is that of part 2, whose layers have no `h +`.
def it_fits__wrong_part2(weights, x, *, mesh):
    @jax.checkpoint
    def one(h, w):
        return lax.with_sharding_constraint(jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    def total(weights, x):
        return jnp.mean(lax.scan(one, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(total)(weights, x)


# ---------------------------------------------------------------- two_slices


def two_slices__right_turns(way, weights, chips, slices):
    block = weights / chips / slices  # what goes to the next slice in one turn of a ring
    turns = slices - 1
    if way == "data":
        return (turns + turns) * block  # reduce_scatter, then all_gather: an all_reduce
    return (turns + turns + turns) * block  # gathered forwards, gathered backwards, gradients dealt out


# This student thought that every chip sends all of the weights to the other slices, and forgot that the chips share the work.
def two_slices__wrong_unshared(way, weights, chips, slices):
    passes = {"data": 2, "fsdp": 3}[way]
    return passes * (slices - 1) / slices * weights


# This student thought that FSDP gathers the weights once a step and keeps them for the way back.
def two_slices__wrong_once(way, weights, chips, slices):
    share = weights / chips
    gather = scatter = (slices - 1) / slices * share
    if way == "data":
        return 2 * (slices - 1) / slices * share
    return gather + scatter


# This student thought that b is the shard that a chip owns, of all chips of all slices, so that an all_gather is counted to a shard and not to what it becomes.
def two_slices__wrong_shard(way, weights, chips, slices):
    if way == "data":
        return 2 * (slices - 1) / slices * weights / chips
    return 3 * (slices - 1) / slices * weights / (chips * slices)


# This student thought that the n of the ring is the number of all chips, since the ring goes through all of them.
def two_slices__wrong_ring(way, weights, chips, slices):
    n = chips * slices
    passes = {"data": 2, "fsdp": 3}[way]
    return passes * (n - 1) / n * weights / chips
