"""Pipelines played through: who waits for whom."""

import pytest

from grader.timetables import Fault, WaitingDevice, Work, simulate

PAIR = [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]


def test_everything_begins_as_early_as_it_can():
    played = simulate(PAIR)
    assert played.starts == ((0, 1, 4, 7), (1, 2, 4, 5))
    assert (played.steps, played.held, played.wrong) == (9, (2, 1), None)
    assert repr(played) == "9 steps, bubble 33.3%; microbatches held at most, by device: 2 1"
    assert played.bubble == pytest.approx(1 - 12 / 18)
    assert simulate([["F0", "F1"], ["F0", "F1"]]).steps == 3


def test_what_is_split_takes_a_step_each_and_is_held_until_its_second_part():
    played = simulate([["F0", "B0", "F1", "W0", "B1", "W1"]])
    assert (played.steps, played.held) == (6, (2,))


def test_a_device_with_two_stages_holds_half_for_each():
    played = simulate([["F0@0", "F0@3", "B0@3", "B0@0"], ["F0@1", "F0@2", "B0@2", "B0@1"]])
    assert played.wrong is None and played.held == (1, 1)
    assert played.place(Work("F", 0, 3)) == 1


@pytest.mark.parametrize(
    ("orders", "fault"),
    [
        ([[]], Fault("empty")),
        ([["F0", "F0", "F0", "B0"]], Fault("repeated", Work("F", 0, 0), (3,))),
        ([["F0", "B0"], ["F0@0", "B0"]], Fault("repeated", Work("F", 0, 0), (2,))),
        ([["F0", "B0"], ["F1@0", "B1@0"]], Fault("stage on two devices", numbers=(0, 0, 1))),
        ([["F0", "F1", "B0"]], Fault("missing", Work("B", 1, 0))),
        ([["F0", "B0"], ["F0@2", "B0@2"]], Fault("missing", Work("F", 0, 1))),
        ([["F0", "F1", "B0", "W0", "B1"]], Fault("W missing", Work("W", 1, 0))),
    ],
)
def test_what_is_no_pass_through_all_stages(orders, fault):
    assert simulate(orders).wrong == fault and str(fault).endswith(".")


def test_who_waits_for_whom_when_no_device_can_go_on():
    played = simulate(PAIR[::-1])
    waits = WaitingDevice(0, Work("B", 0, 0), Work("B", 0, 1), 1), WaitingDevice(1, Work("F", 1, 1), Work("F", 1, 0), 0)
    assert played.wrong == Fault("deadlock", waits=waits)
    assert str(played.wrong).endswith("\n- device 1 can't begin F1@1: it needs device 0's F1@0")
    assert [played.waiting(device) for device in range(2)] == [Work("B", 0, 0), Work("F", 1, 1)]


@pytest.mark.parametrize("orders", [None, [], ["F0"], [["X0"]], [["F0"], [3]], [["F-1"]], [["F0"] * 10_001], {"a": 1}])
def test_what_is_no_list_of_orders_is_refused(orders):
    with pytest.raises(ValueError, match="."):
        simulate(orders)
