"""What is said of a wrong entry by the right ones beside it, and of what is wrong inside of nested values."""

import numpy as np
import pytest

from grader.judging.relations import relations_of
from grader.judging.siblings import wrong_places

A, B = np.array([[2.0, 4.0], [5.0, 8.0]], np.float32), np.array([[2.0, 2.0], [0.5, 4.0]], np.float32)
SHARES = np.array([[0.25, 0.75], [0.5, 0.5]], np.float32)


def first(found, due, **given):
    return next(relations_of(found, due, given), "")


@pytest.mark.parametrize(
    ("found", "due", "words"),
    [
        ((A / B[:, :1], B[:, 1:], B), (A, B[:, 1:], B), "Of the entries only `[0]` is wrong."),
        ((A / B, B * 3, B), (A, B * 3, B), "Of the entries only `[0]` is wrong. It is what is due, divided by `[2]`."),
        ((B, B), (A, B), "Of the entries only `[0]` is wrong. It is the same as `[1]`, which is right."),
        (
            {"ids": [3, 1, 2, 5], "labels": [1, 2, 5, 3]},
            {"ids": [3, 1, 2, 5], "labels": [1, 2, 5, 9]},
            "Of the entries only `labels` is wrong. It is `ids`, moved back by 1: the first one stands at its end.",
        ),
        ((SHARES * 3, [1, 2]), (SHARES, [1, 2]), "Of the entries only `[0]` is wrong."),
        ((SHARES**2, [1, 2]), (SHARES, [1, 2]), "Its rows should add up to 1, and none of them does."),
    ],
)
def test_right_entries_explain_a_wrong_one(found, due, words):
    assert words in first(found, due)


def test_a_bound_that_was_given_is_named():
    said = first(np.array([0, 1, 3, 3]), np.array([0, 1, 4, 5]), capacity=3)
    assert said == "It is what is due, but never larger than `capacity`."


def test_all_wrong_places_of_nested_values_are_named_and_a_single_one_is_told_elsewhere():
    due = {"spec": {"jobs": [{"hosts": 6, "name": "a"}], "account": "reader"}}
    one, two = {"spec": {"jobs": [{"hosts": 1, "name": "a"}], "account": "reader"}}, {"spec": {"jobs": [{"hosts": 1}]}}
    assert wrong_places(one, due) == ""
    assert wrong_places(two, due).endswith("`spec.jobs[0].hosts`, `spec.jobs[0].name`, `spec.account`.")
