"""Answers to lesson 02, twenty-second batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- tutorial_faults

tutorial_faults__right_table = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 4 * 2,
    "in_order": 2,  # 4 y + x = 1: the place (1, 0)
}

# x is the horizontal direction, and the figure has four blocks along it, y the vertical one, with two.
tutorial_faults__wrong_x_is_horizontal = {
    "figure": P("x", "y"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 2,
}

# The None divides what is left among the devices along y: each has its half of the row block.
tutorial_faults__wrong_none_divides = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "half of a block each",
    "equal": False,
    "nbytes": 8,
    "in_order": 2,
}

# What is one array counts once: layouts that are the same are equal, and nbytes is what the array takes, on however many devices.
tutorial_faults__wrong_one_array = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": True,
    "nbytes": 1,
    "in_order": 2,
}

# Takes the table of part 3 (2 y + x = 1 at the place (0-based) x = 1, y = 0, device 4 x + y), which is that of the 2 x 4 mesh.
tutorial_faults__wrong_other_mesh = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 4,
}


# ---- draw_it

draw_it__right_formulas = {
    "P('x', 'y')": [[{2 * x + y} for y in range(2)] for x in range(4)],
    "P('y', 'x')": [[{2 * x + y} for x in range(4)] for y in range(2)],
    "P('x')": [[{2 * x, 2 * x + 1}] for x in range(4)],
    "P(None, 'y')": [[{2 * x + y for x in range(4)} for y in range(2)]],
    "P(('x', 'y'))": [[{k}] for k in range(8)],
    "P(None, ('y', 'x'))": [[{2 * x + y} for y in range(2) for x in range(4)]],
}

# The blocks are dealt out to the devices in the order of their numbers, whatever the order of the axes.
draw_it__wrong_dealt_in_order = draw_it__right_formulas | {
    "P('y', 'x')": [[{4 * row + column} for column in range(4)] for row in range(2)],
    "P(None, ('y', 'x'))": [[{k} for k in range(8)]],
}

# The axis in the spec is the one along which the devices hold the same.
draw_it__wrong_named_copies = draw_it__right_formulas | {
    "P('x')": [[{2 * x + y for x in range(4)}] for y in range(2)],
    "P(None, 'y')": [[{2 * x, 2 * x + 1} for x in range(4)]],
}

# In a tuple the first axis is the fast one, the last the slow one.
draw_it__wrong_first_is_fast = draw_it__right_formulas | {
    "P(('x', 'y'))": [[{2 * x + y}] for y in range(2) for x in range(4)],
    "P(None, ('y', 'x'))": [[{2 * x + y} for x in range(4) for y in range(2)]],
}

# A None says nothing, so what comes after it cuts the rows.
draw_it__wrong_none_keeps_no_place = draw_it__right_formulas | {
    "P(None, 'y')": [[{2 * x + y for x in range(4)}] for y in range(2)],
    "P(None, ('y', 'x'))": [[{2 * x + y}] for y in range(2) for x in range(4)],
}


# ---- choose_spec

choose_spec__right_table = {
    "two whole rows each": P(("y", "x")),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P(None, "x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x"), None),
    "picture": P(None, ("y", "x")),
}

# In a tuple the last axis is the slow one, so x first, for y to be the one that jumps by four.
choose_spec__wrong_last_is_slow = choose_spec__right_table | {
    "device 1: rows 8 and 9, whole": P(("x", "y")),
    "picture": P(None, ("x", "y")),
}

# "Two devices each": y is the axis that has two devices, so y cuts the columns.
choose_spec__wrong_two_is_y = choose_spec__right_table | {
    "column blocks, two devices each": P(None, "y"),
}

# Both axes have to cut the rows, so both stand in the spec, one after the other: no second pair of parentheses is needed.
choose_spec__wrong_no_tuple = choose_spec__right_table | {
    "two whole rows each": P("x", "y"),
    "device 1: rows 8 and 9, whole": P("y", "x"),
}

# The even devices 0, 2, 4, 6 are those along x, so the axis that makes the two halves is x.
choose_spec__wrong_evens_are_x = choose_spec__right_table | {
    "even devices: left half, odd devices: right half": P(None, "x"),
}
