"""Answers to lesson 20, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

numpy_into_jit__right_answers = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}
# the same array in both is enough
numpy_into_jit__wrong_same = {
    **numpy_into_jit__right_answers,
    'two processes, in_shardings P("x"), the same NumPy array in both': "runs",
}
# every NumPy array is refused
numpy_into_jit__wrong_all = {**numpy_into_jit__right_answers, "two processes, in_shardings P(), a NumPy array": "error"}
# one process as well
numpy_into_jit__wrong_one = {
    **numpy_into_jit__right_answers,
    'one process, in_shardings P("x"), a NumPy array': "error",
}
# the callback's array taken for NumPy's
numpy_into_jit__wrong_callback = {
    **numpy_into_jit__right_answers,
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "error",
}


def _on_x(body, x, mesh, check=True):
    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=check)(x)


def own_numbers__right_named(x, seed, *, mesh):
    def noisy(row):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x"))
        return row + jax.random.uniform(key, row.shape, row.dtype)

    return jax.shard_map(noisy, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


def own_numbers__wrong_same_dice(x, seed, *, mesh):
    """One key for all."""
    return _on_x(lambda b: b + jax.random.uniform(jax.random.key(seed), b.shape), x, mesh)


def own_numbers__wrong_both_axes(x, seed, *, mesh):
    """Copies along y differ."""

    def body(b):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index(("x", "y")))
        return b + jax.random.uniform(key, b.shape)

    return _on_x(body, x, mesh, check=False)


def own_numbers__wrong_y(x, seed, *, mesh):
    """The place along y."""

    def body(b):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("y"))
        return b + jax.random.uniform(key, b.shape)

    return _on_x(body, x, mesh, check=False)


def own_numbers__wrong_added_seed(x, seed, *, mesh):
    """seed + k in place of fold_in."""

    def body(b):
        return b + jax.random.uniform(jax.random.key(seed + jax.lax.axis_index("x")), b.shape)

    return _on_x(body, x, mesh)


def own_numbers__wrong_normal(x, seed, *, mesh):
    """Normal numbers."""

    def body(b):
        return b + jax.random.normal(jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x")), b.shape)

    return _on_x(body, x, mesh)


def own_numbers__wrong_one_number(x, seed, *, mesh):
    """One number for the whole block."""

    def body(b):
        return b + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x")))

    return _on_x(body, x, mesh)


def own_numbers__wrong_noise_only(x, seed, *, mesh):
    """The noise without x."""

    def body(b):
        return jax.random.uniform(jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x")), b.shape)

    return _on_x(body, x, mesh)


def same_on_every_mesh__right_loop(x, seed, *, mesh):
    """A Python loop over the block's rows."""

    def body(b):
        first = jax.lax.axis_index("x") * b.shape[0]
        rows = [
            jax.random.uniform(jax.random.fold_in(jax.random.key(seed), first + i), (b.shape[1],))
            for i in range(b.shape[0])
        ]
        return b + jnp.stack(rows)

    return _on_x(body, x, mesh)


def same_on_every_mesh__wrong_block_number(x, seed, *, mesh):
    """Row numbers begin at the number of the block."""

    def body(b):
        rows = jax.lax.axis_index("x") + jnp.arange(len(b))
        return b + jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), b.shape[1:]))(
            rows
        )

    return _on_x(body, x, mesh)


def same_on_every_mesh__wrong_local_rows(x, seed, *, mesh):
    """From 0 on every device."""

    def body(b):
        return b + jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), b.shape[1:]))(
            jnp.arange(len(b))
        )

    return _on_x(body, x, mesh)


def same_on_every_mesh__wrong_block_key(x, seed, *, mesh):
    """One key for each block."""

    def body(b):
        return b + jax.random.uniform(jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x")), b.shape)

    return _on_x(body, x, mesh)


def same_on_every_mesh__wrong_dealt(x, seed, *, mesh):
    """Rows numbered as if they were dealt out in turn."""

    def body(b):
        rows = jnp.arange(len(b)) * jax.lax.axis_size("x") + jax.lax.axis_index("x")
        return b + jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), b.shape[1:]))(
            rows
        )

    return _on_x(body, x, mesh)


def same_on_every_mesh__wrong_whole_draw(x, seed, *, mesh):
    """One draw of the whole shape, not a key for each row."""
    noise = jax.random.uniform(jax.random.key(seed), x.shape)
    return _on_x(lambda b: b, x + noise, mesh)


def same_on_every_mesh__wrong_global_rows(x, seed, *, mesh):
    """Rows of x (seen from outside) for those of a block."""

    def body(b):
        rows = jax.lax.axis_index("x") * len(x) + jnp.arange(len(b))
        return b + jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), b.shape[1:]))(
            rows
        )

    return _on_x(body, x, mesh)


def _adam(w, g, m, v):
    m = m + 0.1 * (g - m)
    v = v + 0.01 * (g**2 - v)
    return w - 0.1 * m / (jnp.sqrt(v) + 1e-6), m, v


def offloaded_step__right_shardings(w, g, m, v):
    """Back to the shardings they came with."""
    homes = [a.sharding for a in (w, m, v)]
    near = [jax.device_put(a, a.sharding.with_memory_kind("device")) for a in (m, v)]
    return tuple(jax.device_put(a, home) for a, home in zip(_adam(w, g, *near), homes))


def offloaded_step__wrong_stays(w, g, m, v):
    """The moments stay on the devices."""
    m, v = (jax.device_put(a, a.sharding.with_memory_kind("device")) for a in (m, v))
    return _adam(w, g, m, v)


def offloaded_step__wrong_no_move(w, g, m, v):
    """No move at all: an error."""
    return _adam(w, g, m, v)


def offloaded_step__wrong_all_to_host(w, g, m, v):
    """w goes to the host, too."""
    m, v = (jax.device_put(a, a.sharding.with_memory_kind("device")) for a in (m, v))
    return tuple(jax.device_put(a, a.sharding.with_memory_kind("pinned_host")) for a in _adam(w, g, m, v))


def offloaded_step__wrong_old_moments(w, g, m, v):
    """The moments that came are returned again."""
    near = [jax.device_put(a, a.sharding.with_memory_kind("device")) for a in (m, v)]
    return _adam(w, g, *near)[0], m, v


def offloaded_step__wrong_unpinned(w, g, m, v):
    """Ordinary host memory."""
    m, v = (jax.device_put(a, a.sharding.with_memory_kind("device")) for a in (m, v))
    w, m, v = _adam(w, g, m, v)
    return w, *(jax.device_put(a, a.sharding.with_memory_kind("unpinned_host")) for a in (m, v))


def offloaded_step__wrong_numpy(w, g, m, v):
    """By NumPy: the layout of m and v is lost."""
    w, m, v = _adam(w, g, jnp.asarray(np.asarray(m)), jnp.asarray(np.asarray(v)))
    return w, np.asarray(m), np.asarray(v)


def agree__right_loop(found, expected, roundings):
    """One bound, entry by entry."""
    bound = float(roundings) * 2.0**-24 * np.abs(expected).max()
    for a, b in zip(np.ravel(found).tolist(), np.ravel(expected).tolist()):
        if not abs(a - b) <= bound:
            return False
    return True


def agree__wrong_nan(found, expected, roundings):
    """A nan is no difference that is too large."""
    return not np.any(np.abs(found - expected) > roundings * 2.0**-24 * np.max(np.abs(expected)))


def agree__wrong_relative(found, expected, roundings):
    """A bound of its own for each entry."""
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-24 * np.abs(expected)))


def agree__wrong_sign(found, expected, roundings):
    """Differences with their sign."""
    return bool(np.all(found - expected <= roundings * 2.0**-24 * np.max(np.abs(expected))))


def agree__wrong_found(found, expected, roundings):
    """The largest found."""
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-24 * np.max(np.abs(found))))


def agree__wrong_any(found, expected, roundings):
    """One that agrees is enough."""
    return bool(np.any(np.abs(found - expected) <= roundings * 2.0**-24 * np.max(np.abs(expected))))


def agree__wrong_max(found, expected, roundings):
    """The largest, not the largest magnitude."""
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-24 * np.max(expected)))


def agree__wrong_mean(found, expected, roundings):
    """The mean difference."""
    return bool(np.mean(np.abs(found - expected)) <= roundings * 2.0**-24 * np.max(np.abs(expected)))
