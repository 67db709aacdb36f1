"""A collective as a picture: what every device holds before it, and what it holds afterwards.

Devices are rows. A number afterwards has the colour of the device it came from; one that was made of several
has a band for each below it; one that came from nobody is on no colour.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes

from grader.arrays.blocks import blocks_of
from grader.draw.picture import COLOURS, FAINT, INK, PAGE, QUIET, SMALL, SMALLER, Picture, inches_of, sheet
from grader.draw.shapes import Box, Point, centred, lettered, rectangle
from grader.programs.buffers import Step, ran

CELL, GAP, LABEL, TITLE = 0.26, 0.1, 0.72, 0.3  # inches: a cell's height, between devices, their names, a heading
STRIP = 0.08  # inches: the height of the bands below a number that was made of several


def collective(body: Callable[[Any], Any], array: jax.Array, name: str) -> Picture:
    """Run `body` on every device's block of `array`, and draw the blocks before and after.

    On a mesh of several axes each device has its place on them behind its number.

    Args:
      body: what one device does with its block, collectives over the array's mesh included.
      array: lies on a mesh; its blocks have at most two dimensions.
      name: what stands above the arrow.

    Example:
      >>> array = jax.device_put(np.arange(8.0), jax.NamedSharding(jax.make_mesh((4,), ("x",)), P("x")))
      >>> grader.draw.collective(lambda v: jax.lax.psum(v, "x"), array, "psum")
      psum
        device 0: [0., 1.] → [12., 16.]
        device 1: [2., 3.] → [12., 16.]
        device 2: [4., 5.] → [12., 16.]
        device 3: [6., 7.] → [12., 16.]
    """
    blocks = blocks_of(array)
    return _picture({"": ran(body, blocks.values or (), blocks.mesh)}, name, 1, blocks.mesh)


def buffers(
    steps: Mapping[str, tuple[Sequence[Any], Sequence[Any]]], columns: int = 2, mesh: Mapping[str, int] | None = None
) -> Picture:
    """Blocks before and after, by title, without a word of what happened between: questions.

    Args:
      steps: title → the blocks before and the blocks after, one for each device.
      columns: how many of them stand side by side.
      mesh: the sizes of its axes, where the devices are not simply in a line.

    Example:
      >>> grader.draw.buffers({"What happened?": ([[1, 2], [3, 4]], [[4, 6], [4, 6]])})
      What happened?
        device 0: [1, 2] → [4, 6]
        device 1: [3, 4] → [4, 6]
    """
    facts = {
        title: Step(tuple(map(np.asarray, before)), tuple(map(np.asarray, after)))
        for title, (before, after) in steps.items()
    }
    return _picture(facts, "?", columns, mesh or {})


def _picture(steps: Mapping[str, Step], name: str, columns: int, mesh: Mapping[str, int]) -> Picture:
    called = _called(max(len(step.before) for step in steps.values()), mesh)
    sizes = [_size(step, title, name, called) for title, step in steps.items()]
    rows = [range(start, min(start + columns, len(sizes))) for start in range(0, len(sizes), columns)]
    wide = max(sizes[k][0] for k in range(len(sizes)))
    heights = [max(sizes[k][1] for k in row) for row in rows]
    figure, ax = sheet(wide * min(columns, len(sizes)), sum(heights))
    for number, (title, step) in enumerate(steps.items()):
        _draw(ax, step, title, name, called, (wide * (number % columns), sum(heights[: number // columns])))
    facts = [_facts(step, title or name, called) for title, step in steps.items()]
    return Picture(figure, "\n".join(facts))


def _called(devices: int, mesh: Mapping[str, int]) -> list[str]:
    """What each device is called: its number, and on a mesh of several axes its place on each."""
    names = [f"device {k}" for k in range(devices)]
    if len(mesh) < 2:
        return names
    places = itertools.product(*(range(size) for size in mesh.values()))
    told = (", ".join(f"{axis} {k}" for axis, k in zip(mesh, place, strict=True)) for place in places)
    return [f"{name} ({place})" for name, place in zip(names, told, strict=True)]


def _facts(step: Step, name: str, called: Sequence[str]) -> str:
    lines = [
        f"  {device}: {_written(b)} → {_written(a)}"
        for device, b, a in zip(called, step.before, step.after, strict=False)
    ]
    return "\n".join([name, *lines])


def _written(block: np.ndarray) -> str:
    return " ".join(np.array2string(block, separator=", ", max_line_width=1000).split()).replace("[ ", "[")


def _grid(block: np.ndarray) -> np.ndarray:
    return block.reshape((1, -1) if block.ndim < 2 else (-1, block.shape[-1]))


def _cell(blocks: Sequence[np.ndarray]) -> float:
    """Inches a number needs."""
    return max(0.3, inches_of((f"{v:g}" for block in blocks for v in block.flat), SMALL) + 0.12)


def _parts(step: Step, name: str) -> tuple[float, float, float]:
    """Inches of the blocks before, of the arrow, and of the blocks after."""
    before, after = (max(_grid(b).shape[1] for b in side) * _cell(side) for side in (step.before, step.after))
    return before, max(0.7, inches_of([name]) + 0.2), after


def _tall(step: Step) -> float:
    """Inches of one device's row."""
    return max(len(_grid(b)) for b in (*step.before, *step.after)) * CELL


def _label(called: Sequence[str]) -> float:
    """Inches the devices' names need."""
    return max(LABEL, inches_of(called, SMALLER) + 0.16)


def _size(step: Step, title: str, name: str, called: Sequence[str]) -> tuple[float, float]:
    high = TITLE * bool(title) + len(step.before) * (_tall(step) + GAP) + 0.15
    return _label(called) + sum(_parts(step, name)) + 0.5, high


def _draw(ax: Axes, step: Step, title: str, name: str, called: Sequence[str], corner: Point) -> None:
    (left, top), (before, arrow, _), label = corner, _parts(step, name), _label(called)
    start, tall = left + label + before, _tall(step)
    if title:
        lettered(ax, (left + 0.05, top + TITLE / 2), title, 10, ha="left", weight="bold")
        top += TITLE
    for device, (old, new) in enumerate(zip(step.before, step.after, strict=True)):
        y = top + device * (tall + GAP) + GAP / 2
        lettered(ax, (left + label - 0.08, y + tall / 2), called[device], ha="right")
        own = np.arange(len(step.before))[:, None] == device
        _block(ax, old, np.broadcast_to(own, (len(own), old.size)), left + label, y, _cell(step.before), tall)
        whose = np.zeros((1, new.size), bool) if step.sources is None else step.sources[device].reshape(len(own), -1)
        _block(ax, new, whose, start + arrow, y, _cell(step.after), tall)
    middle = top + len(step.before) * (tall + GAP) / 2
    ax.annotate(
        "",
        (start + arrow - 0.08, middle),
        (start + 0.08, middle),
        arrowprops={"arrowstyle": "-|>", "color": PAGE, "linewidth": 1.4},
    )
    centred(ax, (start + arrow / 2, middle - 0.09), name, 8.5, va="bottom")


def _block(ax: Axes, block: np.ndarray, whose: np.ndarray, left: float, top: float, wide: float, tall: float) -> None:
    """One device's numbers; `whose` says of which devices each is made."""
    grid = _grid(block)
    top += (tall - len(grid) * CELL) / 2
    for place, value in enumerate(grid.flat):
        row, column = divmod(place, grid.shape[1])
        x, y = left + column * wide, top + row * CELL
        makers = np.flatnonzero(whose[:, place])
        alone = len(makers) == 1
        strip = CELL if alone else STRIP
        draw_bands(ax, makers, (x, y + CELL - strip, wide, strip))
        frame = INK if alone else QUIET if len(makers) else FAINT
        rectangle(ax, (x, y, wide, CELL), edge=frame)
        middle = y + (CELL - STRIP * (len(makers) > 1)) / 2
        centred(ax, (x + wide / 2, middle), f"{value:g}", 7.5, color=INK if alone else PAGE)


def draw_bands(ax: Axes, devices: Iterable[int], box: Box) -> None:
    """A band in the colour of each device, side by side."""
    (left, top, wide, high), drawn = box, list(devices)
    for band, device in enumerate(drawn):
        box = left + band * wide / len(drawn), top, wide / len(drawn), high
        rectangle(ax, box, COLOURS[device % len(COLOURS)], width=0)
