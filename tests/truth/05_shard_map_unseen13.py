"""Answers to lesson 05, thirteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---------------------------------------------------------------- local_view

local_view__right_divided = {
    "float32[16, 24], P('x', 'y')": (16 // 4, 24 // 2),
    "float32[16, 24], P(None, 'x')": (16, 24 // 4),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (16 // (4 * 2),),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# Thought that x is the horizontal axis of the grid and so has two devices, and y the vertical one with four.
local_view__wrong_x_is_horizontal = {
    "float32[16, 24], P('x', 'y')": (8, 6),
    "float32[16, 24], P(None, 'x')": (16, 12),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# Thought that an empty spec leaves the choice to JAX, which then deals the rows out to all eight devices.
local_view__wrong_empty_spec_deals_out = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (2, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# Read P(('x', 'y')) as P('x', 'y'): x cuts the only dimension, and for y none is left.
local_view__wrong_tuple_is_two_entries = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (4,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# Thought that jit changes the speed only: the function runs at every call, and its print shows what it showed without jit.
local_view__wrong_jit_changes_nothing = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 2,
    "print(block), under jit (every block / one block / no numbers)": "every block",
}

# ---------------------------------------------------------------- flat_index

flat_index__right_computed = {
    "axis_index('x')": [d // 4 for d in range(8)],
    "axis_index('y')": [d % 4 for d in range(8)],
    "axis_index(('x', 'y'))": [4 * (d // 4) + d % 4 for d in range(8)],
    "axis_index(('y', 'x'))": [2 * (d % 4) + d // 4 for d in range(8)],
}

# Worked with the notebook's 4 x 2 mesh, in place of the 2 x 4 mesh that is asked about.
flat_index__wrong_old_mesh = {
    "axis_index('x')": [0, 0, 1, 1, 2, 2, 3, 3],
    "axis_index('y')": [0, 1, 0, 1, 0, 1, 0, 1],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}

# Walked through the grid in the order of ('y', 'x') and wrote down the devices: which device has index k, not which index device k has.
flat_index__wrong_inverse = {
    "axis_index('x')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index('y')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}

# Thought that the first axis of the tuple counts fastest.
flat_index__wrong_first_fastest = {
    "axis_index('x')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index('y')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index(('x', 'y'))": [0, 2, 4, 6, 1, 3, 5, 7],
    "axis_index(('y', 'x'))": [0, 1, 2, 3, 4, 5, 6, 7],
}

# Multiplied the first index by the length of its own axis, not by that of the axis after it.
flat_index__wrong_own_length = {
    "axis_index('x')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index('y')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 2, 3, 4, 5],
    "axis_index(('y', 'x'))": [0, 4, 8, 12, 1, 5, 9, 13],
}

# ---------------------------------------------------------------- partial_view

partial_view__right_manual_and_named = {
    "in_specs=P('data', 'model'), no axis_names": (16 // 4, 8 // 2),
    "in_specs=P('data'), axis_names={'data'}": (16 // 4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 8 // 2),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# Thought that an axis in in_specs which is not manual is simply passed over: the compiler takes care of it.
partial_view__wrong_automatic_is_skipped = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": (4, 8),
}

# Thought that without axis_names no axis is manual, so that the function sees the whole array.
partial_view__wrong_none_is_manual = {
    "in_specs=P('data', 'model'), no axis_names": (16, 8),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# Thought that to make an axis manual is to cut the array over it, whether in_specs name it or not.
partial_view__wrong_manual_cuts = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (4, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# Gave what lies in one device's memory: the compiler cuts along the automatic axis, so the block is an eighth there too.
partial_view__wrong_memory_of_a_device = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 4),
    "in_specs=P(None, 'model'), axis_names={'model'}": (4, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}
