"""What is said of collectives that exceed a limit."""

from grader.exercises.limits import bullets
from grader.programs.structure import Collective

SUM = {"kind": "all_reduce", "axes": ("x",), "group": 4, "dtype": "f32"}
ROWS, NUMBER = Collective(operand=(8,), bytes=32, **SUM), Collective(operand=(), bytes=4, **SUM)


def test_equal_collectives_of_a_written_loop_are_one_line_with_all_their_turns():
    assert bullets([ROWS, NUMBER, ROWS, NUMBER, ROWS]).splitlines() == [
        "- all_reduce of f32[8] over x × 3: 144 B sent per device",
        "- all_reduce of f32[] over x × 2: 12 B sent per device",
    ]


def test_how_often_nobody_knows_is_said_of_all_of_them():
    unsure = Collective(operand=(8,), bytes=32, times=None, **SUM)
    assert bullets([ROWS, unsure]).startswith("- all_reduce of f32[8] over x × ?:")
