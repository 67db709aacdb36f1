"""Answers to lesson 03, fourteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


# ---- commit_status

commit_status__right_WHODECIDED = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that device_put always commits, whether or not it is told where to.
commit_status__wrong_PUTCOMMITS = {
    "jax.device_put(v)": True,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that a result is committed only if all its operands are.
commit_status__wrong_ALLMUSTBE = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": False,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that whatever is made from front, by way of its shape or through NumPy, belongs where front is.
commit_status__wrong_MADEFROMFRONT = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": True,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": True,
}

# Thought that ones_like takes over the shape and the dtype and nothing else, as older tutorials say.
commit_status__wrong_LIKEISSHAPE = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": False,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# ---- device_order

device_order__right_PLACES = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Read the ring the wrong way round: took the device at place k for the entry that device k holds.
device_order__wrong_INVERSE = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 70,
    "winding on device 1": 20,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Thought that NumPy puts the pieces together by the numbers of the devices, so that backwards reads 70, 60, ...
device_order__wrong_NUMPYBYID = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 70,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Thought that device_put has nothing to do since the eight devices are the same, so that device 0 keeps its entry.
device_order__wrong_NOTHINGMOVES = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 70,
}

# Thought that a ring differs only in who sends to whom, and that device k still holds entry k of winding.
device_order__wrong_RINGKEEPSIDS = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 40,
    "winding on device 1": 10,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# ---- alias

alias__right_NEWORNOT = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# Thought that device_put always makes a copy, also to where the array is already.
alias__wrong_PUTCOPIES = {
    "jax.device_put(a, a.sharding)": "alive",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# Thought of torch.tensor(a): asarray makes a new array of whatever it is given.
alias__wrong_ASARRAYCOPIES = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "alive",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# Thought that the compiler throws the + 0 away, and that the result is therefore a itself.
alias__wrong_ZEROFOLDED = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "deleted",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# Thought that memory lives as long as a Python name refers to it, so that a donated a is safe; and may_alias is a mere hint.
alias__wrong_NAMEKEEPSIT = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "deleted",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "alive",
}
