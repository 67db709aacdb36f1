"""The triangle of a causal attention, by device: who works on which pairs of a query and a key.

Drawn from `Triangle`, which is facts: for each place in the text the device that has its query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grader.draw.picture import COLOURS, EDGE, INK, PAGE, Picture, inches_of, sheet

SIDE, APART, TOP, LEFT = 1.9, 0.45, 0.55, 0.3  # inches: a triangle, the space between two, above and left of the first


@dataclass(frozen=True)
class Triangle:
    """`owners[p]` is the device whose query stands at place p; it looks at p + 1 keys, from the first to its own."""

    owners: tuple[int, ...]

    @property
    def work(self) -> dict[int, int]:
        """Pairs of a query and a key, by device."""
        return {
            device: sum(place + 1 for place, owner in enumerate(self.owners) if owner == device)
            for device in sorted(set(self.owners))
        }

    def __str__(self) -> str:
        return ", ".join(f"device {device} {pairs}" for device, pairs in self.work.items())


def triangles(layouts: Mapping[str, Sequence[int]], title: str = "") -> Picture:
    """Triangles side by side: a row for each query in the order of the text, as long as the keys that it looks at.

    Args:
      layouts: name → for each place in the text the device that has its query.
      title: stands above the picture.

    Example:
      >>> grader.draw.triangles({"in order": [0, 0, 1, 1], "to and fro": [0, 1, 1, 0]})
      in order: device 0 3, device 1 7
      to and fro: device 0 5, device 1 5
    """
    if not layouts or not all(layouts.values()):
        raise ValueError("there is nothing to draw: name at least one layout, and the device of each of its tokens")
    facts = {name: Triangle(tuple(owners)) for name, owners in layouts.items()}
    wide = LEFT + len(facts) * (SIDE + APART)
    figure, ax = sheet(max(wide, inches_of([title]) + 0.2), TOP + SIDE + 0.35)
    ax.text(0.05, 0.15, title, fontsize=10, color=PAGE, va="center")
    for number, (name, triangle) in enumerate(facts.items()):
        _draw_triangle(ax, LEFT + number * (SIDE + APART), name, triangle)
    words = [f"{name}: {triangle}" for name, triangle in facts.items()]
    return Picture(figure, "\n".join(filter(None, [title, *words])))


def _draw_triangle(ax: Axes, left: float, name: str, facts: Triangle) -> None:
    step = SIDE / len(facts.owners)
    ax.text(left, TOP - 0.1, name, fontsize=9, color=PAGE, va="center")
    for place, device in enumerate(facts.owners):
        y = TOP + 0.05 + place * step
        colour = COLOURS[device % len(COLOURS)]
        ax.add_patch(
            Rectangle((left, y), (place + 1) * step, step, facecolor=colour, edgecolor=INK, linewidth=EDGE / 2)
        )
        ax.text(left - 0.06, y + step / 2, str(device), fontsize=6, color=PAGE, ha="right", va="center")
    fewest, most = min(facts.work.values()), max(facts.work.values())
    pairs = f"{fewest} pairs each" if fewest == most else f"{fewest} to {most} pairs"
    ax.text(left, TOP + SIDE + 0.2, pairs, fontsize=8.5, color=PAGE, va="center")
