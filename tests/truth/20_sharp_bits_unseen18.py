"""Answers to lesson 20, eighteenth batch, written by a reader of the notebook only."""

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


# ---- unchecked

unchecked__right_rows = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# thought: P("x") says nothing of y, and nothing was reduced over y, so nobody knows the copies there
unchecked__wrong_copiesalongy = {"A": "safe", "B": "unsafe", "C": "unsafe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# thought: whatever has gone through a psum is the same on all devices
unchecked__wrong_anypsum = {"A": "safe", "B": "safe", "C": "safe", "D": "safe", "E": "unsafe", "F": "safe"}

# thought: on a ring each device adds in another order, so its copies differ, whatever the numbers are
unchecked__wrong_everyring = {"A": "safe", "B": "unsafe", "C": "safe", "D": "unsafe", "E": "unsafe", "F": "unsafe"}

# thought: a full turn on the ring brings the same four numbers to all devices, so the sum is the same
unchecked__wrong_fullturn = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "safe", "F": "unsafe"}


# ---- offloaded_step


def offloaded_step__right_shardings(w, g, m, v):
    there = w.sharding.with_memory_kind("device")
    new_w, *moments = adam(w, g, *(jax.device_put(moment, there) for moment in (m, v)))
    return (jax.device_put(new_w, w.sharding), *jax.device_put(tuple(moments), (m.sharding, v.sharding)))


# thought: between the steps everything waits in the host's memory, the weights too
def offloaded_step__wrong_allhost(w, g, m, v):
    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    return tuple(to("pinned_host", a) for a in adam(w, g, to("device", m), to("device", v)))


# thought: m and v are in the host's memory already and are updated there, so only the new w has to be kept
def offloaded_step__wrong_inplace(w, g, m, v):
    def to(kind, a):
        return jax.device_put(a, a.sharding.with_memory_kind(kind))

    w, *_ = adam(w, g, to("device", m), to("device", v))
    return w, m, v


# thought: the layout is that of the cell above, P("x") on the line
def offloaded_step__wrong_thatlayout(w, g, m, v):
    cut = NamedSharding(line, P("x"))
    host = cut.with_memory_kind("pinned_host")
    w, m, v = adam(
        w, g, jax.device_put(m, cut.with_memory_kind("device")), jax.device_put(v, cut.with_memory_kind("device"))
    )
    return w, jax.device_put(m, host), jax.device_put(v, host)


# thought: what is in the host's memory is NumPy's anyway, so fetching it with np.asarray costs nothing
def offloaded_step__wrong_throughnumpy(w, g, m, v):
    new_w, new_m, new_v = adam(
        w, g, jax.device_put(np.asarray(m), w.sharding), jax.device_put(np.asarray(v), w.sharding)
    )
    return new_w, jax.device_put(np.asarray(new_m), m.sharding), jax.device_put(np.asarray(new_v), v.sharding)


# ---- agree


def agree__right_noneoutside(found, expected, roundings):
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    bound = roundings * 2.0**-24 * np.max(np.abs(expected), initial=0.0)
    within = np.abs(found - expected) <= bound
    return not np.any(~within)


# thought: each rounding changes a number by 2**-24 of itself, so each entry has a bound of its own
def agree__wrong_eachentry(found, expected, roundings):
    return bool(np.all(np.abs(found - expected) <= roundings * 2.0**-24 * np.abs(expected)))


# thought: they agree unless some entry is further away than the bound (a nan is not further away)
def agree__wrong_unlessfurther(found, expected, roundings):
    return not bool(np.any(np.abs(found - expected) > roundings * 2.0**-24 * np.abs(expected).max()))


# thought: the largest entry expected is expected.max(); that all may be negative is forgotten
def agree__wrong_largestsigned(found, expected, roundings):
    return bool((np.abs(found - expected) <= roundings * 2.0**-24 * expected.max()).all())


# thought: roundings go up and down, so it is the average error that has to be within the bound
def agree__wrong_average(found, expected, roundings):
    return bool(np.mean(np.abs(found - expected)) <= roundings * 2.0**-24 * np.max(np.abs(expected)))
