"""A table as a picture: the result of each recipe under each condition, and which results are correct."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.patches import Rectangle

from grader.draw.picture import COLOURS, EDGE, INK, PAGE, Picture, inches_of, sheet

HIGH, MARGIN = 0.3, 0.24  # inches: a row, around a text
RIGHT, OTHER = COLOURS[2], COLOURS[3]


def table(cells: Mapping[str, Mapping[str, str]], right: str = "1") -> Picture:
    """Draw texts by row and column; cells with the text `right` have their own color.

    Args:
      cells: row → column → text.
      right: the text of the cells that are correct.

    Example:
      >>> grader.draw.table({"sum": {"float32": "1", "bfloat16": "0.98"}})
           float32  bfloat16
      sum  1        0.98
    """
    columns = list(dict.fromkeys(name for row in cells.values() for name in row))
    first = _inches(list(cells))
    widths = [_inches([name, *(row.get(name, "") for row in cells.values())]) for name in columns]
    figure, ax = sheet(first + sum(widths), HIGH * (len(cells) + 1))
    for number, name in enumerate(columns):
        middle = first + sum(widths[:number]) + widths[number] / 2
        ax.text(middle, HIGH / 2, name, ha="center", va="center", fontsize=8.5, weight="bold", color=PAGE)
    for line, (recipe, row) in enumerate(cells.items(), 1):
        ax.text(first - MARGIN / 2, HIGH * (line + 0.5), recipe, ha="right", va="center", fontsize=8.5, color=PAGE)
        for number, name in enumerate(columns):
            left, text = first + sum(widths[:number]), row.get(name, "")
            if text:
                ax.add_patch(
                    Rectangle(
                        (left, HIGH * line),
                        widths[number],
                        HIGH,
                        edgecolor=INK,
                        linewidth=EDGE,
                        facecolor=RIGHT if text == right else OTHER,
                    )
                )
            ax.text(
                left + widths[number] / 2, HIGH * (line + 0.5), text, ha="center", va="center", fontsize=8.5, color=INK
            )
    return Picture(figure, _text(cells, columns))


def _inches(texts: list[str]) -> float:
    return inches_of(texts) + MARGIN


def _text(cells: Mapping[str, Mapping[str, str]], columns: list[str]) -> str:
    lines = [["", *columns], *([recipe, *(row.get(name, "") for name in columns)] for recipe, row in cells.items())]
    wide = [max(len(line[k]) for line in lines) for k in range(len(columns) + 1)]
    return "\n".join("  ".join(text.ljust(n) for text, n in zip(line, wide, strict=True)).rstrip() for line in lines)
