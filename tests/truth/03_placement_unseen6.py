"""Answers to lesson 03, sixth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


# ---------------------------------------------------------------- inside_jit
inside_jit__right_one_list = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "runs",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# out_shardings is not inside: the runtime brings the result there after the program has ended.
inside_jit__wrong_out_shardings_after = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "runs",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# device_put inside jit is forbidden, whatever it is given.
inside_jit__wrong_never_inside = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "error",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# whole and backwards are on the same eight devices, and a program has to be on one set of devices.
inside_jit__wrong_same_set = dict(
    inside_jit__right_one_list,
    **{"jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "runs"},
)

# fresh is on device 0, which is not among 4 to 7; and the first row's result is committed to 0 to 3, so it cannot leave.
inside_jit__wrong_what_is_somewhere_stays = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "error",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "error",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}


# ---------------------------------------------------------------- device_order
_turned, _ring = [7, 6, 5, 4, 3, 2, 1, 0], [0, 2, 4, 6, 7, 5, 3, 1]
device_order__right_places = {
    "backwards on device 0": 10 * _turned.index(0),
    "backwards on device 5": 10 * _turned.index(5),
    "winding on device 4": 10 * _ring.index(4),
    "winding on device 1": 10 * _ring.index(1),
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Device k takes the entry whose number stands at place k of the list.
device_order__wrong_list_read_as_entries = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 70,
    "winding on device 1": 20,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# NumPy reads the devices 0 to 7 one after the other, so backwards comes out turned round.
device_order__wrong_values_turned = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 70,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Same eight devices and both P("x"): device_put finds nothing to do.
device_order__wrong_nothing_to_do = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 70,
}

# 4 stands third in the ring, so it has 30; and 5 stands third in the turned list. (The ends I know from the picture.)
device_order__wrong_third_is_30 = {
    "backwards on device 0": 70,
    "backwards on device 5": 30,
    "winding on device 4": 30,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}


# ---------------------------------------------------------------- placement_claims
placement_claims__right_three = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put",
}

# What is not committed has to be computed on the default device, since that is where it is.
placement_claims__wrong_default_device = {
    "policy": "on the default device",
    "same_devices": "their order",
    "other_devices": "device_put",
}

# whole + backwards fails because the blocks differ, and whether blocks differ is what specs say.
placement_claims__wrong_specs = dict(
    policy="on the committed one's devices", same_devices="their specs", other_devices="device_put"
)

# Inside jit reshard to other devices ran without an error, so both can do it.
placement_claims__wrong_quiet_means_done = dict(
    zip(
        ("policy", "same_devices", "other_devices"),
        ("on the committed one's devices", "their order", "device_put and reshard"),
    )
)

# On Auto meshes the compiler settles everything; and device_put only places, while reshard is for moving.
placement_claims__wrong_compiler_settles = {
    "policy": "on the committed one's devices",
    "same_devices": "nothing",
    "other_devices": "reshard",
}
