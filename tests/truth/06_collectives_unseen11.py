"""Answers to lesson 06, eleventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# which_collective: no answers here. The six puzzles are drawn by a cell that takes them out of the grader
# (`puzzles("ABCDE")`); they are not in the notebook's text, and this writer was to run nothing.

# ---------------------------------------------------------------- result_shapes

_x, _y, (_rows, _columns) = 4, 2, (4, 6)
result_shapes__right_ARITHMETIC = {
    "all_gather over x, axis=0, tiled": (_x * _rows, _columns),
    "all_gather over y": (_y, _rows, _columns),
    "all_gather over (x, y), axis=0, tiled": (_x * _y * _rows, _columns),
    "psum over x": (_rows, _columns),
    "psum_scatter over x, tiled": (_rows // _x, _columns),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (_rows * _y, _columns // _y),
}

# Without tiled, a gather over y still joins the blocks along dimension 0 (read the default as tiled).
result_shapes__wrong_DEFAULTJOINS = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (8, 6),
    "all_gather over (x, y), axis=0, tiled": (32, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (1, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (8, 3),
}

# split_axis is the one that comes together and concat_axis the one that is cut: mixed the two names up.
result_shapes__wrong_SPLITGROWS = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (32, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (1, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (2, 12),
}

# psum over x is like np.sum(axis=0): the first dimension is summed away; and a scatter over four devices of four rows leaves one row without its dimension.
result_shapes__wrong_NUMPYSUM = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (32, 6),
    "psum over x": (6,),
    "psum_scatter over x, tiled": (6,),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (8, 3),
}

# Over x four take part and over y two, so over (x, y) six; and in an all_to_all the pieces only change places, so the shape stays.
result_shapes__wrong_FOURPLUSTWO = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (24, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (1, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (4, 6),
}

# ---------------------------------------------------------------- transposed_pair

_pairs = [("all_gather", "psum_scatter"), ("all_to_all", "all_to_all"), ("ppermute", "ppermute")]
transposed_pair__right_BOTHDIRECTIONS = dict(_pairs) | {b: a for a, b in _pairs} | {"psum": "nothing"}

# As in torch.distributed: the backward of an all-reduce is an all-reduce of the gradients.
transposed_pair__wrong_TORCH = {
    "all_gather": "psum_scatter",
    "psum_scatter": "all_gather",
    "all_to_all": "all_to_all",
    "ppermute": "ppermute",
    "psum": "psum",
}

# psum_scatter is a psum whose result is dealt out, so backwards it is as for psum: each device uses what arrives, and nothing travels.
transposed_pair__wrong_SCATTERLIKEPSUM = {
    "all_gather": "psum_scatter",
    "psum_scatter": "nothing",
    "all_to_all": "all_to_all",
    "ppermute": "ppermute",
    "psum": "nothing",
}

# What only moves numbers has no derivative: there is nothing to differentiate in a permutation, so nothing is sent.
transposed_pair__wrong_MOVESHAVENOGRADIENT = {
    "all_gather": "psum_scatter",
    "psum_scatter": "all_gather",
    "all_to_all": "nothing",
    "ppermute": "nothing",
    "psum": "nothing",
}

# What was added is copied backwards, so the gradient goes out to all of them: an all_gather, after a psum as after a psum_scatter; and what was copied comes back whole, as a psum.
transposed_pair__wrong_ADDBECOMESCOPY = {
    "all_gather": "psum",
    "psum_scatter": "all_gather",
    "all_to_all": "all_to_all",
    "ppermute": "ppermute",
    "psum": "all_gather",
}
