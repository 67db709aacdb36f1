"""Tables: what passes for the same entry, and what is said of one that is not."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.exercises import TableExercise
from grader.exercises.answers import Value
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge
from grader.judging.ladder import KNOWN, KNOWN_NEARLY
from grader.judging.tables import _wrong_entry
from grader.judging.values import expected_value
from grader.judging.wrong_entries import _in_units, _letters, rounded_alike
from grader.lessons import EXERCISES

TABLES = [one for one in EXERCISES.values() if isinstance(one, TableExercise)]
DUE = {"one": "runs", "two": "an error", "three": "runs", "four": "an error", "five": 120, "six": [1, 2], "seven": True}
SAID = {"runs": "What runs comes to its end. Does this?"}
ASKED = {"iv": "What is 5 factorial?", "x": "Which two?"}
table = TableExercise("table", points=7, reference=lambda row: DUE[row], options=SAID, questions=ASKED)
table.rows(DUE)


@table.mistake
def halved(row):
    """Half of it was meant."""
    return {"five": 59.6, "one": "stops", "three": "stops"}.get(row)


def verdict(**wrong):
    cases = table.draw_cases()
    return judge(table, cases, collect("table", asks(table, cases), {**DUE, **wrong}))


def outcomes(**wrong):
    return {outcome.check: outcome for outcome in verdict(**wrong).outcomes}


@pytest.mark.parametrize(
    "same",
    [
        {"one": "Runs "},
        {"two": "AN ERROR"},
        {"six": np.array([1, 2])},
        {"six": range(1, 3)},
        {"six": (1, 2)},
        {"five": 120.0},
    ],
)
def test_the_same_in_another_form_is_right(same):
    assert all(outcome.passed for outcome in outcomes(**same).values())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"one": "walks"}, "one: not 'walks'. The answer is one of these words: 'an error', 'runs'."),
        (
            {"one": min},
            "The answer holds a builtin_function_or_method, which is neither a number, text nor array. The answer is "
            "one of these words: 'an error', 'runs'.",
        ),
        (
            {"one": "an error"},
            "one: not 'an error'. The same answer is right in “two”. In what does this row differ from that one?",
        ),
        ({"four": "runs"}, "four: not 'runs'. What runs comes to its end. Does this?"),
        (
            {"five": 240},
            "five: not 240. It is too large, by a whole factor. What is 5 factorial?",
        ),
        ({"six": [1, 3]}, "six: not [1, 3]. Of the entries only `[1]` is wrong. Which two?"),
        ({"six": [4, 9]}, "six: not [4, 9]. None of the entries is among those that are due. Which two?"),
        ({"one": True}, "one: not True. The answer is one of these words: 'an error', 'runs'."),
        (
            {"one": 120},
            "one: not 120. The same answer is right in “five”. In what does this row differ from that one?",
        ),
        ({"five": "120"}, "five: not '120'. The answer is a number."),
        (
            {"five": 121},
            "five: not 121. It is too large, but only a little. Is a small part in it that is not due, or is it made "
            "of another number?",
        ),
        ({"five": 60}, f"five: not 60. {KNOWN} Half of it was meant."),
        ({"six": 1}, "six: not 1. The answer is a list, or a tuple."),
        ({"seven": "yes"}, "seven: not 'yes'. Write True or False."),
    ],
)
def test_what_is_said_of_a_wrong_entry(wrong, words):
    (row,) = wrong
    assert outcomes(**wrong)[row].words == words


def shaped(answer, due):
    exercise = TableExercise("shape_in_a_test", points=1, reference=lambda row: due)
    exercise.rows(["block"])
    return judge(exercise, exercise.draw_cases(), [Value(answer)]).words


def test_of_the_lengths_of_a_shape_it_is_told_which_are_wrong_and_how():
    one_by_one = "Counted from the left, and from 0: number 0 is too small by a whole factor, number 1 is right."
    assert shaped((4, 24), (16, 24)).endswith(one_by_one)
    assert "number 0 is too large, number 1 is too small by" in shaped((5, 2), (4, 8))


def test_what_a_wrong_spec_says_is_told_in_words():
    exercise = TableExercise("spec_in_a_test", points=1, reference=lambda row: P(("x", "y")))
    exercise.rows(["rows"])
    cases = exercise.draw_cases()
    words = judge(exercise, cases, collect("table", asks(exercise, cases), {"rows": P(None, "x")})).words
    assert words.endswith(
        "As you wrote it, dimension 1 is cut over x, and nothing else is cut: devices along another axis, if any, hold "
        "copies."
    )
    words = judge(exercise, cases, collect("table", asks(exercise, cases), {"rows": P()})).words
    assert words.endswith("every device holds a copy of the whole.")


def test_words_that_stand_for_something_are_listed_though_each_is_right_once():
    rows = {"a": "up", "b": "down"}
    meant = {"up": "Up is north.", "down": "Down is south.", "left": "Left is west."}
    compass = TableExercise("compass", points=2, reference=lambda row: rows[row], options=meant)
    compass.rows(rows)
    cases = compass.draw_cases()
    found = judge(compass, cases, collect("table", asks(compass, cases), {"a": "north", "b": "down"}))
    assert found.words == "a: not 'north'. The answer is one of these words: 'down', 'left', 'up'."


def test_words_that_belong_to_one_row_each_are_not_listed_as_those_of_all():
    rows = {"a": "psum", "b": "x", "c": 3, "d": 4}
    mixed = TableExercise("mixed", points=4, reference=lambda row: rows[row])
    mixed.rows(rows)
    cases = mixed.draw_cases()
    found = judge(mixed, cases, collect("table", asks(mixed, cases), rows | {"a": "pmean"}))
    assert found.words == "a: not 'pmean'."


def test_of_a_number_that_is_off_by_little_no_factor_is_said():
    assert "factor" not in _in_units(16385, 16384) + _in_units(16383, 16384)
    assert "by a whole factor" in _in_units(32768, 16384) and "by a whole factor" in _in_units(8192, 16384)


def test_an_array_in_the_lessons_notation_is_said_in_words():
    out = TableExercise("out", points=1, reference=lambda row: "C[I, K_Y]", questions={"": "Who cuts K?"})
    out.rows(["one"])
    cases = out.draw_cases()
    (outcome,) = judge(out, cases, collect("table", asks(out, cases), {"one": "C[I_XY, K]"})).outcomes
    assert outcome.words == "one: not 'C[I_XY, K]'. As you wrote it, I is cut over X and Y, and K is whole. Who cuts K?"


def test_what_is_asked_follows_words_that_leave_open_where_to_look():
    rows = {"one": [2, 0, 1]}
    order = TableExercise("order", points=1, reference=lambda row: rows[row], questions={"": "Who is first?"})
    order.rows(rows)
    cases = order.draw_cases()
    (outcome,) = judge(order, cases, collect("table", asks(order, cases), {"one": [2, 1, 0]})).outcomes
    assert (
        outcome.words
        == "one: not [2, 1, 0]. The entries are right, but two of them stand in each other's place. Who is first?"
    )


@pytest.mark.parametrize("answer", [(None,), ["y", None], ()])
def test_of_a_spec_that_is_due_as_a_tuple_no_entry_is_called_right_in_another_place(answer):
    words = shaped(answer, ("x", None))
    assert "As you wrote it, " in words and "What is there is right" not in words


def test_what_is_no_spec_is_not_read_as_one():
    assert "As you wrote it" not in shaped([None], []) and "As you wrote it" not in shaped(["a"], ["b"])


def test_a_list_that_is_counted_from_1_is_told_so():
    assert shaped([1, 2, 3], [0, 1, 2]).endswith("From where do you count?")


def test_of_a_factor_in_a_row_of_which_nothing_is_asked_is_asked_what_fits_any():
    assert shaped(480, 120).endswith("by a whole factor. What was counted too often, or not divided by?")


def test_a_mistake_in_several_rows_is_explained_once():
    found = outcomes(one="stops", three="stops")
    assert found["one"].words == f"one: not 'stops'. {KNOWN} Half of it was meant."
    assert found["three"].words == "three: not 'stops'. The same as in “one”."
    assert found["three"].mistake == found["one"].mistake == "halved"


def test_up_to_three_wrong_rows_are_explained_and_the_others_named():
    told = verdict(one="stops", two="runs", five=240).told.split("\n\n")
    assert [words.partition(":")[0] for words in told] == ["one", "two", "five"]
    told = verdict(one="stops", two="runs", five=240, six=[2], seven=False).told.split("\n\n")
    assert [words.partition(":")[0] for words in told[1:4]] == ["one", "two", "five"]
    assert told[0] == "5 of 7 rows are wrong." and told[4:] == ["Wrong, too: “six” and “seven”."]
    assert verdict(six=[2], seven=...).told == verdict(six=[2]).words  # what is open is not wrong


def test_of_many_wrong_rows_each_that_is_explained_is_wrong_for_another_reason():
    told = verdict(one="stops", three="stops", two="runs", four="runs", six=[1, 3]).told.split("\n\n")
    assert [words.partition(":")[0] for words in told[1:4]] == ["one", "two", "six"]
    assert told[4:] == ["The same as in “one”: “three”. The same as in “two”: “four”."]


def numbers(due, **wrong):
    """What is said of each wrong row of a table in which a mistake would be made in three."""
    exercise = TableExercise("numbers_in_a_test", points=1, reference=lambda row: due[row])
    exercise.rows(due)
    halves = {"a": due["a"] / 2, "b": due["b"] / 2, "c": due["c"] / 2}

    @exercise.mistake
    def half_of_it(row):
        """Half of it was meant."""
        return halves.get(row)

    cases = exercise.draw_cases()
    found = judge(exercise, cases, collect("table", asks(exercise, cases), {**due, **wrong}))
    return {outcome.check: outcome.words for outcome in found.outcomes if not outcome.passed}


def test_a_mistake_that_other_rows_refute_comes_after_what_is_so_of_all_wrong_rows():
    due = {"a": 40, "b": 120, "c": 310, "d": 600}
    found = numbers(due, a=20, d=300)
    assert found["a"].startswith("a: not 20. Both wrong rows are off by the same factor.")
    assert found["d"].startswith("d: not 300. It is too small, by a whole factor.")
    assert "Half of it was meant." in numbers(due, a=20, b=60)["a"]  # made more often than not
    assert "Half of it was meant." in numbers(due, a=20, d=70)["a"]  # nothing is so of both


def test_of_rows_that_are_off_by_the_same_this_is_said_in_the_first_without_the_number():
    found = numbers({"a": 2, "b": 5, "c": 8, "d": 11}, b=6, c=9, d=12)
    assert found["b"].startswith("b: not 6. All 3 wrong rows are off by the same, and in the same direction. What do")
    assert found["c"] == "c: not 9. It is too large."
    assert "All" not in numbers({"a": 2, "b": 5, "c": 8, "d": 11}, b=6, c=10)["b"]
    assert "rows" not in numbers({"a": 2, "b": 5, "c": 8, "d": 11}, b=float("inf"), c=float("inf"))["b"]


def test_rows_that_stand_the_other_way_round_or_one_too_far_are_told():
    due = {"a": 12, "b": 25, "c": 38, "d": 51}
    assert "the rows stand in the opposite order" in numbers(due, a=51, b=38, c=25, d=12)["a"]
    assert "is due one row later" in numbers(due, a=25, b=38, c=51, d=64)["a"]
    assert "one row later" not in numbers(due, a=25, b=38, c=52, d=64)["a"]


@pytest.mark.parametrize(
    ("answer", "made"),
    [(60, True), (59, True), (59.6, True), (60.1, False), (58, False)],
)
def test_a_mistake_is_known_but_for_rounding_and_by_nothing_else(answer, made):
    assert (outcomes(five=answer)["five"].mistake == "halved") == made


@pytest.mark.parametrize(("answer", "made"), [(4100, True), (4096.5, True), (4099, False), (4.1e3, True)])
def test_a_large_number_may_be_rounded_to_three_digits(answer, made):
    assert rounded_alike(answer, 4096.46) == made


@pytest.mark.parametrize(("spec", "shown"), [(P(), "P()"), (P(None, "x"), "P(None, 'x')"), ("x", "'x'")])
def test_a_wrong_layout_is_shown_as_it_was_written(spec, shown):
    layouts = TableExercise("layouts", points=1, reference=lambda row: P("x"))
    layouts.rows(["one"])
    cases = layouts.draw_cases()
    found = judge(layouts, cases, collect("table", asks(layouts, cases), {"one": spec}))
    assert found.words.startswith(f"one: not {shown}.")


@pytest.mark.slow  # some references are experiments in several processes
@pytest.mark.timeout(1200)
def test_no_two_entries_differ_by_capitals_blanks_or_hyphens_alone():
    for exercise in TABLES:
        for case in exercise.draw_cases():
            due = expected_value(exercise, case)
            wrong = [_wrong_entry(mistake, case) for mistake in exercise.mistakes]
            words = {word for word in (due, *wrong) if isinstance(word, str)}
            assert len({_letters(word) for word in words}) == len(words), (exercise.name, case.key)


@pytest.mark.parametrize("exercise", [one for one in TABLES if one.questions], ids=lambda one: one.name)
def test_every_question_is_asked_in_some_row(exercise):
    asked = {exercise.question(case.key) for case in exercise.draw_cases()}
    assert set(exercise.questions.values()) <= asked


counted = TableExercise("counted_of_a_test", points=2, reference=lambda row: {"six": 60, "two": [2, 4]}[row])
counted.rows(["six", "two"])


@counted.stands_for
def _in_tens(value, row):
    return f"That is {value // 10} tens." if isinstance(value, int) else f"There are {len(value)}."


def told(**wrong):
    cases = counted.draw_cases()
    answers = collect("table", asks(counted, cases), {"six": 60, "two": [2, 4]} | wrong)
    return judge(counted, cases, answers).words


def test_a_wrong_answer_is_told_what_it_would_stand_for():
    assert told(six=90) == "six: not 90. That is 9 tens."
    assert told(two=[3, 7, 8]).endswith("There are 3.")


def test_that_what_is_there_is_right_goes_first():
    assert "What is there is right" in told(two=[2]) and "There are 1" not in told(two=[2])


@pytest.mark.parametrize("exercise", [one for one in TABLES if one.stand_for], ids=lambda one: one.name)
def test_what_an_answer_stands_for_is_said_of_any_and_never_the_one_that_is_due(exercise):
    odd = [None, True, -1, 0, 3, 2.5, 10**9, "word", [], [1], (0, 1), [[1]], [[[0]]], [["a"]], {"a": 1}, np.arange(3)]
    for case in exercise.draw_cases():
        due = expected_value(exercise, case)
        for value in (value for value in odd if not np.array_equal(value, due)):
            words = exercise.stand_for(value, **case.arguments)
            assert isinstance(words, str)
            assert not isinstance(due, (int, float)) or due <= 20 or str(due) not in words


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("psum, pmean", "These are several of the words to choose from. Which one alone?"),
        ("gathering", "It is none of the words to choose from. Which of them do you mean?"),
    ],
)
def test_what_is_no_word_to_choose_from_is_told_so(wrong, words):
    exercise = EXERCISES["which_collective"]
    cases = exercise.draw_cases()
    answers = {case.key: expected_value(exercise, case) for case in cases} | {"A": wrong}
    assert judge(exercise, cases, collect("table", asks(exercise, cases), answers)).words.endswith(words)


def lesson_outcomes(name, **wrong):
    """What is said of these entries of a lesson's table, the others being right."""
    exercise = EXERCISES[name]
    cases = exercise.draw_cases()
    right = {case.key: expected_value(exercise, case) for case in cases}
    answers = collect("table", asks(exercise, cases), {**right, **wrong})
    return {outcome.check: outcome for outcome in judge(exercise, cases, answers).outcomes}


@pytest.mark.parametrize(
    ("name", "row", "right"),
    [
        ("follow_the_mesh", "who holds y[8, 0]", np.array([1, 3, 5, 7])),
        ("init_scale", "spread of W2, drawn whole", 1 / jnp.sqrt(1024)),
        ("four_answers", 'P("x", None)', " Reduce-Scatter "),
    ],
)
def test_arrays_numbers_of_jax_and_other_spellings_pass_where_an_exercise_compares_itself(name, row, right):
    assert lesson_outcomes(name, **{row: right})[row].passed


def test_all_words_of_the_text_are_listed_also_those_that_are_due_nowhere():
    assert (
        "'all_gather', 'all_reduce', 'none', 'reduce_scatter'"
        in lesson_outcomes("four_answers", **{"P()": "sum"})["P()"].words
    )


def test_of_a_spec_with_too_many_entries_it_is_said():
    words = lesson_outcomes("choose_spec", **{"two whole rows each": P(("x", "y"), None, None)})
    assert "It has more entries than the array has dimensions" in words["two whole rows each"].words
    row = "psum(block.sum(), ('x', 'y'))"
    assert not lesson_outcomes("specs_match", **{row: P(None)})[row].passed


def test_where_each_word_is_due_once_one_that_stands_twice_is_told():
    words = [*EXERCISES["which_run"].options]
    due = dict(zip("ABCDEFG", words, strict=True))
    exercise = replace(EXERCISES["which_run"], mistakes=[], reference=lambda run: due[run])
    cases = exercise.draw_cases()
    given = {**due, "B": words[0]}
    said = judge(exercise, cases, collect("table", asks(exercise, cases), given))
    assert "You gave the same answer in “A”, and each is due once." in said.outcomes[1].words


def test_a_layout_or_a_word_is_what_a_mistake_says_and_a_number_may_be_nearly_so():
    exercise = EXERCISES["predict_out"]
    cases = exercise.draw_cases(0)
    answer = {case.key: expected_value(exercise, case) for case in cases} | {"v.T": P("d", None)}
    assert KNOWN in judge(exercise, cases, collect("table", asks(exercise, cases), answer)).words
    exercise = EXERCISES["before_you_measure"]
    cases = exercise.draw_cases(0)
    row = "bytes sent by one device"
    answer = {case.key: expected_value(exercise, case) for case in cases}
    for times, said in ((7 / 6, KNOWN), (7 / 6 * 1.01, KNOWN_NEARLY)):
        found = judge(exercise, cases, collect("table", asks(exercise, cases), answer | {row: answer[row] * times}))
        assert said in found.words


def test_rows_that_are_off_by_what_stands_in_another_are_told_so():
    counts = TableExercise("counts", points=4, reference=lambda row: {"a": 24, "b": 30, "c": 8, "d": 2}[row])
    counts.rows("abcd")
    cases = counts.draw_cases()
    for answer, said in (
        ({"a": 32, "b": 38, "c": 8, "d": 2}, "Both wrong rows are too large by the same, and by what you have in"),
        ({"a": 16, "b": 22, "c": 8, "d": 2}, "Both wrong rows are too small by the same, and by what you have in"),
        ({"a": 29, "b": 35, "c": 8, "d": 2}, ""),
        ({"a": 32, "b": 37, "c": 8, "d": 2}, ""),
    ):
        words = judge(counts, cases, collect("table", asks(counts, cases), answer)).words
        assert (said in words) if said else "by the same, and" not in words
