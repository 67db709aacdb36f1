"""How the cases in which a value is right differ from the others."""

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnDevices, OnMesh
from grader.explaining.cases.right_cases import right_in
from grader.explaining.cases.tried import Tried
from grader.findings.cases import ErrorExpected, HasValue, RightIn, RightWith

MESH, TURNED = OnMesh({"x": 4, "y": 2}), OnMesh({"x": 4, "y": 2}, order=(1, 0, 2, 3, 4, 5, 6, 7))
VALUE = np.arange(64.0).reshape(8, 8)
ON_MESH, ON_TURNED = OnDevices(VALUE, MESH, P("x")), OnDevices(VALUE, TURNED, P("x"))


def pattern(wrong, right):
    """How wrong cases differ from right ones, given the arguments of each."""
    sides = ([Tried(None, 0, given, well) for given in some] for some, well in ((right, True), (wrong, False)))
    found = right_in(*sides)
    assert (found.right, found.of) == (len(right), len(right) + len(wrong))
    return found.pattern


def test_of_cases_that_are_all_wrong_or_all_right_nothing_is_said():
    case = Tried(1, 2, {"n": 1})
    assert right_in([], [case]) is right_in([case], []) is None
    assert right_in([case], [case, case], processes=True) == RightIn(1, 3, processes=True)


@pytest.mark.parametrize(
    ("wrong", "right", "found"),
    [
        ([{"kind": "b"}], [{"kind": "a"}], HasValue("kind", "'b'")),
        ([{"tiled": True}] * 2, [{"tiled": False}], HasValue("tiled", "True")),
        ([{"n": 1}], [{"n": 5}, {"n": 20}], HasValue("n", "1")),
        ([{"n": 32}] * 3, [{"n": k} for k in (2, 3, 4, 5)], HasValue("n", "32")),
        ([{"n": 32}] * 2, [{"n": 5}, {"n": 20}], RightWith((("n", "5"),))),  # a number that few cases share is chance
        ([{"n": 32}], [{"n": 8}] * 6, RightWith((("n", "8"),))),
        ([{"spec": P("y")}], [{"spec": P("x")}, {"spec": P("z")}], RightWith((("spec", "P('x')"),))),
        ([{"spec": P("y")}] * 3, [{"spec": P("x")}] * 5, HasValue("spec", "P('y')")),
        ([{"names": ["b"]}], [{"names": ["b", "a"]}], HasValue("names", "1", "length")),
        ([{"n": 5}, {"n": 7}], [{"n": 1}] * 3, HasValue("n", "1", only=True)),
        ([{"mesh": TURNED}, {"mesh": OnMesh({"x": 8})}], [{"mesh": MESH}], RightWith((("mesh", str(MESH)),))),
        ([{"a": 5, "b": 3}], [{"a": 6, "b": 4}, {"a": 5, "b": 9}], RightWith((("b", "9"),))),
        ([{"a": 5, "b": 3, "c": 4}], [{"a": 7, "b": 5, "c": 6}], None),  # they are too far apart
        ([{"order": [2, 0, 1]}], [{"order": [*range(90)]}, {"order": [*range(91)]}], None),  # too long to be told
        ([{"a": VALUE, "n": 5}], [{"a": VALUE, "n": 6}], None),  # the arrays differ
    ],
)
def test_how_wrong_cases_differ_from_right_ones(wrong, right, found):
    assert pattern(wrong, right) == found


def test_an_expected_error_is_told_first():
    plain, error = [Tried(1, 1, {"n": 1})], [Tried(1, ValueError("odd"), {"n": 1})]
    assert right_in(plain, error).pattern == ErrorExpected()
    assert right_in(error, plain).pattern == ErrorExpected(only=True)
