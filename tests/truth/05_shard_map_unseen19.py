"""Answers to lesson 05, nineteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---- block_transpose

block_transpose__right_grid = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [6, 7],
    "bytes sent": 0,
}

# Thought: swapping the two axes in the specs is a transpose, so the result is x.T.
block_transpose__wrong_xt = {
    "shape": (4, 4),
    "first row": [0, 4, 8, 12],
    "device 3 returns": [6, 7],
    "bytes sent": 0,
}

# Thought: two rows of eight, filled in the order of the devices 0 to 3, as by a reshape.
block_transpose__wrong_reshape = {
    "shape": (2, 8),
    "first row": [0, 1, 2, 3, 4, 5, 6, 7],
    "device 3 returns": [6, 7],
    "bytes sent": 0,
}

# Thought: the first axis counts fastest, so device 3 is the fourth along x, with y = 0.
block_transpose__wrong_columnmajor = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [12, 13],
    "bytes sent": 0,
}

# Thought: the layout after is another than the layout before, so each device must have sent off its block of 8 bytes.
block_transpose__wrong_moved = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [6, 7],
    "bytes sent": 8,
}

# ---- flat_index

flat_index__right_worked_out = {
    "axis_index('x')": [d // 4 for d in range(8)],
    "axis_index('y')": [d % 4 for d in range(8)],
    "axis_index(('x', 'y'))": list(range(8)),
    "axis_index(('y', 'x'))": [(d % 4) * 2 + d // 4 for d in range(8)],
}

# Thought: "times the length of the second axis" means of y, whichever stands second in the tuple, so 4 * y + x.
flat_index__wrong_length = {
    "axis_index('x')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index('y')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 8, 12, 1, 5, 9, 13],
}

# Thought: wrote which device comes at place 0, 1, 2, ... instead of which place each device has (the inverse permutation).
flat_index__wrong_inverse = {
    "axis_index('x')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index('y')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}

# Thought: took over the 4 x 2 mesh of the cell above and answered for it.
flat_index__wrong_othermesh = {
    "axis_index('x')": [0, 0, 1, 1, 2, 2, 3, 3],
    "axis_index('y')": [0, 1, 0, 1, 0, 1, 0, 1],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}

# Thought: x goes to the right and y goes down, as in a drawing of coordinates.
flat_index__wrong_coordinates = {
    "axis_index('x')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index('y')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 2, 4, 6, 1, 3, 5, 7],
}

# ---- before_it_begins

before_it_begins__right_cutting_is_free = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# Thought: wherever the spec is not the layout, JAX has to reshard, and to reshard is to send.
before_it_begins__wrong_any_difference = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P('x', 'y')": "data move",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# Thought: P() asks for nothing (no axis is named), so nothing need be done for it.
before_it_begins__wrong_empty_asks_nothing = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "nothing moves",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# Thought: had it the wrong way round with y: from (x, y) to (x) one cut merely falls away, and from (x) to (x, y) columns must go to the other y.
before_it_begins__wrong_cut_costs = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "data move",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# Thought: the array is cut over x into four equal blocks before and after, so the same four blocks do.
before_it_begins__wrong_same_axis = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "nothing moves",
}
