"""Answers to lesson 02, fifth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- choose_spec

choose_spec__right_others = {
    "two whole rows each": P(("y", "x"), None),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P(None, "x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}

# Thought that an axis of two devices makes blocks on two devices each.
choose_spec__wrong_twoisy = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "y"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}

# Thought that the order of the names in a tuple does not matter.
choose_spec__wrong_order = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("x", "y")),
    "picture": P(None, ("x", "y")),
}

# Thought that the axis along which there are copies is the one to name.
choose_spec__wrong_namescopies = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("y"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}

# Thought that P("x", "y") cuts the rows over both axes, and that halves for even and odd devices are the first entry.
choose_spec__wrong_notuple = {
    "two whole rows each": P("x", "y"),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P("y", None),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}


# ---- draw_it

draw_it__right_computed = {
    "P('x', 'y')": [[{2 * x + y} for y in range(2)] for x in range(4)],
    "P('y', 'x')": [[{2 * x + y} for x in range(4)] for y in range(2)],
    "P('x')": [[{2 * x, 2 * x + 1}] for x in range(4)],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{d}] for d in range(8)],
    "P(None, ('y', 'x'))": [[{2 * x + y} for y in range(2) for x in range(4)]],
}

# Thought that P('y', 'x') is a 2 x 4 grid in which the devices stand in order.
draw_it__wrong_inorder = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {1}, {2}, {3}], [{4}, {5}, {6}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}]],
}

# Thought that the devices along the named axis hold a block together, so x and y changed places where one is named.
draw_it__wrong_together = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 2, 4, 6}], [{1, 3, 5, 7}]],
    "P(None, 'y')": [[{0, 1}, {2, 3}, {4, 5}, {6, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}

# Overlooked the None: drew the row blocks of P('y') and of P(('y', 'x')).
draw_it__wrong_none = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}], [{1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}], [{2}], [{4}], [{6}], [{1}], [{3}], [{5}], [{7}]],
}

# Thought that the axes of a tuple cut one dimension each: x the rows, y the columns.
draw_it__wrong_tuple = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}


# ---- memory

memory__right_sums = {
    "w as P('x', 'y'): MiB on one device": 8192 * 8192 * 4 // 2**20 // 8,
    "w as P('x'): MiB on one device": 8192 * 8192 * 4 // 2**20 // 4,
    "w as P('x'): MiB on all devices": 8192 * 8192 * 4 // 2**20 * 2,
    "w as P(): MiB on all devices": 8192 * 8192 * 4 // 2**20 * 8,
    "q as P(('x', 'y')): bytes on one device": 128 * 2048 // 16,
    "q as P(('x', 'y')): KiB on all devices": 128 * 2048 // 1024 * 2,
}

# Thought that all devices together hold the array once, whatever the spec.
memory__wrong_once = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 256,
    "w as P(): MiB on all devices": 256,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# Took the size of q in float32 as well: four bytes an entry.
memory__wrong_int32 = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 65536,
    "q as P(('x', 'y')): KiB on all devices": 2048,
}

# Divided by all devices of the mesh, named or not; the row for all devices was right by another road.
memory__wrong_byall = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 32,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 8192,
    "q as P(('x', 'y')): KiB on all devices": 512,
}

# Multiplied the copies wrongly: along the axis left out of w as P('x') took the 4 of x, and for q the 8 of y.
memory__wrong_copies = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 1024,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 2048,
}
