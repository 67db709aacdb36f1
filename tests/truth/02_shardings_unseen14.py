"""Answers to lesson 02, fourteenth batch, written by a reader of the notebook only."""

import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# the student's own answer to `shard_shape`, used below
def shard_shape(shape, spec, axis_sizes):
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    block = []
    for length, entry in zip(shape, entries):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        block.append(length // math.prod(axis_sizes[axis] for axis in axes))
    return tuple(block)


# ---- memory

memory__right_PAPER = {
    "w as P('x', 'y'): MiB on one device": 8192 * 8192 * 4 // 2**20 // 8,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 512,
}

# Divided P('x') by the axis that is not named (2) in place of the one that is (4).
memory__wrong_UNNAMEDDIVIDES = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 128,
    "w as P('x'): MiB on all devices": 1024,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 512,
}

# Divided q by all 32 devices of its mesh, though z is not named.
memory__wrong_QOVERALL = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 8192,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# Read int8 as eight bytes for each entry.
memory__wrong_INT8ISEIGHT = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 131072,
    "q as P(('x', 'y')): KiB on all devices": 4096,
}

# Counted every block once "on all devices", as nbytes does: copies do not cost.
memory__wrong_COPIESFREE = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 256,
    "w as P(): MiB on all devices": 256,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# ---- bytes_held


def bytes_held__right_FROMCOPIES(shape, itemsize, spec, axis_sizes):
    named = set()
    for entry in spec:
        if entry is not None:
            named.update((entry,) if isinstance(entry, str) else entry)
    copies = math.prod(size for axis, size in axis_sizes.items() if axis not in named)
    everywhere = math.prod(shape) * itemsize * copies
    return everywhere // math.prod(axis_sizes.values()), everywhere, copies


# Thought that zip runs over all dimensions, but it stops at the end of the spec: those left out at the end are lost.
def bytes_held__wrong_ZIPSTOPS(shape, itemsize, spec, axis_sizes):
    one = itemsize
    cuts = 1
    for length, entry in zip(shape, spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        by = math.prod(axis_sizes[a] for a in axes)
        one *= length // by
        cuts *= by
    devices = math.prod(axis_sizes.values())
    return one, one * devices, devices // cuts


# Compared all bytes with those of one device, and so gives the number of devices for the copies.
def bytes_held__wrong_COPIESARETOTALOVERONE(shape, itemsize, spec, axis_sizes):
    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    total = one * math.prod(axis_sizes.values())
    return one, total, total // one


# Took the devices of this computer for those of the mesh that was asked about.
def bytes_held__wrong_DEVICECOUNT(shape, itemsize, spec, axis_sizes):
    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    total = one * jax.device_count()
    return one, total, total // (math.prod(shape) * itemsize)


# Asked `axis in spec` for each axis, which does not look inside a tuple: its axes count as not named, that is as copies.
def bytes_held__wrong_NOTINSIDETUPLES(shape, itemsize, spec, axis_sizes):
    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    copies = 1
    for axis, size in axis_sizes.items():
        if axis not in tuple(spec):
            copies *= size
    return one, one * math.prod(axis_sizes.values()), copies


# ---- legal_or_not

legal_or_not__right_RULES = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}

# Thought that a None cuts nothing and so may always stand at the end, even past the last dimension.
legal_or_not__wrong_NONEISNOTHING = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "fine",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}

# Read P(('x', 'y')) as P('x', 'y'): 12 / 4 and 2 / 2 are whole.
legal_or_not__wrong_TUPLEASTWO = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "fine",
    "a 4 × 4 mesh": "too few devices",
}

# Thought that the first dimension is always cut by the first axis of the mesh: 10 rows over 4.
legal_or_not__wrong_ROWSOVERX = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "does not divide",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}

# Thought that a spec only divides lengths by sizes (16 / 4, 8 / 4), and that a name without an axis leaves copies.
legal_or_not__wrong_ONLYDIVISION = {
    "(16, 8) as P('x', 'x')": "fine",
    "(16, 8) as P('z')": "fine",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}
