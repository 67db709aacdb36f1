"""A prediction beside what came of it."""

from __future__ import annotations

from numbers import Real
from typing import Any

from grader.questions import Text

NEAR_ENOUGH = 0.05  # relative


def guess(said: Any, found: Any) -> Text:
    """Say a prediction again, beside what was found. Nobody grades it, and nothing is kept.

    Args:
      said: what you wrote down before you ran the cell; `...` if you did not.
      found: what came out.

    Example:
      >>> grader.guess(896, 1799)
      You said 896, it is 1,799.
      >>> grader.guess(128, 131)
      You said 128, it is 131: near, 2.3 % off.
    """
    if said is ...:
        return Text((f"It is {_told(found)}. (And what did you expect? Write it down above, in place of the dots.)",))
    if said == found:
        return Text((f"You said {_told(said)}, and so it is.",))
    return Text((f"You said {_told(said)}, it is {_told(found)}{_how_near(said, found)}.",))


def _how_near(said: Any, found: Any) -> str:
    """That a number is near the one that came out: whoever reasoned rightly may have left out a small part."""
    if isinstance(said, bool) or isinstance(found, bool) or not isinstance(said, Real) or not isinstance(found, Real):
        return ""
    off = abs(float(said) - float(found)) / (abs(float(found)) or 1)
    return f": near, {100 * off:.2g} % off" if off < NEAR_ENOUGH else ""


def _told(value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if whole else str(value)
