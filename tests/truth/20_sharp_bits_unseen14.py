"""Answers to lesson 20, fourteenth batch, written by a reader of the notebook only."""

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


def offloaded_step__right_as_it_came(w, g, m, v):
    """A step of Adam whose moments wait in the host's memory: the new w, m and v."""
    fetched = [jax.device_put(a, a.sharding.with_memory_kind("device")) for a in (m, v)]
    return tuple(jax.device_put(new, old.sharding) for new, old in zip(adam(w, g, *fetched), (w, m, v)))


# Everything that belongs to the optimizer's step waits in the host's memory afterwards, the weights as well.
def offloaded_step__wrong_weights_too(w, g, m, v):
    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    w, m, v = adam(w, g, to("device", m), to("device", v))
    return tuple(to("pinned_host", a) for a in (w, m, v))


# The moments are in the host's memory, so NumPy can read them there directly, and device_put lays them out.
def offloaded_step__wrong_numpy(w, g, m, v):
    m_here = jax.device_put(np.asarray(m), w.sharding)
    v_here = jax.device_put(np.asarray(v), w.sharding)
    new_w, new_m, new_v = adam(w, g, m_here, v_here)
    return new_w, jax.device_put(np.asarray(new_m), m.sharding), jax.device_put(np.asarray(new_v), v.sharding)


# What was fetched has to be sent back: sends the fetched moments back, and not the ones that adam returned.
def offloaded_step__wrong_old_moments(w, g, m, v):
    to = lambda kind, a: jax.device_put(a, a.sharding.with_memory_kind(kind))
    m_dev, v_dev = to("device", m), to("device", v)
    new_w, new_m, new_v = adam(w, g, m_dev, v_dev)
    return new_w, to("pinned_host", m_dev), to("pinned_host", v_dev)


# The moments are cut over the line, as `cut` was in the cell above.
def offloaded_step__wrong_cut_as_above(w, g, m, v):
    here = NamedSharding(line, P("x"))
    host = here.with_memory_kind("pinned_host")
    w, m, v = adam(w, g, jax.device_put(m, here), jax.device_put(v, here))
    return w, jax.device_put(m, host), jax.device_put(v, host)


_wrapped = (8 * 100 + 128) % 256 - 128  # what an int8 makes of 800
int_pmean__right_arithmetic = {
    "pmean of int32": ((4 + 5 + 5 + 5 + 4 + 5 + 5 + 5) / 8, "float32"),
    "psum of int32, // 8": ((4 + 5 + 5 + 5 + 4 + 5 + 5 + 5) // 8, "int32"),
    "psum of int8": (_wrapped, "int8"),
    "pmean of int8": (_wrapped / 8, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# An int8 that is too large stays at its largest value, 127, and the mean is an eighth of that.
int_pmean__wrong_saturates = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (127, "int8"),
    "pmean of int8": (15.875, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# Narrow numbers are added in int32, as NumPy's sum does, so nothing overflows.
int_pmean__wrong_widened = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (800, "int32"),
    "pmean of int8": (100.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# psum adds in the dtype that came in, and a sum of bools in bool is an "or".
int_pmean__wrong_or = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (True, "bool"),
}

# A mean keeps the dtype of what it averages, and whole numbers are rounded down in it.
int_pmean__wrong_stays_whole = {
    "pmean of int32": (4, "int32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4, "int8"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}


_nothing_sent, _one_sent = (0, 8), (1, 8)
first_of__right_by_kind = {
    "x[0], x cut by rows": _one_sent,
    "x[0], x cut by columns": _nothing_sent,
    "x[:, 0], x cut by rows": _nothing_sent,
    "x.sum(0), x cut by rows": _one_sent,
    "2 * x, x cut by rows": _nothing_sent,
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# Row 0 is on device 0 already, so x[0] stays there and nobody is sent anything.
first_of__wrong_stays_there = {
    "x[0], x cut by rows": (0, 1),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# x[0] takes one entry of each column, so it is cutting by columns that separates what it needs; and the other way round.
first_of__wrong_dimension = {
    "x[0], x cut by rows": (0, 8),
    "x[0], x cut by columns": (1, 8),
    "x[:, 0], x cut by rows": (1, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# Counts messages to the seven other devices where collectives are asked for.
first_of__wrong_messages = {
    "x[0], x cut by rows": (7, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (7, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# A sum over the devices is collected on one of them, as MPI's Reduce does.
first_of__wrong_reduced_to_one = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 1),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}
