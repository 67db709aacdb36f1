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
    assert short(["  all-gather", "it's"]) == """['  all-gather', "it's"]"""
    assert short(np.array([[1.5, 2], [10, 20]])) == "array([[ 1.5, 2. ], [10. , 20. ]])"


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


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda line: line.replace("srun ", "srun -n 1 "), "the number of tasks that run `train.py` (yours: 1)"),
        (lambda line: line.replace("gpus-per-node=4", "gpus-per-node=1"), "the number of GPUs on a node (yours: 1)"),
        (
            lambda line: line.replace("--nodes", "--n"),
            "the number of nodes (yours: 1) and the number of tasks (yours: 4)",
        ),
        (
            lambda line: line.replace("job-name", "ntasks=3 -J").replace("srun", "srun -N 1"),
            "the number of tasks (yours: 3)",
        ),
        (lambda line: line.replace("train.py", "test.py"), "that `train.py` is run"),
        (lambda line: line.replace("#!", "# "), "the first line, for the shell"),
        (lambda line: line.replace("gpus-per-node=", "gpus="), "the number of GPUs on a node (yours does not say it)"),
        (
            lambda line: line.replace(
                "python train.py", "bash -c 'JAX_COORDINATOR_ADDRESS=$(hostname):1 python train.py'"
            ),
            "who is named coordinator",
        ),
    ],
)
def test_of_a_script_it_is_told_which_facts_are_wrong_and_that_the_others_are_right(change, wrong):
    slurm = EXERCISES["slurm_script"]
    told = verdict(slurm, lambda **given: [change(line) for line in slurm.reference(**given)]).told
    assert f"Of what is read in the text, this is not as it should be: {wrong}" in told


def test_a_program_may_be_started_by_a_shell_in_each_task():
    slurm = EXERCISES["slurm_script"]
    shell = "python train.py", "bash -c 'python train.py'"
    assert verdict(slurm, lambda **given: [line.replace(*shell) for line in slurm.reference(**given)]).passed


@pytest.mark.parametrize("text", [['python "train.py'], [3, None], 7])
def test_nothing_is_said_of_the_facts_of_what_is_no_script(text):
    assert "Of what is read" not in verdict(EXERCISES["slurm_script"], lambda **_: text).told


@pytest.mark.parametrize(
    ("wrong", "alone"), [({"restartPolicy": "Always"}, True), ({"restartPolicy": 1, "x": 2}, False)]
)
def test_of_a_tree_in_which_one_place_is_wrong_it_is_told_that_all_else_is_right(wrong, alone):
    jobset = EXERCISES["jobset_manifest"]

    def answer(**given):
        made = jobset.reference(**given)
        made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"] |= wrong
        return made

    told = verdict(jobset, answer).told
    assert ("only `spec`" in told) is not alone
    assert ("All else in it is right." in told) is alone
