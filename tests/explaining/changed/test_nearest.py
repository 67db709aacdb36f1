"""One change to a reference, and the wrong functions that it finds."""

import ast
import itertools
import math

import numpy as np
import pytest

from grader.arrays.numbers import same_value
from grader.exercises import Case, FunctionExercise
from grader.exercises.answers import Problem, Value
from grader.explaining.changed.changes import changed_once
from grader.explaining.changed.nearest import _source, nearest_function
from grader.findings.cases import FunctionChange
from grader.lessons import EXERCISES


@pytest.mark.parametrize(
    ("source", "change", "after"),
    [
        ("a - b", FunctionChange("instead", ("+", "-")), "a + b"),
        ("max(a, b)", FunctionChange("instead", ("min", "max")), "min(a, b)"),
        ("a.sum(axis=0)", FunctionChange("instead", ("max", "sum")), "a.max(axis=0)"),
        ("n + stages", FunctionChange("instead", ("n", "stages")), "n + n"),
        ("a * n", FunctionChange("left out", ("n",)), "a"),
        ("a + n", FunctionChange("not added", ("n",)), "a"),
        ("a - b", FunctionChange("not subtracted"), "a"),
        ("a / n", FunctionChange("not divided by", ("n",)), "a"),
        ("a / n", FunctionChange("one more", ("n",)), "a / (n + 1)"),
        ("a >= b", FunctionChange("equal numbers"), "a > b"),
        ("a and b", FunctionChange("condition dropped"), "a"),
        ("[a for a in b if c]", FunctionChange("condition dropped"), "[a for a in b]"),
        ("a if b else c", FunctionChange("special case dropped"), "c"),
        ("a + 1", FunctionChange("number one larger"), "a + 2"),
        ("a.T", FunctionChange("not transposed"), "a"),
    ],
)
def test_a_function_is_changed_in_one_way_after_the_other(source, change, after):
    tree = ast.parse(source)
    assert (change, after) in [(one, ast.unparse(tree)) for one in changed_once(tree.body[0], ["n", "stages"])]
    assert ast.unparse(tree) == source, "the function is as it was"


def _hops(start, end, stops):
    return math.ceil(_between(start, end) / stops)


def _between(start, end):
    return abs(end - start)


def _root(n):
    k = 0
    while k * k < n:  # for ever, if k does not grow
        k += 1
    return k


def _pairs(n):
    return sum(len(pair) for pair in itertools.product(range(n), repeat=2))


def _ratio(a, b):
    return a / (b + 1)


def _both(start, end):
    return {"a": start + end, "b": start - end}


def _rows(start, end):
    return {"rows": 100 * (start + end)}


def _memory(weights, activations, n):
    return 16 * weights + activations / n


def _half(second, n):
    return n + n if second else n


@pytest.fixture(autouse=True)
def _these_are_ours(monkeypatch):
    monkeypatch.setattr("grader.explaining.changed.nearest.OF_LESSONS", __name__)


def nearest(reference, answers, *given, **more):
    """What is found of these answers, or of a function, in cases with these arguments."""
    names = reference.__code__.co_varnames[: reference.__code__.co_argcount]
    cases = [Case(dict(zip(names, one, strict=True))) for one in given]
    made = [answers(*one) for one in given] if callable(answers) else answers
    exercise = FunctionExercise("of_a_test", points=1, reference=reference, **more)
    return nearest_function(exercise, cases, [one if isinstance(one, Problem) else Value(one) for one in made], 0)


NEAR = (1, 9, 3), (9, 1, 3), (7, 2, 2), (2, 25, 5)
FAR = (2, 900, 3), (5, 6000, 7), (3, 7000, 2), (7, 2500, 5)


@pytest.mark.parametrize(
    ("answer", "given", "change"),
    [
        (lambda start, end, stops: abs(end - start) // stops, NEAR, FunctionChange("instead", ("floor", "ceil"))),
        (lambda start, end, stops: math.ceil(abs(end + start) / stops), NEAR, FunctionChange("instead", ("+", "-"))),
        (lambda a, b, c: math.ceil(abs(b - a) / c / 8), FAR, FunctionChange("multiplied by", ("stops", "8"))),
        (lambda a, b, c: math.ceil(abs(b - a) / c / a), FAR, FunctionChange("multiplied by", ("stops", "start"))),
        (lambda a, b, c: math.ceil(abs(b - c) / a), NEAR, FunctionChange("exchanged", ("start", "stops"))),
    ],
)
def test_the_nearest_wrong_function_is_found(answer, given, change):
    assert change in nearest(_hops, answer, *given).changes


@pytest.mark.parametrize(
    ("answers", "given"),
    [
        (lambda start, end, stops: 100 + start, NEAR),  # no single change comes to it
        (lambda start, end, stops: abs(end - start) // stops, NEAR[:2]),  # too few cases
        (lambda start, end, stops: 0, NEAR),  # the same to all
    ],
)
def test_of_chance_nothing_is_said(answers, given):
    def inside(start, end, stops):
        return abs(end - start)

    assert nearest(_hops, answers, *given) is None
    assert nearest(inside, lambda start, end, stops: end - start, *NEAR) is None  # it has no text of its own


def test_an_error_counts_that_a_change_raises():
    stopped = Problem("error", "ZeroDivisionError", "division by zero")
    found = nearest(_ratio, [8.0, stopped, 3.0, 4.0, 2.5], (8, 1), (8, 0), (6, 2), (12, 3), (10, 4))
    assert found.changes[0] == FunctionChange("not added", ("1",))


def test_what_a_dict_has_under_a_key_is_found_by_itself():
    wrong = [{"a": 39, "b": 39}, {"a": 5, "b": 104}, {"a": 10, "b": 72}]
    found = nearest(_both, wrong, (30, 9), (90, 14), (70, 2))
    assert (found.key, found.changes[0]) == ("b", FunctionChange("instead", ("+", "-")))


@pytest.mark.parametrize("more", [0, 1])
def test_what_an_exercise_calls_as_good_is_not_what_is_returned(more):
    def near(one, other, **given):
        return abs(one["rows"] - other["rows"]) < 10

    given = (30, 9), (90, 14), (70, 2), (80, 5)
    assert bool(nearest(_rows, lambda a, b: {"rows": 100 * (a - b) + more}, *given, same=near)) is not bool(more)


MEMORY = [(10**6, 6 * 10**6, 8), (3 * 10**6, 4 * 10**6, 4), (2 * 10**6, 5 * 10**6, 2), (4 * 10**6, 9 * 10**6, 8)]


def test_what_is_only_near_is_not_what_is_returned():
    assert nearest(_memory, lambda w, a, n: 16 * w + a / w, *MEMORY).changes == (
        FunctionChange("instead", ("weights", "n")),
    )
    in_float32 = nearest(_memory, lambda w, a, n: float(np.float32(16 * w)), *MEMORY)
    assert FunctionChange("not added") in in_float32.changes


def test_no_truth_value_is_one_more_than_another():
    given = [(second, n) for second in (False, True) for n in (2, 5, 7)]
    assert nearest(_half, lambda second, n: 2 * n, *given).changes == (FunctionChange("special case dropped"),)


@pytest.mark.parametrize(
    ("reference", "answers", "changes"),
    [
        (_root, lambda n: math.isqrt(n) + 1, (FunctionChange("equal numbers"), FunctionChange("one more", ("n",)))),
        (_pairs, lambda n: 2 * (n + 1) ** 2, (FunctionChange("one more", ("n",)),)),
        (_pairs, lambda n: n * n + 1, ()),
    ],
)
def test_what_never_ends_or_grows_without_end_is_given_up(reference, answers, changes):
    """Arguments are multiplied by up to a million, and numbers of a reference may be repetitions."""
    found = nearest(reference, answers, (4,), (10,), (36,), (50,))
    assert (found.changes if found else ()) == changes


def test_a_formula_of_the_lessons_ends_whatever_it_is_given(monkeypatch):
    monkeypatch.undo()
    exercise = EXERCISES["count_shardings"]
    cases = exercise.draw_cases(0)
    assert nearest_function(exercise, cases, [Value(k * k) for k in range(len(cases))], 0) is None


with_formula = [one for one in EXERCISES.values() if isinstance(one, FunctionExercise) and one.formula]


@pytest.mark.parametrize("exercise", with_formula, ids=lambda exercise: exercise.name)
def test_a_formula_returns_what_the_reference_finds(exercise):
    for case in exercise.draw_cases(3):
        pair = exercise.formula(**case.arguments), exercise.reference(**case.arguments)
        same = exercise.same or (lambda *pair, **_: same_value(*(np.asarray(one).tolist() for one in pair)))
        assert same(*pair, **case.arguments)


def test_what_has_the_name_of_a_variable_of_the_reference_is_not_changed(monkeypatch):
    monkeypatch.undo()
    names = {name for _, name in _source(EXERCISES["bias_balance"]).texts}
    assert names == {"_biased", "_shares", "_moved", "_load"}
