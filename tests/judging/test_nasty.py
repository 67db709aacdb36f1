"""Values that no honest answer has: none earns a point, raises, or takes long, whatever form the exercise has."""

from __future__ import annotations

import json
import math
from collections import deque
from fractions import Fraction

import numpy as np
import pytest
from fuzzing import within

from grader.exercises import FunctionExercise, PodExercise, TableExercise, TimetableExercise
from grader.exercises.as_json import from_json, to_json
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.feedback import plain_card
from grader.lessons import EXERCISES


class Anything(str):
    """A text that equals everything."""

    __eq__ = lambda self, other: True  # noqa: E731
    __ne__ = lambda self, other: False  # noqa: E731
    __hash__ = str.__hash__


class AnyNumber(int):
    __eq__ = lambda self, other: True  # noqa: E731
    __hash__ = int.__hash__


class AnyTable(dict):
    """A dict that has every key."""

    def __contains__(self, key):
        return True

    def __missing__(self, key):
        return Anything(key)


def deep(depth):
    nested = 1
    for _ in range(depth):
        nested = [nested]
    return nested


CYCLE = []
CYCLE.append(CYCLE)
KNOT = {}
KNOT["knot"] = KNOT
NASTY = {
    "nan": math.nan,
    "infinity": -math.inf,
    "minus zero": -0.0,
    "a number of 6,000 digits": 10**6000,
    "a negative one": -(10**30),
    "true": True,
    "a fraction": Fraction(10**400, 3),
    "a complex number": complex(math.nan, math.inf),
    "a text": "\x1b[2J\u202e<script>",
    "half a character": "\ud800",
    "a text that equals everything": Anything("x"),
    "a number that equals everything": AnyNumber(1_234_567),
    "bytes": b"\xff" * 10,
    "a list in itself": CYCLE,
    "a dict in itself": KNOT,
    "1,000 lists in lists": deep(1000),
    "100,000 lists in lists": deep(100_000),
    "NaN for a key": {math.nan: 1, float("nan"): 2},
    "keys that are one as texts": {1: "a", "1": "b", 1.5: "c"},
    "a set of everything": {1, "a", None, 2.5},
    "a deque": deque(range(9)),
    "an object": object(),
    "a class": dict,
    "a generator": (k for k in range(3)),
    "an array of objects": np.array([object(), CYCLE], object),
    "an array of dates": np.array(["2027-01-01"], "datetime64[D]"),
    "a masked array": np.ma.masked_array([1, 2], [True, False]),
    "a record array": np.zeros(2, [("a", int), ("b", float)]),
    "an array without entries": np.zeros((0, 3)),
    "a long text": "x" * 3_000_000,
    "many numbers": list(range(30_000)),
    "the key of what is held": {"held": 1},
}
KINDS = {kind: [e for e in EXERCISES.values() if type(e) is kind] for kind in (TableExercise, TimetableExercise)}
FUNCTIONS = [e for e in EXERCISES.values() if type(e) is FunctionExercise]
PODS = [e for e in EXERCISES.values() if type(e) is PodExercise]


def judged(exercise, work, count=3):
    """The verdict on an answer as it comes over the wire, and its card."""
    cases = exercise.draw_cases(7)[:count]
    with within(seconds=10.0, megabytes=1500):
        answers = collect(exercise.form, asks(exercise, cases), work)
        found = explained(exercise, cases, from_json(json.loads(json.dumps(to_json(answers)))))
        assert plain_card(found)
    return found


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("kind", KINDS)
def test_in_a_table_it_is_refused_or_wrong(kind, name):
    for exercise in KINDS[kind][::9]:
        for work in ({case.key: NASTY[name] for case in exercise.draw_cases(7)}, NASTY[name]):
            assert judged(exercise, work).points == 0 or name in ("true", "minus zero", "an array without entries")


@pytest.mark.parametrize("name", NASTY)
def test_from_a_function_or_for_a_pod_it_is_refused_or_wrong(name):
    for exercise in (*FUNCTIONS[::20], *PODS[:1]):
        found = judged(exercise, lambda *args, **options: NASTY[name], count=None)
        assert found.points < exercise.points, exercise.name
