"""What the heading of an exercise declares: its names, whether it is of the core, and how long it takes.

The heading is the one place where this is said: the count of minutes, the syllabus, a student's progress and the
table of marks follow it. Its points are the one thing in it that is declared elsewhere, with the exercise: the build
writes them in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from grader.lessons import find

EXERCISE = "### Exercise"
GOING_FURTHER = "## Going further"  # ends the core: everything after it is stretch
CALLED_STRETCH = " · stretch"  # ends the heading of a section without an exercise that the core leaves out
FORM = re.compile(
    r"### Exercises? (?P<names>`\w+`(?:, `\w+`)*) · (?P<kind>core|stretch) · [^·]*\bpoints?\b[^·]* · "
    r"(?P<minutes>\d+) minutes · [●○]{3}(?: · .*)?"
)
_NAME = re.compile(r"`(\w+)`")
_POINTS = re.compile(
    r"^(### Exercises? `\w+`(?:, `\w+`)* · \w+ · )(?:[^·\n]*\bpoints?\b[^·\n]* · )?(?=\d+ minutes)", re.MULTILINE
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
    return ExerciseHeading(tuple(_NAME.findall(found["names"])), found["kind"] == "core", int(found["minutes"]))


def with_points(text: str) -> str:
    """A lesson's text in which every heading says the points that its exercises are declared with.

    Raises LookupError for a name that is not declared.
    """
    return _POINTS.sub(lambda heading: f"{heading[1]}{_points(_NAME.findall(heading[1]))} · ", text)


def _points(names: Sequence[str]) -> str:
    """The points of exercises below one heading: "4 points", "3 + 4 points", "1 point each"."""
    worth = [f"{find(name).points:g}" for name in names]
    unit = "points" if set(worth) != {"1"} else "point"
    if len(set(worth)) == 1:
        return f"{worth[0]} {unit}{' each' * (len(worth) > 1)}"
    return f"{' + '.join(worth)} {unit}"
