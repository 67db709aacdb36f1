"""Answers to lesson 20, ninth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
cut = NamedSharding(line, P("x"))


def adam(w, g, m, v):
    """One step of Adam, without the corrections for its start: new weights and moments."""
    m = m + 0.1 * (g - m)
    v = v + 0.01 * (g**2 - v)
    return w - 0.1 * m / (jnp.sqrt(v) + 1e-6), m, v


# ---------------------------------------------------------------- offloaded_step


def offloaded_step__right_homes(w, g, m, v):
    homes = w.sharding, m.sharding, v.sharding
    here = tuple(home.with_memory_kind("device") for home in homes[1:])
    new = adam(w, g, *jax.device_put((m, v), here))
    return tuple(jax.device_put(a, home) for a, home in zip(new, homes))


# Takes the sharding `cut` of the cell above for the layout that everything has.
def offloaded_step__wrong_always_cut(w, g, m, v):
    host = cut.with_memory_kind("pinned_host")
    w, m, v = adam(w, g, jax.device_put(m, cut), jax.device_put(v, cut))
    return w, jax.device_put(m, host), jax.device_put(v, host)


# "Wait in the host's memory", and the ordinary kind of that is called unpinned_host.
def offloaded_step__wrong_ordinary_host(w, g, m, v):
    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    w, m, v = adam(w, g, to("device", m), to("device", v))
    return w, to("unpinned_host", m), to("unpinned_host", v)


# Gives the loop's variable another array, and believes that m and v have been moved back by that.
def offloaded_step__wrong_loop_variable(w, g, m, v):
    there = m.sharding
    m = jax.device_put(m, m.sharding.with_memory_kind("device"))
    v = jax.device_put(v, v.sharding.with_memory_kind("device"))
    w, m, v = adam(w, g, m, v)
    for moment in (m, v):
        moment = jax.device_put(moment, there)
    return w, m, v


# Sends everything that adam returns to where the moments came from, the new weights too.
def offloaded_step__wrong_weights_too(w, g, m, v):
    host = m.sharding
    device = host.with_memory_kind("device")
    new = adam(w, g, jax.device_put(m, device), jax.device_put(v, device))
    return tuple(jax.device_put(a, host) for a in new)


# ---------------------------------------------------------------- numpy_into_jit

numpy_into_jit__right_three_questions = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# The callback returns NumPy blocks, so this is a NumPy array that is cut, all the same.
numpy_into_jit__wrong_callback_is_numpy = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "error",
}

# Thinks that each process's array is taken as its share, as make_array_from_process_local_data does; only the same share twice is refused.
numpy_into_jit__wrong_share_of_each = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "runs",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# Remembers from lesson 19 that device_put compares values between processes: what counts is whether they agree.
numpy_into_jit__wrong_agreement_counts = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "error",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "runs",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# With more than one process a NumPy array is never taken: skips the question whether the sharding cuts.
numpy_into_jit__wrong_never_numpy = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "error",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}

# ---------------------------------------------------------------- own_numbers


def own_numbers__right_numbered_places(x, seed, *, mesh):
    places = jnp.arange(mesh.shape["x"])

    def body(block, place):
        key = jax.random.fold_in(jax.random.key(seed), place[0])
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(x, places)


# Gives every device of the mesh its own number, also the two that hold copies, and turns the check off when it objects.
def own_numbers__wrong_number_of_device(x, seed, *, mesh):
    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index(tuple(mesh.axis_names)))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


# Splits the key, since that "serves as well, if you know n"; these are the same keys.
def own_numbers__right_split_of_the_key(x, seed, *, mesh):
    keys = jax.random.split(jax.random.key(seed), mesh.shape["x"])

    def body(keys, block):
        return block + jax.random.uniform(keys[jax.lax.axis_index("x")], block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x"))(keys, x)


# Draws for the whole of x on each device, and takes the device's own row of that.
def own_numbers__wrong_row_of_the_whole(x, seed, *, mesh):
    shape = x.shape

    def body(block):
        k = jax.lax.axis_index("x")
        noise = jax.random.uniform(jax.random.fold_in(jax.random.key(seed), k), shape)
        return block + jax.lax.dynamic_slice_in_dim(noise, k * block.shape[0], block.shape[0])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Folds the seed into the key of the place, and not the place into the key of the seed.
def own_numbers__wrong_folded_the_other_way(x, seed, *, mesh):
    def body(block):
        mine = jax.random.key(jax.lax.axis_index("x"))
        return block + jax.random.uniform(jax.random.fold_in(mine, seed), block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
