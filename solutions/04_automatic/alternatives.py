"""Right answers to 04_automatic, each written differently from the lesson's model solution.

All of them must earn full points: the check sees what the compiler makes of a program, and not how it is written.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def constrain__by_out_shardings(v, *, mesh):
    """An inner jit says how its result is sharded."""
    return jax.jit(lambda u: u + 1, out_shardings=NamedSharding(mesh, P("y", "x")))(v)


def constrain__before_the_sum(v, *, mesh):
    """The argument is resharded, and the result follows."""
    return 1 + lax.with_sharding_constraint(v, NamedSharding(mesh, P("y", "x")))


def constrain__over_a_mesh_of_other_names(v, *, mesh):
    """The same devices in the same order; the names of the axes don't matter."""
    renamed = Mesh(mesh.devices, ("rows", "columns"))
    return jnp.add(lax.with_sharding_constraint(v, NamedSharding(renamed, P("columns", "rows"))), 1)


def constrain_replicated__by_out_shardings(v, *, mesh):
    return jax.jit(jnp.add, out_shardings=NamedSharding(mesh, P(None, None)))(v, 1)


def constrain_replicated__over_a_flat_mesh(v, *, mesh):
    """The same devices in the same order, as a mesh with one axis."""
    flat = Mesh(mesh.devices.reshape(-1), ("all",))
    return lax.with_sharding_constraint(v + 1, NamedSharding(flat, P()))


def steer__through_the_weights(x, w1, w2, *, mesh):
    """The weights are split, and the hidden layer follows them."""
    w1 = lax.with_sharding_constraint(w1, NamedSharding(mesh, P(None, "model")))
    w2 = lax.with_sharding_constraint(w2, NamedSharding(mesh, P("model", None)))
    return jnp.maximum(x @ w1, 0) @ w2


def steer__before_the_relu(x, w1, w2, *, mesh):
    hidden = lax.with_sharding_constraint(x @ w1, NamedSharding(mesh, P("data", "model")))
    out = jnp.einsum("bh,ho->bo", jax.nn.relu(hidden), w2)
    return lax.with_sharding_constraint(out, NamedSharding(mesh, P("data", None)))


def divide_layer__nested_jit(x, weights, bias, *, mesh):
    """An inner jit, which says how its arguments are sharded."""
    rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())

    def layer(x, weights, bias):
        return jax.nn.sigmoid(x @ weights + bias)

    return jax.jit(layer, in_shardings=(rows, rows, whole), out_shardings=whole)(x, weights, bias)


def divide_layer__in_blocks(x, weights, bias, *, mesh):
    """The blocks of the sum as their own dimension, split along x, and summed away."""
    by_block, n = NamedSharding(mesh, P("x")), mesh.shape["x"]
    x = lax.with_sharding_constraint(x.reshape(n, -1), by_block)
    weights = lax.with_sharding_constraint(weights.reshape(n, -1, weights.shape[-1]), by_block)
    return jax.nn.sigmoid(jnp.einsum("ni,nio->no", x, weights).sum(0) + bias)


def init_sharded__by_constraints(seed, *, mesh):
    """A constraint on each weight, with the same random numbers."""
    columns, rows = NamedSharding(mesh, P(None, "model")), NamedSharding(mesh, P("model", None))
    key1, key2 = jax.random.split(jax.random.key(seed))
    w1 = lax.with_sharding_constraint(jax.random.normal(key1, (32, 64)) / 6, columns)
    return {"w1": w1, "w2": lax.with_sharding_constraint(jax.random.normal(key2, (64, 16)) / 8, rows)}


def same_everywhere__by_parts(a, b):
    """Every part of the array must have the same content on all devices of both."""
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    contents = {}
    for shard in (*a.addressable_shards, *b.addressable_shards):
        part = tuple(piece.indices(n)[:2] for piece, n in zip(shard.index, a.shape, strict=True))
        contents.setdefault(part, set()).add(np.asarray(shard.data).tobytes())
    return all(len(found) == 1 for found in contents.values())


def count_collectives__line_by_line(text):
    counts = dict.fromkeys(("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"), 0)
    for line in text.splitlines():
        line = line.split(", metadata=")[0]
        for kind in counts:
            if re.search(rf"^\s+(ROOT )?%\S+ = .*[ )}}]{kind}(-start)?\(", line):
                counts[kind] += 1
    return counts
