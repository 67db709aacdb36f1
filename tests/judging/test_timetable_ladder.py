"""A timetable is judged by what it costs, and its picture stands on every card."""

import pytest

from grader.classroom.verdicts.records import from_record, present, to_record
from grader.exercises import Case, TimetableExercise
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge

LAZY = [["F0", "F1", "B0", "B1"]] * 2
GOOD = [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]
SPLIT = [["F0", "F1", "B0", "W0", "B1", "W1"], ["F0", "B0", "F1", "B1", "W0", "W1"]]

pair = TimetableExercise("pair", 8, reference=lambda microbatches: {"good": GOOD, "split": SPLIT})
pair.cases(lambda draw: Case({"microbatches": 2}))


@pair.mistake
def lazy(microbatches):
    """The last stage waits for nothing."""
    return LAZY


def heard(answer):
    cases = pair.draw_cases()
    return judge(pair, cases, collect(pair.form, asks(pair, cases), answer))


@pytest.mark.parametrize(
    "orders, points, check",
    [
        ([["F0", "B0"], ["F0", "B0"]], 0, "comes to an end"),
        ([["F0", "F1"], ["F0", "F1"]], 0, "comes to an end"),
        ([["B0", "F0", "F1", "B1"], GOOD[1]], 0, "comes to an end"),
        ("F0", 0, "comes to an end"),
        (GOOD, 6, "as short as split"),
        (SPLIT, 8, None),
    ],
)
def test_each_target_that_is_reached_is_worth_a_share(orders, points, check):
    found = heard(lambda microbatches: orders)
    assert (found.points, found.failure and found.failure.check) == (points, check)


def test_a_microbatch_that_is_left_out_is_named():
    three = TimetableExercise("three", 1, reference=lambda count: {"all": [["F0", "F1", "F2", "B0", "B1", "B2"]]})
    three.cases(lambda draw: Case({"count": 3}))
    cases = three.draw_cases()
    found = judge(three, cases, collect(three.form, asks(three, cases), lambda count: [["F0", "F2", "B0", "B2"]]))
    assert "these are orders for 1 devices and microbatches 0 to 2, without number 1." in found.words


def test_a_mistake_is_known_by_its_orders():
    found = heard(lambda microbatches: LAZY)
    assert found.mistake == "lazy" and "waits for nothing" in found.words


@pytest.mark.parametrize("orders", [GOOD, SPLIT, [["B0", "F0", "F1", "B1"], GOOD[1]]])
def test_right_or_wrong_the_card_shows_the_timetable(orders):
    judged = present(heard(lambda microbatches: orders))
    assert "<svg" in judged.html and "device 1 │" in judged.text
    assert from_record(to_record(judged)) == judged


def test_a_timetable_of_thousands_of_steps_is_judged_and_not_drawn():
    long = [[f"{kind}{m}" for m in range(2) for kind in "FB"] + ["F2"] * 5000]
    assert heard(lambda microbatches: long).orders == ()


def test_where_the_idle_steps_are_is_told():
    found = heard(lambda microbatches: GOOD)
    assert "Of the idle steps of all devices" in found.words and "(split: " in found.words


def test_with_which_piece_too_much_is_held_is_told():
    hungry = TimetableExercise("hungry", 3, reference=lambda microbatches: {"good": [["F0", "B0", "F1", "B1"]]})
    hungry.cases(lambda draw: Case({"microbatches": 2}))
    cases = hungry.draw_cases()
    answer = [["F0", "F1", "B0", "B1"]]
    found = judge(hungry, cases, collect(hungry.form, asks(hungry, cases), lambda microbatches: answer))
    assert "beyond that with F1@0: by then it has done 1 forward pass, and given nothing back." in found.words
