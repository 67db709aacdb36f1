"""One step of data parallel training as lanes, a device each: with the mean of the gradients, and without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from matplotlib.axes import Axes

from grader.draw.picture import COLOURS, OF_KIND, QUIET, WRONG, Picture, inches_of, sheet
from grader.draw.shapes import Point, block, lettered

LANE, HIGH, APART, TOP, BETWEEN = 0.42, 0.3, 0.2, 0.75, 0.62  # inches: a lane; a box; to the next; above; two panels
BEFORE, MEAN, AFTER = COLOURS[7], COLOURS[5], COLOURS[4]  # of what is the same on all devices
EACH = [colour for colour in COLOURS if colour not in (BEFORE, MEAN, AFTER, OF_KIND["all_reduce"])]
REDUCTION = "one reduction"
HEADS = ("own rows", "weight", "forward: own loss", "back: own gradient", REDUCTION, "gradient", "update: weight")


@dataclass(frozen=True)
class Descent:
    """One step of gradient descent on a weight: what each device finds with its own rows, and what comes of it."""

    weight: float
    rate: float
    rows: tuple[tuple[float, ...], ...]
    losses: tuple[float, ...]
    gradients: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The gradient on all devices, once they have averaged their own."""
        return sum(self.gradients) / len(self.gradients)

    @property
    def after(self) -> float:
        """The weight on all devices after the step."""
        return self.weight - self.rate * self.mean

    @property
    def apart(self) -> tuple[float, ...]:
        """The weight on each device, where each follows its own gradient."""
        return tuple(self.weight - self.rate * gradient for gradient in self.gradients)

    def __str__(self) -> str:
        found = zip(self.rows, self.losses, self.gradients, strict=True)
        return "\n".join(
            [
                f"weight {_short(self.weight)} on all devices, rate {_short(self.rate)}",
                *(
                    f"  device {d}: rows {_listed(rows)} → own loss {_short(loss)} → own gradient {_short(gradient)}"
                    for d, (rows, loss, gradient) in enumerate(found)
                ),
                f"  pmean: gradient {_short(self.mean)} → weight {_short(self.after)}, on all devices",
                f"  without the pmean: weights {_listed(self.apart)}",
            ]
        )


def descent(
    loss: Callable[[Any, Any], Any], weight: float, rows: Sequence[Sequence[float]], rate: float, title: str = ""
) -> Picture:
    """A step of data parallel training, from left to right in time; below it the same step without its one reduction.

    What a device alone has made, of its own rows, has its colour; what all devices have in common has one colour. So
    after the update the devices have one colour, or, where nobody took the mean, each its own.

    Args:
      loss: of the weight and a vector of rows, both float32; differentiable.
      weight: before the step, the same on all devices.
      rows: for each device its own, two to four devices.
      rate: of the update, weight − rate · gradient.
      title: stands above the picture.

    Example:
      >>> grader.draw.descent(lambda w, rows: ((w - rows) ** 2).mean() / 2, 8, [[1, 3], [3, 5]], rate=1)
      weight 8 on all devices, rate 1
        device 0: rows 1, 3 → own loss 18.5 → own gradient 6
        device 1: rows 3, 5 → own loss 8.5 → own gradient 4
        pmean: gradient 5 → weight 3, on all devices
        without the pmean: weights 2, 4
    """
    if not 2 <= len(rows) <= len(EACH):
        raise ValueError(f"a step is drawn for 2 to {len(EACH)} devices, each in a colour; here are {len(rows)}")
    found = [jax.value_and_grad(loss)(jnp.float32(weight), jnp.asarray(own, jnp.float32)) for own in rows]
    facts = Descent(
        weight,
        rate,
        tuple(tuple(own) for own in rows),
        tuple(float(value) for value, _ in found),
        tuple(float(gradient) for _, gradient in found),
    )
    left = inches_of(["device 0"]) + 0.15
    widths = [inches_of([head], 0.07) + 0.05 for head in HEADS]
    places = [left + sum(widths[:k]) + k * APART for k in range(len(HEADS))]
    tall = len(rows) * LANE
    figure, ax = sheet(max(places[-1] + widths[-1] + 0.1, inches_of([title])), TOP + 2 * tall + BETWEEN + 0.05)
    lettered(ax, (0.05, 0.15), title, 10)
    for head, x, wide in zip(HEADS, places, widths, strict=True):
        lettered(ax, (x + wide / 2, TOP - 0.15), head, 8, ha="center", color=QUIET)
    boxes = list(zip(places, widths, strict=True))
    _draw_lanes(ax, facts, boxes, TOP, together=True)
    below = TOP + tall + BETWEEN
    lettered(ax, (left, below - 0.2), "the same step without the pmean", 8.5, color=WRONG)
    _draw_lanes(ax, facts, boxes, below, together=False)
    return Picture(figure, "\n".join(filter(None, [title, str(facts)])))


def _draw_lanes(ax: Axes, facts: Descent, boxes: Sequence[Point], top: float, together: bool) -> None:
    """The devices from `top` on; a box is how far across it stands, and how wide it is."""
    end = sum(boxes[-1])
    for device, own in enumerate(EACH[: len(facts.rows)]):
        middle = top + (device + 0.5) * LANE
        lettered(ax, (boxes[0][0] - 0.1, middle), f"device {device}", 8, ha="right")
        ax.plot([boxes[0][0], end], [middle, middle], color=QUIET, linewidth=1.4, zorder=0)
        found = facts.losses[device], facts.gradients[device]
        cells = [(_listed(facts.rows[device]), own), (_short(facts.weight), BEFORE), *((_short(v), own) for v in found)]
        if together:
            cells += [("", ""), (_short(facts.mean), MEAN), (_short(facts.after), AFTER)]
        else:
            cells += [("", ""), ("", ""), (_short(facts.apart[device]), own)]
        for (x, wide), (words, colour) in zip(boxes, cells, strict=True):
            if words:
                block(ax, (x, middle - HIGH / 2, wide, HIGH), colour, words, f"lane of {device}", size=9)
    if together:
        x, wide = boxes[HEADS.index(REDUCTION)]
        tall = len(facts.rows) * LANE - (LANE - HIGH)
        block(ax, (x, top + (LANE - HIGH) / 2, wide, tall), OF_KIND["all_reduce"], "pmean", size=9)


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(map(_short, numbers))


def _short(value: float) -> str:
    return f"{value:.4g}"
