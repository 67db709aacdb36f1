"""Curves held against the one that is right: the facts, and lines that show them."""

import pytest

from grader import draw
from grader.draw.curves import ROUNDING

RUNS = {"right": [8.0, 4.0, 2.0], "twice": [16.0, 8.0, 4.0], "late": [8.0, 4.0, 3.0], "same": [8.0, 4.0 + 1e-6, 2.0]}


def lines(picture):
    return {line.get_gid(): line.get_ydata() for ax in picture.figure.axes for line in ax.lines if line.get_gid()}


def test_curves_are_told_line_by_line():
    assert repr(draw.curves(RUNS, "right", "three runs")).splitlines() == [
        "three runs",
        "  right: 8 → 2",
        "  twice: 16 → 4, off by 1 of it at first, 1 of it at most",
        "  late: 8 → 3, off by nothing but rounding at first, 0.5 of it at most",
        "  same: 8 → 2, off by nothing but rounding at first, nothing but rounding at most",
    ]


def test_every_run_has_a_curve_and_all_but_one_a_deviation():
    found = lines(draw.curves(RUNS, "right"))
    assert set(found) == {*RUNS, "deviation of twice", "deviation of late", "deviation of same", "bound"}
    assert found["twice"].tolist() == RUNS["twice"]
    assert found["deviation of late"].tolist() == [ROUNDING, ROUNDING, 0.5]  # a log scale has no zero
    assert found["bound"].tolist() == [100 * ROUNDING] * 3


def test_a_bound_is_drawn_relative_to_the_right_run_and_every_run_is_held_against_it():
    picture = draw.curves({"right": [8.0, 4.0], "near": [8.1, 4.1], "far": [8.0, 4.5]}, "right", within=[0.2, 0.4])
    assert lines(picture)["bound"].tolist() == [0.025, 0.1]
    assert repr(picture).splitlines() == [
        "  right: 8 → 4",
        "  near: 8.1 → 4.1, off by 0.012 of it at first, 0.025 of it at most, within the bound at every step",
        "  far: 8 → 4.5, off by nothing but rounding at first, 0.12 of it at most, beyond the bound from step 1 on",
    ]


def test_a_bound_of_another_number_of_steps_is_refused():
    with pytest.raises(ValueError, match="one number for each step"):
        draw.curves(RUNS, "right", within=[1.0])


def test_nine_runs_can_be_told_apart():
    picture = draw.curves({"right": [1.0, 1.0], **{str(k): [2.0, 1.0] for k in range(8)}}, "right")
    styles = [(line.get_color(), line.get_linestyle()) for line in picture.figure.axes[0].lines]
    assert len(set(styles)) == 9
    assert picture.svg().startswith("<svg")


@pytest.mark.parametrize(
    "runs, against",
    [(RUNS, "wrong"), ({"right": [1.0, 2.0], "short": [1.0]}, "right"), ({"right": [1.0], "zero": [0.0]}, "right")],
)
def test_what_cannot_be_drawn_is_refused(runs, against):
    with pytest.raises(ValueError):
        draw.curves(runs, against)
