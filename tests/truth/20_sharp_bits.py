"""Answers to lesson 20, as students give them: written from the student's notebook alone."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def adam(w, g, m, v):
    """One step of Adam, without the corrections for its start: new weights and moments."""
    m = m + 0.1 * (g - m)
    v = v + 0.01 * (g**2 - v)
    return w - 0.1 * m / (jnp.sqrt(v) + 1e-6), m, v


rng_partitionable__right_plain = {
    "flag off: kinds of collectives": ["all_gather", "collective_permute"],
    "flag on: kinds of collectives": [],
    "the same numbers with the flag off and on": "no",
    "flag on: the same numbers on 1 and on 8 devices": "yes",
    "flag off: draws of 24 and of 25 begin alike": "no",
    "a later release of JAX: the same numbers for sure": "no",
}
"""As measured."""

"""Believes that the old way depends on the devices."""

rng_partitionable__wrong_begin = rng_partitionable__right_plain | {
    "flag off: draws of 24 and of 25 begin alike": "yes",
}
"""Mixes up which counter is cut in two."""

rng_partitionable__wrong_forever = rng_partitionable__right_plain | {
    "a later release of JAX: the same numbers for sure": "yes",
    "the same numbers with the flag off and on": "yes",
}
"""Believes that a key gives its numbers for ever."""

rng_partitionable__wrong_kinds = rng_partitionable__right_plain | {"flag off: kinds of collectives": ["all_reduce"]}
"""Copies the example of the text."""


def own_numbers__right_plain(x, seed, *, mesh):
    """As in the hints."""

    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x"))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def own_numbers__right_key_outside(x, seed, *, mesh):
    """The key comes in with P()."""

    def body(key, block):
        own = jax.random.fold_in(key, jax.lax.axis_index("x"))
        return block + jax.random.uniform(own, block.shape, dtype=block.dtype, minval=0.0, maxval=1.0)

    specs = P(), P("x", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x", None))(jax.random.key(seed), x)


def own_numbers__wrong_one_key(x, seed, *, mesh):
    """One key for all."""

    def body(block):
        return block + jax.random.uniform(jax.random.key(seed), block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def own_numbers__wrong_seed_added(x, seed, *, mesh):
    """Adds the place to the seed."""

    def body(block):
        return block + jax.random.uniform(jax.random.key(seed + jax.lax.axis_index("x")), block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def own_numbers__wrong_both_axes(x, seed, *, mesh):
    """Folds in the place along y as well: copies are no copies, and the check silenced."""

    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index(("x", "y")))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


def own_numbers__wrong_y(x, seed, *, mesh):
    """Folds in the place along y, out of the two."""

    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("y"))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


def own_numbers__wrong_normal(x, seed, *, mesh):
    """normal in place of uniform."""

    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x"))
        return block + jax.random.normal(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def own_numbers__wrong_noise_alone(x, seed, *, mesh):
    """Returns the noise without x."""

    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x"))
        return jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def own_numbers__right_split(x, seed, *, mesh):
    """Splits the key, which the lesson says serves as well: the same numbers."""

    def body(block):
        key = jax.random.split(jax.random.key(seed), jax.lax.axis_size("x"))[jax.lax.axis_index("x")]
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def same_on_every_mesh__right_plain(x, seed, *, mesh):
    """As in the hints."""

    def body(block):
        first = jax.lax.axis_index("x") * block.shape[0]

        def row(i):
            return jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), (block.shape[1],))

        return block + jax.vmap(row)(first + jnp.arange(block.shape[0]))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def same_on_every_mesh__right_jit(x, seed, *, mesh):
    """On the whole array; the compiler cuts the rows' numbers."""
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(seed), i))(jnp.arange(x.shape[0]))
    noise = jax.vmap(lambda key: jax.random.uniform(key, x.shape[1:]))(keys)
    return x + jax.lax.with_sharding_constraint(noise, NamedSharding(mesh, P("x", None)))


def _noise(x, seed, mesh, numbers):
    """x plus noise by these numbers of rows."""

    def body(block):
        def row(i):
            return jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i), (block.shape[1],))

        return block + jax.vmap(row)(numbers(block))

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def same_on_every_mesh__wrong_local(x, seed, *, mesh):
    """Numbers rows from 0 on each device."""
    return _noise(x, seed, mesh, lambda block: jnp.arange(block.shape[0]))


def same_on_every_mesh__wrong_block_number(x, seed, *, mesh):
    """Adds the number of the block, not of its first row."""
    return _noise(x, seed, mesh, lambda block: jax.lax.axis_index("x") + jnp.arange(block.shape[0]))


def same_on_every_mesh__wrong_two_rows(x, seed, *, mesh):
    """Two rows to a device, as in the example looked at."""
    return _noise(x, seed, mesh, lambda block: 2 * jax.lax.axis_index("x") + jnp.arange(block.shape[0]))


def same_on_every_mesh__wrong_place(x, seed, *, mesh):
    """A key for each place, as in the exercise before."""

    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x"))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def same_on_every_mesh__wrong_scalar(x, seed, *, mesh):
    """One number for a row."""

    def body(block):
        rows = jax.lax.axis_index("x") * block.shape[0] + jnp.arange(block.shape[0])
        return (
            block + jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(jax.random.key(seed), i)))(rows)[:, None]
        )

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def same_on_every_mesh__wrong_from_one(x, seed, *, mesh):
    """Counts rows from one."""
    return _noise(
        x, seed, mesh, lambda block: 1 + block.shape[0] * jax.lax.axis_index("x") + jnp.arange(block.shape[0])
    )


unchecked__right_plain = {
    "A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "unsafe", "F": "unsafe", }  # fmt: skip
"""As it is."""

unchecked__wrong_rounding = unchecked__right_plain | {"E": "safe"}
"""Takes right up to rounding for safe."""

"""Forgets lesson 11."""

unchecked__wrong_b_copies = unchecked__right_plain | {"B": "safe", "D": "unsafe"}
"""Believes that a psum is always the same everywhere, and a ring never."""

unchecked__wrong_c = unchecked__right_plain | {"C": "unsafe"}
"""Believes that C's result differs along x, and must not."""

donated__right_plain = {
    "a, in a + 1": "deleted",
    "a, in a.astype(jnp.int32)": "deleted",
    "a, in a.astype(jnp.bfloat16)": "alive",
    "a, in a + 1 with the result on every device whole": "alive",
    "a.addressable_shards[0].data, taken before a + 1": "deleted",
    "np.asarray(a), taken before a + 1": "alive",
}
"""As measured."""

donated__wrong_always = donated__right_plain | {
    "a, in a.astype(jnp.bfloat16)": "deleted",
    "a, in a + 1 with the result on every device whole": "deleted",
}
"""Believes that what is donated is gone, whatever comes out."""

donated__wrong_dtype = donated__right_plain | {"a, in a.astype(jnp.int32)": "alive"}
"""Believes that the dtype has to be the same."""

donated__wrong_views = donated__right_plain | {
    "a.addressable_shards[0].data, taken before a + 1": "alive",
    "np.asarray(a), taken before a + 1": "deleted",
}
"""Takes a shard for a copy, and NumPy's array for a name of the same memory."""


def offloaded_step__right_plain(w, g, m, v):
    """As in the hints."""

    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    w, m, v = adam(w, g, to("device", m), to("device", v))
    return w, to("pinned_host", m), to("pinned_host", v)


def offloaded_step__right_trees(w, g, m, v):
    """Both moments at once, and the shardings that they came with."""
    waiting = m.sharding, v.sharding
    m, v = jax.device_put((m, v), (w.sharding, w.sharding))
    w, m, v = jax.jit(adam)(w, g, m, v)
    m, v = jax.device_put((m, v), waiting)
    return w, m, v


def offloaded_step__wrong_not_back(w, g, m, v):
    """Leaves the moments on the devices."""

    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    return adam(w, g, to("device", m), to("device", v))


def offloaded_step__wrong_not_fetched(w, g, m, v):
    """Computes with what lies elsewhere."""
    return adam(w, g, m, v)


def offloaded_step__wrong_on_the_host(w, g, m, v):
    """Does all of it in the host's memory, and moves the weights."""

    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    w, m, v = adam(to("pinned_host", w), to("pinned_host", g), m, v)
    return to("device", w), m, v


def offloaded_step__wrong_numpy(w, g, m, v):
    """Fetches the moments with NumPy, and puts them back."""
    new, m2, v2 = adam(w, g, np.asarray(m), np.asarray(v))
    return new, jax.device_put(m2, m.sharding), jax.device_put(v2, v.sharding)


def offloaded_step__wrong_unpinned(w, g, m, v):
    """Puts them back into the other kind of host memory."""

    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    w, m, v = adam(w, g, to("device", m), to("device", v))
    return w, to("unpinned_host", m), to("unpinned_host", v)


def offloaded_step__wrong_one_device(w, g, m, v):
    """Fetches onto one device."""
    device = jax.devices()[0]
    there = m.sharding
    w2, m, v = adam(*(jax.device_put(a, device) for a in (w, g, m, v)))
    return jax.device_put(w2, w.sharding), jax.device_put(m, there), jax.device_put(v, there)


def offloaded_step__wrong_order(w, g, m, v):
    """Returns w, v, m."""

    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    w, m, v = adam(w, g, to("device", m), to("device", v))
    return w, to("pinned_host", v), to("pinned_host", m)


def offloaded_step__wrong_moments_old(w, g, m, v):
    """Returns the moments that came."""

    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    w, _, _ = adam(w, g, to("device", m), to("device", v))
    return w, m, v


recompiles__right_plain = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}
"""As measured."""

recompiles__wrong_layouts = recompiles__right_plain | {'P("x", None), P(None, "x"), P("x", "y"), P()': 1}
"""Believes that only shape and dtype count."""

recompiles__wrong_values = recompiles__right_plain | {
    "1, 2 and 3": 3,
}
"""Believes that values count."""

recompiles__wrong_spelling = recompiles__right_plain | {'P("x") and P("x", None)': 2}
"""Counts the entries of the fast cache."""

recompiles__wrong_static = recompiles__right_plain | {"1, 2 and 3, with static_argnums=0": 1, "1 and 1.0": 1}
"""Believes that a static argument is not looked at."""

numpy_into_jit__right_plain = {
    'one process, in_shardings P("x"), a NumPy array': "runs",
    "two processes, in_shardings P(), a NumPy array": "runs",
    'two processes, in_shardings P("x"), a NumPy array': "error",
    'two processes, in_shardings P("x"), the same NumPy array in both': "error",
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "runs",
}
"""As it is."""

numpy_into_jit__wrong_same = numpy_into_jit__right_plain | {
    'two processes, in_shardings P("x"), the same NumPy array in both': "runs"
}
"""Believes that JAX compares the arrays."""

numpy_into_jit__wrong_never = numpy_into_jit__right_plain | {"two processes, in_shardings P(), a NumPy array": "error"}
"""Believes that NumPy is never allowed."""

numpy_into_jit__wrong_callback = numpy_into_jit__right_plain | {
    'two processes, in_shardings P("x"), an array of jax.make_array_from_callback': "error",
    'one process, in_shardings P("x"), a NumPy array': "error",
}
"""Believes that in_shardings that cut are the trouble."""

mesh_leak__right_plain = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}
"""As measured."""

mesh_leak__wrong_shard_map = mesh_leak__right_plain | {
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "as before"
}
"""Believes that the mesh given wins."""

mesh_leak__wrong_arange = mesh_leak__right_plain | {
    "jnp.arange(8)": "as before",
    'jax.device_put(np.ones(8), P("x"))': "error",
}
"""Believes that what has nothing to do with big is as before."""

mesh_leak__wrong_with_leaks = mesh_leak__right_plain | {"big + 1, after `with jax.set_mesh(strict): ...`": "error"}
"""Believes that a with block leaves the mesh behind."""

float_order__right_plain = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}
"""As it is."""

float_order__wrong_sums_are_sums = float_order__right_plain | {
    "psum over 8 devices, and over the same numbers shuffled": "equal",
}
"""Believes in the law of commutation."""

float_order__wrong_ring = float_order__right_plain | {"a ring on 8 devices: the copies": "equal"}
"""Believes that copies of a sum are copies."""

float_order__wrong_nothing_is_equal = float_order__right_plain | {
    "psum over 8 devices, the same program twice": "not equal",
    "pmax over 8 devices, and NumPy's max": "not equal",
    "psum and the loop, of whole numbers in float32": "not equal",
}
"""Trusts no float."""


def agree__right_plain(found, expected, roundings):
    """As in the hints."""
    return bool((np.abs(found - expected) <= roundings * 2.0**-24 * np.abs(expected).max()).all())


def agree__right_double(found, expected, roundings):
    """In float64, by max; nan makes the comparison False."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    bound = roundings * 2.0**-24 * np.max(np.abs(expected))
    return np.max(np.abs(found - expected)) <= bound


def agree__right_allclose(found, expected, roundings):
    """By np.allclose with an absolute tolerance only."""
    return np.allclose(found, expected, rtol=0, atol=roundings * 2.0**-24 * np.abs(expected).max())


def agree__wrong_entry_by_entry(found, expected, roundings):
    """A bound for each entry."""
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-24 * np.abs(expected)))


def agree__wrong_found(found, expected, roundings):
    """The bound from what was found."""
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-24 * np.abs(found).max()))


def agree__wrong_no_magnitude(found, expected, roundings):
    """Forgets the magnitude of the difference."""
    return bool(np.all(found - expected <= roundings * 2.0**-24 * np.abs(expected).max()))


def agree__wrong_any(found, expected, roundings):
    """any in place of all."""
    return bool(np.any(np.abs(found - expected) <= roundings * 2.0**-24 * np.abs(expected).max()))


def agree__wrong_nan(found, expected, roundings):
    """Asks for a difference that is too large: nan slips through."""
    return not np.any(np.abs(found - expected) > roundings * 2.0**-24 * np.abs(expected).max())


def agree__wrong_max_without_abs(found, expected, roundings):
    """max of expected, without magnitudes."""
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-24 * expected.max()))


def agree__wrong_array(found, expected, roundings):
    """Forgets all: an array of answers."""
    return np.abs(found - expected) <= roundings * 2.0**-24 * np.abs(expected).max()


def agree__wrong_strict(found, expected, roundings):
    """Less than, where within is meant."""
    return bool(np.all(np.abs(found - expected) < roundings * 2.0**-24 * np.abs(expected).max()))


def agree__wrong_allclose_default(found, expected, roundings):
    """np.allclose with its relative default kept."""
    return np.allclose(found, expected, atol=roundings * 2.0**-24 * np.abs(expected).max())


def agree__wrong_digits(found, expected, roundings):
    """2⁻²³: one digit too few."""
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-23 * np.abs(expected).max()))


int_pmean__right_plain = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}
"""As measured."""

int_pmean__wrong_stays_int = int_pmean__right_plain | {"pmean of int32": (4, "int32")}
"""Believes that a dtype stays."""

int_pmean__wrong_no_overflow = int_pmean__right_plain | {
    "psum of int8": (800, "int8"),
    "pmean of int8": (100.0, "float32"),
}
"""Forgets that int8 is narrow."""

int_pmean__wrong_bool = int_pmean__right_plain | {"psum of bool": (True, "bool")}
"""Takes psum of bool for `any`."""

int_pmean__wrong_rounded = int_pmean__right_plain | {
    "psum of int32, // 8": (4.75, "float32"),
    "psum of int8": (127, "int8"),
}
"""Takes // for /, and believes that int8 stops at its limit."""

first_of__right_plain = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}
"""As measured."""

first_of__wrong_stays = first_of__right_plain | {"x[0], x cut by rows": (0, 1)}
"""Believes that the row stays on the device that has it."""

first_of__wrong_one_device = first_of__right_plain | {"x[0], x cut by rows": (1, 1), "x.sum(0), x cut by rows": (1, 1)}
"""Believes that a result is on one device."""

first_of__wrong_swapped = {name: pair[::-1] for name, pair in first_of__right_plain.items()}
"""Writes (devices, collectives)."""

first_of__wrong_columns = first_of__right_plain | {"x[:, 0], x cut by rows": (1, 8), "x[0], x cut by columns": (1, 8)}
"""Believes that every index sends."""


# Wrong at an edge, or right in an unusual way


def agree__wrong_not_beyond(found, expected, roundings):
    """Nothing is beyond: a nan never is."""
    bound = roundings * 2.0**-24 * np.abs(expected).max()
    return not np.any(np.abs(found - expected) > bound) and not np.isnan(found).any()


def agree__wrong_divided(found, expected, roundings):
    """Divides by the largest."""
    with np.errstate(all="ignore"):
        return bool((np.abs(found - expected) / np.abs(expected).max() <= roundings * 2.0**-24).all())


def agree__wrong_vectors_only(found, expected, roundings):
    """Python's max, for vectors only."""
    bound = roundings * 2.0**-24 * max(abs(expected))
    return all(abs(found - expected) <= bound)


# All of the errors together are to be small.
def agree__wrong_sum(found, expected, roundings):
    return bool(np.abs(found - expected).sum() <= roundings * 2**-24 * np.abs(expected).max())


# The length of the difference.
def agree__wrong_length(found, expected, roundings):
    return bool(np.linalg.norm(found - expected) <= roundings * 2**-24 * np.abs(expected).max())
