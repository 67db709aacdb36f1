"""The first difference of a wrong value, and of a script no line that would be the solution."""

import numpy as np
import pytest
from answering import verdict

from grader.arrays.described import HELD, Observed
from grader.exercises.verdict import Verdict
from grader.findings.finding import finding_to_json
from grader.findings.values import (
    OnWrongDevices,
    WrongBlock,
    WrongCount,
    WrongFacts,
    WrongKey,
    WrongShard,
    WrongValue,
)
from grader.judging.differing import first_difference, short, shown_whole
from grader.lessons import EXERCISES

LONG = list(range(80))
V = np.arange(4, dtype=np.float32)


def held(array, *devices, parts=("[0:2]", "[2:4]")):
    """An array of four elements on two devices."""
    blocks = zip(devices, parts, np.split(array, 2), strict=True)
    return Observed({HELD: {f"device {k}": {part: block} for k, part, block in blocks}})


@pytest.mark.parametrize(
    ("found", "expected", "difference"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, WrongValue("b", "3", "2")),
        ({"a": [{"b": "x"}, *LONG]}, {"a": [{"b": "y"}, *LONG]}, WrongValue("a[0].b", "'y'", "'x'")),
        ({"a": 1}, {"a": 1, "b": 3}, WrongKey("", "b", missing=True)),
        ({"a": {"x": 1, "y": 1}}, {"a": {"x": 1}}, WrongKey("a", "y", missing=False)),
        ([*LONG, 1], LONG, WrongCount("", 80, 81)),
        ([7, *LONG[1:]], LONG, WrongValue("[0]", "0", "7")),
        (["run x", "run z"], ["run x", "run y"], WrongValue("[1]", None, "'run z'")),
        ("run z", ["run y"], WrongValue("", None, "'run z'")),
        (np.ones((20, 2)), np.eye(20, 2), WrongValue("[0, 1]", "0.0", "1.0")),
        ((np.ones((20, 2)), 1), (np.eye(20, 2), 1), WrongValue("[0][0, 1]", "0.0", "1.0")),
        (np.array([1e-9, 5.0]), np.array([0.0, 4.0]), WrongValue("[1]", "4.0", "5.0")),
        (np.ones(30), np.ones((40, 2)), WrongValue("", "float64[40,2]", "float64[30]")),
        (held(V, 0, 1), held(V, 4, 5), OnWrongDevices("", (4, 5), (0, 1))),
        ([3], [held(V, 4, 5)], OnWrongDevices("[0]", (4, 5), ())),
        (held(V, 0, 1, parts=("[0:4]",) * 2), held(V, 0, 1), WrongShard("", 0, "[0:2]", "[0:4]")),
        (held(V + (V == 3), 0, 1), held(V, 0, 1), WrongBlock("", 1, "[2:4]", (1,), "3", "4")),
        (held(V > 1, 0, 1), held(V == 1, 0, 1), WrongBlock("", 0, "[0:2]", (1,), "True", "False")),
        (held(np.float16(V), 0, 1), held(V, 0, 1), WrongBlock("", 0, "[0:2]", None, "float32[2]", "float16[2]")),
        (held(V, 0, 1), [held(V, 0, 1)], WrongValue("", "[<array on devices 0, 1>]", "<array on devices 0, 1>")),
        ([held(V, 0, 1)], [held(V, 0, 1)] * 2, WrongCount("", 2, 1)),
        ({"y": held(V, 0, 1), "n": 2}, {"y": held(V, 0, 1), "n": 3}, WrongValue("n", "3", "2")),
        (held(V, 0, 1)[HELD], held(V, 0, 1), OnWrongDevices("", (0, 1), ())),
        (LONG, LONG, None),
    ],
)
def test_the_first_difference(found, expected, difference):
    assert first_difference(found, expected) == difference


def test_what_is_small_and_no_text_is_shown_whole():
    assert shown_whole([1, 2], [3]) and not shown_whole(LONG, LONG)
    assert not shown_whole("no", ["echo one"]) and not shown_whole({}, {"a": 1})
    assert not shown_whole(np.ones((8, 16)), np.zeros((8, 16)))
    assert short([np.ones((8, 16), np.float32), "it's"]) == """[float32[8,16], "it's"]"""
    assert short(np.array([[1.5, 2], [10, 20]])) == "array([[ 1.5, 2. ], [10. , 20. ]])"


def findings(found: Verdict):
    return found.failure.findings if found.failure else ()


@pytest.mark.parametrize("name", ["launch_lines", "slurm_script"])
def test_no_finding_gives_a_solution_away(name):
    exercise = EXERCISES[name]
    expected = [line for case in exercise.draw_cases(7) for line in _texts(exercise.reference(**case.arguments))]
    assert expected
    for wrong in (lambda **_: [], lambda **_: {}, lambda **_: ["echo one"], *(m.wrong for m in exercise.mistakes)):
        own = [line for case in exercise.draw_cases(7) for line in _texts(wrong(**case.arguments))]
        told = str([finding_to_json(one) for one in findings(verdict(exercise, wrong))])
        assert [line for line in expected if line in told and line not in own] == []


def _texts(value):
    if isinstance(value, (dict, list, tuple)):
        return [text for part in (value.values() if isinstance(value, dict) else value) for text in _texts(part)]
    return [value] if isinstance(value, str) and " " in value else []


def test_elements_are_compared_as_the_exercise_compares():
    lines = [f"JAX_NUM_CPU_DEVICES={{devices}} python {{script}} {k} {{processes}} &" for k in range(4)]

    def written(*wanted):
        return lambda script, processes, devices: [
            line.format(script=script, processes=processes, devices=devices) for line in wanted[: processes + 1]
        ]

    launch = EXERCISES["launch_lines"]
    waits_early = verdict(launch, written(lines[0], lines[1], "wait", *lines[2:]))
    assert findings(waits_early)[0] == WrongValue("[2]", None, "'wait'")  # the lines before it are as expected
    assert findings(verdict(launch, written(*lines)))[0] == WrongCount("", 5, 4)


TASKS, NODES = "the number of tasks that run `train.py`", "the number of nodes"


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("srun ", "srun -n 1 ", ((TASKS, "1"),)),
        ("--nodes", "--n", ((NODES, "1"), ("the number of tasks", "4"))),
        ("train.py", "test.py", (("that `train.py` is run", None),)),
        ("gpus-per-node=", "gpus=", (("the number of GPUs on a node", None),)),
    ],
)
def test_of_a_script_it_is_told_which_facts_are_wrong(old, new, wrong):
    slurm = EXERCISES["slurm_script"]
    found = verdict(slurm, lambda **given: [line.replace(old, new) for line in slurm.reference(**given)])
    assert WrongFacts(wrong) in findings(found)


def test_a_program_may_be_started_by_a_shell_in_each_task():
    slurm = EXERCISES["slurm_script"]
    shell = "python train.py", "bash -c 'python train.py'"
    assert verdict(slurm, lambda **given: [line.replace(*shell) for line in slurm.reference(**given)]).passed


@pytest.mark.parametrize("text", [['python "train.py'], [3, None], 7])
def test_what_is_no_script_has_no_facts(text):
    found = findings(verdict(EXERCISES["slurm_script"], lambda **_: text))
    assert found and not any(isinstance(one, WrongFacts) for one in found)
