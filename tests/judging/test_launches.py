"""What is said of functions that run in several processes, by how these ended."""

import pytest

from grader.exercises import Case, ProcessExercise
from grader.exercises.answers import Script
from grader.judging.judge import judge
from grader.judging.ladder import Ladder
from grader.judging.processes import ProcessLadder
from grader.processes.launch import Launch, Process

exercise = ProcessExercise("t_ends", points=1, reference=lambda process_id, num_processes: process_id)
exercise.cases(lambda draw: [Case({}, {"processes": 2, "devices": 1})])


@pytest.mark.parametrize(
    ("raised", "meant"),
    [
        (
            (
                "IndivisibleError",
                "axis 0 is partitioned 8 times, tiling factors: [8] should evenly divide the shape",
                "",
            ),
            "A dimension cannot be cut into that many equal parts.",
        ),
        (("KeyError", "'PORT'", "port = os.environ['PORT']"), "Something that has keys, most often a dict, was asked"),
        (("StopIteration", "", "next(files)"), ""),
    ],
)
def test_what_an_error_means_is_said_of_the_process_that_failed_first(raised, meant):
    failed = Process(1, 1, 0.1, raised=raised)
    started = Launch((Process(0, None, 0.1), failed), 0.1, first=1)
    words = judge(exercise, exercise.draw_cases(), [Script("", "main")], started=lambda *_: started).words
    first, _, rest = words.partition("\n\n")
    assert first.startswith(f"Process 1 failed first: it raised {raised[0]}")
    assert rest.startswith(meant) and bool(rest) is bool(meant)


def of_counts(*counts, devices=(1, 1, 1)):
    """An exercise whose functions run in as many processes, and are to return how many these are."""
    counted = ProcessExercise("t_counts", points=1, reference=lambda process_id, num_processes: num_processes)
    counted.cases(
        lambda draw: [Case({}, {"processes": n, "devices": m}) for n, m in zip(counts, devices, strict=False)]
    )

    @counted.mistake
    def always_two(process_id, num_processes):
        """Always two."""
        return 2

    return counted


def told(counted, wrong):
    """What is said of a function that returns this in every process."""

    def started(script, case):
        count = case.mesh["processes"]
        processes = (Process(k, 0, 0.1, returned=wrong(k, count)) for k in range(count))
        return Launch(tuple(processes), 0.1)

    cases = counted.draw_cases()
    return judge(counted, cases, [Script("", "main")] * len(cases), started=started)


def test_it_is_said_with_how_many_processes_a_function_is_right():
    right = "With 4 processes this is right, with 2 it is not."
    first = iter([2, 2, 7, 7])
    words = told(of_counts(2, 2, devices=(2, 1)), lambda k, count: next(first)).words
    assert "With 2 devices in each process this is right, with 1 it is not." in words
    assert right in told(of_counts(4, 2), lambda k, count: 4).words
    assert "is right" not in told(of_counts(4, 2), lambda k, count: count + 1).words
    assert "is right" not in told(of_counts(2, 2), lambda k, count: k + 2).words
    assert "is right" not in told(of_counts(3, 4, 2), lambda k, count: max(count, 3)).words


def test_a_mistake_is_none_that_is_wrong_where_the_function_is_right():
    assert told(of_counts(4, 3), lambda k, count: 4 if count == 4 else 2).mistake == ""
    assert told(of_counts(2, 3), lambda k, count: 2).mistake == "always_two"


def test_a_hint_that_fails_takes_nothing_from_the_verdict(monkeypatch, caplog):
    def fails(*_):
        raise ValueError("a fault of ours")

    monkeypatch.setattr(ProcessLadder, "signature", fails)
    with pytest.raises(ValueError, match="a fault of ours"):
        told(of_counts(2), lambda k, count: 7)  # tests hear of it
    monkeypatch.setattr(Ladder, "forgiving", True)
    assert told(of_counts(2), lambda k, count: 7).words == "Process 0 should return 2; it returns 7."
    assert "No hint could be worked out (ValueError: a fault of ours)." in caplog.text
