"""One change to a reference, and the wrong functions that it finds."""

import ast
import math

import numpy as np
import pytest

from grader.arrays.numbers import same_value
from grader.exercises import Case, FunctionExercise
from grader.exercises.answers import Value
from grader.judging.changes import changed_once
from grader.judging.nearest import _source, nearest_function
from grader.lessons import EXERCISES


def variants(source, *names):
    """What stands in the place of a function's text after each change, by its words."""
    tree = ast.parse(source)
    found = [(words, ast.unparse(tree)) for words in changed_once(tree.body[0], names)]
    assert ast.unparse(tree) == source, "the function is as it was"
    return found


@pytest.mark.parametrize(
    ("source", "words", "after"),
    [
        ("a - b", "something is added that should be subtracted", "a + b"),
        ("a * n", "the factor `n` is left out", "a"),
        ("a * (b + c)", "a factor of a whole sum or difference is a factor of one of its terms only", "a * b + c"),
        ("a / n", "one more than `n` stands where `n` should", "a / (n + 1)"),
        ("a * b", "a factor is left out", "b"),
        ("a / n", "it is not divided by `n`", "a"),
        ("a / b", "a quotient is turned upside down", "b / a"),
        ("a // b", "a quotient is not rounded", "a / b"),
        ("a // b", "a quotient is rounded up", "-(-a // b)"),
        ("a < b", "a comparison of two equal numbers comes out the other way", "a <= b"),
        ("a >= b", "a comparison of two equal numbers comes out the other way", "a > b"),
        ("a and b", "one of several conditions is not asked for", "a"),
        ("a or b", "`or` joins conditions where `and` should, or `and` where `or` should", "a and b"),
        ("a % b + c % d", "a remainder is not taken", "a + c % d"),
        ("a if b else c", "a case that is different is not told apart from the others", "c"),
        ("max(a, b)", "the smallest is taken where the largest should be", "min(a, b)"),
        ("math.prod(a)", "things are added that should be multiplied", "sum(a)"),
        ("abs(a)", "an absolute value is not taken", "a"),
        ("abs(a) + abs(b)", "an absolute value is not taken", "a + b"),
        ("abs(a) + abs(b)", "`abs` is taken of a sum, and should be taken of each of its terms", "abs(a + b)"),
        ("range(a, b)", "it goes one step too far", "range(a, b + 1)"),
        ("range(b, -1, -1)", "it goes one step too far", "range(b, -1 + -1, -1)"),
        ("range(b, -1, -1)", "it stops one step early", "range(b, -1 - -1, -1)"),
        ("f(a, b, c=d)", "two things are exchanged that are given to a function", "f(b, a, c=d)"),
        ("a + 1", "a number in it is one larger than it should be", "a + 2"),
        ("a.sum(axis=0)", "the largest is taken where all should be added up", "a.max(axis=0)"),
        ("a[::-1]", "the order is not turned round", "a"),
        ("n + stages", "`n` stands where `stages` should", "n + n"),
        ("[a for a in b if c]", "one of several conditions is not asked for", "[a for a in b]"),
        ("[a for a in b]", "the last is left out", "[a for a in list(b)[:-1]]"),
    ],
)
def test_a_function_is_changed_in_one_way_after_the_other(source, words, after):
    assert (words, after) in variants(source, "n", "stages")


def test_what_is_added_up_is_forgotten():
    source = "def f(a):\n    for b in a:\n        c += b"
    assert ("only the last is kept of what should be added up", source.replace("+=", "=")) in variants(source)


def _hops(start, end, stops):
    return math.ceil(_between(start, end) / stops)


def _between(start, end):
    return abs(end - start)


def _half(second, n):
    return n + n if second else n


def _root(n):
    k = 0
    while k * k < n:  # for ever, where k is not counted up
        k += 1
    return k


def _memory(weights, activations, n):
    return 16 * weights + activations / n


exercise = FunctionExercise("hops", points=1, reference=_hops)
CASES = [Case({"start": a, "end": b, "stops": c}) for a, b, c in ((1, 9, 3), (9, 1, 3), (7, 2, 2), (2, 25, 5))]


FAR = [Case({"start": a, "end": b, "stops": c}) for a, b, c in ((2, 900, 3), (5, 6000, 7), (3, 7000, 2), (7, 2500, 5))]


def heard(function, cases=CASES):
    return nearest_function(exercise, cases, [Value(function(**case.arguments)) for case in cases], 0)


@pytest.fixture(autouse=True)
def _these_are_ours(monkeypatch):
    monkeypatch.setattr("grader.judging.nearest.OF_LESSONS", __name__)


def test_the_nearest_wrong_function_is_told():
    assert heard(lambda start, end, stops: abs(end - start) // stops) == (
        "In every case yours is what comes out when it is rounded down where it should be rounded up, or when a "
        "quotient is rounded down. Is it so in your function, or something that comes to the same?"
    )
    assert "an absolute value is not taken" in heard(lambda start, end, stops: math.ceil((end - start) / stops))
    assert "`start` is not added" not in heard(lambda start, end, stops: math.ceil(end / stops))


def test_a_number_that_is_taken_in_another_unit_is_told():
    assert "when `stops` is multiplied by 8" in heard(
        lambda start, end, stops: math.ceil(abs(end - start) / stops / 8), FAR
    )
    assert "when `stops` is multiplied by `start`" in heard(
        lambda start, end, stops: math.ceil(abs(end - start) / stops / start), FAR
    )


def test_an_entry_of_a_dict_is_told_by_itself():
    both = FunctionExercise("both", points=1, reference=lambda start, end: {"a": start + end, "b": start - end})
    cases = [Case({"start": a, "end": b}) for a, b in ((30, 9), (90, 14), (70, 2))]
    wrong = [{"a": 5 * k, "b": case.arguments["start"] + case.arguments["end"]} for k, case in enumerate(cases)]
    said = nearest_function(both, cases, [Value(answer) for answer in wrong], 0)
    assert said.startswith("In every case your `b` is what comes out when something is added that should be subtracted")


@pytest.mark.parametrize(("more", "said"), [(0, True), (1, False)])
def test_what_an_exercise_calls_as_good_is_not_what_comes_out(more, said):
    near = FunctionExercise(
        "near",
        points=1,
        reference=lambda start, end: {"rows": 100 * (start + end)},
        same=lambda one, other, **given: abs(one["rows"] - other["rows"]) < 10,
    )
    cases = [Case({"start": a, "end": b}) for a, b in ((30, 9), (90, 14), (70, 2), (80, 5))]
    wrong = [{"rows": 100 * (case.arguments["start"] - case.arguments["end"]) + more} for case in cases]
    assert bool(nearest_function(near, cases, [Value(answer) for answer in wrong], 0)) == said


def test_what_is_only_near_is_not_what_comes_out():
    memory = FunctionExercise("memory", points=1, reference=_memory)
    given = [(10**6, 6 * 10**6, 8), (3 * 10**6, 4 * 10**6, 4), (2 * 10**6, 5 * 10**6, 2), (4 * 10**6, 9 * 10**6, 8)]
    cases = [Case({"weights": w, "activations": a, "n": n}) for w, a, n in given]
    said = nearest_function(memory, cases, [Value(16 * w + a / w) for w, a, _ in given], 0)
    assert "`weights` stands where `n` should" in said and "`n` stands where `activations` should" not in said
    short = [Value(float(np.float32(16 * w))) for w, *_ in given]  # computed in float32
    assert "is not added" in (said := nearest_function(memory, cases, short, 0)) or "a term of a sum is left" in said


def test_what_is_nearly_the_same_is_not_what_comes_out():
    held = FunctionExercise("held", points=1, reference=lambda start, end, stops: [start + end, stops])
    cases = [Case({"start": a * 1e9, "end": b * 1e10, "stops": 16.5}) for a, b in ((1, 3), (4, 5), (2, 7), (3, 1))]
    said = nearest_function(held, cases, [Value([case.arguments["end"], 16.5]) for case in cases], 0)
    assert "`start` is not added" in said and "`stops` stands where `start` should" not in said


def test_no_truth_value_is_one_more_than_another():
    half = FunctionExercise("half", points=1, reference=_half)
    cases = [Case({"second": second, "n": n}) for second in (False, True) for n in (2, 5, 7)]
    said = nearest_function(half, cases, [Value(2 * case.arguments["n"]) for case in cases], 0)
    assert "is not told apart" in said and "`second`" not in said


def test_of_what_no_single_change_comes_to_nothing_is_said():
    assert heard(lambda start, end, stops: 100 + start) == ""


def test_of_too_few_cases_nothing_is_said():
    assert heard(lambda start, end, stops: abs(end - start) // stops, CASES[:2]) == ""


def test_of_the_same_answer_to_all_nothing_is_said():
    assert heard(lambda start, end, stops: 0) == ""


def test_what_never_ends_is_given_up():
    counting = FunctionExercise("counting", points=1, reference=_root)
    cases = [Case({"n": n}) for n in (4, 10, 36, 50)]
    assert "a comparison of two equal numbers comes out" in nearest_function(
        counting, cases, [Value(k) for k in (3, 4, 7, 8)], 0
    )


with_formula = [one for one in EXERCISES.values() if isinstance(one, FunctionExercise) and one.formula]


@pytest.mark.parametrize("exercise", with_formula, ids=lambda exercise: exercise.name)
def test_a_formula_returns_what_the_reference_finds(exercise):
    for case in exercise.draw_cases(3):
        due = exercise.reference(**case.arguments)
        assert (exercise.same or _same)(exercise.formula(**case.arguments), due, **case.arguments)


def _same(one, other, **_):
    return same_value(np.asarray(one).tolist(), np.asarray(other).tolist())


def test_what_bears_the_name_of_a_variable_of_the_reference_is_not_changed(monkeypatch):
    monkeypatch.undo()
    names = {name for _, name in _source(EXERCISES["bias_balance"]).texts}
    assert names == {"_biased", "_shares", "_moved", "_load"}
