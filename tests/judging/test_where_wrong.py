"""Of a list or an array of which some is right it is said what stands where it is wrong."""

import numpy as np
import pytest

from grader.judging.evidence import evidence
from grader.judging.relations import relations_of
from grader.judging.tried import Tried

SLOTS = [0, 0, 1, 1, 2, 2, 3, 0, 4, 3, 1, 4]


@pytest.mark.parametrize(
    "found, words",
    [
        (np.minimum(SLOTS, 3) + 0, ""),  # number 8 and number 11 alone
        (np.where(np.array(SLOTS) < 3, SLOTS, 3), "Wherever a number in it is wrong, it is `room`."),
        (np.where(np.array(SLOTS) < 3, SLOTS, -1), "Wherever a number in it is wrong, it is one and the same"),
        (np.array(SLOTS) % 3, "The numbers below `room` are right, and no others are."),
        (np.array([s for s in SLOTS if s < 3]), "What is there is right, but entries are missing."),
    ],
)
def test_what_stands_in_the_wrong_places_is_told(found, words):
    assert any(said.startswith(words) for said in relations_of(found, SLOTS, {"room": 3}))


def test_truth_values_in_an_array_are_held_against_a_list():
    said = list(relations_of(np.array([True, False, False]), [True, True, True], {}))
    assert "Wherever an entry of it is wrong, that is False, and True is due." in said


def test_of_the_one_wrong_entry_it_is_said_to_which_side_it_is_off():
    sizes = (3, 5, 9, 14)
    cases = [Tried((n * n, False), (n * n + n % 4 + 1, False), {"n": n}) for n in sizes]
    assert "it is too small, and never too large" in evidence(cases)
    truths = [Tried((n, False), (n, True), {"n": n}) for n in sizes]
    assert "Wherever it is wrong, it is False, where True is due." in evidence(truths)


def test_from_where_on_a_curve_is_wrong_is_said_where_it_is_an_entry_too():
    due = {"first": 7, "losses": [3.1070325, 2.83, 2.80, 2.85]}
    found = due | {"losses": [3.1070327, 2.86, 2.86, 2.91]}
    assert "It is right up to number 0, counted from 0" in evidence([Tried(found, due, {})])


def test_of_a_vector_one_right_number_at_its_beginning_is_told_as_no_more():
    said = evidence([Tried(np.array([3.0, 1, 2, 7]), np.array([3.0, 5, 6, 8]), {})])
    assert "Number 0, counted from 0, is right, and every other one is wrong." in said
    assert "What is done between" not in said


def test_a_number_with_fewer_digits_is_told_so():
    cases = [Tried(round(1 / n, 2), 1 / n, {"n": n}) for n in (7, 11, 13)]
    assert "no more than two digits behind the point" in evidence(cases)


def test_none_is_no_array():
    assert not any("an array" in said for said in relations_of({"a": None, "b": 1}, {"a": 3, "b": 1}, {}))
