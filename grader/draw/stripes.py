"""A matrix's columns as stripes, dealt out to devices in equal parts: which of them lands where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grader.draw.picture import COLOURS, PAGE, Picture, inches_of, sheet
from grader.draw.shapes import block, lettered

HIGH, TOP, ROW = 0.34, 0.5, 0.86  # inches: a stripe, above the first row, from row to row


def stripes(orders: Mapping[str, Sequence[str]], devices: int, title: str = "") -> Picture:
    """Rows of stripes, each an order of the same columns, and who gets which: stripes of one kind have one colour.

    Args:
      orders: name → the columns in order; the last character of a column's name says of which kind it is.
      devices: how many equal parts are dealt out.
      title: stands above the picture.

    Raises:
      ValueError: the columns cannot be dealt out in equal parts.

    Example:
      >>> grader.draw.stripes({"q, then k": ["q0", "q1", "k0", "k1"], "by head": ["q0", "k0", "q1", "k1"]}, 2)
      q, then k: device 0 has q0 q1, device 1 has k0 k1
      by head: device 0 has q0 k0, device 1 has q1 k1
    """
    if uneven := [name for name, columns in orders.items() if len(columns) % devices]:
        raise ValueError(f"{len(orders[uneven[0]])} columns cannot be dealt out to {devices} devices in equal parts")
    facts = []
    wide = max(0.36, inches_of([column for columns in orders.values() for column in columns], 0.08) + 0.14)
    left = 0.2 + inches_of(orders)
    longest = max(map(len, orders.values()))
    kinds = list(dict.fromkeys(column[-1] for columns in orders.values() for column in columns))
    figure, ax = sheet(max(left + longest * wide + 0.15, inches_of([title])), TOP + len(orders) * ROW)
    lettered(ax, (0.05, 0.13), title, 10)
    for row, (name, columns) in enumerate(orders.items()):
        y, each = TOP + 0.18 + row * ROW, len(columns) // devices
        lettered(ax, (left - 0.12, y + HIGH / 2), name, 9, ha="right")
        for k, column in enumerate(columns):
            colour = COLOURS[kinds.index(column[-1]) % len(COLOURS)]
            block(ax, (left + k * wide, y, wide, HIGH), colour, column, name)
        for device in range(devices):
            x, end = left + device * each * wide, left + (device + 1) * each * wide
            lettered(ax, ((x + end) / 2, y - 0.12), f"device {device}", 8, ha="center")
            if device:
                ax.plot([x, x], [y - 0.2, y + HIGH + 0.1], color=PAGE, linewidth=2.6, zorder=4)
        dealt = (f"device {d} has {' '.join(columns[d * each : (d + 1) * each])}" for d in range(devices))
        facts.append(f"{name}: {', '.join(dealt)}")
    return Picture(figure, "\n".join(filter(None, [title, *facts])))
