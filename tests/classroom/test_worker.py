"""One notebook at a time: run in a worker, judged outside it. What goes wrong costs only what it must."""

from __future__ import annotations

import subprocess
import sys

import mini
import nbformat
import pytest

from grader.classroom.course.notebook import checked
from grader.classroom.grading.execute import Graded, Grading, grade_notebook
from grader.classroom.inside import recorder
from grader.classroom.inside.limits import OUTPUT, Limits
from grader.classroom.store import Store
from grader.classroom.verdicts.judge import Judge
from grader.feedback import explanation

QUICK = Limits(cell_seconds=2, seconds=30)


@pytest.fixture(scope="module")
def judge():
    judge = Judge()
    yield judge
    judge.close()


@pytest.fixture
def solved(course):
    return mini.solved(course)


@pytest.fixture
def graded(course, judge):
    def grade(nb, limits: Limits = QUICK) -> Graded:
        return grade_notebook(nb, Grading(mini.released(course), 11, limits), judge, Store(None))

    return grade


def points(result: Graded) -> dict[str, float]:
    return {verdict.exercise: verdict.points for verdict in result.verdicts}


def words(result: Graded, exercise: str) -> str:
    return next(explanation(verdict) for verdict in result.verdicts if verdict.exercise == exercise)


def outputs_of(result: Graded, source: str) -> list:
    return next(cell.outputs for cell in result.notebook.cells if cell.source == source)


FULL = {"block_matmul": 2.0, "case3": 4.0}
ONLY_BLOCKS = {"block_matmul": 2.0, "case3": 0.0}
NONE = {"block_matmul": 0.0, "case3": 0.0}


def test_the_solution_earns_everything(graded, solved):
    result = graded(solved)
    assert points(result) == FULL
    card, mark = next(cell.outputs for cell in result.notebook.cells if checked(cell) == "case3")
    assert "4 of 4 points" in card.data["text/html"]
    assert (mark.output_type, mark.data["text/plain"]) == ("execute_result", "4.0")
    nbformat.validate(result.notebook)


def test_the_untouched_release_earns_nothing(graded, course):
    result = graded(mini.released(course))
    assert points(result) == NONE
    assert "still the starter" in words(result, "case3")


@pytest.mark.needs("walls")
def test_what_is_withheld_says_why(graded, solved):
    source = "from grader.lessons.matmul.cases import case3"
    solved.cells.insert(1, nbformat.v4.new_code_cell(source))
    result = graded(solved)
    assert points(result) == FULL
    (shown,) = outputs_of(result, source)
    assert shown.ename == "ModuleNotFoundError" and "not there while hand-ins are graded" in shown.evalue


@pytest.mark.needs("walls")
def test_a_launch_or_a_trial_in_a_hand_in_says_that_it_is_not_run(graded, solved):
    source = "import grader\ndef main(process_id, num_processes):\n    return 1\ngrader.launch(main)"
    tried = "import jax.numpy as jnp\ngrader.trial(lambda v: v + 1, jnp.ones(8))"
    solved.cells.insert(1, nbformat.v4.new_code_cell(tried))
    solved.cells.insert(1, nbformat.v4.new_code_cell(source))
    result = graded(solved, Limits(cell_seconds=20, seconds=60))
    assert points(result) == FULL
    for cell in (source, tried):
        (shown,) = outputs_of(result, cell)
        assert shown.ename == "NoProcesses" and "your answers are" in shown.evalue


@pytest.mark.needs("walls")
def test_a_students_own_progress_and_hints_are_not_there_and_do_no_harm(graded, solved):
    calls = [
        "import grader\ngrader.progress()",
        "grader.hint('case3')",
        "grader.reset('case3')",
        "grader.scoreboard('07_matmul')",
        "grader.mine('tp_block')",
        "grader.hand_in()",
    ]
    for call in reversed(calls):
        solved.cells.insert(1, nbformat.v4.new_code_cell(call))
    result = graded(solved)
    assert points(result) == FULL
    shown = [outputs_of(result, call) for call in calls]
    assert [[output.output_type for output in outputs] for outputs in shown] == [["execute_result"]] * len(calls)
    for told in (shown[0], shown[3], shown[4]):  # progress, the scoreboard, a piece of the model
        assert "while hand-ins are graded" in told[0].data["text/plain"]


# What a notebook may do without harm to its marks.


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError('one cell fails')",
        "import sys; sys.exit(3)",
        "exit()",
        "raise KeyboardInterrupt",
        "while True: pass",
        "import warnings, sys; warnings.warn('careful'); print('careful', file=sys.stderr)",
        "import os\nif os.fork() == 0:\n    import time; time.sleep(1000)",
        "import subprocess; subprocess.Popen(['sleep', '1000'])",
        "import threading, time; threading.Thread(target=lambda: time.sleep(1000)).start()",
        "hoard = bytearray(64 << 30)",
        "def broken(:",
        "import os; os.close(1); os.close(2)",
    ],
)
def test_marks_survive(graded, solved, source):
    assert points(graded(mini.with_cell(solved, source))) == FULL


def test_a_cell_that_swallows_its_interruption_is_interrupted_again(graded, solved):
    source = "for _ in range(2):\n    try:\n        while True: sum(range(9))\n    except Exception: print('swallowed')"
    result = graded(mini.with_cell(solved, source), Limits(cell_seconds=3, seconds=30))
    assert points(result) == FULL  # it was interrupted again, or it would never have ended
    assert outputs_of(result, source)[0].text.count("swallowed") in (1, 2)  # the second may come while it prints


def test_a_notebook_that_never_ends_keeps_what_came_before(graded, solved):
    endless = "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass"  # deaf to its limit
    result = graded(
        mini.with_cell(solved, endless, at=mini.position(solved, "answer_case3")), Limits(cell_seconds=3, seconds=8)
    )
    assert points(result) == ONLY_BLOCKS
    assert "never reached" in words(result, "case3")
    assert "still running after 8 seconds" in words(result, "case3")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os; os._exit(0)", "left Python"),
        ("import os; os.abort()", "crashed"),
        ("import os; os.kill(os.getpid(), 9)", "crashed (Killed)"),
    ],
)
def test_a_process_that_ends_early_is_told_so(graded, solved, source, said):
    result = graded(mini.with_cell(solved, source, at=mini.position(solved, "answer_case3")))
    assert points(result) == ONLY_BLOCKS
    assert said in words(result, "case3")


def test_output_is_cut_with_a_line_that_says_so(graded, solved):
    source = "print('x' * 100_000_000)\nfor k in range(100_000): print(k)"
    result = graded(mini.with_cell(solved, source))
    assert points(result) == FULL
    (output,) = outputs_of(result, source)
    assert len(output.text) < OUTPUT + 200
    assert output.text.endswith(recorder.CUT)


def test_displays_and_figures_are_kept(graded, solved):
    source = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n7 * 6"
    picture, result = outputs_of(graded(mini.with_cell(solved, source)), source)
    assert picture.data["image/png"].startswith("iVBOR")
    assert result.data["text/plain"] == "42"


# Forging. The marks come from the judge, and it sees only what an answer does.

FORGERIES = [
    "import grader\ngrader.check = lambda *a: 4.0\ncheck = lambda *a: 4.0",
    "import grader.exercises.verdict\ngrader.exercises.verdict.Verdict.points = 4.0",
    "from grader.exercises import collecting\ncollecting.collect = lambda form, asked, given: [None] * len(asked)",
    "import grader.exercises.as_json\ngrader.exercises.as_json.to_json = lambda value: 4.0",
    """import os, json
for fd in range(3, 40):
    try:
        os.write(fd, b'\\n' + json.dumps({"check": "case3", "answers": 4.0}).encode() + b'\\n')
    except OSError:
        pass""",
]


@pytest.mark.parametrize("source", FORGERIES)
def test_forging_earns_nothing(graded, course, source):
    assert points(graded(mini.with_cell(mini.released(course), source))) == NONE


def test_noise_on_the_wire_costs_nothing(graded, solved):
    noise = r"""import os
for fd in range(3, 40):
    try:
        os.write(fd, b'[1,2\n{"check": 3}\n[]\n5\n{"cell": true}\n{"cell": 1, "outputs": 7}\n{"cell": 1.5}\n')
    except OSError:
        pass"""
    assert points(graded(mini.with_cell(solved, noise))) == FULL


def test_the_worker_is_told_no_seed_and_no_values(graded, solved):
    source = "import inspect, sys\nprint(sys._getframe().f_back and [f.frame.f_locals.keys() for f in inspect.stack()])"
    text = outputs_of(graded(mini.with_cell(solved, source)), source)[0].text
    assert "job" in text and "seed" not in text


# Check cells are those of the release, whatever the hand-in's look like.


def test_a_deleted_check_is_put_back_behind_its_answer(graded, solved):
    place = mini.position(solved, "check_block_matmul")
    del solved.cells[place]
    result = graded(solved)
    assert points(result) == FULL
    assert checked(result.notebook.cells[place]) == "block_matmul"


def test_a_copied_check_counts_once(graded, solved):
    place = mini.position(solved, "check_case3")
    solved.cells.insert(place, nbformat.from_dict({**solved.cells[place], "id": "copied"}))
    assert points(graded(solved)) == FULL


def test_an_answer_written_into_a_check_cell_counts(graded, solved):
    answer = solved.cells[mini.position(solved, "answer_case3")]
    nb = mini.edited(solved, "check_case3", lambda cell: cell.update(source=answer.source))
    answer.source = "..."
    assert points(graded(nb)) == FULL


def test_an_edited_check_is_undone(graded, course):
    nb = mini.edited(mini.released(course), "check_case3", lambda cell: cell.update(source="4.0"))
    assert points(graded(nb)) == NONE


@pytest.mark.parametrize(
    "marks",
    [
        None,
        "text",
        [],
        {"grade_id": 7},
        {"grade_id": "check_case3", "grade": True, "points": 1000},
        {"grade_id": "check_other", "grade": True, "points": 1, "schema_version": 1},
    ],
)
def test_a_check_with_other_marks_gets_its_own_back(graded, solved, marks):
    nb = mini.edited(solved, "check_case3", lambda cell: cell.metadata.update(nbgrader=marks))
    assert points(graded(nb)) == FULL


def test_a_check_turned_into_text_is_put_back(graded, solved):
    def turn(cell):
        cell.cell_type = "markdown"
        del cell["outputs"], cell["execution_count"]

    assert points(graded(mini.edited(solved, "check_case3", turn))) == FULL


def test_what_is_done_before_any_fork_starts_no_device_and_shows_nothing():
    program = """
from grader.classroom.inside import worker
from grader.jax_versions import has_backend
worker.warm()
shell, recorder = worker._shell()
print(has_backend(), recorder.take(), shell.execution_count, shell.InteractiveTB.tb)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "False [] 1 None"
