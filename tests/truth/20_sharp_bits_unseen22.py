"""Answers to lesson 20, twenty-second batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- unchecked

unchecked__right_table = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# This student thought that a full turn makes the same sum everywhere, since addition may be done in any order.
unchecked__wrong_any_order = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "safe", "F": "unsafe"}

# This student thought that a ring adds in another order on each device, and so differs always, for whole numbers too.
unchecked__wrong_rings_never = {"A": "safe", "B": "unsafe", "C": "safe", "D": "unsafe", "E": "unsafe", "F": "unsafe"}

# This student thought that wherever a psum stands in the body, what comes out is the same sum on every device.
unchecked__wrong_psum_cures = {"A": "safe", "B": "safe", "C": "safe", "D": "safe", "E": "unsafe", "F": "safe"}

# This student thought that the devices along y hold other numbers, so that whatever is reduced over x only cannot be a copy.
unchecked__wrong_both_axes = {"A": "unsafe", "B": "unsafe", "C": "unsafe", "D": "unsafe", "E": "unsafe", "F": "unsafe"}


# ---------------------------------------------------------------- offloaded_step


def offloaded_step__right_tree(w, g, m, v):
    """A step of Adam whose moments wait in the host's memory: the new w, m and v."""
    came_with = [old.sharding for old in (w, m, v)]
    fetched = [jax.device_put(old, old.sharding.with_memory_kind("device")) for old in (m, v)]
    return tuple(jax.device_put(new, sharding) for new, sharding in zip(adam(w, g, *fetched), came_with))


# This student moved the moments there and back again, but sends home the ones that were fetched, not the new ones.
def offloaded_step__wrong_stale(w, g, m, v):
    """A step of Adam whose moments wait in the host's memory: the new w, m and v."""

    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    m_here, v_here = to("device", m), to("device", v)
    new_w, new_m, new_v = adam(w, g, m_here, v_here)
    return new_w, to("pinned_host", m_here), to("pinned_host", v_here)


# This student thought that the whole state of a step waits on the host, the weights as well.
def offloaded_step__wrong_weights_too(w, g, m, v):
    """A step of Adam whose moments wait in the host's memory: the new w, m and v."""
    on_host = m.sharding
    on_device = on_host.with_memory_kind("device")
    new = adam(w, g, jax.device_put(m, on_device), jax.device_put(v, on_device))
    return tuple(jax.device_put(array, on_host) for array in new)


# This student thought that host memory is what NumPy is for, and reads the moments through it (which was forbidden).
def offloaded_step__wrong_numpy(w, g, m, v):
    """A step of Adam whose moments wait in the host's memory: the new w, m and v."""
    here_m, here_v = (jax.device_put(np.asarray(a), w.sharding) for a in (m, v))
    new_w, new_m, new_v = adam(w, g, here_m, here_v)
    return new_w, jax.device_put(np.asarray(new_m), m.sharding), jax.device_put(np.asarray(new_v), v.sharding)


# This student thought that on the host there are no devices to cut over, so that the moments wait there whole: P().
def offloaded_step__wrong_whole_on_host(w, g, m, v):
    """A step of Adam whose moments wait in the host's memory: the new w, m and v."""

    def fetch(a):
        return jax.device_put(a, a.sharding.with_memory_kind("device"))

    def store(a):
        return jax.device_put(a, NamedSharding(w.sharding.mesh, P(), memory_kind="pinned_host"))

    new_w, new_m, new_v = adam(w, g, fetch(m), fetch(v))
    return new_w, store(new_m), store(new_v)


# ---------------------------------------------------------------- recompiles

recompiles__right_table = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student thought that two specs that are written differently are two layouts.
recompiles__wrong_as_written = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 2,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student thought that jit looks at shape and dtype only, and that layouts are handled when the program runs.
recompiles__wrong_no_layouts = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 1,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student had it the wrong way round: plain numbers are built into the program, and static ones stay outside of it.
recompiles__wrong_static_reversed = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 3,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 1,
}

# This student thought of Python's dicts: 1 == 1.0 and both have the same hash, so that the second call finds the first's program.
recompiles__wrong_equal_numbers = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 1,
    "1, 2 and 3, with static_argnums=0": 3,
}
