"""What the heading of an exercise declares: its names, whether it is of the core, and how long it takes.

The heading is the one place where this is said: the count of minutes, the syllabus, a student's progress and the
table of marks follow it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EXERCISE = "### Exercise"
FORM = re.compile(
    r"### Exercises? (?P<names>`\w+`(?:, `\w+`)*) · (?P<kind>core|stretch) · [^·]*\bpoints?\b[^·]* · "
    r"(?P<minutes>\d+) minutes · [●○]{3}(?: · .*)?"
)


@dataclass(frozen=True)
class ExerciseHeading:
    """The exercises below one heading, and the minutes for all of them together."""

    names: tuple[str, ...]
    is_core: bool
    minutes: int


def exercise_heading(line: str) -> ExerciseHeading | None:
    """What a line says that heads exercises; None for any other line.

    Raises ValueError where the line does not say all of it.
    """
    if not line.startswith(EXERCISE):
        return None
    if (found := FORM.fullmatch(line)) is None:
        raise ValueError(
            "A heading of an exercise says its name, core or stretch, its points, its minutes and how hard it is, as in"
            f"\n### Exercise `case3` · core · 4 points · 8 minutes · ●●○\nThis one does not:\n{line}"
        )
    return ExerciseHeading(tuple(re.findall(r"\w+", found["names"])), found["kind"] == "core", int(found["minutes"]))
