"""Answers to lesson 06, third batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- psum_by_two


def psum_by_two__right_untiled(parts, w, *, mesh):
    n = mesh.shape["x"]

    def body(own, w):
        _, rows, columns = own.shape
        mine = jax.lax.psum_scatter(own.reshape(n, rows // n, columns), "x", scatter_dimension=0)
        products = all_gather(mine @ w, "x", axis=0, tiled=False, to="invarying")  # [n, rows / n, K]
        return products.reshape(rows, w.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# A psum gives everybody the sum, and multiplying is then one line.
def psum_by_two__wrong_psum(parts, w, *, mesh):
    def body(own, w):
        return jax.lax.psum(own[0], "x") @ w

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# The rows are where they belong after the scatter, and out_specs put them together, so nothing need be gathered.
def psum_by_two__wrong_left_cut(parts, w, *, mesh):
    def body(own, w):
        mine = jax.lax.psum_scatter(own[0], "x", scatter_dimension=0, tiled=True)
        return mine @ w

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x", None))(parts, w)


# The product is linear, so I multiply my own summand first, then scatter and gather the products.
def psum_by_two__wrong_multiplied_first(parts, w, *, mesh):
    def body(own, w):
        product = own[0] @ w
        mine = jax.lax.psum_scatter(product, "x", scatter_dimension=0, tiled=True)
        return all_gather(mine, "x", axis=0, tiled=True, to="invarying")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# The products stand side by side, so they are gathered along the columns and then brought into shape.
def psum_by_two__wrong_side_by_side(parts, w, *, mesh):
    def body(own, w):
        mine = jax.lax.psum_scatter(own[0], "x", scatter_dimension=0, tiled=True)
        whole = all_gather(mine @ w, "x", axis=1, tiled=True, to="invarying")
        return whole.reshape(own.shape[1], w.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# ---------------------------------------------------------------- all_gather_ref


def all_gather_ref__right_expanded(blocks, axis, tiled):
    pieces = blocks if tiled else [np.expand_dims(block, axis) for block in blocks]
    whole = np.concatenate(pieces, axis=axis)
    return [whole.copy() for _ in blocks]


# tiled is the form that adds a dimension, one tile for each device.
def all_gather_ref__wrong_tiled(blocks, axis, tiled):
    whole = np.stack(blocks, axis) if tiled else np.concatenate(blocks, axis)
    return [whole] * len(blocks)


# What is gathered is one array: I return it, as NumPy would.
def all_gather_ref__wrong_one(blocks, axis, tiled):
    return np.concatenate(blocks, axis) if tiled else np.stack(blocks, axis)


# Stacking always adds the device dimension in front; the axis is only for joining.
def all_gather_ref__wrong_front(blocks, axis, tiled):
    whole = np.concatenate(blocks, axis) if tiled else np.stack(blocks)
    return [whole] * len(blocks)


# Every device has its own block first, then what comes by in the ring.
def all_gather_ref__wrong_own_first(blocks, axis, tiled):
    join = np.concatenate if tiled else np.stack
    return [join(list(blocks[d:]) + list(blocks[:d]), axis) for d in range(len(blocks))]


# ---------------------------------------------------------------- identify_collective


def _left_by_each(before):
    """What each collective would leave of these blocks, device by device."""
    blocks = [np.asarray(block) for block in before]
    n = len(blocks)
    total = np.sum(blocks, axis=0)
    pieces = [np.split(block, n) for block in blocks]
    return {
        "all_gather": [np.stack(blocks)] * n,
        "all_gather tiled": [np.concatenate(blocks)] * n,
        "psum": [total] * n,
        "pmean": [total / n] * n,
        "pmax": [np.max(blocks, axis=0)] * n,
        "psum_scatter": np.split(total, n),
        "all_to_all": [np.concatenate([pieces[s][d] for s in range(n)]) for d in range(n)],
        "ppermute +1": [blocks[(d - 1) % n] for d in range(n)],
        "ppermute -1": [blocks[(d + 1) % n] for d in range(n)],
        "axis_index": [np.array(d) for d in range(n)],
    }


def _same(these, those):
    return len(these) == len(those) and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b) for a, b in zip(these, those)
    )


def identify_collective__right_candidates(before, after):
    for name, left in _left_by_each(before).items():
        if _same(left, after):
            return name


# I took "+1" to mean that device d gets the block of device d + 1.
def identify_collective__wrong_direction(before, after):
    left = _left_by_each(before)
    left["ppermute +1"], left["ppermute -1"] = left["ppermute -1"], left["ppermute +1"]
    for name, blocks in left.items():
        if _same(blocks, after):
            return name


# The numbers on device 0 alone tell which it was: why compare order, shape, or the other devices?
def identify_collective__wrong_device_0(before, after):
    candidates = _left_by_each(before)
    order = [
        "axis_index",
        "psum",
        "pmean",
        "pmax",
        "all_gather",
        "all_gather tiled",
        "psum_scatter",
        "ppermute +1",
        "ppermute -1",
        "all_to_all",
    ]
    numbers = [set(np.ravel(after[0]).tolist())]
    for name in order:
        if set(np.ravel(candidates[name][0]).tolist()) == numbers[0]:
            return name


# Old numbers were passed on, new ones that all devices share were added up: that is a psum, and a mean cannot be told from it.
def identify_collective__wrong_by_kind(before, after):
    before, after = [np.asarray(b) for b in before], [np.asarray(a) for a in after]
    n, size = len(before), before[0].size
    old = set(np.concatenate(before).tolist())
    alike = all(np.array_equal(after[0], a) for a in after)
    if after[0].ndim == 0:
        return "axis_index"
    if alike and after[0].size == n * size:
        return "all_gather tiled" if after[0].ndim == 1 else "all_gather"
    if alike and set(after[0].tolist()) <= old:
        return "pmax"
    if alike:
        return "psum"
    if after[0].size * n == size:
        return "psum_scatter"
    if after[0][0] == before[-1][0]:
        return "ppermute +1"
    if after[0][0] == before[1][0]:
        return "ppermute -1"
    return "all_to_all"


# The pieces that come from device s stand at place s of device d: I wrote the table of an all_to_all without turning it round, and
# psum_scatter as the sum of each device's own block.
def identify_collective__wrong_table(before, after):
    left = _left_by_each(before)
    n = len(before)
    pieces = [np.split(np.asarray(block), n) for block in before]
    left["all_to_all"] = [np.concatenate(pieces[d]) for d in range(n)]
    left["psum_scatter"] = [np.sum(pieces[d], axis=0) for d in range(n)]
    for name, blocks in left.items():
        if _same(blocks, after):
            return name
