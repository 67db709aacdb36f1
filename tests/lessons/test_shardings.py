"""What lesson 02 needs beyond its exercises: specs and slices on the wire, its pictures, and its count of layouts."""

import json
from pathlib import Path

import nbformat
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader import draw
from grader.arrays.blocks import blocks
from grader.arrays.described import built
from grader.exercises.answers import Ask, Problem, Value
from grader.exercises.as_json import from_json, question_from_json, to_json
from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.plain import plain
from grader.explaining.explained import explained
from grader.findings.values import WrongValue
from grader.lessons import find
from grader.lessons.shardings.functions import MESH, every_spec
from grader.lessons.shardings.questions import CARDS, SHAPE

SPEC = P(None, ("x", "y"), "z")
FUNCTIONS = "distribute", "shard_shape", "shard_table", "bytes_held", "count_shardings", "assemble"
TABLES = "attributes", "draw_it", "memory", "choose_spec", "legal_or_not", "tutorial_faults"
LESSON = Path(__file__).parents[2] / "solutions" / "02_shardings" / "02_shardings.ipynb"


def test_specs_cross_the_wire_and_stay_specs():
    (asked,) = question_from_json(to_json([Ask({}, {"spec": SPEC, "many": [P(), P("x")]})]))
    assert asked.arguments["spec"] == SPEC and type(asked.arguments["spec"]) is P
    assert built(asked.arguments) == {"spec": SPEC, "many": [P(), P("x")]}


@pytest.mark.parametrize(
    "part, text",
    [
        (slice(0, 4), "0:4"),
        (slice(None), ":"),
        (slice(2, None), "2:"),
        (slice(np.int64(4), np.int32(8), 1), "4:8"),
        (slice(0, 8, 2), "0:8:2"),
    ],
)
def test_a_slice_is_plain_text(part, text):
    assert plain({3: (part,)}) == {"3": (text,)}


def test_an_entry_that_is_no_axis_is_refused():
    (answer,) = collect("table", [Ask({}, {}, "a")], {"a": P(P.UNCONSTRAINED)})
    assert isinstance(answer, Problem) and answer.refusal.names == ("UnconstrainedSingleton",)


@pytest.mark.parametrize("name", [*FUNCTIONS, *TABLES])
def test_a_right_answer_stays_right_on_its_way(name):
    """As in grading: what is asked, and what is answered, crosses from one process to another as text."""
    exercise = find(name)
    cases = exercise.draw_cases(5, thorough=True)
    right = {c.key: exercise.reference(**c.arguments) for c in cases} if name in TABLES else exercise.reference
    asked = question_from_json(json.loads(json.dumps(to_json(asks(exercise, cases)))))
    answers = from_json(json.loads(json.dumps(to_json(collect(exercise.form, asked, right)))))
    assert explained(exercise, cases, answers).passed


def test_of_a_wrong_table_the_first_wrong_device_is_named():
    exercise = find("shard_table")
    case = next(c for c in exercise.draw_cases(0) if c.arguments["spec"] == P("x"))

    def answer(shape, spec, mesh):
        right = exercise.reference(shape, spec, mesh)
        return {**right, 3: (slice(0, 1), slice(None))}

    missed, *_ = explained(exercise, [case], collect("function", asks(exercise, [case]), answer)).failure.findings
    rows = case.arguments["shape"][0] // 4
    assert missed == WrongValue("3", f"('{rows}:{2 * rows}', ':')", "('0:1', ':')")


@pytest.mark.parametrize("card", CARDS)
def test_a_card_takes_every_spec_that_does_what_it_says(card):
    exercise = find("choose_spec")
    case = Case({"card": card}, key=card)
    for spec in every_spec(2, ("x", "y")):
        (outcome,) = explained(exercise, [case], [Value(plain(spec))]).outcomes
        assert outcome.passed == CARDS[card](blocks(SHAPE, spec, MESH)), spec


@pytest.mark.parametrize("wrong", [("x", "x"), ("z",), ("x", None, None), "x", 3, (("x", "y"), "x")])
def test_a_card_takes_nothing_that_jax_refuses(wrong):
    exercise, card = find("choose_spec"), "picture"
    (outcome,) = explained(exercise, [Case({"card": card}, key=card)], [Value(wrong)]).outcomes
    assert not outcome.passed


@pytest.mark.parametrize(
    "cell, shape, spec",
    [
        ('draw.puzzle("figure")', (8, 8), P("y", "x")),
        ('draw.puzzle("columns")', SHAPE, P(None, ("y", "x"))),
    ],
)
def test_the_pictures_without_a_spec_are_those_that_the_check_means(cell, shape, spec):
    (shown,) = [c.outputs for c in nbformat.read(LESSON, 4).cells if c.source.startswith(cell)]
    assert shown[-1].data["text/plain"] == draw.text(blocks(shape, spec, MESH))


@pytest.mark.parametrize("rank, axes, count", [(0, 3, 1), (1, 1, 2), (2, 2, 11), (1, 2, 5), (3, 1, 4), (1, 3, 16)])
def test_layouts_counted_by_hand(rank, axes, count):
    assert find("count_shardings").reference(rank, axes) == count
    assert len(set(map(str, every_spec(rank, "abc"[:axes])))) == count
