"""What is said of collectives that exceed a limit."""

from dataclasses import replace

import pytest
from jax.sharding import PartitionSpec as P

from grader.exercises.limits import Besides, BytesSent, Facts, Turns, bullets
from grader.programs.execution import Ran
from grader.programs.structure import Collective, Manual, Structure

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


MESH = {"x": 4, "y": 2}


def facts(*collectives, axes=("x", "y"), unwritten=()):
    written = Structure(MESH, (Manual(axes, (P(),), (P(),)),), collectives, 0)
    return Facts(written, Ran((), 0, 0, ()), lambda: unwritten, MESH)


def test_two_collectives_that_are_alike_are_not_said_to_be_one_that_runs_twice():
    """They may add up two things, such as a loss and a count."""
    words = "Every all_reduce of these runs more than once, or has others like it."
    for twice in (facts(NUMBER, NUMBER), facts(replace(NUMBER, times=3))):
        assert words in Turns({"all_reduce": 1}).of_written(twice)


@pytest.mark.parametrize(
    ("allowed", "words"),
    [({}, "all_reduce × 2, where none is needed."), ({"all_reduce": 1}, "all_reduce × 2, where 1 is enough.")],
)
def test_of_a_wrong_result_it_is_not_said_what_is_due(allowed, words):
    assert words in Turns(allowed).of_wrong(facts(NUMBER, NUMBER))


@pytest.mark.parametrize(("axes", "inside"), [(("x", "y"), False), (("x",), True)])
def test_where_shard_map_leaves_an_axis_to_the_compiler_data_may_move_inside_of_it(axes, inside):
    words = Besides().of_written(facts(axes=axes, unwritten=(ROWS,)))
    assert ("inside it along the axes that it leaves to the compiler" in words) == inside


@pytest.mark.parametrize(("needed", "told"), [(144, False), (150, False), (288, True), (100, True)])
def test_that_a_wrong_program_sends_a_little_less_leads_nowhere(needed, told):
    ring = replace(ROWS, times=3)
    assert ring.bytes_sent == 144 and bool(BytesSent(needed).of_wrong(facts(ring))) == told


def test_where_a_wrong_program_sends_less_it_is_told_what():
    """It may lack a collective, or one of them may have taken what is too short."""
    said = BytesSent(288).of_wrong(facts(ROWS))
    assert "288 B:\n- all_reduce of f32[8] over x: 48 B sent per device" in said
    assert said.endswith("What should each of these bring?")  # it may be enough
    assert BytesSent(288).of_wrong(facts()).endswith("Does it get all that it needs?")


@pytest.mark.parametrize(("axes", "said"), [(("x", "y"), False), (("x",), True)])
def test_where_an_axis_is_left_to_the_compiler_it_is_told_how_bytes_are_counted(axes, said):
    """In the text a block is whole along such an axis; what a device sends may be less."""
    words = BytesSent(12).of_written(facts(ROWS, axes=axes))
    assert ("(Counted as the program is written: what `y` may cut besides is not taken off.)" in words) == said
