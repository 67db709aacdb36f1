"""All exercises, by name.

A lesson is a package, named as the lesson is: files that declare its exercises, and say which sections (§) of the text
they cover; `review`, the questions that later lessons ask; and `pictures`, which only this lesson draws.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

from grader.exercises import Exercise

EXERCISES: dict[str, Exercise]  # made when it is first asked for: a review and a picture need none
DECLARE_NONE = ("review", "pictures")  # of a lesson's modules
OLD_NAMES = {  # of exercises: what each is called now; until the next version
    "constrain_whole": "constrain_replicated",
    "count_layouts": "count_shardings",
    "gather_both_ways": "bidirectional_all_gather",
    "how_it_travels": "transfer_path",
    "relaid": "resharded",
    "sum_for_some": "sum_on_even_devices",
    "who_waits": "blocked_devices",
}
POINTS = Path("lessons", "points.json")  # in the package: what a course of somebody's own gives; the build writes it


def __getattr__(name: str) -> Any:
    if name != "EXERCISES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _declared()


@functools.cache
def _declared() -> dict[str, Exercise]:
    found: dict[str, Exercise] = {}
    for info in sorted(pkgutil.walk_packages(__path__, f"{__name__}."), key=lambda info: info.name):
        if not set(info.name.split(".")) & set(DECLARE_NONE):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, Exercise) and found.setdefault(value.name, value) is not value:
                    raise ValueError(f"two exercises are named {value.name}")
    return found


def find(name: str) -> Exercise:
    """The exercise of this name; LookupError names the nearest ones, or the one that this is called now."""
    if name in _declared():
        return _declared()[name]
    if name in OLD_NAMES:
        new = OLD_NAMES[name]
        raise LookupError(f"The exercise {name!r} is now called {new!r}: name your answer {new}, and check that name.")
    near = difflib.get_close_matches(name, _declared(), n=3, cutoff=0.4)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise LookupError(f"There is no exercise named {name!r}.{hint}")


def given(name: str) -> Exercise:
    """The exercise of this name, worth what this course gives for it; LookupError as `find`."""
    exercise = find(name)
    return exercise.with_points(_points().get(name, exercise.points))


@functools.cache
def _points() -> dict[str, float]:
    file = Path(__file__).parents[1] / POINTS
    return json.loads(file.read_text()) if file.exists() else {}
