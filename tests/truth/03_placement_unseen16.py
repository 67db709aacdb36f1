"""Answers to lesson 03, sixteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


# ---------------------------------------------------------------- alias

alias__right_same_unless_new = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# This student thinks that jnp.asarray makes an array, as jnp.array does, and so a new one.
alias__wrong_asarray_is_array = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "alive",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# This student thinks that may_alias speaks of how something is moved, and that where nothing is moved the same array comes back.
alias__wrong_nothing_to_move = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "deleted",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# This student thinks that the compiler sees that adding 0 does nothing, and hands the operand back.
alias__wrong_optimised_away = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "deleted",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# This student thinks that an array lives as long as a name in Python refers to it (a donation is an offer), and that device_put always makes a second array.
alias__wrong_names_keep_alive = {
    "jax.device_put(a, a.sharding)": "alive",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "alive",
}


# ---------------------------------------------------------------- commit_status

commit_status__right_who_said_where = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# This student thinks that whatever comes out of device_put is committed, a place named or not.
commit_status__wrong_every_device_put = {
    "jax.device_put(v)": True,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# This student thinks that ones_like takes only the shape and the dtype of its operand.
commit_status__wrong_like_is_shape = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": False,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# This student thinks that a result is committed only if all of its operands are.
commit_status__wrong_all_operands = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": False,
    "jnp.asarray(np.asarray(front))": False,
}

# This student thinks that whatever is made of something of front's (its shape, its values) inherits where front is.
commit_status__wrong_descends_from_front = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": True,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": True,
}


# ---------------------------------------------------------------- fix_the_placement


def fix_the_placement__right_pair(y, z):
    return jnp.add(*jax.device_put((y, z), y.sharding))  # y is there already: only z travels


# This student repairs the meeting at the other place: the sum runs, but it is where z is.
def fix_the_placement__wrong_to_z(y, z):
    return jax.device_put(y, z.sharding) + z


# This student thinks that every array here is cut over x, and builds the target of y's mesh and that spec.
def fix_the_placement__wrong_always_x(y, z):
    return y + jax.device_put(z, NamedSharding(y.sharding.mesh, P("x")))


# This student makes z uncommitted, so that it follows y, and does so by way of NumPy and the host.
def fix_the_placement__wrong_uncommit(y, z):
    return y + jnp.asarray(np.asarray(z))


# This student thinks that the transfer may be part of the compiled program, and that it is one operation there.
def fix_the_placement__wrong_in_jit(y, z):
    where = y.sharding
    return jax.jit(lambda y, z: y + jax.device_put(z, where))(y, z)
