"""What a device needs of an array for its part of a result, and how much of that it has.

Found by experiment: an entry is needed if the result changes when it becomes as large, or as small, as can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.arrays.blocks import Blocks, blocks_of
from grader.draw.layouts import draw_whole, grid_shape, inches
from grader.draw.picture import INK, PAGE, Picture

APART, ABOVE, BELOW = 0.35, 0.45, 0.3  # inches: between two arrays, and for the words around them
DOT, MISSING = 3.2, "#b5121b"  # points; red on blocks, whatever the page


@dataclass(frozen=True)
class NeededEntries:
    """Of each entry of an array, whether a device's part of a result needs it, and whether the device has it."""

    needs: np.ndarray
    has: np.ndarray

    def __str__(self) -> str:
        total, there = int(self.needs.sum()), int((self.needs & self.has).sum())
        return f"needs {total} entries, has {there}, lacks {total - there}"


def needed(operation: Callable[[Any], Any], array: jax.Array, device: int) -> NeededEntries:
    """What a device's part of `operation(array)` needs, found by changing one entry after the other."""
    value, result = np.asarray(array, np.float32), jax.jit(operation)(array)
    part = blocks_of(result).indices[device]
    own = np.asarray(result)[part].reshape(-1)
    changes = np.zeros(value.size, bool)
    for extreme in (np.inf, -np.inf):
        others = np.where(np.eye(value.size, dtype=bool), np.float32(extreme), value.reshape(-1))
        found = np.asarray(jax.vmap(operation)(others.reshape(-1, *value.shape)))[(slice(None), *part)]
        changes |= (found.reshape(value.size, -1) != own).any(1)
    has = np.zeros(value.shape, bool)
    has[blocks_of(array).indices[device]] = True
    return NeededEntries(changes.reshape(value.shape), has)


def needs(
    operations: Mapping[str, Callable[[Any], Any]], array: jax.Array, device: int = 0, title: str = ""
) -> Picture:
    """For each operation the array by block, with a dot on each entry that a device's part of the result needs.

    A dot is red where the device does not have the entry.

    Args:
      operations: name → a function of the array.
      array: lies on a mesh; at most two dimensions, and few entries.
      device: whose part of the result.
      title: stands above the picture.

    Example:
      >>> line = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> rows = jax.device_put(np.ones((4, 3), np.float32), jax.NamedSharding(line, P("d")))
      >>> grader.draw.needs({"sum(1)": lambda v: v.sum(1), "sum(0)": lambda v: v.sum(0)}, rows)
      sum(1): device 0 needs 6 entries, has 6, lacks 0
      sum(0): device 0 needs 12 entries, has 6, lacks 6
    """
    found = {name: needed(operation, array, device) for name, operation in operations.items()}
    blocks = blocks_of(array)
    high, wide = (inches(length) for length in grid_shape(blocks.shape))
    figure = Figure(figsize=(len(found) * (wide + APART) - APART, high + BELOW))
    figure.subplots_adjust(
        left=0, right=1, bottom=BELOW / (high + BELOW), top=1 - ABOVE / (high + BELOW), wspace=APART / wide
    )
    for ax, (name, facts) in zip(figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True):
        _draw(ax, blocks, facts)
        ax.set_title(name, fontsize=10, color=PAGE)
        ax.set_xlabel(f"device {device} {facts}", fontsize=8, color=PAGE)
    if title:
        figure.suptitle(title, fontsize=11, color=PAGE, y=1.0, va="bottom")
    words = [f"{name}: device {device} {facts}" for name, facts in found.items()]
    return Picture(figure, "\n".join(filter(None, [title, *words])))


def _draw(ax: Axes, blocks: Blocks, facts: NeededEntries) -> None:
    draw_whole(ax, blocks, ())
    for label in list(ax.texts):
        label.remove()  # the dots tell whose block it is
    shape = grid_shape(blocks.shape)
    for which, ink in ((facts.needs & facts.has, INK), (facts.needs & ~facts.has, MISSING)):
        rows, columns = np.nonzero(which.reshape(shape))
        ax.plot(columns + 0.5, rows + 0.5, "o", color=ink, markersize=DOT, linestyle="none")
