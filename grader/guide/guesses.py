"""A prediction beside what came of it."""

from __future__ import annotations

from typing import Any

from grader.reviews.question import Text


def guess(said: Any, found: Any) -> Text:
    """Say a prediction again, beside what was found. Nobody grades it, and nothing is kept.

    Args:
      said: what you wrote down before you ran the cell; `...` if you did not.
      found: what came out.

    Example:
      >>> grader.guess(896, 1799)
      You said 896, it is 1,799.
    """
    if said is ...:
        return Text((f"It is {_told(found)}. (And what did you expect? Write it down above, in place of the dots.)",))
    if said == found:
        return Text((f"You said {_told(said)}, and so it is.",))
    return Text((f"You said {_told(said)}, it is {_told(found)}.",))


def _told(value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if whole else str(value)
