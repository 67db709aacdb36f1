"""Which device's value each value comes from, in the forward pass and in the backward pass of a program.

Drawn from the derivatives of the programs themselves, forward (`jvp`) and of what `vjp` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from grader.arrays.blocks import blocks_of
from grader.draw.picture import COLOURS, EDGE, INK, QUIET, Picture, inches_of, sheet
from grader.draw.shapes import Point, arrow, lettered

STEP, WIDE, RADIUS, TOP, APART = 0.34, 1.25, 0.12, 0.66, 0.55  # inches
DOTTED = "dotted: the device already has the value, and nothing is sent"
ALL = "all"  # the holder of a replicated value
Pairs = tuple[tuple[int | str, int | str], ...]  # from whom, to whom


@dataclass(frozen=True)
class Mirror:
    """Between which devices the forward pass sends values, and the backward pass cotangents."""

    forward: Pairs
    backward: Pairs


def wires(program: Callable[[Any], Any], array: jax.Array) -> Mirror:
    """The arrows of a linear program of a vector with one element on each device."""
    result = jax.jit(program)(array)
    sources, goals = _holders(array), _holders(result)
    forward = np.asarray(jax.jacfwd(program)(array)).reshape(len(goals), len(sources))
    pull_back = jax.vjp(program, array)[1]
    backward = np.asarray(jax.jacfwd(lambda ct: pull_back(ct)[0])(jnp.zeros_like(result))).reshape(
        len(sources), len(goals)
    )
    return Mirror(_pairs(forward, sources, goals), _pairs(backward, goals, sources))


def _holders(array: jax.Array) -> list[int | str]:
    """For each element the device that holds it, or ALL."""
    held = blocks_of(array)
    holders: dict[int, list[int]] = {}
    numbers = np.arange(array.size).reshape(array.shape)
    for device, index in enumerate(held.indices):
        for entry in numbers[index].flat:
            holders.setdefault(int(entry), []).append(device)
    return [who[0] if len(who) == 1 else ALL for _, who in sorted(holders.items())]


def _pairs(matrix: np.ndarray, sources: list[int | str], goals: list[int | str]) -> Pairs:
    return tuple(
        dict.fromkeys((sources[k], goals[j]) for k in range(len(sources)) for j in range(len(goals)) if matrix[j, k])
    )


def mirror(programs: Mapping[str, Callable[[Any], Any]], array: jax.Array, title: str = "") -> Picture:
    """For each program its arrows in the forward pass, above, and in the backward pass, below.

    An arrow is dotted if its end already has the value: on the device itself, or if all devices have it.

    Args:
      programs: name → a linear program of `array`.
      array: one element on each device of a 1-D mesh.
      title: the text above the picture.

    Example:
      >>> line = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> pass_on = lambda v: jax.lax.ppermute(v, "x", [(0, 1)])
      >>> program = jax.shard_map(pass_on, mesh=line, in_specs=P("x"), out_specs=P("x"))
      >>> grader.draw.mirror({"pass on": program}, jax.device_put(np.ones(2), jax.NamedSharding(line, P("x"))))
      pass on: forward 0→1; backward 1→0
    """
    found = {name: wires(program, array) for name, program in programs.items()}
    facts = [f"{name}: forward {_said(m.forward)}; backward {_said(m.backward)}" for name, m in found.items()]
    kept = any(not _sent(*pair) for one in found.values() for pair in one.forward + one.backward)
    tall = array.size * STEP
    bottom = TOP + 2 * (tall + 0.3)
    figure, ax = sheet(max(0.75 + len(found) * (WIDE + APART), inches_of([title])), bottom + 0.2 * kept)
    lettered(ax, (0.05, 0.13), title, 10)
    lettered(ax, (0.05, bottom), DOTTED * kept, 8, color=QUIET)
    for row, words in enumerate(("forward", "backward")):
        lettered(ax, (0.05, TOP + row * (tall + 0.3) + tall / 2), words, 8, color=QUIET)
    for k, (name, one) in enumerate(found.items()):
        left = 0.95 + k * (WIDE + APART)
        lettered(ax, (left + WIDE / 2, TOP - 0.2), name, 9, ha="center")
        _draw_wires(ax, one.forward, (left, TOP), array.size, back=False)
        _draw_wires(ax, one.backward, (left, TOP + tall + 0.3), array.size, back=True)
    return Picture(figure, "\n".join(filter(None, [title, *facts])))


def _sent(source: int | str, goal: int | str) -> bool:
    return source not in (goal, ALL)


def _said(pairs: Pairs) -> str:
    return " ".join(f"{a}→{b}" for a, b in pairs) or "nothing"


def _draw_wires(ax: Axes, pairs: Pairs, corner: Point, count: int, back: bool) -> None:
    """Devices on both sides; the backward pass is read from right to left."""
    left, top = corner
    sides = (left + WIDE, left) if back else (left, left + WIDE)

    def place(holder: int | str, side: float) -> Point:
        row = (count - 1) / 2 if holder == ALL else float(holder)
        return side, top + (row + 0.5) * STEP

    for holder, side in dict.fromkeys((end, sides[n]) for pair in pairs for n, end in enumerate(pair)):
        x, y = place(holder, side)
        colour = "none" if holder == ALL else COLOURS[int(holder) % len(COLOURS)]
        if holder == ALL:
            lettered(ax, (x, y), ALL, 8, ha="center")
            continue
        ax.add_patch(Circle((x, y), RADIUS, facecolor=colour, edgecolor=INK, linewidth=EDGE, zorder=3))
        lettered(ax, (x, y), str(holder), 7.5, ha="center", color=INK, zorder=4)
    for a, b in pairs:
        start, end = place(a, sides[0]), place(b, sides[1])
        away = (RADIUS + 0.03) * (-1 if back else 1)
        line = "-" if _sent(a, b) else ":"
        arrow(ax, (start[0] + away, start[1]), (end[0] - away, end[1]), linewidth=0.9, mutation_scale=7, linestyle=line)
