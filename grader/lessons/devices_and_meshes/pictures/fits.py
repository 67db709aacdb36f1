"""What the model of each device has learned: its curve through examples that lie on different devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from matplotlib.axes import Axes

from grader.arrays.words import numbered
from grader.draw.picture import COLOURS, EDGE, INK, PAGE, Picture, sheet
from grader.draw.shapes import lettered

WIDE, HIGH, TOP, SIDE = 7.6, 2.3, 0.62, 0.3  # inches: the plot; above it; beside it
SAME = 1e-4  # replicas that differ by no more are one model
KEY = "a dot is an example, in the color of its device; a line is a model"


@dataclass(frozen=True)
class Fits:
    """The devices whose models are the same, group by group, and the loss of each group's model on all examples."""

    groups: tuple[tuple[int, ...], ...]
    losses: tuple[float, ...]

    def __str__(self) -> str:
        lines = [
            f"  {numbered('device', group)}: loss on all examples {loss:.2g}"
            for group, loss in zip(self.groups, self.losses, strict=True)
        ]
        return "\n".join([self.headline, *lines])

    @property
    def headline(self) -> str:
        count = len(self.groups)
        return "all devices have the same model" if count == 1 else f"the devices have {count} different models"


def fits(
    positions: Sequence[float], inputs: jax.Array, targets: jax.Array, weights: jax.Array, title: str = ""
) -> Picture:
    """The curve that each device's weights give, through all examples.

    Args:
      positions: of the examples, from left to right; equally many are on each device, in the same order.
      inputs: a row of features for each example.
      targets: what the model should give, a number for each example.
      weights: one for each feature. Every device has its own copy, and the copies may differ.
      title: stands above the picture.

    Example:
      >>> line = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> weights = grader.put(np.ones(1), P(), line)
      >>> grader.draw.fits([0, 1], np.ones((2, 1)), np.array([0, 1]), weights)
      all devices have the same model
        devices 0, 1: loss on all examples 0.5
    """
    places, goals = np.asarray(positions, float), np.asarray(targets, float)
    copies = [np.asarray(shard.data, float) for shard in weights.addressable_shards]
    lines = [np.asarray(inputs, float) @ own for own in copies]
    groups = _alike(copies)
    facts = Fits(groups, tuple(float(np.mean((lines[group[0]] - goals) ** 2)) for group in groups))
    figure, ax = sheet(WIDE + 2 * SIDE, TOP + HIGH + 0.15)
    lettered(ax, (SIDE, 0.14), title or facts.headline, 10)
    lettered(ax, (SIDE, 0.38), KEY, 8)
    low, high = goals.min(), goals.max()
    spare = 0.35 * (high - low)

    def across(x: np.ndarray) -> np.ndarray:
        return SIDE + WIDE * (x - places[0]) / (places[-1] - places[0])

    def down(y: np.ndarray) -> np.ndarray:
        return TOP + HIGH * (1 - (y - low + spare) / (high - low + 2 * spare))

    for group in groups:
        colour = PAGE if len(groups) == 1 else COLOURS[group[0] % len(COLOURS)]
        _draw_line(ax, across(places), down(lines[group[0]]), colour, group)
    own = len(places) // len(copies)
    for device in range(len(copies)):
        mine = slice(device * own, (device + 1) * own)
        ax.plot(
            across(places[mine]),
            down(goals[mine]),
            linestyle="none",
            marker="o",
            markersize=6,
            markerfacecolor=COLOURS[device % len(COLOURS)],
            markeredgecolor=INK,
            markeredgewidth=EDGE,
            gid=f"examples of device {device}",
            zorder=5,
        )
    return Picture(figure, "\n".join(filter(None, [title, str(facts)])))


def _alike(copies: Sequence[np.ndarray]) -> tuple[tuple[int, ...], ...]:
    groups: list[list[int]] = []
    for device, own in enumerate(copies):
        near = [group for group in groups if np.allclose(copies[group[0]], own, rtol=SAME, atol=SAME)]
        near[0].append(device) if near else groups.append([device])
    return tuple(map(tuple, groups))


def _draw_line(ax: Axes, xs: np.ndarray, ys: np.ndarray, colour: str, group: Sequence[int]) -> None:
    """A model's curve inside the plot; light colors have a dark edge."""
    inside = np.where((ys >= TOP) & (ys <= TOP + HIGH), ys, np.nan)
    if colour != PAGE:
        ax.plot(xs, inside, color=INK, linewidth=2.9, zorder=2)
    ax.plot(xs, inside, color=colour, linewidth=1.8, zorder=3, gid=f"model of {numbered('device', group)}")
