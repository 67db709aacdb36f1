"""What is said of functions that run in several processes, by how these ended."""

import pytest

from grader.exercises import Case, Exercise
from grader.exercises.answers import Script
from grader.judging.judge import judge
from grader.processes.launch import Launch, Process

exercise = Exercise("t_ends", points=1, form="processes", reference=lambda process_id, num_processes: process_id)
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
        (("KeyError", "'PORT'", "port = os.environ['PORT']"), "A dict was asked for this key"),
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
