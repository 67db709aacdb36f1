"""Tables: what passes for the same answer, what a row is worth, and which wrong rows are explained."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.exercises import TableExercise
from grader.exercises.collecting import asks, collect
from grader.exercises.verdict import explained_rows
from grader.explaining.explained import explained
from grader.explaining.tables import _wrong_answer
from grader.findings.problems import Refusal
from grader.findings.tables import NoAnswerYet, RowRefused, SameAsRow, WrongRow
from grader.judging.judge import judgment_of
from grader.judging.tables import _letters
from grader.judging.values import expected_value
from grader.lessons import EXERCISES

TABLES = [one for one in EXERCISES.values() if isinstance(one, TableExercise)]
EXPECTED = {
    "one": "runs",
    "two": "an error",
    "three": "runs",
    "four": "an error",
    "five": 120,
    "six": [1, 2],
    "seven": True,
}
OPTIONS = {"runs": "What runs comes to its end."}
table = TableExercise("table", points=7, reference=lambda row: EXPECTED[row], options=OPTIONS)
table.rows(EXPECTED)


@table.mistake
def stopped(row):
    """It stops, or half of it was meant."""
    return {"five": 60, "one": "stops", "three": "stops"}.get(row)


def judged(exercise, answers, explaining=False):
    cases = exercise.draw_cases()
    right = {case.key: expected_value(exercise, case) for case in cases}
    given = cases, collect("table", asks(exercise, cases), {**right, **answers})
    return explained(exercise, *given) if explaining else judgment_of(exercise, *given).verdict()


@pytest.mark.parametrize(
    ("exercise", "same"),
    [
        *((table, {"one": "Runs "}), (table, {"two": "AN ERROR"}), (table, {"five": 120.0})),
        *((table, {"six": np.array([1, 2])}), (table, {"six": range(1, 3)}), (table, {"six": (1, 2)})),
        (EXERCISES["follow_the_mesh"], {"who holds y[8, 0]": np.array([1, 3, 5, 7])}),
        (EXERCISES["init_scale"], {"spread of W2, drawn whole": 1 / jnp.sqrt(1024)}),
        (EXERCISES["four_answers"], {'P("x", None)': " Reduce-Scatter "}),
    ],
)
def test_the_same_in_another_form_is_right(exercise, same):
    assert judged(exercise, same).passed


@pytest.mark.parametrize(
    ("row", "wrong", "found"),
    [
        ("one", "walks", WrongRow("one", "'walks'")),
        ("one", True, WrongRow("one", "True")),
        ("seven", "yes", WrongRow("seven", "'yes'")),
        ("five", "120", WrongRow("five", "'120'")),
        ("six", [1, 3], WrongRow("six", "[1, 3]")),
        ("six", ..., NoAnswerYet("six")),
        ("one", min, RowRefused("one", Refusal("holds type", ("builtin_function_or_method",)))),
    ],
)
def test_each_row_is_worth_a_share_and_says_what_was_found(row, wrong, found):
    verdict = judged(table, {row: wrong})
    (missed,) = (outcome for outcome in verdict.outcomes if not outcome.passed)
    assert (verdict.points, missed.check, missed.findings) == (6, row, (found,))


@pytest.mark.parametrize(("spec", "shown"), [(P(), "P()"), (P(None, "x"), "P(None, 'x')"), ("x", "'x'")])
def test_a_wrong_spec_is_shown_as_it_was_written(spec, shown):
    specs = TableExercise("specs", points=1, reference=lambda row: P("x"))
    specs.rows(["one"])
    assert judged(specs, {"one": spec}).outcomes[0].findings == (WrongRow("one", shown),)


def test_a_spec_with_more_entries_than_the_array_has_dimensions_is_wrong():
    assert not judged(EXERCISES["specs_match"], {"psum(block.sum(), ('x', 'y'))": P(None)}).passed


def rows(**wrong):
    """The rows that a card explains, and those that are wrong for the same reason."""
    verdict = judged(table, wrong, explaining=True)
    alike = [one.check for one in verdict.outcomes if any(isinstance(why, SameAsRow) for why in one.findings)]
    return [one.check for one in explained_rows(verdict.outcomes)], alike


def test_up_to_three_wrong_rows_are_explained_each_for_another_reason():
    assert rows(one="stops", two="runs", five=240) == (["one", "two", "five"], [])
    assert rows(one="stops", two="runs", five=240, six=[2], seven=False)[0] == ["one", "two", "five"]
    assert rows(one="stops", three="stops", two="runs", four="runs", six=[1, 3]) == (["one", "two", "six"], ["three"])
    assert rows(six=[2], seven=...) == (["six"], [])  # what is open is not wrong


def test_rows_that_are_explained_are_blamed():
    blamed = judged(table, {"one": "stops", "five": 240}, explaining=True).blamed
    assert (blamed.case, blamed.others) == (0, (4,)) and judged(table, {}).blamed is None


@pytest.mark.slow  # some references are experiments in several processes
@pytest.mark.timeout(1200)
def test_no_two_answers_differ_by_capitals_blanks_or_hyphens_alone():
    for exercise in TABLES:
        for case in exercise.draw_cases():
            answers = (expected_value(exercise, case), *(_wrong_answer(one, case) for one in exercise.mistakes))
            words = {word for word in answers if isinstance(word, str)}
            assert len({_letters(word) for word in words}) == len(words), (exercise.name, case.key)
