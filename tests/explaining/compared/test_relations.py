"""How a wrong plain value relates to the expected one."""

import numpy as np
import pytest

from grader.arrays.described import HELD, Observed, OnDevices, OnMesh
from grader.explaining.compared.relations import relations_of
from grader.explaining.compared.single_numbers import sizes_in
from grader.findings.arrays import (
    ElementsMisplaced,
    ExtraDimension,
    FactorIs,
    OffByFactor,
    SameSizeOtherShape,
    WrongLengths,
)
from grader.findings.finding import Rank
from grader.findings.quantities import Quantity
from grader.findings.relations import (
    OffByQuantity,
    OnlyThere,
    OnOneSide,
    OtherElements,
    OtherKeys,
    OtherLength,
    Reordered,
    SameProduct,
    TimesExpected,
    TooLargeBy,
    WrongGroups,
    WrongParts,
    reveals,
)
from grader.findings.values import OtherKind

N, BLOCKS, DEVICES = Quantity("argument", "n"), Quantity("items", "blocks"), Quantity("all devices")
MESH = {"axes": [["x", 2]], "devices": [0, 1], "axis_types": ["Auto"]}
SIX = np.arange(6.0).reshape(3, 2)


def held(*parts, blocks=None):
    """An array on devices, by the part that each holds."""
    blocks = blocks or [np.ones(1)] * len(parts)
    return Observed({HELD: {f"device {k}": {part: blocks[k]} for k, part in enumerate(parts)}})


def first(found, expected, **given):
    return next(relations_of(found, expected, given), None)


def is_as(finding, relation):
    """Whether it is this finding, or of this kind."""
    return type(finding) is relation if isinstance(relation, type) else finding == relation


@pytest.mark.parametrize(
    ("found", "expected", "given", "relation"),
    [
        (-5.0, 5.0, {}, TimesExpected(-1.0)),
        (40, 5, {"n": 8}, OffByQuantity(N, divided=False)),
        (5, 40, {"blocks": [0] * 8}, OffByQuantity(BLOCKS, divided=True)),
        (5, 40, {"mesh": {"x": 4, "y": 2}}, OffByQuantity(DEVICES, divided=True)),
        (0.3, 0.2, {}, TimesExpected(1.5)),
        (1.25, 10, {}, TimesExpected(0.125)),
        (12, 11, {}, TooLargeBy(1.0, None)),
        (7, 5.5, {"n": 3}, TooLargeBy(0.5, N)),
        (1003 - 14 * 16, 1003, {"n": 16}, TooLargeBy(-14.0, N)),
        (0.0, 5.4e-8, {}, OnOneSide("small")),
        (1, 8_589_934_591, {}, OnOneSide("small")),
    ],
)
def test_a_number(found, expected, given, relation):
    assert first(found, expected, **given) == relation


@pytest.mark.parametrize(
    ("found", "expected", "relation"),
    [
        ([3, 2, 1], [1, 2, 3], Reordered("reversed")),
        ([3, 1, 2], [1, 2, 3], Reordered("rotated")),
        ([1, 4, 3, 2, 5], [1, 2, 3, 4, 5], Reordered("two swapped")),
        ([2, 1, 4, 3], [1, 2, 3, 4], Reordered("any")),
        ((16, 4), (8, 8), SameProduct()),
        ([[1, 3], [2], [4]], [[1], [2], [3, 4]], WrongGroups("values")),
        ([1, 2, 3, 4], [[1, 2], [3, 4]], WrongGroups("order")),
        ([[4, 5]], [4, 6], WrongGroups("count")),
        ([1, 3], [1, 2, 3], OtherElements("missing")),
        ([5, 7], [1, 2, 5, 7], OtherElements("first missing")),
        ([[1, 2, 3]], [[1, 2, 3], [5, 7, 9]], OtherElements("last missing")),
        ([[0, 1], [2], [0, 1]], [[0, 1], [2]], OtherElements("extra")),
        ((0, 1), (1, 1, 0), OtherLength("fewer")),
        ([1, 2], [], OtherLength("more")),
        ((1, 0, 0), (1, 1, 0), OnlyThere(("[1]",), TooLargeBy(-1.0, None))),
        ([2, 3, 4], [1, 2, 3], OnlyThere((), TooLargeBy(1.0, None))),
        (([1, 2], [3, 5]), ([1, 2], [3, 4]), OnlyThere(("[1]",), TimesExpected(1.25), inside=True)),
        (([5, 2, 9], 7), ([9, 5, 2], 7), OnlyThere(("[0]",), Reordered("rotated"))),
        ([True, False, False], [False, True, False], OnlyThere(("[0]", "[1]"))),  # of another order by chance
        (["run x", "run z"], ["run x", "run y"], None),  # it may be right in other words
        ([1, 2, 3], np.arange(1, 4), OtherKind("array", "list")),
        (([0, 1], 5), (np.arange(2), 5), OnlyThere(("[0]",), OtherKind("array", "list"))),
    ],
)
def test_a_list(found, expected, relation):
    assert first(found, expected) == relation


@pytest.mark.parametrize(
    ("found", "expected", "relation"),
    [
        ({"0": "x"}, {"0": "x", "1": "y"}, OtherKeys("missing")),
        ({}, {"0": "x"}, OtherKeys("missing")),
        ({"0": "x", "1": "y"}, {"0": "x"}, OtherKeys("extra")),
        ({"1": "x"}, {"0": "x"}, None),
        ({"a": 1, "b": 4}, {"a": 1, "b": 2}, OnlyThere(("b",), TimesExpected(2.0))),
        ({"a": 2, "d": 1}, {"a": 1, "c": 3}, None),
        ({"a": 2}, {"a": 1, "c": 0}, OnlyThere(("a",), TimesExpected(2.0))),  # a count of 0 may be left out
        ({"0": ("0:4",), "1": ("0:4",)}, {"0": ("0:2",), "1": ("2:4",)}, WrongParts(((0, "replicated"),))),
    ],
)
def test_a_dict(found, expected, relation):
    assert is_as(first(found, expected), relation)


@pytest.mark.parametrize(
    ("found", "expected", "relation"),
    [
        (False, {}, OtherKind("dict", "truth value")),
        (3, MESH, OtherKind("mesh", "number")),
        ([1, 2], 3, OtherKind("number", "list")),
        ("3", 3, OtherKind("number", "text")),
        (held("[0:1]"), 3, OtherKind("number", "array on devices")),
        (held("[0:1]"), np.ones(2), OtherKind("array", "array on devices")),
        (2, True, OtherKind("truth value", "number")),
        (3, "three", OtherKind("text", "number")),
        ([[1, 2], [3]], np.ones((2, 2)), OtherKind("array", "list")),
        (None, 3, None),
        ("a word", "another", None),
        ((8.0, 2.0), (8, 2), None),  # equal, and yet not what an exercise asks for
    ],
)
def test_another_kind(found, expected, relation):
    assert first(found, expected) == relation


@pytest.mark.parametrize(
    ("found", "expected", "given", "relation"),
    [
        (np.ones((6, 2)), np.ones((3, 2)), {"n": 2}, WrongLengths),
        (np.ones((3, 3)), np.ones(3), {}, ExtraDimension),
        (SIX.ravel(), SIX, {}, SameSizeOtherShape),
        (SIX.ravel()[::-1], SIX, {}, WrongGroups("values")),
        (np.array([5.5, 7.5]), np.array([1.5, 5.5, 7.5]), {}, OtherElements("first missing")),
        (SIX[[1, 0, 2]], SIX, {}, ElementsMisplaced),
        (2 * SIX, SIX, {}, OffByFactor),
    ],
)
def test_an_array(found, expected, given, relation):
    assert is_as(first(found, expected, **given), relation)


@pytest.mark.parametrize(
    ("found", "expected", "given", "relation"),
    [
        (held("[0:4]", "[0:4]"), held("[0:2]", "[2:4]"), {}, WrongParts(((0, "replicated"),))),
        (held("[0:2]", "[2:4]"), held("[0:4]", "[0:4]"), {}, WrongParts(((0, "sharded"),))),
        (held("[0:2]", "[8:10]"), held("[0:2]", "[0:2]"), {"num_processes": 2}, WrongParts(((0, "sharded"),), True)),
        (held("[0:2] in pinned_host"), held("[0:2]"), {}, None),
        (held("[0:4]", "[4:8]"), held("[0:2]", "[2:4]"), {"n": 2}, WrongLengths),
    ],
)
def test_parts_on_devices(found, expected, given, relation):
    assert is_as(first(found, expected, **given), relation)


def test_values_on_devices_are_compared_with_arguments_there():
    x = np.random.default_rng(0).normal(size=8).astype(np.float32)
    parts = "[0:4]", "[4:8]"
    found, expected = (held(*parts, blocks=[a[:4], a[4:]]) for a in (3 * x, x))
    given = {"n": 3, "x": OnDevices(x, OnMesh({"x": 2}))}
    assert {type(one) for one in relations_of(found, expected, given)} & {OffByFactor, FactorIs}


@pytest.mark.parametrize(
    ("found", "expected", "given", "kind"),
    [
        (2.0, 4.0, {"n": 1}, OffByQuantity),  # everything is so many times 1
        ([[3, 4], [1, 2]], [[1, 2], [3, 4]], {}, WrongGroups),  # the groups are right, in another order
        # that was a number
        (1980.08 * 1.7, 1.7, {}, TimesExpected),  # any large ratio is near one of few digits
        ([True, False], [False, True], {}, Reordered),
    ],
)
def test_what_may_be_chance_is_no_relation(found, expected, given, kind):
    assert not [one for one in relations_of(found, expected, given) if isinstance(one, kind)]


@pytest.mark.parametrize(
    ("found", "expected", "given"),
    [
        (10**400, 3, {}),
        (np.ones(3), np.ones(3) * 1j, {}),
        (np.ones(3), np.ones(4), {"n": float("inf")}),
        (np.ones(3), np.ones(4), {"n": float("nan")}),
        ({"a": None, "b": 1}, {"a": 3, "b": 1}, {}),
    ],
)
def test_any_value_may_be_compared(found, expected, given):
    list(relations_of(found, expected, given))


def test_the_most_telling_relation_comes_first_and_elements_tell_as_much_as_what_is_true_of_each():
    ranks = [one.rank for one in relations_of((16, 4, 1), (8, 8, 1), {"n": 2})]
    assert ranks == sorted(ranks, reverse=True)
    assert OnlyThere(("a",)).rank == OnlyThere(("a",), OnOneSide("large")).rank == Rank.SOME
    assert OnlyThere((), OnOneSide("large")).rank == Rank.SIDE
    assert OnlyThere(("a",), SameProduct()).rank == OnlyThere((), SameProduct()).rank == SameProduct.rank


def test_which_findings_reveal_the_expected_value():
    secret = OnlyThere(("[1]",)), OnlyThere(("[1]",), OnOneSide("large")), Reordered("any")
    telling = TimesExpected(2.0), OnlyThere(("[1]",), TooLargeBy(1.0, None)), OnlyThere((), TimesExpected(-1.0))
    assert not any(map(reveals, secret)) and all(map(reveals, telling))


def test_the_numbers_that_were_given():
    given = {"n": 3, "axis": "x", "mesh": OnMesh({"x": 4, "y": 2}), "sizes": {"B": 5}, "blocks": [0, 0]}
    assert dict(sizes_in(given)) == {
        N: 3,
        Quantity("devices along", "axis"): 4,
        DEVICES: 8,
        Quantity("devices along", "x"): 4,
        Quantity("devices along", "y"): 2,
        Quantity("product", "sizes"): 5,
        Quantity("argument", "sizes['B']"): 5,
        BLOCKS: 2,
    }
