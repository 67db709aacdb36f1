"""Right answers to 02_shardings, each spelled differently from the lesson's model solution."""

import functools
import itertools
import math

import jax
import numpy as np
from jax.sharding import NamedSharding


def distribute__jitted(value, spec, mesh):
    """The compiler puts the result where out_shardings say."""
    return jax.jit(lambda v: v, out_shardings=NamedSharding(mesh, spec))(value)


def distribute__by_callback(value, spec, mesh):
    """Every device asks for its slice."""
    return jax.make_array_from_callback(value.shape, NamedSharding(mesh, spec), lambda index: value[index])


def shard_shape__by_numpy(shape, spec, axis_sizes):
    """As an array, and every entry as a tuple."""
    block = np.array(shape)
    for dim, entry in enumerate(spec):
        for axis in [entry] if isinstance(entry, str) else entry or []:
            block[dim] = block[dim] / axis_sizes[axis]
    return [int(n) for n in block]


def shard_shape__recursive(shape, spec, axis_sizes):
    def block(lengths, entries):
        if not lengths:
            return ()
        entry, *rest = entries or [None]
        axes = (entry,) if isinstance(entry, str) else entry or ()
        parts = functools.reduce(lambda n, axis: n * axis_sizes[axis], axes, 1)
        return (lengths[0] // parts, *block(lengths[1:], rest))

    return block(shape, [*spec])


def shard_table__whole_as_colon(shape, spec, mesh):
    """`slice(None)` where nothing is cut, as JAX writes it; block numbers by np.ravel_multi_index."""
    names = list(mesh.axis_names)
    held = {}
    for place in np.ndindex(mesh.devices.shape):
        slices = [slice(None)] * len(shape)
        for dim, entry in enumerate(spec):
            axes = [names.index(a) for a in ([entry] if isinstance(entry, str) else entry or [])]
            if axes:
                sizes = [mesh.devices.shape[k] for k in axes]
                number = int(np.ravel_multi_index([place[k] for k in axes], sizes))
                step = shape[dim] // math.prod(sizes)
                slices[dim] = slice(step * number, step * number + step, None)
        held[mesh.devices[place].id] = slices
    return held


def shard_table__by_halving(shape, spec, mesh):
    """Start with all of the array, and narrow it down axis by axis."""
    held = {}
    for place, device in np.ndenumerate(mesh.devices):
        where = dict(zip(mesh.axis_names, place, strict=True))
        bounds = [[0, n] for n in shape]
        for start_stop, entry in zip(bounds, spec, strict=False):
            for axis in (entry,) if isinstance(entry, str) else entry or ():
                step = (start_stop[1] - start_stop[0]) // mesh.shape[axis]
                start_stop[0] += step * where[axis]
                start_stop[1] = start_stop[0] + step
        held[int(device.id)] = tuple(slice(np.int64(a), np.int64(b)) for a, b in bounds)
    return held


def bytes_held__by_copies(shape, itemsize, spec, axis_sizes):
    named = set(itertools.chain(*([e] if isinstance(e, str) else e or [] for e in spec)))
    copies = math.prod(size for axis, size in axis_sizes.items() if axis not in named)
    everything = math.prod(shape) * itemsize * copies
    return everything / math.prod(axis_sizes.values()), everything, copies


def bytes_held__as_list(shape, itemsize, spec, axis_sizes):
    total = np.prod(shape) * itemsize
    for entry in spec:
        for axis in (entry,) if isinstance(entry, str) else entry or ():
            total //= axis_sizes[axis]
    devices = np.prod([*axis_sizes.values()])
    return [total, total * devices, total * devices // (np.prod(shape) * itemsize)]


def count_shardings__one_axis_after_the_other(rank, axes):
    """The next axis goes between the ones placed already: with m placed there are rank + m gaps; or it cuts nothing."""

    @functools.lru_cache
    def ways(left, placed):
        return ways(left - 1, placed) + (rank + placed) * ways(left - 1, placed + 1) if left else 1

    return ways(axes, 0) if rank else 1


def count_shardings__formula(rank, axes):
    """Choose m axes, put them in a row, and set rank - 1 bars between them."""
    if not rank:
        return 1
    return sum(math.comb(axes, m) * math.factorial(m) * math.comb(m + rank - 1, m) for m in range(axes + 1))


def assemble__marking_what_is_written(array):
    whole, written = np.zeros(array.shape, array.dtype), np.zeros(array.shape, bool)
    for shard in array.addressable_shards:
        if written[shard.index].any() and (whole[shard.index] != np.asarray(shard.data)).any():
            raise ValueError(f"device {shard.device.id} holds another copy")
        whole[shard.index], written[shard.index] = shard.data, True
    return whole


def assemble__numpy_then_compare(array):
    """What NumPy shows, if every shard agrees with it."""
    whole = np.asarray(array)
    if all(np.array_equal(whole[shard.index], shard.data) for shard in array.addressable_shards):
        return whole
    raise ValueError("the copies differ")


def assemble__by_device_table(array):
    """Compare with every other device that should hold the same."""
    held = {s.device: np.asarray(s.data) for s in array.addressable_shards}
    table = array.sharding.devices_indices_map(array.shape)
    whole = np.empty(array.shape, array.dtype)
    for (one, index), (other, same) in itertools.product(table.items(), repeat=2):
        if index == same and not np.array_equal(held[one], held[other]):
            raise ValueError(f"{one} and {other} differ")
        whole[index] = held[one]
    return whole
