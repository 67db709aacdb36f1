"""What is said of a wrong value: where it differs, and of a script no line that would be the solution."""

import numpy as np
import pytest
from answering import verdict

from grader.judging.differing import first_difference, short, shown_whole
from grader.lessons import EXERCISES

LONG = list(range(80))


@pytest.mark.parametrize(
    ("found", "due", "words"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, "entry b should be 3; it is 2."),
        ({"a": [{"b": "x"}, *LONG]}, {"a": [{"b": "y"}, *LONG]}, "entry a[0].b should be 'y'; it is 'x'."),
        ({"a": 1}, {"a": 1, "b": 3}, "'b' is missing."),
        ({"a": {"x": 1, "y": 1}}, {"a": {"x": 1}}, "in entry a 'y' is not due."),
        ([*LONG, 1], LONG, "there are 81 entries, and 80 are due."),
        ([{"a": 1}], [{"a": 1}, {}], "there is 1 entry, and 2 are due."),
        ([{"a": 1}, {}], [{"a": 1}], "there are 2 entries, and 1 is due."),
        ([7, *LONG[1:]], LONG, "entry [0] should be 0; it is 7."),
        (["run x", "run z"], ["run x", "run y"], "entry [1] is not what is due: yours is 'run z'."),
        ("run z", ["run y"], "it is not what is due: yours is 'run z'."),
        (np.ones((20, 2)), np.eye(20, 2), "entry [0, 1] should be 0.0; it is 1.0."),
        ((np.ones((20, 2)), 1), (np.eye(20, 2), 1), "entry [0][0, 1] should be 0.0; it is 1.0."),
        (np.ones(3), np.ones((40, 2)), "the shape should be (40, 2); it is (3,)."),
        (LONG, LONG, None),
    ],
)
def test_the_first_difference_is_said(found, due, words):
    difference = first_difference(found, due)
    assert (difference and difference.words) == words


def test_what_is_small_and_no_text_is_shown_whole():
    assert shown_whole([1, 2], [3]) and not shown_whole(LONG, LONG)
    assert not shown_whole("no", ["echo one"]) and not shown_whole({}, {"a": 1})
    assert not shown_whole(np.ones((8, 16)), np.zeros((8, 16)))
    assert short(np.ones((8, 16), np.float32)) == "float32[8,16]"


@pytest.mark.parametrize("name", ["launch_lines", "slurm_script"])
def test_no_message_gives_a_solution_away(name):
    exercise = EXERCISES[name]
    due = [line for case in exercise.draw_cases(7) for line in _texts(exercise.reference(**case.arguments))]
    assert due
    for wrong in (lambda **_: [], lambda **_: {}, lambda **_: ["echo one"], *(m.wrong for m in exercise.mistakes)):
        words = verdict(exercise, wrong).words.split(": ", 1)[-1]  # behind the arguments
        own = [line for case in exercise.draw_cases(7) for line in _texts(wrong(**case.arguments))]
        assert [line for line in due if line in words and line not in own] == []


def _texts(value):
    if isinstance(value, dict):
        return [text for part in value.values() for text in _texts(part)]
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) and " " in value else []


def test_entries_are_compared_as_the_exercise_compares():
    lines = [f"JAX_NUM_CPU_DEVICES={{devices}} python {{script}} {k} {{processes}} &" for k in range(4)]

    def written(*wanted):
        return lambda script, processes, devices: [
            line.format(script=script, processes=processes, devices=devices) for line in wanted[: processes + 1]
        ]

    launch = EXERCISES["launch_lines"]
    waits_early = verdict(launch, written(lines[0], lines[1], "wait", *lines[2:])).words
    assert "entry [2] is not what is due: yours is 'wait'." in waits_early  # the lines before it say what is due
    assert "there are 4 entries, and 5 are due." in verdict(launch, written(*lines)).words
