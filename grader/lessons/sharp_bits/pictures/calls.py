"""Calls of one jitted function, and the programs that they run: which of the calls share one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grader.draw.picture import COLOURS, Picture, inches_of, sheet
from grader.draw.shapes import arrow, block, lettered

HIGH, LINE, WIDE, ACROSS = 0.24, 0.32, 1.0, 1.3  # inches: a box, from one to the next, a program, the arrows between


def calls(jitted: Any, arguments: Mapping[str, Sequence[Any]], title: str = "") -> Picture:
    """A row for each call, an arrow to its program; calls that are lowered to the same text run the same one.

    Args:
      jitted: what `jax.jit` returned. It is not run.
      arguments: a call's name → what it is called with.
      title: stands above the picture.

    Raises:
      ValueError: there is no call.
      TypeError: the function is not jitted.

    Example:
      >>> double = jax.jit(lambda a: 2 * a)
      >>> grader.draw.calls(double, {"rows": [np.ones(4)], "other rows": [np.zeros(4)], "fewer": [np.ones(2)]})
        rows: program 0
        other rows: program 0
        fewer: program 1
        2 programs for 3 calls
    """
    if not arguments:
        raise ValueError("there is nothing to draw: no call is given")
    if not hasattr(jitted, "lower"):
        raise TypeError(f"{jitted} is not jitted, so there are no programs: hand over jax.jit of it")
    texts = [jitted.lower(*given).as_text() for given in arguments.values()]
    programs = list(dict.fromkeys(texts))
    runs = dict(zip(arguments, map(programs.index, texts), strict=True))
    facts = [f"  {call}: program {program}" for call, program in runs.items()]
    facts.append(f"  {_counted(len(programs), 'program')} for {_counted(len(runs), 'call')}")

    left, top = 0.2 + inches_of(arguments), 0.4 if title else 0.1
    right, high = left + ACROSS, len(runs) * LINE
    figure, ax = sheet(max(right + WIDE + 0.1, inches_of([title]) + 0.2), top + high)
    lettered(ax, (0.05, 0.15), title, 10)
    share = high / len(programs)
    middles = [top + (k + 0.5) * share - (LINE - HIGH) / 2 for k in range(len(programs))]
    for k, middle in enumerate(middles):
        box = right, middle - HIGH / 2, WIDE, HIGH
        block(ax, box, COLOURS[k % len(COLOURS)], f"program {k}", f"program {k}")
    for row, (call, program) in enumerate(runs.items()):
        y = top + row * LINE + HIGH / 2
        lettered(ax, (left - 0.1, y), call, 9, ha="right")
        arrow(ax, (left, y), (right - 0.04, middles[program]), gid=f"{call} runs program {program}")
    return Picture(figure, "\n".join(filter(None, [title, *facts])))


def _counted(many: int, what: str) -> str:
    return f"{many} {what}{'s' * (many != 1)}"
