"""A timetable is judged by what it costs, and its picture is on every card."""

import pytest

from grader import feedback
from grader.classroom.verdicts.records import VERDICT
from grader.exercises import Case, TimetableExercise
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.findings.mistakes import KnownMistake
from grader.findings.schedules import (
    FirstBeyond,
    IdleSteps,
    NoBackward,
    NoTimetable,
    OtherPipeline,
    TooLongTimetable,
    TooManyHeld,
)

LAZY = [["F0", "F1", "B0", "B1"]] * 2
GOOD = [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]
SPLIT = [["F0", "F1", "B0", "W0", "B1", "W1"], ["F0", "B0", "F1", "B1", "W0", "W1"]]
TIGHT = [["F0", "B0", "F1", "B1"]]
HUNGRY = [["F0", "F1", "B0", "B1"]]
STUCK = [["B0", "F0", "F1", "B1"], GOOD[1]]


def pipeline(*mistakes, **targets):
    made = TimetableExercise("pipeline", 8, reference=lambda microbatches: targets)
    made.cases(lambda draw: Case({"microbatches": 2}))
    for name, orders in mistakes:
        made.mistake(_named(name, orders))
    return made


def _named(name, orders):
    def mistake(microbatches):
        """It is a mistake."""
        return orders

    mistake.__name__ = name
    return mistake


def heard(answer, exercise=None):
    exercise = exercise or pipeline(("lazy", LAZY), good=GOOD, split=SPLIT)
    cases = exercise.draw_cases()
    return explained(exercise, cases, collect(exercise.form, asks(exercise, cases), lambda microbatches: answer))


@pytest.mark.parametrize(
    ("orders", "points", "check", "kind"),
    [
        ([["F0", "B0"], ["F0", "B0"]], 0, "comes to an end", OtherPipeline(2, 2, (0, 1), (0,))),
        ([["F0", "B0", "F1", "B1"]], 0, "comes to an end", OtherPipeline(2, 1, (0, 1), (0, 1))),
        ([["F0", "F1"], ["F0", "F1"]], 0, "comes to an end", NoBackward()),
        ([["F0", "F1", "B0"], GOOD[1]], 0, "comes to an end", NoTimetable("B1@0 is never done.")),
        (GOOD, 6, "as short as split", TooLongTimetable("split", 9, 1 - 12 / 14, 1 - 12 / 18)),
    ],
)
def test_each_target_that_is_reached_is_worth_a_share(orders, points, check, kind):
    found = heard(orders)
    assert (found.points, found.failure.check) == (points, check)
    first = found.failure.findings[0]
    assert first == kind or (type(first), first.target, first.steps) == (TooLongTimetable, "split", 9)
    assert heard(SPLIT).points == 8


def test_what_never_ends_or_is_no_list_of_orders_is_no_timetable():
    assert heard(STUCK).failure.findings[0].deadlock
    said = heard("F0").failure.findings[0]
    assert isinstance(said, NoTimetable) and not said.deadlock


def test_a_mistake_is_exact_if_it_has_the_same_orders_and_not_only_the_same_cost():
    exercise = pipeline(("forward_first", HUNGRY), all=TIGHT)
    for orders, exactly in ((HUNGRY, True), ([["F0", "F1", "B1", "B0"]], False)):
        assert heard(orders, exercise).failure.findings[1] == KnownMistake("forward_first", exactly)
    assert heard(LAZY).mistake == "lazy"


def test_the_pass_with_which_too_much_is_held_is_named():
    found = heard(HUNGRY, pipeline(good=TIGHT)).failure
    assert (found.check, found.findings) == ("memory", (TooManyHeld(0, 1, 2), FirstBeyond("F1@0", 1, 0)))


def test_idle_steps_and_the_longest_wait_are_told():
    assert heard(GOOD).failure.findings[1] == IdleSteps("split", (1, 1, 0), (1, 3, 2), (0, "B0@0", 2, "B0@1"))


@pytest.mark.parametrize("orders", [GOOD, SPLIT, STUCK])
def test_right_or_wrong_the_card_shows_the_timetable(orders):
    found = heard(orders)
    assert "<svg" in feedback.card(found) and "device 1 │" in feedback.plain_card(found)
    assert VERDICT.read(VERDICT.write(found)) == found


def test_a_timetable_of_thousands_of_steps_is_judged_and_not_drawn():
    assert heard([[f"{kind}{m}" for m in range(2) for kind in "FB"] + ["F2"] * 5000]).orders == ()
