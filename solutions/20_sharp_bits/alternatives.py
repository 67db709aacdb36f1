"""Right answers to 20_sharp_bits, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what a program does, not how it is written.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P


def own_numbers__by_rows(x, seed, *, mesh):
    """The row's noise as a vector, and the key made outside of the body."""
    key = jax.random.key(seed)

    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    def go(block):
        mine = jax.random.fold_in(key, lax.axis_index("x"))
        return block + jax.random.uniform(mine, block.shape[1:])[None]

    return go(x)


def own_numbers__keys_dealt_out(x, seed, *, mesh):
    """All keys are made before; shard_map deals them out as it does the rows."""
    keys = jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(jnp.arange(x.shape[0]))
    data = jax.random.key_data(keys)

    def go(block, own):
        return block + jax.random.uniform(jax.random.wrap_key_data(own[0]), block.shape)

    return jax.shard_map(go, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(x, data)


def own_numbers__split(x, seed, *, mesh):
    """Key k of a split is the key that k is folded into, with the flag that is on by default."""

    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def go(block):
        keys = jax.random.split(jax.random.key(seed), mesh.shape["x"])
        return block + jax.random.uniform(keys[lax.axis_index("x")], block.shape)

    return go(x)


def same_on_every_mesh__numbers_dealt_out(x, seed, *, mesh):
    """The rows' numbers come in as an array, cut as x is."""

    @partial(jax.shard_map, mesh=mesh, in_specs=(P("x", None), P("x")), out_specs=P("x", None))
    def go(block, numbers):
        def noisy(row, number):
            return row + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), number), row.shape)

        return jax.vmap(noisy)(block, numbers)

    return go(x, jnp.arange(x.shape[0]))


def same_on_every_mesh__one_by_one(x, seed, *, mesh):
    def go(block):
        first = lax.axis_index("x") * block.shape[0]
        rows = [
            row + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), first + k), row.shape)
            for k, row in enumerate(block)
        ]
        return jnp.stack(rows)

    return jax.jit(jax.shard_map(go, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))(x)


def offloaded_step__laid_out_like_the_weights(w, g, m, v):
    """Fetch to where g lies, and put back to where the old moments lie."""
    new, mean, square = adam(w, g, *jax.device_put((m, v), g.sharding))  # noqa: F821 - it stands beside the imports
    return [new, jax.device_put(mean, m.sharding), jax.device_put(square, v.sharding)]


def offloaded_step__jitted(w, g, m, v):
    """The step compiled; the moves around it."""
    near = w.sharding
    w, new_m, new_v = jax.jit(adam)(w, g, jax.device_put(m, near), jax.device_put(v, near))  # noqa: F821
    return w, jax.device_put(new_m, m.sharding), jax.device_put(new_v, v.sharding)


def agree__by_the_worst(found, expected, roundings):
    """The largest difference, which is nan where one of them is."""
    worst = np.max(np.abs(np.subtract(found, expected, dtype=np.float64)))
    return bool(worst <= roundings * np.finfo(np.float32).eps / 2 * np.max(np.abs(expected)))


def agree__left_to_isclose(found, expected, roundings):
    """NumPy's comparison, with the bound made absolute."""
    return np.isclose(found, expected, rtol=0, atol=roundings / 2**24 * np.abs(expected).max()).all()
