"""Values in types that cross the wire."""

from collections import deque
from fractions import Fraction

import jax
import numpy as np
import pytest

from grader.arrays.described import HELD
from grader.exercises.plain import plain
from grader.findings.problems import Refusal
from grader.programs.program import Refused


@pytest.mark.parametrize("value", [np.float64(0.125), np.int64(3), np.bool_(True), np.str_("x")])
def test_a_number_of_numpys_is_shown_as_a_number(value):
    assert repr(plain({"a": [value]})) == repr({"a": [value.item()]})


@pytest.mark.parametrize(
    ("value", "crosses_as"),
    [
        (Fraction(3, 4), 0.75),
        (deque([1, np.int64(2)]), [1, 2]),
        ({"x": 4, "y": 2}.keys(), ["x", "y"]),
        ({"x": (0, 1)}.values(), [(0, 1)]),
    ],
)
def test_what_python_counts_as_a_number_or_a_collection_crosses_as_one(value, crosses_as):
    assert repr(plain(value)) == repr(crosses_as)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"x", Refusal("holds type", ("bytes",))),  # no collection of numbers
        ([jax.devices()[0]], Refusal("holds devices")),
        (np.array(["x"]), Refusal("holds dtype", ("<U1",))),
        ({HELD: 1}, Refusal("holds key", (HELD,))),
    ],
)
def test_why_a_value_does_not_cross(value, why):
    with pytest.raises(Refused) as refused:
        plain(value)
    assert refused.value.finding == why
