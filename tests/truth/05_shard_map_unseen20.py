"""Answers to lesson 05, twentieth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- specs_match

specs_match__right_trailing_none = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", "y"),
    "psum(block, 'x')": P(None, "y"),
    "psum(block.sum(0), 'x')": P("y"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x", None),
}

# A gather leaves y in the type, so out_specs must name y (forgets that the copies are then put down twice).
specs_match__wrong_gather_still_varies = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", "y"),
    "psum(block, 'x')": P(None, "y"),
    "psum(block.sum(0), 'x')": P("y"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x", "y"),
}

# The axis that a psum names is the one along which its result lies: a psum over x leaves something cut over x.
specs_match__wrong_psum_keeps_its_axis = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", "y"),
    "psum(block, 'x')": P("x", None),
    "psum(block.sum(0), 'x')": P("x"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x", None),
}

# Columns are cut over y, and I have summed the columns away, so nothing differs along y any more (a local sum as if it were a psum).
specs_match__wrong_local_sum_agrees = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", None),
    "psum(block, 'x')": P(None, "y"),
    "psum(block.sum(0), 'x')": P("y"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x", None),
}

# Columns are the second dimension, so y stays the second entry (does not count that sum(0) takes a dimension away).
specs_match__wrong_lost_dimension = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", "y"),
    "psum(block, 'x')": P(None, "y"),
    "psum(block.sum(0), 'x')": P(None, "y"),
    "psum(block.sum(), ('x', 'y'))": P(None, None),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x", None),
}


# ------------------------------------------------------------------ vma_types

_block, _w, _b = {"x", "y"}, {"x"}, set()

vma_types__right_by_set_algebra = {
    "w + b": _w | _b,
    "b, as it is when w + b takes it": _b | _w,  # cast to what the other one is
    "psum(block, 'x')": _block - {"x"},
    "all_gather(block, 'y')": set(_block),
    "axis_index('y')": _b | {"y"},
    "jnp.zeros(4)": set(),
}

# After a gather along y all devices along y hold the same, so y is gone from the type.
vma_types__wrong_gather_takes_away = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# b came in whole, and nobody has changed it, so it is still the same everywhere when it is added.
vma_types__wrong_no_cast = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": set(),
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# What a device makes itself inside the body is its own, and so may differ from every other device's, along both axes.
vma_types__wrong_made_here_varies = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"x", "y"},
    "jnp.zeros(4)": {"x", "y"},
}

# The psum runs along x, so its result is a thing of x: y is what was taken away.
vma_types__wrong_psum_keeps_its_axis = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"x"},
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}


# --------------------------------------------------------------- partial_view

_ROWS, _COLUMNS, _DATA, _MODEL = 16, 8, 4, 2

partial_view__right_divided = {
    "in_specs=P('data', 'model'), no axis_names": (_ROWS // _DATA, _COLUMNS // _MODEL),
    "in_specs=P('data'), axis_names={'data'}": (_ROWS // _DATA, _COLUMNS),
    "in_specs=P(None, 'model'), axis_names={'model'}": (_ROWS, _COLUMNS // _MODEL),
    "in_specs=P(), axis_names={'data'}": (_ROWS, _COLUMNS),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# The axis that is not manual is still there, and the compiler cuts along it, so I see a piece that is cut over both.
partial_view__wrong_compiler_cuts_too = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 4),
    "in_specs=P(None, 'model'), axis_names={'model'}": (4, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# Entries of in_specs that are not manual are simply passed over: the compiler takes care of them.
partial_view__wrong_name_ignored = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": (4, 8),
}

# axis_names={'data'} means that the function is cut along data, whether in_specs name it or not.
partial_view__wrong_manual_means_cut = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (4, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# axis_names are the axes that I leave to the compiler (as the old auto= had it), so in_specs must not name those.
partial_view__wrong_as_old_auto = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": "an error",
    "in_specs=P(None, 'model'), axis_names={'model'}": "an error",
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}
