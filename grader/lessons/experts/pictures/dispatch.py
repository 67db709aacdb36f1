"""Tokens in the buffers of their experts, before and after an all_to_all, and those who find no room.

Drawn from `Dispatch`, which is facts: which token of which device stands in which slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grader.draw.picture import COLOURS, EDGE, FAINT, INK, PAGE, WRONG, Picture, sheet

CELL, LINE, APART, LABEL, HEADING = 0.24, 0.38, 0.12, 0.68, 0.55  # inches


@dataclass(frozen=True)
class Dispatch:
    """The expert that each token of each device chose, and how many slots a device has for each expert.

    There are as many experts as devices.
    """

    experts: tuple[tuple[int, ...], ...]
    capacity: int

    def wanting(self, device: int, expert: int) -> tuple[int, ...]:
        """The tokens of a device that chose an expert, in order."""
        return tuple(token for token, chosen in enumerate(self.experts[device]) if chosen == expert)

    def buffer(self, device: int, expert: int) -> tuple[int | None, ...]:
        """The slots of a device for an expert: the number of the token in each, None where it is empty."""
        tokens = self.wanting(device, expert)[: self.capacity]
        return (*tokens, *(None,) * (self.capacity - len(tokens)))

    def dropped(self, device: int) -> tuple[int, ...]:
        """The tokens of a device that find no slot."""
        return tuple(sorted(t for e in range(len(self.experts)) for t in self.wanting(device, e)[self.capacity :]))

    def __str__(self) -> str:
        devices = range(len(self.experts))
        lines = [
            f"  device {d}: {_buffers('to', [self.buffer(d, e) for e in devices])}{self._lost(d)}" for d in devices
        ]
        lines += [f"  expert {e}: {_buffers('from', [self.buffer(d, e) for d in devices])}" for e in devices]
        return "\n".join(lines)

    def _lost(self, device: int) -> str:
        dropped = self.dropped(device)
        return f"; dropped {' '.join(map(str, dropped))}" if dropped else ""


def _buffers(word: str, buffers: Sequence[Sequence[int | None]]) -> str:
    return ", ".join(f"{word} {k}: {' '.join('-' if t is None else str(t) for t in b)}" for k, b in enumerate(buffers))


def dispatch(experts: Sequence[Sequence[int]], capacity: int, title: str = "") -> Picture:
    """The buffers that every device fills for every expert, who is dropped, and what each expert gets.

    A token has the colour of its own device, wherever it is, and its number there.

    Args:
      experts: for each device the expert of each of its tokens; as many experts as devices.
      capacity: how many slots a device has for each expert.
      title: stands above the picture.

    Example:
      >>> grader.draw.dispatch([[1, 1], [0, 1]], capacity=1)
        device 0: to 0: -, to 1: 0; dropped 1
        device 1: to 0: 0, to 1: 1
        expert 0: from 0: -, from 1: 0
        expert 1: from 0: 0, from 1: 1
    """
    facts = Dispatch(tuple(tuple(map(int, row)) for row in experts), capacity)
    devices = range(len(facts.experts))
    if any(expert not in devices for row in facts.experts for expert in row):
        raise ValueError(f"there are {len(devices)} devices, so the experts are 0 to {len(devices) - 1}")
    wide = len(devices) * (capacity * CELL + APART)
    lost = max(len(facts.dropped(d)) for d in devices) * CELL
    right = LABEL + wide + lost + 0.25 + LABEL + 0.2
    figure, ax = sheet(right + wide, HEADING + len(devices) * LINE + 0.05)
    if title:
        ax.text(0.02, 0.12, title, fontsize=10, color=PAGE, va="center")
    for name, left in (("to expert", LABEL), ("from device", right)):
        ax.text(left - 0.08, HEADING - 0.13, name, ha="right", va="center", fontsize=7.5, color=PAGE)
        for k in devices:
            middle = left + k * (capacity * CELL + APART) + capacity * CELL / 2
            ax.text(middle, HEADING - 0.13, str(k), ha="center", va="center", fontsize=7.5, color=PAGE)
    if lost:
        ax.text(LABEL + wide + 0.1, HEADING - 0.13, "dropped", va="center", fontsize=7.5, color=PAGE)
    for line in devices:
        y = HEADING + line * LINE
        for name, left in ((f"device {line}", LABEL), (f"expert {line}", right)):
            ax.text(left - 0.08, y + CELL / 2, name, ha="right", va="center", fontsize=8, color=PAGE)
        for other in devices:
            start = other * (capacity * CELL + APART)
            _draw_slots(ax, facts.buffer(line, other), line, LABEL + start, y)
            _draw_slots(ax, facts.buffer(other, line), other, right + start, y)
        _draw_slots(ax, facts.dropped(line), line, LABEL + wide + 0.1, y, out=True)
    return Picture(figure, "\n".join(filter(None, [title, str(facts)])))


def _draw_slots(ax: Axes, slots: Sequence[int | None], home: int, left: float, top: float, out: bool = False) -> None:
    """Slots side by side, with the tokens of one device in them; `out`: tokens that are in none."""
    for k, token in enumerate(slots):
        x = left + k * CELL
        ax.add_patch(
            Rectangle(
                (x, top),
                CELL,
                CELL,
                facecolor="none" if token is None else COLOURS[home % len(COLOURS)],
                edgecolor=WRONG if out else FAINT if token is None else INK,
                linewidth=EDGE,
                linestyle=":" if token is None else "-",
            )
        )
        if token is not None:
            ax.text(x + CELL / 2, top + CELL / 2, str(token), ha="center", va="center", fontsize=8, color=INK)
        if out:
            ax.plot((x, x + CELL), (top + CELL, top), color=WRONG, linewidth=1.2)
