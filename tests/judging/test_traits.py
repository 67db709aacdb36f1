"""By what cases differ, besides by values that are equal."""

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnDevices, OnMesh
from grader.judging.traits import apart

MESH = OnMesh({"x": 4, "y": 2})
TURNED_WORDS = "the devices of the mesh of `a` do not stand in the order of their numbers"


VALUE = np.arange(64.0).reshape(8, 8)
LAID, TURNED = OnDevices(VALUE, MESH, P("x")), OnMesh({"x": 4, "y": 2}, order=(1, 0, 2, 3, 4, 5, 6, 7))


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        (
            {"a": LAID, "b": OnDevices(VALUE, TURNED, P("x"))},
            {"a": LAID, "b": LAID},
            "`a` and `b` are on meshes of one shape, over devices in another order",
        ),
        (
            {"a": LAID, "b": OnDevices(VALUE, MESH, P("y"))},
            {"a": LAID, "b": LAID},
            "`a` and `b` are on one mesh, by different specs",
        ),
        (
            {"a": LAID, "b": OnDevices(VALUE + 1, MESH, P("x"))},
            {"a": LAID, "b": LAID},
            "`a` and `b` are on one mesh, and hold different numbers",
        ),
        (
            {"a": OnDevices(VALUE, MESH, P("x"), {5: VALUE[:2]})},
            {"a": LAID},
            "a device holds a copy of `a` that differs",
        ),
        ({"a": OnDevices(VALUE, TURNED, P("x"))}, {"a": LAID}, TURNED_WORDS),
        ({"spec": P(("x", "y"))}, {"spec": P("x", "y")}, "an entry of `spec` has several axes"),
        ({"spec": P(None, "x")}, {"spec": P("x")}, "`spec` begins with None"),
        ({"spec": P()}, {"spec": P("x")}, "`spec` names no axis"),
        (
            {"mesh": OnMesh({"x": 4, "y": 2}, order=(1, 0, 2, 3, 4, 5, 6, 7))},
            {"mesh": MESH},
            "the devices of `mesh` do not stand in the order of their numbers",
        ),
        ({"mesh": OnMesh({"a": 2, "b": 1, "c": 4})}, {"mesh": MESH}, "`mesh` has more than two axes"),
        ({"ids": [1, 2, 1]}, {"ids": [1, 2]}, "an entry of `ids` stands in it twice"),
        ({"ids": []}, {"ids": [1, 2]}, "`ids` is empty"),
        (
            {"calls": [["a", "b"], ["b", "a"]]},
            {"calls": [["a", "b", "b"], ["a", "b"]]},
            "lists in `calls` have the same word at different places",
        ),
    ],
)
def test_a_trait_tells_wrong_cases_from_right_ones(wrong, right, words):
    assert apart([wrong], [right, right]) == f"in none of those where {words}"


def test_a_trait_of_each_argument_is_told():
    shuffled = OnMesh({"x": 4, "y": 2}, order=(1, 0, 2, 3, 4, 5, 6, 7))
    found = apart([{"spec": P(("x", "y")), "mesh": shuffled}], [{"spec": P("x"), "mesh": MESH}])
    assert found.endswith("several axes, and the devices of `mesh` do not stand in the order of their numbers")


def test_numbers_of_a_single_case_are_a_chance():
    assert apart([{"n": 3}], [{"n": 4}, {"n": 8}]) == ""
    assert apart([{"n": 3}, {"n": 6}], [{"n": 4}, {"n": 8}]) == "in none of those where `n` is no power of two"
    six = [{"n": n} for n in (6, 10, 14)], [{"n": n} for n in (18, 20, 22)]
    assert apart(*six) == "in none of those where `n` is smaller than 18"
    assert apart(*([given | {"m": k % 2 + 0.5} for k, given in enumerate(side)] for side in six)) == ""
    assert apart(*(side[:2] for side in six)) == ""


def test_right_cases_may_have_the_trait():
    cases = [{"n": 1}, {"n": 1}], [{"n": 2}, {"n": 7}]
    assert apart(*reversed(cases)) == "only in those where `n` is 1"


def test_two_bounds_may_be_needed():
    cases = [{"n": n, "m": m} for n in (1, 2, 3) for m in (2, 3, 4)]
    wrong = [case for case in cases if case["n"] > 1 and case["m"] > 2]
    assert apart(wrong, [case for case in cases if case not in wrong]) == (
        "in none of those where `n` is larger than 1, and `m` is larger than 2"
    )


def test_what_is_so_of_lengths_together_is_told():
    eight, less = [{"shape": (4, 2)}, {"shape": (2, 2, 2)}], [{"shape": (2, 2)}, {"shape": (6, 1)}]
    assert apart(eight, less) == "in none of those where the product of `shape` is 8"
    assert apart([{"shape": (8,)}, {"shape": (1, 6)}], [{"shape": (2, 4)}, {"shape": (2, 2)}]) == (
        "in none of those where no more than one number of `shape` is above 1"
    )
