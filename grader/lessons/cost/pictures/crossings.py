"""The links of a one-way ring under an all_to_all: which message crosses which link, and how many each link carries."""

from __future__ import annotations

from grader.draw.picture import COLOURS, QUIET, Picture, sheet
from grader.draw.shapes import block, lettered

CELL, HIGH, LEFT, TOP = 0.72, 0.22, 0.95, 0.62  # inches: a link across, a message, left and above


def crossings(devices: int, title: str = "") -> Picture:
    """A row for each message of an all_to_all, a column for each link; a message has the colour of its sender.

    Args:
      devices: how many stand in the ring; link k leads from device k to the next.
      title: stands above the picture.

    Example:
      >>> grader.draw.crossings(3)
        0 to 1: over link 0
        0 to 2: over links 0, 1
        1 to 2: over link 1
        1 to 0: over links 1, 2
        2 to 0: over link 2
        2 to 1: over links 2, 0
        each link carries 3 messages
    """
    if devices < 2:
        raise ValueError(f"a ring has two devices at least, not {devices}")
    messages = [(sender, far) for sender in range(devices) for far in range(1, devices)]
    paths = {(a, (a + far) % devices): [(a + hop) % devices for hop in range(far)] for a, far in messages}
    carried = [sum(link in path for path in paths.values()) for link in range(devices)]
    facts = [
        f"  {a} to {b}: over link{'s' * (len(path) > 1)} {', '.join(map(str, path))}" for (a, b), path in paths.items()
    ]
    facts.append(f"  each link carries {carried[0]} messages")
    figure, ax = sheet(LEFT + devices * (CELL + 0.06) + 0.5, TOP + len(paths) * HIGH + 0.35)
    lettered(ax, (0.05, 0.13), title, 10)
    for link in range(devices):
        middle = LEFT + link * (CELL + 0.06) + CELL / 2
        lettered(ax, (middle, TOP - 0.14), f"{link} → {(link + 1) % devices}", 8, ha="center")
        lettered(ax, (middle, TOP + len(paths) * HIGH + 0.16), str(carried[link]), 9, ha="center", weight="bold")
    lettered(ax, (LEFT - 0.1, TOP - 0.14), "link", 8, ha="right", color=QUIET)
    lettered(ax, (LEFT - 0.1, TOP + len(paths) * HIGH + 0.16), "messages", 8, ha="right", color=QUIET)
    for row, ((a, b), path) in enumerate(paths.items()):
        y = TOP + row * HIGH
        lettered(ax, (LEFT - 0.1, y + HIGH / 2), f"{a} to {b}", 8, ha="right")
        for link in path:
            block(ax, (LEFT + link * (CELL + 0.06), y + 0.03, CELL, HIGH - 0.06), COLOURS[a % len(COLOURS)])
    return Picture(figure, "\n".join(filter(None, [title, *facts])))
