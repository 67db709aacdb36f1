"""Answers to lesson 02, written by a reader of the notebook only."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def distribute__right_put(value, spec, mesh):
    """The plain way."""
    return jax.device_put(value, NamedSharding(mesh, spec))


def distribute__right_jnp(value, spec, mesh):
    """Through jnp.asarray."""
    sharding = NamedSharding(mesh=mesh, spec=spec)
    return jax.device_put(jnp.asarray(value), sharding)


def distribute__right_born(value, spec, mesh):
    """jnp.array has a device argument."""
    return jnp.array(value, device=NamedSharding(mesh, spec))


MESH = mesh


def distribute__wrong_notebook_mesh(value, spec, mesh):
    """Used the notebook's mesh."""
    return jax.device_put(value, NamedSharding(MESH, spec))


def distribute__wrong_fixed_spec(value, spec, mesh):
    """Copied P("x", "y") from above."""
    return jax.device_put(value, NamedSharding(mesh, P("x", "y")))


def distribute__wrong_no_sharding(value, spec, mesh):
    """Gives device_put the spec alone."""
    return jax.device_put(value, spec)


def distribute__wrong_wrapped(value, spec, mesh):
    """Wraps the spec in a P once more."""
    return jax.device_put(value, NamedSharding(mesh, P(spec)))


def distribute__wrong_no_return(value, spec, mesh):
    """Forgot to return."""
    jax.device_put(value, NamedSharding(mesh, spec))


def distribute__wrong_not_put(value, spec, mesh):
    """Makes the array, and does not spread it."""
    return jnp.asarray(value)


attributes__right_counted = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}
# two blocks, so two devices
attributes__wrong_two = attributes__right_counted | {"len(cut.devices())": 2, "len(cut.addressable_shards)": 2}
# y cuts columns
attributes__wrong_columns = attributes__right_counted | {"cut.addressable_shards[5].data.shape": (16, 4)}
# copies exist, so it is replicated
attributes__wrong_replicated = attributes__right_counted | {"cut.is_fully_replicated": True}
# y has four
attributes__wrong_four = attributes__right_counted | {"cut.addressable_shards[5].data.shape": (4, 8)}
# the whole comes out of sin
attributes__wrong_sin = attributes__right_counted | {"jnp.sin(cut).addressable_shards[5].data.shape": (16, 8)}
# two different blocks
attributes__wrong_shards = attributes__right_counted | {"len(cut.addressable_shards)": 2}

draw_it__right_pictures = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}
# P('y', 'x') counted row by row
draw_it__wrong_in_order = draw_it__right_pictures | {"P('y', 'x')": [[{0}, {1}, {2}, {3}], [{4}, {5}, {6}, {7}]]}
# the picture of P('x', 'y') kept for P('y', 'x')
draw_it__wrong_same = draw_it__right_pictures | {"P('y', 'x')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]]}
# side by side in place of one under the other
draw_it__wrong_sideways = draw_it__right_pictures | {"P('x')": [[{0, 1}, {2, 3}, {4, 5}, {6, 7}]]}
# neighbours in halves
draw_it__wrong_halves = draw_it__right_pictures | {"P(None, 'y')": [[{0, 1, 2, 3}, {4, 5, 6, 7}]]}
# the None ignored
draw_it__wrong_none = draw_it__right_pictures | {"P(None, 'y')": [[{0, 2, 4, 6}], [{1, 3, 5, 7}]]}
# the order of a tuple does not matter
draw_it__wrong_tuple = draw_it__right_pictures | {"P(None, ('y', 'x'))": [[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}]]}
# a tuple means both dimensions
draw_it__wrong_both = draw_it__right_pictures | {"P(('x', 'y'))": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]]}
# along x is the row of four
draw_it__wrong_rows_of_x = draw_it__right_pictures | {"P('x')": [[{0, 4}], [{1, 5}], [{2, 6}], [{3, 7}]]}


def shard_shape__right_loop(shape, spec, axis_sizes):
    """The hints' way."""
    entries = list(spec) + [None] * (len(shape) - len(spec))
    out = []
    for length, entry in zip(shape, entries):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        out.append(length // math.prod(axis_sizes[a] for a in axes))
    return tuple(out)


def shard_shape__right_inplace(shape, spec, axis_sizes):
    """Divides in place."""
    result = list(shape)
    for d, entry in enumerate(spec):
        if entry is None:
            continue
        if isinstance(entry, str):
            entry = (entry,)
        for axis in entry:
            result[d] //= axis_sizes[axis]
    return tuple(result)


def shard_shape__wrong_short(shape, spec, axis_sizes):
    """zip drops dimensions that the spec leaves out."""
    out = []
    for length, entry in zip(shape, spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        out.append(length // math.prod(axis_sizes[a] for a in axes))
    return tuple(out)


def shard_shape__wrong_no_tuples(shape, spec, axis_sizes):
    """Forgot that an entry may be a tuple."""
    entries = list(spec) + [None] * (len(shape) - len(spec))
    return tuple(n // axis_sizes[e] if e is not None else n for n, e in zip(shape, entries))


def shard_shape__wrong_sum(shape, spec, axis_sizes):
    """Adds the sizes of a tuple."""
    entries = list(spec) + [None] * (len(shape) - len(spec))
    out = []
    for length, entry in zip(shape, entries):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        out.append(length // (sum(axis_sizes[a] for a in axes) or 1))
    return tuple(out)


def shard_shape__wrong_first_of_tuple(shape, spec, axis_sizes):
    """Only the first axis of a tuple."""
    result = list(shape)
    for d, entry in enumerate(spec):
        if entry is not None:
            result[d] //= axis_sizes[entry if isinstance(entry, str) else entry[0]]
    return tuple(result)


def shard_shape__wrong_float(shape, spec, axis_sizes):
    """A division with / ."""
    result = list(shape)
    for d, entry in enumerate(spec):
        for axis in () if entry is None else (entry,) if isinstance(entry, str) else entry:
            result[d] = result[d] / axis_sizes[axis]
    return tuple(result)


def shard_shape__wrong_all_axes(shape, spec, axis_sizes):
    """Cuts by all axes in the order of the mesh."""
    return tuple(n // s for n, s in zip(shape, axis_sizes.values()))


def shard_shape__wrong_hard_coded(shape, spec, axis_sizes):
    """The sizes of our mesh."""
    sizes = {"x": 4, "y": 2}
    result = list(shape)
    for d, entry in enumerate(spec):
        for axis in () if entry is None else (entry,) if isinstance(entry, str) else entry:
            result[d] //= sizes[axis]
    return tuple(result)


def shard_table__right_digits(shape, spec, mesh):
    """The hints' way."""
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for n, entry in zip(shape, entries):
            axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
            number, count = 0, 1
            for axis in axes:
                number = number * mesh.shape[axis] + at[axis]
                count *= mesh.shape[axis]
            length = n // count
            slices.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(slices)
    return table


def _table(shape, spec, mesh, *, slow_last=False, by_index=False, fill=True, inclusive=False, whole_none=False):
    entries = list(spec) + ([None] * (len(shape) - len(spec)) if fill else [])
    table = {}
    for k, (place, device) in enumerate(np.ndenumerate(mesh.devices)):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for n, entry in zip(shape, entries):
            if entry is None and whole_none:
                slices.append(slice(None))
                continue
            axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
            number, count = 0, 1
            for axis in reversed(axes) if slow_last else axes:
                number = number * mesh.shape[axis] + at[axis]
                count *= mesh.shape[axis]
            length = n // count
            slices.append(slice(number * length, (number + 1) * length - inclusive))
        table[k if by_index else device.id] = tuple(slices)
    return table


def shard_table__right_whole(shape, spec, mesh):
    """slice(None) where nothing cuts, as JAX itself writes it."""
    return _table(shape, spec, mesh, whole_none=True)


def shard_table__wrong_reversed(shape, spec, mesh):
    """The first axis of a tuple taken for the fast one."""
    return _table(shape, spec, mesh, slow_last=True)


def shard_table__wrong_places(shape, spec, mesh):
    """Numbers devices by their place, not by id."""
    return _table(shape, spec, mesh, by_index=True)


def shard_table__wrong_short(shape, spec, mesh):
    """Leaves out dimensions for which the spec has no entry."""
    return _table(shape, spec, mesh, fill=False)


def shard_table__wrong_inclusive(shape, spec, mesh):
    """A slice that ends one too early."""
    return _table(shape, spec, mesh, inclusive=True)


def shard_table__wrong_devices(shape, spec, mesh):
    """Devices as keys, not their ids."""
    ids = {d.id: d for d in mesh.devices.flat}
    return {ids[k]: s for k, s in _table(shape, spec, mesh).items()}


def shard_table__right_asked(shape, spec, mesh):
    """Asks JAX: the text leaves that to the student's conscience."""
    return {d.id: s for d, s in NamedSharding(mesh, spec).devices_indices_map(shape).items()}


def shard_table__wrong_id_as_place(shape, spec, mesh):
    """Reckons the place from the id: 2x + y."""
    table = _table(shape, spec, mesh, by_index=True)
    return {d.id: table[d.id] for d in mesh.devices.flat}


memory__right_counted = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 512,
}
# divides by all devices
memory__wrong_all = memory__right_counted | {"w as P('x'): MiB on one device": 32}
# all devices hold the array once
memory__wrong_once = memory__right_counted | {"w as P('x'): MiB on all devices": 256}
# nbytes
memory__wrong_nbytes = memory__right_counted | {"w as P(): MiB on all devices": 256}
# forgot four bytes an entry
memory__wrong_entries = memory__right_counted | {"w as P('x', 'y'): MiB on one device": 8}
# int8 taken for four bytes
memory__wrong_int32 = memory__right_counted | {"q as P(('x', 'y')): bytes on one device": 65536}
# forgot the copies along z
memory__wrong_z = memory__right_counted | {"q as P(('x', 'y')): KiB on all devices": 256}
# bytes, not KiB
memory__wrong_unit = memory__right_counted | {"q as P(('x', 'y')): KiB on all devices": 524288}
# millions of bytes
memory__wrong_mb = memory__right_counted | {"w as P('x', 'y'): MiB on one device": 33.55}


def bytes_held__right_shape(shape, itemsize, spec, axis_sizes):
    """With the block's shape."""
    one = math.prod(shard_shape__right_loop(shape, spec, axis_sizes)) * itemsize
    everyone = one * math.prod(axis_sizes.values())
    return one, everyone, everyone // (math.prod(shape) * itemsize)


def bytes_held__right_unnamed(shape, itemsize, spec, axis_sizes):
    """Copies: the axes left out."""
    named = set()
    for entry in spec:
        named |= set() if entry is None else {entry} if isinstance(entry, str) else set(entry)
    copies = math.prod(size for axis, size in axis_sizes.items() if axis not in named)
    total = math.prod(shape) * itemsize
    devices = math.prod(axis_sizes.values())
    return total * copies // devices, total * copies, copies


def bytes_held__wrong_no_itemsize(shape, itemsize, spec, axis_sizes):
    """Counts entries."""
    one = math.prod(shard_shape__right_loop(shape, spec, axis_sizes))
    everyone = one * math.prod(axis_sizes.values())
    return one, everyone, everyone // math.prod(shape)


def bytes_held__wrong_total(shape, itemsize, spec, axis_sizes):
    """All devices together hold nbytes."""
    one = math.prod(shard_shape__right_loop(shape, spec, axis_sizes)) * itemsize
    total = math.prod(shape) * itemsize
    return one, total, one * math.prod(axis_sizes.values()) // total


def bytes_held__wrong_eight(shape, itemsize, spec, axis_sizes):
    """Eight devices, always."""
    one = math.prod(shard_shape__right_loop(shape, spec, axis_sizes)) * itemsize
    return one, one * 8, one * 8 // (math.prod(shape) * itemsize)


def bytes_held__wrong_blocks(shape, itemsize, spec, axis_sizes):
    """The number of blocks in place of the number of copies."""
    one = math.prod(shard_shape__right_loop(shape, spec, axis_sizes)) * itemsize
    return one, one * math.prod(axis_sizes.values()), math.prod(shape) * itemsize // one


def bytes_held__wrong_order(shape, itemsize, spec, axis_sizes):
    """The results in another order."""
    one, everyone, copies = bytes_held__right_shape(shape, itemsize, spec, axis_sizes)
    return everyone, one, copies


def bytes_held__wrong_sum(shape, itemsize, spec, axis_sizes):
    """Adds the axes' sizes."""
    one = math.prod(shard_shape__right_loop(shape, spec, axis_sizes)) * itemsize
    everyone = one * sum(axis_sizes.values())
    return one, everyone, everyone // (math.prod(shape) * itemsize)


choose_spec__right_short = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}
choose_spec__right_other = choose_spec__right_short | {
    "two whole rows each": P(("y", "x"), None),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P(None, "x"),
}
# the axis with the copies named
choose_spec__wrong_pairs = choose_spec__right_short | {"copies in pairs: 0-1, 2-3, 4-5, 6-7": P("y")}
# four blocks of rows in place of eight
choose_spec__wrong_four = choose_spec__right_short | {"two whole rows each": P("x")}
# two blocks, four devices each
choose_spec__wrong_columns = choose_spec__right_short | {"column blocks, two devices each": P(None, "y")}
# the rows, not the columns
choose_spec__wrong_rows = choose_spec__right_short | {"column blocks, two devices each": P("x")}
# the tuple in the usual order
choose_spec__wrong_tuple = choose_spec__right_short | {"device 1: rows 8 and 9, whole": P(("x", "y"))}
# picture B with x slow
choose_spec__wrong_picture_b = choose_spec__right_short | {"picture": P(None, ("x", "y"))}
# two entries in place of one tuple
choose_spec__wrong_no_tuple = choose_spec__right_short | {"two whole rows each": P("x", "y")}
legal_or_not__right_tried = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}
# a trailing None costs nothing
legal_or_not__wrong_none = legal_or_not__right_tried | {"(16,) as P('x', None)": "fine"}
# twelve is divisible by four, and by two
legal_or_not__wrong_twelve = legal_or_not__right_tried | {"(12, 2) as P(('x', 'y'))": "fine"}
# (10, 8) judged by x first
legal_or_not__wrong_order = legal_or_not__right_tried | {"(10, 8) as P('y', 'x')": "does not divide"}
# a mesh is made smaller
legal_or_not__wrong_mesh = legal_or_not__right_tried | {"a 4 × 4 mesh": "fine"}
# sixteen does not divide by eight devices
legal_or_not__wrong_mesh_reason = legal_or_not__right_tried | {"a 4 × 4 mesh": "does not divide"}


def count_layouts__right_product(rank, axes):
    """The hints' way."""
    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        ways = 1
        for d in range(rank):
            ways *= math.factorial(choice.count(d))
        total += ways
    return total


def count_layouts__right_formula(rank, axes):
    """Chooses which axes cut, orders them, and puts bars between the dimensions."""
    if rank == 0:
        return 1
    return sum(math.perm(axes, k) * math.comb(k + rank - 1, rank - 1) for k in range(axes + 1))


def count_layouts__wrong_power(rank, axes):
    """Forgot the orders."""
    return (rank + 1) ** axes


def count_layouts__wrong_no_nothing(rank, axes):
    """Every axis has to cut something."""
    return rank**axes


def count_layouts__wrong_turned(rank, axes):
    """Dimensions choose axes."""
    return (axes + 1) ** rank


def count_layouts__wrong_ordered_nothing(rank, axes):
    """Orders also those that cut nothing."""
    return sum(
        math.prod(math.factorial(c.count(d)) for d in range(rank + 1))
        for c in itertools.product(range(rank + 1), repeat=axes)
    )


def count_layouts__wrong_matrix(rank, axes):
    """What is true of matrices on two axes: ten and one."""
    return 3**axes + 2


def count_layouts__wrong_sum(rank, axes):
    """Adds the factorials in place of multiplying them."""
    return sum(
        sum(math.factorial(c.count(d)) for d in range(rank)) for c in itertools.product(range(rank + 1), repeat=axes)
    )


def assemble__right_mask(array):
    """A second array of bools."""
    whole, seen = np.zeros(array.shape, array.dtype), np.zeros(array.shape, bool)
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if seen[shard.index].any() and not np.array_equal(whole[shard.index], block):
            raise ValueError("copies of a block differ")
        whole[shard.index] = block
        seen[shard.index] = True
    return whole


def assemble__right_dict(array):
    """A dict from the index to the first block."""
    first, out = {}, np.empty(array.shape, array.dtype)
    for s in array.addressable_shards:
        key = str(s.index)
        data = np.array(s.data)
        if key in first and not (first[key] == data).all():
            raise ValueError(f"device {s.device.id} differs")
        first[key] = data
        out[s.index] = data
    return out


def assemble__wrong_asarray(array):
    """Lets NumPy do it."""
    return np.asarray(array)


def assemble__wrong_no_check(array):
    """Forgot to compare."""
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        whole[shard.index] = shard.data
    return whole


def assemble__wrong_zero(array):
    """Takes a zero for 'not yet written'."""
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        if whole[shard.index].any() and not np.array_equal(whole[shard.index], shard.data):
            raise ValueError("differ")
        whole[shard.index] = shard.data
    return whole


def assemble__wrong_always(array):
    """Compares with what is not written yet as well."""
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        if not np.array_equal(whole[shard.index], shard.data):
            raise ValueError("differ")
        whole[shard.index] = shard.data
    return whole


def assemble__wrong_concatenate(array):
    """Joins all shards one after the other."""
    return np.concatenate([np.asarray(s.data) for s in array.addressable_shards])


def assemble__wrong_print(array):
    """Prints in place of raising."""
    whole, seen = np.zeros(array.shape, array.dtype), set()
    for shard in array.addressable_shards:
        if str(shard.index) in seen and not np.array_equal(whole[shard.index], shard.data):
            print("ValueError")
        whole[shard.index] = shard.data
        seen.add(str(shard.index))
    return whole


def assemble__wrong_dtype(array):
    """Forgot the dtype."""
    whole, seen = np.zeros(array.shape), set()
    for shard in array.addressable_shards:
        if str(shard.index) in seen and not np.array_equal(whole[shard.index], shard.data):
            raise ValueError("differ")
        whole[shard.index] = shard.data
        seen.add(str(shard.index))
    return whole


def assemble__wrong_assert(array):
    """An assert: another error than the one asked for."""
    whole, seen = np.zeros(array.shape, array.dtype), set()
    for shard in array.addressable_shards:
        assert str(shard.index) not in seen or np.array_equal(whole[shard.index], shard.data)
        whole[shard.index] = shard.data
        seen.add(str(shard.index))
    return whole


def assemble__wrong_replicated_only(array):
    """Compares only where the whole is replicated."""
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        if array.is_fully_replicated and not np.array_equal(array.addressable_shards[0].data, shard.data):
            raise ValueError("differ")
        whole[shard.index] = shard.data
    return whole


tutorial_faults__right_found = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 2,
}
# believed the text
tutorial_faults__wrong_figure = tutorial_faults__right_found | {"figure": P("x", "y")}
# believed the text
tutorial_faults__wrong_type = tutorial_faults__right_found | {"type": "ndarray"}
# takes None for a cut
tutorial_faults__wrong_replicate = tutorial_faults__right_found | {"replicate": "half of a block each"}
# takes equal layouts for equal specs
tutorial_faults__wrong_equal = tutorial_faults__right_found | {"equal": True}
# once
tutorial_faults__wrong_once = tutorial_faults__right_found | {"nbytes": 1}
# device k holds block k
tutorial_faults__wrong_order = tutorial_faults__right_found | {"in_order": 1}
# read on a 2 x 4 mesh
tutorial_faults__wrong_wide = tutorial_faults__right_found | {"in_order": 4}
# the name as a text
tutorial_faults__wrong_text = tutorial_faults__right_found | {"figure": "P('y', 'x')"}


# Near misses: wrong at an edge that the text covers.


def distribute__wrong_two_dims(value, spec, mesh):
    return jax.device_put(value, NamedSharding(mesh, P(*(*spec, None, None)[:2])))


def shard_shape__wrong_two_of_tuple(shape, spec, axis_sizes):
    block = list(shape)
    for k, entry in enumerate(spec):
        if isinstance(entry, tuple):
            block[k] //= axis_sizes[entry[0]] * axis_sizes[entry[-1]]
        elif entry is not None:
            block[k] //= axis_sizes[entry]
    return tuple(block)


def _axes(entry):
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def shard_table__wrong_pairs(shape, spec, mesh):
    spec = tuple(spec) + (None,) * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        where = dict(zip(mesh.axis_names, place))
        slices = []
        for n, e in zip(shape, spec):
            axes = _axes(e)
            if not axes:
                k, parts = 0, 1
            elif len(axes) == 1:
                k, parts = where[axes[0]], mesh.shape[axes[0]]
            else:
                a, b = axes[0], axes[-1]
                k, parts = where[a] * mesh.shape[b] + where[b], mesh.shape[a] * mesh.shape[b]
            slices.append(slice(k * n // parts, (k + 1) * n // parts))
        table[device.id] = tuple(slices)
    return table


def shard_table__wrong_stride_of_first(shape, spec, mesh):
    """Digits with the size of the wrong axis: the same where the sizes are equal."""
    spec = tuple(spec) + (None,) * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        where = dict(zip(mesh.axis_names, place))
        slices = []
        for n, e in zip(shape, spec):
            axes = _axes(e)
            parts = math.prod(mesh.shape[a] for a in axes)
            k = 0
            for a in axes:
                k = k * mesh.shape[axes[-1]] + where[a]
            slices.append(slice(k * n // parts, (k + 1) * n // parts))
        table[device.id] = tuple(slices)
    return table


def bytes_held__wrong_by_place(shape, itemsize, spec, axis_sizes):
    sizes = list(axis_sizes.values())
    one = math.prod(shape) * itemsize
    for k, e in enumerate(spec):
        if isinstance(e, tuple):
            for a in e:
                one //= axis_sizes[a]
        elif e is not None:
            one //= sizes[k]
    together = one * math.prod(sizes)
    return one, together, together // (math.prod(shape) * itemsize)


def bytes_held__wrong_two_dims(shape, itemsize, spec, axis_sizes):
    parts = math.prod(axis_sizes[a] for e in spec for a in _axes(e))
    one = shape[0] * shape[1] * itemsize // parts
    n = math.prod(axis_sizes.values())
    return one, one * n, n // parts


def distribute__wrong_own_names(value, spec, mesh):
    """The devices of the mesh, and the names of the notebook."""
    return jax.device_put(value, NamedSharding(Mesh(mesh.devices, ("x", "y")), spec))


def shard_table__wrong_everyone(shape, spec, mesh):
    """All devices that JAX has are on the mesh."""
    spec = tuple(spec) + (None,) * (len(shape) - len(spec))
    table = {}
    for device in jax.devices():
        where = dict(zip(mesh.axis_names, np.argwhere(mesh.devices == device)[0]))
        slices = []
        for n, e in zip(shape, spec):
            k, parts = 0, 1
            for a in _axes(e):
                k, parts = k * mesh.shape[a] + int(where[a]), parts * mesh.shape[a]
            slices.append(slice(k * n // parts, (k + 1) * n // parts))
        table[device.id] = tuple(slices)
    return table


def bytes_held__wrong_letters(shape, itemsize, spec, axis_sizes):
    """A loop over every entry: over a name, that is one over its letters."""
    parts = math.prod(axis_sizes[a] for e in spec if e for a in e)
    one, n = math.prod(shape) * itemsize // parts, math.prod(axis_sizes.values())
    return one, one * n, n // parts


def shard_table__wrong_one_more(shape, spec, mesh):
    """A slice for every entry, and whole dimensions behind them."""
    held = NamedSharding(mesh, spec).devices_indices_map(tuple(shape))
    return {device.id: (*part, slice(None)) for device, part in held.items()}


def shard_table__right_from_the_end(shape, spec, mesh):
    """Slices that are counted from the end, as Python allows."""
    held = NamedSharding(mesh, spec).devices_indices_map(tuple(shape))
    table = {}
    for device, part in held.items():
        ends = [piece.indices(n) for piece, n in zip(part, shape)]
        table[device.id] = [slice(start - n, (stop - n) or None) for (start, stop, _), n in zip(ends, shape)]
    return table
