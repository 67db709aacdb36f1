"""What explains wrong rows of a table, without a word from which the right answer can be worked out."""

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.exercises import TableExercise
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.explaining.tables import rounded_alike
from grader.findings.mistakes import KnownMistake
from grader.findings.relations import OnlyThere, OnOneSide, OtherElements, OtherLength, Reordered
from grader.findings.tables import (
    AuthorSays,
    KindExpected,
    NumberByNumber,
    OffByInteger,
    OffByRoughly,
    OptionMeans,
    RightInRow,
    RowAsks,
    RowsOffAlike,
    SameAsRow,
)
from grader.judging.values import expected_value
from grader.lessons import EXERCISES

TABLES = [one for one in EXERCISES.values() if isinstance(one, TableExercise)]


def table(expected, **more):
    made = TableExercise("rows_of_a_test", points=4, reference=lambda row: expected[row], **more)
    made.rows(expected)
    return made


def heard(exercise, wrong):
    """What explains each wrong row, if the others are right."""
    cases = exercise.draw_cases(0)
    answers = {case.key: expected_value(exercise, case) for case in cases} | wrong
    verdict = explained(exercise, cases, collect(exercise.form, asks(exercise, cases), answers))
    return {one.check: one.findings[1:] for one in verdict.outcomes if not one.passed}


@pytest.mark.parametrize(
    ("expected", "found", "finding"),
    [
        (True, "yes", KindExpected("bool")),
        (120, "120", KindExpected("number")),
        ([1, 2], 1, KindExpected("list")),
        ([1, 2], "[1, 2]", KindExpected("unquoted list")),
        (120, 240, OffByInteger("large")),
        (16384, 8192, OffByInteger("small")),
        (6.5, 9.1, OffByRoughly("large", "less than twice")),
        (120, 121, OffByRoughly("large", "less than twice")),
        (40, 4000.5, OffByRoughly("large", "more than ten times")),
        (400, 100.5, OnOneSide("small")),
        (6, 12, OnOneSide("large")),  # small numbers are so many times another by chance
        ((16, 24), (4, 24), NumberByNumber(("small by an integer factor", "right"))),
        ((4, 8), (5, 2), NumberByNumber(("large", "small by an integer factor"))),
        ((4, 8), (8, 4), Reordered("reversed")),
        ([1, 2], [1, 3], OnlyThere(("[1]",), OnOneSide("large"))),
        ([2, 0, 1], [2, 1, 0], Reordered("two swapped")),
        ([4, 5, 6], [4, 5], OtherElements("last missing")),
        (("x", None), (None,), None),  # which may be the same as another spec
        (P(None, "x"), P("x"), None),
        ("C[I, K_Y]", "C[I_XY, K]", None),
        ([1, 2], [4, 9], OnlyThere((), OnOneSide("large"))),
        (3, float("nan"), None),
        (3, 10**40, OffByRoughly("large", "more than ten times")),
        ("psum", "pmean", None),
    ],
)
def test_one_wrong_row(expected, found, finding):
    assert heard(table({"a": expected}), {"a": found})["a"] == ((finding,) if finding else ())


def test_the_authors_words_and_question_are_told():
    def tens(value, row):
        return f"That is {value // 10} tens." if isinstance(value, int) else ""

    exercise = table({"a": 60, "b": [2, 4]}, questions={"": "How many?"})
    exercise.stands_for(tens)
    told = heard(exercise, {"a": 90, "b": [4, 2, 7]})
    assert told == {"a": (AuthorSays("That is 9 tens."), RowAsks("")), "b": (OtherLength("more"), RowAsks(""))}


COMPASS = {"up": "Up is north.", "down": "Down is south.", "left": "Left is west."}


@pytest.mark.parametrize(
    ("expected", "options", "wrong", "finding"),
    [
        ({"a": "up", "b": "down"}, COMPASS, "north", KindExpected("words", ("down", "left", "up"))),
        ({"a": "up", "b": "down"}, COMPASS, 3, KindExpected("words", ("down", "left", "up"))),
        ({"a": "up", "b": "down"}, COMPASS, min, KindExpected("words", ("down", "left", "up"))),
        ({"a": "up", "b": "down"}, COMPASS, "Left ", OptionMeans("left")),
        ({"a": "up", "b": "down", "c": "left"}, COMPASS, "down", RightInRow("b")),
        ({"a": "up", "b": "down", "c": "up"}, COMPASS, "down", OptionMeans("down")),  # some row has each of two words
        ({"a": "runs", "b": "stops", "c": "stops", "d": "runs"}, {}, "walks", KindExpected("words", ("runs", "stops"))),
        ({"a": "psum", "b": "x", "c": 3, "d": 4}, {}, "pmean", None),  # these would be the answers
        ({"a": 400, "b": 730}, {}, 730, RightInRow("b")),
        ({"a": 400, "b": 3}, {}, 3, OffByRoughly("small", "more than ten times")),  # a count is another's by chance
        ({"a": True, "b": False}, {}, False, None),
    ],
)
def test_a_wrong_row_beside_right_ones(expected, options, wrong, finding):
    assert heard(table(expected, options=options), {"a": wrong})["a"] == ((finding,) if finding else ())


@pytest.mark.parametrize(("wrong", "kind"), [("psum, pmean", "single option"), ("gathering", "option")])
def test_of_many_words_to_choose_from_one_has_to_be_chosen(wrong, kind):
    assert KindExpected(kind) in heard(EXERCISES["which_collective"], {"A": wrong})["A"]


@pytest.mark.parametrize(
    ("wrong", "finding"),
    [
        ({"a": 48, "b": 60}, RowsOffAlike("factor", 2)),
        ({"a": 32, "b": 38}, RowsOffAlike("another row", 2, "large")),
        ({"a": 16, "b": 22}, RowsOffAlike("another row", 2, "small")),
        ({"a": 25, "b": 31, "c": 9}, RowsOffAlike("difference", 3)),
        ({"a": 32, "b": 37}, None),
        ({"a": 29, "b": 35}, None),
        ({"a": float("inf"), "b": float("inf")}, None),
        ({"a": 48, "b": 60, "c": 16, "d": 4}, None),  # no row is right
    ],
)
def test_rows_that_are_off_alike(wrong, finding):
    told = heard(table({"a": 24, "b": 30, "c": 8, "d": 2}), wrong)
    alike = [(row, one) for row in told for one in told[row] if isinstance(one, RowsOffAlike)]
    assert alike == ([("a", finding)] if finding else [])


def with_halves(expected, **wrong):
    """What explains wrong rows of a table in which a mistake could be made in three."""
    exercise = table(expected)
    halves = {row: expected[row] / 2 for row in "abc"}

    @exercise.mistake
    def half_of_it(row):
        """Half of it was meant."""
        return halves.get(row)

    return heard(exercise, wrong)


KNOWN = KnownMistake("half_of_it", exactly=True)
TENS = {"a": 40, "b": 120, "c": 310, "d": 600}


@pytest.mark.parametrize(
    ("wrong", "first"),
    [
        ({"a": 20}, KNOWN),
        ({"a": 20, "b": 60}, KNOWN),  # made more often than not
        ({"a": 20, "d": 70}, KNOWN),  # nothing is true of both
        ({"a": 20, "d": 300}, RowsOffAlike("factor", 2)),  # other rows refute it
    ],
)
def test_a_mistake_that_other_rows_refute_comes_after_what_is_true_of_all(wrong, first):
    told = with_halves(TENS, **wrong)
    assert told["a"][0] == first and told.get("b", (SameAsRow("a"),)) == (SameAsRow("a"),)


@pytest.mark.parametrize(
    ("found", "made"),
    [(59.6, True), (60, True), (59, True), (60.1, False), (58, False), (4100, True), (4096.5, True), (4099, False)],
)
def test_a_number_of_a_mistake_may_be_rounded(found, made):
    assert rounded_alike(found, 59.6 if found < 100 else 4096.46) is made


@pytest.mark.parametrize(("times", "exactly"), [(7 / 6, True), (7 / 6 * 1.01, False)])
def test_a_number_may_be_nearly_that_of_a_mistake(times, exactly):
    exercise, row = EXERCISES["before_you_measure"], "bytes sent by one device"
    (case,) = (case for case in exercise.draw_cases(0) if case.key == row)
    (known, *_) = heard(exercise, {row: expected_value(exercise, case) * times})[row]
    assert isinstance(known, KnownMistake) and known.exactly is exactly
    spec = heard(EXERCISES["predict_out"], {"v.T": P("d", None)})["v.T"][0]
    assert isinstance(spec, KnownMistake) and spec.exactly


ODD = [None, True, -1, 0, 3, 2.5, 10**9, "word", [], [1], (0, 1), [[1]], [[[0]]], [["a"]], {"a": 1}, np.arange(3)]


@pytest.mark.parametrize("exercise", [one for one in TABLES if one.stand_for], ids=lambda exercise: exercise.name)
def test_what_an_answer_stands_for_is_said_of_any_and_never_the_right_one(exercise):
    for case in exercise.draw_cases():
        expected = expected_value(exercise, case)
        for value in (value for value in ODD if not np.array_equal(value, expected)):
            words = exercise.stand_for(value, **case.arguments)
            assert isinstance(words, str)
            assert not isinstance(expected, (int, float)) or expected <= 20 or str(expected) not in words


@pytest.mark.parametrize("exercise", [one for one in TABLES if one.questions], ids=lambda exercise: exercise.name)
def test_every_question_is_asked_in_some_row(exercise):
    asked = {exercise.question(case.key) for case in exercise.draw_cases()}
    assert set(exercise.questions.values()) <= asked
