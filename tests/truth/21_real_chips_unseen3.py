"""Answers to lesson 21, third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- cpu_and_tpu

cpu_and_tpu__right_all = {
    "written gather, bfloat16": "dtype",
    "written gather, float32": "dtype",
    "written reduce_scatter, float32": "nothing",
    "left sum, float32": "kind",
    "left sum, bfloat16": "both",
    "left sum, bfloat16, 8192": "both",
}

# What is written is an order, so a float32 gather sends float32 everywhere.
cpu_and_tpu__wrong_order = {**cpu_and_tpu__right_all, "written gather, float32": "nothing"}

# A chip rounds float32 to bfloat16 wherever it multiplies, so its partial sums are bfloat16 on the wire as well.
cpu_and_tpu__wrong_rounded_sums = {
    **cpu_and_tpu__right_all,
    "written reduce_scatter, float32": "dtype",
    "left sum, float32": "both",
}

# Simulated devices compute bfloat16 in float32, but what is written in bfloat16 is sent in bfloat16.
cpu_and_tpu__wrong_gather_as_written = {**cpu_and_tpu__right_all, "written gather, bfloat16": "nothing"}

# Simulated devices never form a reduce_scatter, the written one neither; and for bfloat16 I did not think of the dtype.
cpu_and_tpu__wrong_never = {
    **cpu_and_tpu__right_all,
    "written reduce_scatter, float32": "kind",
    "left sum, bfloat16": "kind",
}

# ---------------------------------------------------------------- it_fits


def it_fits__right_body(weights, x, *, mesh):
    rows = NamedSharding(mesh, P("x"))

    def result(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), rows)

    again = jax.checkpoint(result, prevent_cse=False)

    def loss(weights):
        h, _ = lax.scan(lambda h, w: (again(h, w), None), x, weights)
        return jnp.mean(jnp.square(h.astype(jnp.float32)))

    return jax.grad(loss)(weights)


# checkpoint around what is differentiated: the loss.
def it_fits__wrong_around_loss(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    @jax.checkpoint
    def loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights, x)


# A policy should keep the products, as they are what is expensive to compute again.
def it_fits__wrong_keeps_products(weights, x, *, mesh):
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    again = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable)

    def loss(weights):
        return jnp.mean(lax.scan(again, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights)


# The activations are the trouble, so they are cut and kept; I wrote the layer from memory as relu(h w).
def it_fits__wrong_layer(weights, x, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    def loss(weights):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss)(weights)


# The gradient of the loss is that for both of its arguments.
def it_fits__wrong_both(weights, x, *, mesh):
    @jax.checkpoint
    def layer(h, w):
        return lax.with_sharding_constraint(h + jax.nn.relu(h @ w), NamedSharding(mesh, P("x"))), None

    def loss(weights, x):
        return jnp.mean(lax.scan(layer, x, weights)[0].astype(jnp.float32) ** 2)

    return jax.grad(loss, argnums=(0, 1))(weights, x)


# ---------------------------------------------------------------- compile_for


def compile_for__right_updated(shapes, dtype, specs, sizes):
    names, lengths = zip(*sizes.items())
    pod = AbstractMesh(lengths, names, axis_types=tuple(AxisType.Auto for _ in names))
    bare = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return [array.update(sharding=NamedSharding(pod, spec)) for array, spec in zip(bare, specs)]


# A chip compiles for what it holds: each shape is divided by what cuts it.
def compile_for__wrong_blocks(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return [
        jax.ShapeDtypeStruct(
            NamedSharding(pod, spec).shard_shape(tuple(shape)), dtype, sharding=NamedSharding(pod, spec)
        )
        for shape, spec in zip(shapes, specs)
    ]


# A mesh is made by make_mesh.
def compile_for__wrong_real_mesh(shapes, dtype, specs, sizes):
    pod = jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return [jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(pod, spec)) for shape, spec in zip(shapes, specs)]


# The mesh of the lesson is there already, without devices.
def compile_for__wrong_lessons_mesh(shapes, dtype, specs, sizes):
    return [
        jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec)) for shape, spec in zip(shapes, specs)
    ]


# The last axis of a mesh is written first, as in the sizes of an image: I had names and sizes in opposite orders.
def compile_for__wrong_opposite(shapes, dtype, specs, sizes):
    pod = AbstractMesh(tuple(reversed(sizes.values())), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return [jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(pod, spec)) for shape, spec in zip(shapes, specs)]
