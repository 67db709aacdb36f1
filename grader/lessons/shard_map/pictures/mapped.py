"""What shard_map does, in one picture: arrays are split, every device runs the same function, blocks are assembled.

Drawn from a program's own text, which tells the specs of the shard_map that stands in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec as P
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.arrays.blocks import Blocks, Bounds, blocks
from grader.arrays.meshes import spelled
from grader.arrays.words import region
from grader.draw.picture import COLOURS, QUIET, SMALLER, Picture, held_by, inches_of, sheet
from grader.draw.shapes import Box, arrow, block, lettered
from grader.programs.program import trace
from grader.programs.walk import structure

ARRAY, LINE, APART = 1.2, 0.3, 0.16  # inches: an array across, a device's row, between arrays
TOP, LEFT = 0.55, 0.06  # inches: above the arrays and left of them
GAP = 1.05  # inches for the arrows from the arrays to the devices, and from there on


def mapped(fn: Callable[..., Any], *args: Any, name: str = "f", title: str = "") -> Picture:
    """A function with one shard_map in it: its arrays, each device's arguments and results, and the full results.

    Args:
      fn: a function of arrays, with a shard_map in it.
      *args: jax.Arrays of one dimension or two.
      name: what the function of a block is called.
      title: stands above the picture.

    Raises:
      ValueError: there is no shard_map in it, or several.

    Example:
      >>> line = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> double = jax.shard_map(lambda v: 2 * v, mesh=line, in_specs=P("x"), out_specs=P("x"))
      >>> grader.draw.mapped(double, jnp.arange(4))
      shard_map: in_specs P('x'), out_specs P('x')
        device 0: f([0:2]) → [0:2]
        device 1: f([2:4]) → [2:4]
    """
    written = structure(trace(fn, *args))
    if len(written.manual) != 1:
        raise ValueError(f"one shard_map is drawn; this program has {len(written.manual)}")
    manual, mesh = written.manual[0], written.mesh
    outs = jax.tree.leaves(jax.eval_shape(fn, *args))
    gets = [blocks(a.shape, spec, mesh) for a, spec in zip(jax.tree.leaves(args), manual.in_specs, strict=True)]
    gives = [blocks(a.shape, spec, mesh) for a, spec in zip(outs, manual.out_specs, strict=True)]
    heading = title or f"shard_map: in_specs {_listed(manual.in_specs)}, out_specs {_listed(manual.out_specs)}"
    devices = range(math.prod(mesh.values()))
    facts = [f"  device {d}: {name}({_regions(gets, d)}) → {_regions(gives, d)}" for d in devices]
    return Picture(
        _drawn(gets, gives, (manual.in_specs, manual.out_specs), name, heading), "\n".join([heading, *facts])
    )


def _listed(specs: Sequence[P]) -> str:
    return ", ".join(map(spelled, specs))


def _regions(arrays: Sequence[Blocks], device: int) -> str:
    return ", ".join(region(array.bounds(device)) for array in arrays)


def _drawn(
    gets: Sequence[Blocks], gives: Sequence[Blocks], specs: Sequence[Sequence[P]], name: str, title: str
) -> Figure:
    devices = len(gets[0].indices)
    tall = devices * LINE
    boxes = [(a, d) for d in range(devices) for a in (*gets, *gives)]
    wide = inches_of([region(a.bounds(d)) for a, d in boxes], SMALLER) + 0.16
    middle = LEFT + ARRAY + GAP
    call = inches_of([f"{name}("], 0.085) + 0.06
    inside = call + len(gets) * (wide + 0.06) + 0.3 + len(gives) * (wide + 0.06)
    right = middle + inside + GAP
    figure, ax = sheet(max(right + ARRAY + 0.1, inches_of([title]) + 0.2), TOP + tall + 0.12)
    lettered(ax, (0.05, 0.13), title, 10)
    for left, arrays, spec, words in ((LEFT, gets, specs[0], "split"), (right, gives, specs[1], "assembled")):
        high = (tall - (len(arrays) - 1) * APART) / len(arrays)
        for k, (array, one) in enumerate(zip(arrays, spec, strict=True)):
            _draw_array(ax, array, (left, TOP + k * (high + APART), ARRAY, high))
            if k == 0:
                lettered(ax, (left + ARRAY / 2, TOP - 0.12), "full array", 8, ha="center", color=QUIET)
            start = left + ARRAY + 0.08 if left == LEFT else left - GAP + 0.1
            y = TOP + k * (high + APART) + high / 2
            arrow(ax, (start, y), (start + GAP - 0.2, y))
            lettered(ax, (start + (GAP - 0.2) / 2, y - 0.12), spelled(one), 7.5, ha="center")
            lettered(ax, (start + (GAP - 0.2) / 2, y + 0.13), words, 7.5, ha="center", color=QUIET)
    lettered(ax, (middle + inside / 2, TOP - 0.12), "on each device: one block", 8, ha="center", color=QUIET)
    for device in range(devices):
        y, x = TOP + device * LINE, middle
        lettered(ax, (x - 0.02, y + LINE / 2), str(device), 8, ha="right", color=QUIET)
        x += call
        lettered(ax, (x - 0.04, y + LINE / 2), f"{name}(", 8.5, ha="right")
        x = _draw_blocks(ax, gets, device, (x, y + 0.04, wide, LINE - 0.08))
        lettered(ax, (x, y + LINE / 2), ") =", 8.5)
        _draw_blocks(ax, gives, device, (x + 0.3, y + 0.04, wide, LINE - 0.08))
    return figure


def _colours(array: Blocks) -> Mapping[Bounds, str]:
    parts = sorted({array.bounds(device) for device in range(len(array.indices))})
    return {part: COLOURS[k % len(COLOURS)] for k, part in enumerate(parts)}


def _draw_blocks(ax: Axes, arrays: Sequence[Blocks], device: int, box: Box) -> float:
    """A device's block of each array side by side; where they end."""
    left, top, wide, high = box
    for array in arrays:
        part = array.bounds(device)
        block(ax, (left, top, wide, high), _colours(array)[part], region(part), held_by(device), size=7)
        left += wide + 0.06
    return left


def _draw_array(ax: Axes, array: Blocks, box: Box) -> None:
    left, top, wide, high = box
    rows, columns = (*array.shape, 1)[:2]
    for part, colour in _colours(array).items():
        who = [device for device in range(len(array.indices)) if array.bounds(device) == part]
        (y, bottom), (x, right) = (*part, (0, 1))[:2]
        place = (
            left + x * wide / columns,
            top + y * high / rows,
            (right - x) * wide / columns,
            (bottom - y) * high / rows,
        )
        block(ax, place, colour, ",".join(map(str, who)), held_by(*who))
