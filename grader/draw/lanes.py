"""Devices as lanes, collectives as meetings across them, and who waits for ever for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grader.arrays.words import numbered
from grader.draw.picture import COLOURS, EDGE, INK, PAGE, QUIET, WRONG, Picture, inches_of, sheet
from grader.draw.shapes import lettered

LANE, LEFT, TOP, RADIUS = 0.36, 0.72, 0.55, 0.08  # inches


@dataclass(frozen=True)
class Meeting:
    """A collective at which some devices have come, and others are missed; it takes place when none is."""

    name: str
    came: tuple[int, ...]
    missing: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not self.missing:
            return f"{self.name}: {numbered('device', self.came)}"
        waits = "waits" if len(self.came) == 1 else "wait"
        return f"{self.name}: {numbered('device', self.came)} {waits} for ever for {numbered('device', self.missing)}"


def lanes(devices: int, meetings: Sequence[Meeting], title: str = "") -> Picture:
    """A lane for each device, from left to right in time; a bar for each meeting; red where some wait for others.

    Args:
      devices: how many.
      meetings: in order.
      title: stands above the picture.

    Example:
      >>> meeting = grader.draw.Meeting
      >>> grader.draw.lanes(3, [meeting("psum", (0, 1, 2)), meeting("psum", (0, 2), missing=(1,))])
        psum: devices 0, 1, 2
        psum: devices 0, 2 wait for ever for device 1
    """
    step = max(0.55, inches_of([m.name for m in meetings], 0.07) + 0.15)
    last = LEFT + (len(meetings) + 0.6) * step
    figure, ax = sheet(max(last + 1.0, inches_of([title])), TOP + devices * LANE)
    lettered(ax, (0.05, 0.13), title, 10)
    stuck = {device: k for k, m in enumerate(meetings) if m.missing for device in m.came}
    for device in range(devices):
        y = TOP + (device + 0.5) * LANE
        end = LEFT + (stuck[device] + 0.5) * step if device in stuck else last
        lettered(ax, (LEFT - 0.1, y), f"device {device}", 8, ha="right")
        ax.plot([LEFT, end], [y, y], color=QUIET, linewidth=1.4)
        if device in stuck:
            ax.plot([end, last], [y, y], color=WRONG, linewidth=1.2, linestyle=":")
        words, colour = ("waits", WRONG) if device in stuck else ("ends", QUIET)
        lettered(ax, (last + 0.06, y), words, color=colour)
    for k, meeting in enumerate(meetings):
        x, colour = LEFT + (k + 0.5) * step, WRONG if meeting.missing else PAGE
        ys = {device: TOP + (device + 0.5) * LANE for device in (*meeting.came, *meeting.missing)}
        ax.plot([x, x], [min(ys.values()), max(ys.values())], color=colour, linewidth=2.4,
                linestyle="--" if meeting.missing else "-", zorder=2, gid=f"meeting {k}")  # fmt: skip
        lettered(ax, (x, TOP - 0.08), meeting.name, 8, ha="center", color=colour)
        edge: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": EDGE}
        for device in meeting.came:
            ax.plot([x], [ys[device]], "o", color=COLOURS[0], markersize=8, zorder=3, **edge)
        for device in meeting.missing:
            ax.plot([x], [ys[device]], "x", color=WRONG, markersize=8, markeredgewidth=2, zorder=3)
    return Picture(figure, "\n".join(filter(None, [title, *(f"  {m}" for m in meetings)])))
