"""Answers to lesson 03, third batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine

# ---------------------------------------------------------------- alias

alias__right_all = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# The compiler sees that adding 0 changes nothing and hands a back.
alias__wrong_zero = {**alias__right_all, "a + 0": "deleted"}

# asarray makes an array, so it is a new one, as jnp.array would make.
alias__wrong_asarray = {**alias__right_all, "jnp.asarray(a)": "alive"}

# Nobody called delete, so a lives on: donating is only an offer, and sin has its own result.
alias__wrong_donated = {
    **alias__right_all,
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "alive",
}

# may_alias only allows something, and where there is nothing to move device_put hands back the same array all the same.
alias__wrong_may = {
    **alias__right_all,
    "jax.device_put(a, a.sharding, may_alias=False)": "deleted",
}

# ---------------------------------------------------------------- will_it_run

will_it_run__right_all = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# tall and wide are on two different meshes, and arrays of different meshes cannot be added.
will_it_run__wrong_meshes = {**will_it_run__right_all, "tall + wide": "error"}

# The same eight devices take part in both, the order is the compiler's business like any layout.
will_it_run__wrong_order = {**will_it_run__right_all, "whole + backwards": "runs"}

# ones_like makes an array that nobody has put anywhere, so it follows front; and device 0 is one of whole's devices.
will_it_run__wrong_like = {
    **will_it_run__right_all,
    "whole + alone": "runs",
    "front + jnp.ones_like(rear)": "runs",
}

# v is on the host, whole on the devices, and nobody has transferred v; one cut array and one with copies do not fit either.
will_it_run__wrong_host = {
    **will_it_run__right_all,
    "whole + v": "error",
    "whole + copies": "error",
}

# ---------------------------------------------------------------- commit_status

commit_status__right_all = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# device_put is how one commits, with or without a device.
commit_status__wrong_put = {**commit_status__right_all, "jax.device_put(v)": True}

# ones_like takes only shape and type of front, the ones are new and free.
commit_status__wrong_like = {**commit_status__right_all, "jnp.ones_like(front)": False}

# front's values come back from NumPy as they were, so also where they were; its shape too brings its place along.
commit_status__wrong_memory = {
    **commit_status__right_all,
    "jnp.asarray(np.asarray(front))": True,
    "jnp.zeros(front.shape)": True,
}

# Device 0 is where JAX puts things anyhow, so naming it says nothing; and a sum is JAX's own result, put there by JAX.
commit_status__wrong_default = {
    **commit_status__right_all,
    "jax.device_put(v, jax.devices()[0])": False,
    "front + fresh": False,
}
