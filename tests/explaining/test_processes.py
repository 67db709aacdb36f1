"""What explains that functions in several processes go wrong, by how these ended and what they returned."""

import numpy as np
import pytest

from grader.arrays.described import PerProcess
from grader.exercises import Case, ProcessExercise
from grader.exercises.answers import Script
from grader.explaining.explained import explained
from grader.explaining.explainer import Explainer
from grader.explaining.processes import ProcessExplainer
from grader.findings import processes as kinds
from grader.findings.cases import HasValue, InFirstCase, RightIn
from grader.findings.problems import ErrorMeaning
from grader.findings.relations import OnlyThere, TimesExpected
from grader.findings.values import WrongValue
from grader.processes.launch import Launch, Process

ROWS = np.arange(12.0).reshape(6, 2)


def count(process_id, num_processes, **given):
    return num_processes


def exercise_of(*meshes, reference=count, arguments=None, parts=()):
    """An exercise whose functions run in so many processes, of so many devices each."""
    made = ProcessExercise("of_a_test", points=1, reference=reference, parts=parts)
    sizes = [dict(zip(("processes", "devices", "killed_at"), mesh, strict=False)) for mesh in meshes]
    made.cases(lambda draw: [Case(arguments or {}, {"devices": 1, **mesh}) for mesh in sizes])
    return made


def heard(exercise, launch):
    """The verdict, if each case's processes do this."""
    cases = exercise.draw_cases()
    return explained(exercise, cases, [Script("", "main")] * len(cases), started=lambda _, case: launch(case))


def returning(value):
    """Processes that return this, given the number of each and how many there are."""

    def launch(case):
        n = case.mesh["processes"]
        return Launch(tuple(Process(k, 0, 0.1, finished=True, returned=value(k, n)) for k in range(n)), 0.1)

    return launch


def findings(exercise, value):
    return heard(exercise, returning(value)).failure.findings


@pytest.mark.parametrize(
    ("raised", "meant"),
    [
        (("IndivisibleError", "[8] should evenly divide the shape", ""), (ErrorMeaning("not divisible"),)),
        (("KeyError", "'PORT'", "port = os.environ['PORT']"), (ErrorMeaning("no such name"),)),
        (("StopIteration", "", "next(files)"), ()),
    ],
)
def test_what_the_error_means_with_which_a_process_failed_first(raised, meant):
    failed = Launch((Process(0, None, 0.1), Process(1, 1, 0.1, raised=raised)), 0.1, first=1)
    outcome = heard(exercise_of((2,)), lambda case: failed).failure
    assert outcome.check == "ends" and outcome.findings == (kinds.DidNotEnd(failed.headline), *meant)
    assert f"Process 1 failed first: it raised {raised[0]}" in failed.headline


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (lambda k, n: "host-1", (kinds.ProcessesAgree(),)),
        (lambda k, n: f"host-{k + 5}", ()),
        (lambda k, n: "host-1" if k else "host-3", (RightIn(1, 3, True, HasValue("process_id", "0", only=True)),)),
    ],
)
def test_that_all_processes_have_the_same_wrong_value_is_told(value, told):
    exercise = exercise_of((3,), reference=lambda process_id, num_processes: "host-3")
    assert findings(exercise, value)[1:] == told


def test_what_all_wrong_processes_have_in_common_is_told():
    def mine(process_id, num_processes, *, ticket):
        return ticket[process_id] * num_processes

    exercise = exercise_of((3,), reference=mine, arguments={"ticket": PerProcess((30, 50, 70))})
    assert findings(exercise, lambda k, n: 6 * (30, 50, 70)[k])[1:] == (TimesExpected(2),)
    right_in = RightIn(2, 3, True, HasValue("process_id", "1"))
    assert findings(exercise, lambda k, n: (90, 5, 210)[k])[-1] == right_in


def test_what_is_true_of_one_process_is_not_said_of_all():
    exercise = exercise_of((2,), reference=lambda process_id, num_processes: ["a", 2 + process_id, 8 - process_id])
    only = OnlyThere(("[1]",), TimesExpected(0.5))
    assert findings(exercise, lambda k, n: [["a", 1, 8], ["a", 3, 9]][k])[1:] == (InFirstCase(only, process=True),)


def test_parts_of_a_tuple_are_named_as_the_author_names_them():
    exercise = exercise_of(
        (2,), reference=lambda process_id, num_processes: (8, process_id), parts=("devices", "number")
    )
    assert findings(exercise, lambda k, n: (2, k))[0] == kinds.WrongInProcess(0, None, (("devices", "8", "2"),))


@pytest.mark.parametrize(
    ("meshes", "value", "mistake"),
    [(((4,), (3,)), lambda k, n: 4 if n == 4 else 2, ""), (((2,), (3,)), lambda k, n: 2, "always_two")],
)
def test_no_mistake_is_known_that_is_wrong_where_the_function_is_right(meshes, value, mistake):
    exercise = exercise_of(*meshes)

    @exercise.mistake
    def always_two(process_id, num_processes):
        """Always two."""
        return 2

    assert heard(exercise, returning(value)).mistake == mistake


ENDED = Process(0, 0, 0.1, finished=True, returned=1)
FAILED = Process(0, 1, 0.1, raised=("KeyError", "'x'", ""))


@pytest.mark.parametrize(
    ("launch", "finding"),
    [
        (Launch((ENDED,), 0.1, survived=True), kinds.NotKilled(3)),
        (failed := Launch((FAILED,), 0.1, first=0), kinds.DidNotEnd(failed.headline, again=True)),
        (failed := Launch((FAILED,), 0.1, first=0, survived=True), kinds.DidNotEnd(failed.headline)),
        (Launch((ENDED,), 0.1), None),
    ],
)
def test_a_run_that_should_be_killed(launch, finding):
    failure = heard(exercise_of((1, 1, 3)), lambda case: launch).failure
    assert (failure and failure.findings[0]) == finding


def test_if_explaining_fails_the_verdict_stays(monkeypatch, caplog):
    def fails(*_):
        raise ValueError("a fault of ours")

    monkeypatch.setattr(ProcessExplainer, "evidence", fails)
    with pytest.raises(ValueError, match="a fault of ours"):
        findings(exercise_of((2,)), lambda k, n: 7)  # tests hear of it
    monkeypatch.setattr(Explainer, "forgiving", True)
    assert findings(exercise_of((2,)), lambda k, n: 7) == (kinds.WrongInProcess(0, WrongValue("", "2", "7")),)
    assert "No explanation (ValueError: a fault of ours)." in caplog.text
