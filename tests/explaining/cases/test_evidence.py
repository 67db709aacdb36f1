"""What the cases in which a plain value is wrong have in common, and never by chance."""

import numpy as np
import pytest

from grader.arrays.numbers import same_value
from grader.explaining.cases.evidence import evidence
from grader.explaining.cases.tried import Tried
from grader.findings.arrays import OffByFactor
from grader.findings.cases import ChangedReference, HasValue, InFirstCase, RightIn
from grader.findings.quantities import Quantity
from grader.findings.relations import OffByQuantity, OnlyThere, OnOneSide, OtherKeys, TimesExpected, TooLargeBy

NAN, N = float("nan"), Quantity("argument", "n")
CHANGE = ChangedReference(())


def tried(*cases):
    """Cases by what is found and expected in them, and by an argument `n`."""
    return [Tried(found, expected, {"n": n}, same_value(found, expected)) for found, expected, n in cases]


def other_texts(*pairs):
    """Cases that have no argument in common."""
    return tried(*((*pair, str(k) * 50) for k, pair in enumerate(pairs)))


def best(cases, **how):
    return next((found for found in evidence(cases, **how) if not isinstance(found, RightIn)), None)


@pytest.mark.parametrize(
    ("cases", "found"),
    [
        (tried((8, 4, 2), (12, 4, 3)), OffByQuantity(N, divided=False)),
        (tried((8, 4, 2), (10, 5, 2)), TimesExpected(2)),  # a number that never changes is no factor
        (tried((8, 4, 2), (9, 4, 3)), OnOneSide("large")),
        (tried((8, 4, 2), (2, 4, 3)), None),
        (tried((8, 4, 2), (4, 4, 3)), TimesExpected(2)),
        (other_texts(((15, 2), (10, 2)), ((18, 3), (12, 3))), OnlyThere(("[0]",), TimesExpected(1.5))),
        (other_texts(({}, {"a": "psum", "b": 0}), ({"b": 2}, {"a": 1, "b": 2})), OtherKeys("missing")),
        (other_texts(([NAN, 3.0, 5.0], [4, 3, 5])), OnlyThere(("[0]",))),  # neither too large nor too small
        (tried((4 * 0.7, 4, 1), (NAN, 5, 2)), None),
    ],
)
def test_what_is_true_of_all_wrong_cases_is_told(cases, found):
    assert best(cases) == found


def test_how_many_are_right_comes_second():
    half = tried((4, 4, "a"), (8, 4, "b"))
    assert evidence(half) == (TimesExpected(2), RightIn(1, 2, pattern=HasValue("n", "'b'")))
    assert evidence(half, processes=True)[1].processes
    assert evidence(tried((4, 4, "a"))) == ()


def first(finding, process=False):
    return InFirstCase(finding, process)


@pytest.mark.parametrize("other", [{"a": 1, "b": 0}, {"a": 9, "b": 2}])
def test_what_is_true_of_the_first_case_alone_is_said_of_it(other):
    expected = {"a": 1, "b": 2}
    cases = other_texts(({"a": 3, "b": 2}, expected), (other, expected))
    assert best(cases) == first(OnlyThere(("a",), TimesExpected(3)))


def test_more_is_told_of_the_first_of_several_arrays_though_all_are_too_large():
    expected = np.arange(1, 7).reshape(2, 3)
    cases = other_texts((2 * expected, expected), (expected + [[0, 1, 0], [0, -2, 0]], expected))
    assert [*map(type, (best(cases), best(cases).finding))] == [InFirstCase, OffByFactor]
    assert best(cases, processes=True).process


@pytest.mark.parametrize(
    "cases",
    [
        tried((4, 17, 4)),  # a small number is an argument by chance
        tried((4.0, 17.0, 4)),
        tried(((8, 1), (8, 4), 1), ((4, 1), (4, 9), 2)),  # so is one and the same in all
        tried(((4, 1), (9, 1), 4), ((8, 1), (3, 1), 9)),  # or in the first of several cases
        tried(([18, 18], [34, 34], 16), ([7, 7], [31, 31], 32)),  # or by which it is off
        tried((("psum", 6), ("psum", 96), {"data": 4}), (("psum", 9), ("psum", 32), {"data": 2})),
    ],
)
def test_a_small_argument_is_chance(cases):
    assert not {"OffByQuantity", "TooLargeBy"} & {*str(evidence(cases)).replace("(", " ").split()}


@pytest.mark.parametrize(
    ("cases", "found"),
    [
        (tried(((18, 5), (58, 5), 40), ((7, 5), (31, 5), 9)), first(OnlyThere(("[0]",), TooLargeBy(-1, N)))),
    ],
)
def test_what_is_no_small_number_or_true_in_all_cases_is_no_chance(cases, found):
    assert best(cases) == found


def grid(found, expected, numbers=(3, 4, 5), others=(1.5, 2.5, 7.0)):
    return [Tried(found(n, a), expected(n, a), {"n": n, "a": a}) for n in numbers for a in others]


@pytest.mark.parametrize(
    ("cases", "found"),
    [
        (tried((8, 4, 2), (8, 4, 2)), TimesExpected(2)),
        (tried((8, 4, 2), (9, 4, 3)), CHANGE),
        (grid(lambda n, a: a * (n + 1) ** 2, lambda n, a: a * n * 3), CHANGE),
    ],
)
def test_a_change_is_looked_for_if_the_cases_tell_little(cases, found):
    assert best(cases, changed=lambda: CHANGE) == found
