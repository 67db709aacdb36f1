"""Right answers to 01_devices_and_meshes, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what an answer does, not how it is written.
"""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def chips_needed__by_logarithm(gigabytes, memory):
    return max(1, 2 ** int(np.ceil(np.log2(gigabytes / memory))))


def chips_needed__from_a_list(gigabytes, memory):
    """The first power of two that is large enough."""
    return next(2**k for k in range(20) if 2**k * memory >= gigabytes)


def bytes_by_device__from_the_sharding(array):
    """No data is looked at: the shape of a shard, and the bytes of an element."""
    held = int(np.prod(array.sharding.shard_shape(array.shape))) * array.dtype.itemsize
    return {device.id: held for device in array.sharding.device_set}


def device_grid__counted(shape, names):
    """One place after the other."""
    ids = np.zeros(shape, int)
    for device, place in enumerate(np.ndindex(*shape)):
        ids[place] = device
    return ids


def device_grid__nested_lists(shape, names):
    return np.arange(int(np.prod(shape))).reshape(shape, order="C").tolist()


def put_on_mesh__with_a_context(value, spec, on=None):
    """A mesh of its own by default, and the sharding in one expression."""
    on = on or Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    return jax.device_put(value, device=NamedSharding(on, P(*spec)))


def put_on_mesh__explicit(value, spec, on=None):
    chosen = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2) if on is None else on
    return jax.jit(lambda a: a, out_shardings=NamedSharding(chosen, P(*spec)))(value)


def axis_groups__by_place(mesh, axis):
    """Devices with the same place in all other axes, in a dict."""
    k, groups = mesh.axis_names.index(axis), {}
    for place in np.ndindex(*mesh.devices.shape):
        groups.setdefault(place[:k] + place[k + 1 :], []).append(mesh.devices[place].id)
    return list(groups.values())


def axis_groups__by_stride(mesh, axis):
    """Sets, in another order, from the strides of the grid."""
    ids = [device.id for device in mesh.devices.flat]
    sizes, k = list(mesh.shape.values()), list(mesh.shape).index(axis)
    stride = int(np.prod(sizes[k + 1 :]))
    starts = [n for n in range(len(ids)) if n // stride % sizes[k] == 0]
    return [{ids[start + step * stride] for step in range(sizes[k])} for start in reversed(starts)]


def longest_hop__in_numpy(coords, order):
    places = np.array(coords)[np.array(order)]
    return np.abs(places - np.roll(places, 1, axis=0)).sum(axis=1).max()


def longest_hop__in_a_loop(coords, order):
    longest = 0
    for k in range(len(order)):
        (a, b), (c, d) = coords[order[k - 1]], coords[order[k]]
        longest = max(longest, abs(a - c) + abs(b - d))
    return longest


def make_training_mesh__from_an_array(n_data, n_model, explicit):
    """The older constructor; NumPy raises the ValueError when devices are too few."""
    types = {True: (AxisType.Explicit,) * 2, False: (AxisType.Auto,) * 2}[explicit]
    devices = np.array(jax.devices()[: n_data * n_model]).reshape(n_data, n_model)
    return Mesh(devices, axis_names=("data", "model"), axis_types=types)


def make_training_mesh__other_devices(n_data, n_model, explicit):
    """Chosen devices, and the types by name."""
    kind = getattr(AxisType, "Explicit" if explicit else "Auto")
    return jax.make_mesh([n_data, n_model], ["data", "model"], (kind, kind), devices=jax.devices())
