"""Whatever kind of answer comes to whatever form of exercise, a verdict is the end: a forged answer may be any."""

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader import feedback
from grader.exercises import Array, Case
from grader.exercises.answers import Problem, Script, Value
from grader.exercises.forms import FORMS
from grader.explaining.explained import explained
from grader.findings.problems import Refusal
from grader.judging.judge import JUDGMENTS
from grader.processes.launch import Launch, Process
from grader.programs.program import trace

TWICE = trace(lambda x: x + x, jax.ShapeDtypeStruct((3,), np.float32))
ANSWERS = {
    "program": TWICE,
    "value": Value(3.5),
    "value of no kind": Value({"a": [None, "text", np.arange(3)]}),
    "script": Script("def f(process_id, num_processes): pass", "f"),
    "missing": Problem("missing"),
    "starter": Problem("starter"),
    "error": Problem("error", "TypeError", "unhashable type", ("float32[4]",)),
    "ValueError": Problem("error", "ValueError", "no"),
    "error without a word": Problem("error"),
    "refused": Problem("refused", refusal=Refusal("no source", ("f",))),
    "refused without a word": Problem("refused"),
    "no kind at all": Problem("\N{REPLACEMENT CHARACTER}"),
}
# Words of Python's and the house's own that no student should read.
INTERNAL = ("AttributeError", "object has no attribute", "Traceback", "NoneType", "Execution", "grader.", "with : ")


def refuse(**_):
    raise ValueError("these shapes do not fit")


def exercise(form, reference, arguments, mesh):
    made = FORMS[form](f"t_{form}", points=4, reference=reference)
    made.drawn = lambda draw: Case(arguments, mesh, P(), key=f"key {draw.rng.integers(1 << 40)}")

    @made.mistake
    def wrong(*args, **kwargs):
        """A mistake that is told by none of these answers."""
        raise KeyError("of its own")

    if form == "table":
        made.mistakes.clear()
    return made


X = Array(np.arange(1, 4, dtype=np.float32), P())
EXERCISES = {
    "program": exercise("program", lambda x: 2 * x + 1, {"x": X}, {"x": 8}),
    "pod": exercise("pod", lambda x: 2 * x + 1, {"x": X}, {"x": 8}),
    "function": exercise("function", lambda n: n + 1, {"n": 2}, {}),
    "function that refuses": exercise("function", refuse, {"n": 2}, {}),
    "timetable": exercise("timetable", lambda n: {"it": [["F0", "B0"]]}, {"n": 2}, {}),
    "table": exercise("table", lambda n: "yes", {"n": 2}, {}),
    "processes": exercise("processes", lambda process_id, num_processes: 1, {}, {"processes": 2, "devices": 1}),
}
RIGHT = {("function that refuses", "ValueError")}


def started(script, case):
    """A launch in which nothing was returned."""
    return Launch(tuple(Process(k, 0, 1.0, finished=True) for k in range(2)), 1.0)


def verdict(form, answers):
    made = EXERCISES[form]
    cases = [*made.draw_cases(1), *made.draw_cases(2)][:2]
    return explained(made, cases, answers, started=started)


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("form", EXERCISES)
def test_every_answer_to_every_exercise_has_a_verdict(form, kind):
    judged = verdict(form, [ANSWERS[kind]] * 2)
    assert judged.worth == 4
    assert (judged.points == 4) == judged.passed == ((form, kind) in RIGHT)
    assert bool(feedback.explanation(judged)) != judged.passed
    assert not [word for word in INTERNAL if word in feedback.plain_card(judged)]


@pytest.mark.parametrize("second", ANSWERS)
@pytest.mark.parametrize("first", ANSWERS)
@pytest.mark.parametrize("form", EXERCISES)
def test_answers_of_different_kinds_to_one_exercise_have_a_verdict(form, first, second):
    judged = verdict(form, [ANSWERS[first], ANSWERS[second]])
    assert judged.worth == 4
    assert (judged.points == 4) == judged.passed == ({(form, first), (form, second)} <= RIGHT)
    assert bool(feedback.explanation(judged)) != judged.passed
    assert not [word for word in INTERNAL if word in feedback.plain_card(judged)]


def test_every_form_has_its_checks_and_its_place_in_this_table():
    assert set(JUDGMENTS) == set(FORMS.values())
    assert set(FORMS) == {made.form for made in EXERCISES.values()}


@pytest.mark.parametrize("form", EXERCISES)
def test_an_answer_for_every_case_is_due(form):
    with pytest.raises(ValueError, match="2 cases, but 0 answers"):
        verdict(form, [])
