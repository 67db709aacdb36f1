"""Processes, the devices that each drives, and the coordinator that all others tell that they are there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.patches import Circle, FancyBboxPatch

from grader.arrays.words import numbered
from grader.draw.picture import COLOURS, EDGE, INK, QUIET, Picture, inches_of, sheet
from grader.draw.shapes import arrow, lettered

STEP, RADIUS, HIGH, TOP, APART = 0.62, 0.22, 0.92, 0.75, 0.26  # inches


def hosts(devices: Mapping[int, Sequence[int]], title: str = "", coordinator: int = 0) -> Picture:
    """A box for each process with its devices in it; thin lines lead to the process that is the coordinator.

    Args:
      devices: process → the numbers of its devices.
      title: stands above the picture.
      coordinator: which process that is.

    Example:
      >>> grader.draw.hosts({0: [0, 1], 1: [2048, 2049]})
        process 0, the coordinator: devices 0, 1
        process 1: devices 2048, 2049
    """
    if coordinator not in devices:
        raise ValueError(f"the coordinator, process {coordinator}, is none of {', '.join(map(str, devices))}")
    radius = max(RADIUS, inches_of([str(d) for held in devices.values() for d in held], 0.075) / 2 + 0.05)
    step = 2 * radius + 0.16
    names = {p: f"process {p}{', the coordinator' * (p == coordinator)}" for p in devices}
    facts = [f"  {names[p]}: {numbered('device', list(held))}" for p, held in devices.items()]
    wide = max(max(map(len, devices.values())) * step, 0.95) + 0.14
    figure, ax = sheet(max(0.1 + len(devices) * (wide + APART), inches_of([title])), TOP + HIGH + 0.25)
    lettered(ax, (0.05, 0.13), title, 10)
    lefts = {p: 0.1 + k * (wide + APART) for k, p in enumerate(devices)}
    for process, held in devices.items():
        left, boss = lefts[process], process == coordinator
        ax.add_patch(
            FancyBboxPatch((left, TOP), wide, HIGH, boxstyle="round,pad=0,rounding_size=0.06", facecolor="none",
                           edgecolor=QUIET, linewidth=2.2 if boss else 1, gid=names[process])
        )  # fmt: skip
        lettered(ax, (left + wide / 2, TOP + 0.14), f"process {process}", 8.5, ha="center")
        for k, device in enumerate(held):
            x, y = left + wide / 2 + (k - (len(held) - 1) / 2) * step, TOP + HIGH - 2 * radius + radius - 0.1
            ax.add_patch(
                Circle((x, y), radius, facecolor=COLOURS[0], edgecolor=INK, linewidth=EDGE, gid=f"device {device}")
            )
            lettered(ax, (x, y), str(device), 8, ha="center", color=INK)
        if not boss:
            end, start = lefts[coordinator] + wide / 2, left + wide / 2
            bend = math.copysign(min(0.3, 0.5 / abs(start - end)), start - end)
            arrow(ax, (start, TOP - 0.04), (end + 0.1, TOP - 0.04), linewidth=0.9, mutation_scale=7, color=QUIET,
                  connectionstyle=f"arc3,rad={bend}")  # fmt: skip
    lettered(ax, (lefts[coordinator] + wide / 2, TOP + HIGH + 0.12), "coordinator", 8, ha="center", color=QUIET)
    others = [p for p in devices if p != coordinator]
    if others:
        last = list(devices)[-1] == coordinator
        x = lefts[others[0 if last else -1]] + wide / 2  # of the one beside which no arrow passes
        aside, towards = (-0.08, "right") if last else (0.08, "left")
        lettered(ax, (x + aside, TOP - 0.15), "“I am here”", 8, ha=towards, color=QUIET)
    return Picture(figure, "\n".join(filter(None, [title, *facts])))
