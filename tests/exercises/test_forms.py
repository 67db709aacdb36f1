"""Forms: each is a class with its own fields, and takes no field of another."""

import dataclasses
import itertools

import numpy as np
import pytest

from grader.arrays.described import FROM_HOST
from grader.exercises import Case, Exercise, FunctionExercise, PodExercise, ProgramExercise, TableExercise
from grader.exercises.answers import Problem, Value
from grader.exercises.collecting import asks, collect
from grader.exercises.forms import FORMS

SHARED = {"name", "points", "reference", "mistakes", "drawn", "piece", "after", "taught_in"}
OWN = {
    "program": {"mesh_shapes", "by_compiler", "against_compiler"},
    "pod": {"mesh_shapes", "by_compiler"},
    "function": {"same", "barred", "must_not_wait", "way_counts", "formula", "facts"},
    "timetable": set(),
    "table": {"same", "options", "stand_for", "questions"},
    "processes": {"same", "parts"},
}
ANY_FIELD = sorted(set().union(*OWN.values()))
WRONG = [(form, field) for form, field in itertools.product(OWN, ANY_FIELD) if field not in OWN[form]]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_the_shared_fields_and_its_own(form):
    made = FORMS[form]("made", points=1, reference=abs, **dict.fromkeys(OWN[form]))
    assert made.form == form
    assert {field.name for field in dataclasses.fields(made) if field.init} == SHARED | OWN[form]


@pytest.mark.parametrize("form, field", WRONG)
def test_a_field_of_another_form_is_refused(form, field):
    with pytest.raises(TypeError, match=field):
        FORMS[form]("made", points=1, reference=abs, **{field: None})


def test_an_exercise_without_a_form_is_refused():
    with pytest.raises(TypeError, match="abstract"):
        Exercise("made", points=1, reference=abs)


@pytest.mark.parametrize("form", FORMS)
def test_an_exercise_worth_other_points_is_otherwise_the_same(form):
    made = FORMS[form]("made", points=1, reference=abs, **{field: (field,) for field in OWN[form]})
    made.cases(lambda draw: Case({"n": 1}))
    other = made.with_points(3)
    assert vars(other) == vars(made) | {"points": 3}
    assert type(other) is type(made) and made.with_points(1) is made


def test_only_a_function_that_bars_a_way_asks_for_it():
    barring = FunctionExercise("made", points=1, reference=abs, barred=FROM_HOST)
    assert barring.ask(Case({"n": 1})).barred == FROM_HOST
    assert TableExercise("made", points=1, reference=abs).ask(Case({"n": 1})).barred == ""


def test_processes_are_asked_for_a_function_without_arguments():
    made = FORMS["processes"]("made", points=1, reference=abs)
    assert made.ask(Case({"n": 1}, {"processes": 2, "devices": 1})).arguments == {}


def test_programs_are_tried_on_their_meshes_and_others_once():
    rng = np.random.default_rng(0)
    program = ProgramExercise("made", points=1, reference=abs, mesh_shapes=((8,), (4,), (2,)))
    assert [draw.shape for draw in program.rounds(rng, thorough=True)] == [(8,), (4,), (2,), (8,)]
    assert [draw.shape for draw in program.rounds(rng, thorough=False)] == [(8,), (4,), (8,)]
    assert len(FunctionExercise("made", points=1, reference=abs).rounds(rng, thorough=True)) == 1


def test_a_mistake_in_a_table_answers_the_other_rows_right():
    table = TableExercise("made", points=1, reference=lambda row: len(row))
    table.rows(["one", "three"])

    @table.mistake
    def too_long(row):
        """Longer than that."""
        return 9 if row == "one" else None

    assert table.mistaken(table.mistakes[0]) == {"one": 9, "three": 5}
    assert collect(table.form, asks(table, table.draw_cases()), {"one": 3}) == [Value(3), Problem("starter")]


def test_a_pods_program_is_a_program():
    assert isinstance(PodExercise("made", points=1, reference=abs), ProgramExercise)
