"""Answers to lesson 03, eleventh batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine

# ---------------------------------------------------------------------- alias

alias__right_zipped = dict(
    zip(
        [
            "jax.device_put(a, a.sharding)",
            "jnp.asarray(a)",
            "jnp.copy(a)",
            "jax.device_put(a, a.sharding, may_alias=False)",
            "a + 0",
            "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)",
        ],
        2 * ["deleted"] + 3 * ["alive"] + ["deleted"],
    )
)

# thought that a sum with 0 has nothing to do, so that JAX gives back the same array
alias__wrong_zero = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "deleted",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# thought that asarray always makes a new array, as jnp.array does
alias__wrong_asarray = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "alive",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# thought that only delete() deletes, and that a donated array lives on with the values of the result
alias__wrong_donated = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "alive",
}

# thought that a device_put to where the array is does nothing, whatever option stands beside it
alias__wrong_option = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "deleted",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# ----------------------------------------------------------------- inside_jit

# the lists of devices of which each program hears; one at most, and it runs
_up, _down, _low, _high = (0, 1, 2, 3, 4, 5, 6, 7), (7, 6, 5, 4, 3, 2, 1, 0), (0, 1, 2, 3), (4, 5, 6, 7)
inside_jit__right_lists = {
    row: "runs" if len(lists) < 2 else "error"
    for row, lists in {
        "jax.device_put(jax.jit(jnp.sin)(front), there)": {_low},
        "jax.jit(lambda a: jax.device_put(a, there))(front)": {_low, _high},
        "jax.jit(jnp.sin, out_shardings=there)(front)": {_low, _high},
        "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": {_low},
        "jax.jit(lambda a: jax.device_put(a, there))(fresh)": {_high},
        "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": {_up, _down},
    }.items()
}

# thought that fresh is on device 0, which is not among 4 to 7, and forgot that it is free to follow
inside_jit__wrong_fresh = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "error",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# thought that the program needs the same set of devices, in whatever order
inside_jit__wrong_set = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "runs",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "runs",
}

# thought that out_shardings act when the program has ended, so that the runtime brings the result there
inside_jit__wrong_out = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "runs",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# thought that device_put is the runtime's, and therefore an error wherever it stands inside jit
inside_jit__wrong_never = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "error",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# -------------------------------------------------------------- commit_status

_committed = {"jax.device_put(v, jax.devices()[0])", "jnp.ones_like(front)", "front + fresh"}
commit_status__right_set = {
    row: row in _committed
    for row in (
        "jax.device_put(v)",
        "jax.device_put(v, jax.devices()[0])",
        "jnp.zeros(front.shape)",
        "jnp.ones_like(front)",
        "front + fresh",
        "jnp.asarray(np.asarray(front))",
    )
}

# thought that device_put always commits, also when nobody says where
commit_status__wrong_put = {
    "jax.device_put(v)": True,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# thought that ones_like takes over the shape and the dtype, and not the place
commit_status__wrong_like = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": False,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# thought that what comes from a committed array stays committed, also by way of NumPy
commit_status__wrong_numpy = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": True,
}

# thought that a result is committed only if all of its operands are
commit_status__wrong_every = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": all([True, False]),
    "jnp.asarray(np.asarray(front))": False,
}
