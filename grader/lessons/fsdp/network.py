"""The network of lesson 12, and how its weights are laid out: a list of layers, each with its "W" and "b"."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Draw

CUT = P("fsdp")


def adam(params, moments, gradients):
    """One step of Adam on trees, without the corrections for its start: (params, moments)."""
    mean = jax.tree.map(lambda m, g: m + 0.1 * (g - m), moments["mean"], gradients)
    square = jax.tree.map(lambda s, g: s + 0.01 * (g**2 - s), moments["square"], gradients)
    params = jax.tree.map(lambda p, m, s: p - m / (64 * (jnp.sqrt(s) + 1e-8)), params, mean, square)
    return params, {"mean": mean, "square": square}


def layers_drawn(draw: Draw, widths, spec=CUT, bias=CUT):
    """Parameters with about unit gain, in powers of two, so that nothing saturates and products are exact.

    No sum is exactly 0 with these biases: there the slope of a relu is a matter of spelling. The last "W", behind
    which there is no relu, has more digits than bfloat16 has.
    """
    params = [
        {"W": Array(draw.values(n, m) / 32, spec), "b": Array(draw.values(m) / 16 + np.float32(1 / 512), bias)}
        for n, m in zip(widths, widths[1:], strict=False)
    ]
    last = params[-1]["W"]
    params[-1]["W"] = Array(last.value + np.float32(1 / 2048), spec)
    return params


def batch_drawn(draw: Draw, rows: int, widths, spec=CUT):
    return {"x": Array(draw.values(rows, widths[0]) / 8, spec), "y": Array(draw.values(rows, widths[-1]) / 8, spec)}


def laid(tree):
    """How the arrays of a tree are laid out: a spec for each."""
    return jax.tree.map(lambda leaf: leaf.spec, tree, is_leaf=lambda leaf: isinstance(leaf, Array))


def entries(tree) -> int:
    """How many numbers a tree of arrays has, all devices' together."""
    return sum(math.prod(leaf.value.shape) for leaf in jax.tree.leaves(tree))


def gathered(tree, axes="fsdp"):
    """The whole of every leaf, of which each device along the axes has some rows."""
    return jax.tree.map(lambda leaf: lax.all_gather(leaf, axes, tiled=True), tree)


def averaged(tree, axes="fsdp"):
    return jax.tree.map(lambda leaf: lax.pmean(leaf, axes), tree)


def scaled(tree, factor):
    return jax.tree.map(lambda leaf: leaf * factor, tree)


def rows_of(tree, start_of, axis="fsdp"):
    """Of each whole leaf as many rows as a device owns, beginning where `start_of(device, rows)` says."""

    def cut(leaf):
        rows = len(leaf) // lax.axis_size(axis)
        return lax.dynamic_slice_in_dim(leaf, start_of(lax.axis_index(axis), rows), rows)

    return jax.tree.map(cut, tree)


def own(device, rows):
    """Where the rows of a device begin."""
    return device * rows
