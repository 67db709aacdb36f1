"""What is said of a function that stops, or returns nothing, in some cases only."""

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh
from grader.exercises import Case, FunctionExercise
from grader.exercises.collecting import asks, collect
from grader.judging.functions import NO_ERROR_DUE, NOT_ALWAYS, NOT_RAISED
from grader.judging.judge import judge
from grader.judging.ladder import KNOWN, KNOWN_NEARLY


def _half(n):
    if n % 2:
        raise ValueError("no half of an odd number")
    return n // 2


half = FunctionExercise("half", points=1, reference=_half)


@half.cases
def _(draw):
    yield from (Case({"n": n}) for n in (2, 4, 6, 3))


def _refuses_four(n):
    if n == 4:
        raise ValueError("not this one")
    return _half(n)


def _forgets_four(n):  # noqa: RET503 - which is its mistake
    if n != 4:
        return _half(n)


def _prints_the_error(n):
    try:
        return _half(n)
    except ValueError as error:
        print(error)


@pytest.mark.parametrize(
    ("answer", "words"),
    [(_refuses_four, NO_ERROR_DUE), (_forgets_four, NOT_ALWAYS), (_prints_the_error, NOT_RAISED)],
)
def test_what_is_due_where_it_stops_or_returns_nothing_is_told(answer, words):
    cases = half.draw_cases()
    found = judge(half, cases, collect("function", asks(half, cases), answer)).words
    assert [one for one in (NO_ERROR_DUE, NOT_ALWAYS, NOT_RAISED) if one in found] == [words]


halved = FunctionExercise("halved", points=1, reference=lambda n: n // 2)


@halved.cases
def _(draw):
    yield from (Case({"n": n}) for n in (4, 2, 6))


@halved.mistake
def not_four(n):
    """Four is refused."""
    return _refuses_four(n)


@pytest.mark.parametrize(("text", "said"), [("not this one", KNOWN), ("not four", KNOWN_NEARLY)])
def test_a_mistake_that_stops_otherwise_gives_nearly_the_same(text, said):
    def answer(n):
        if n == 4:
            raise ValueError(text)
        return n // 2

    cases = halved.draw_cases()
    assert said in judge(halved, cases, collect("function", asks(halved, cases), answer)).words


def test_of_what_kind_the_answer_is_to_be_is_told_to_who_returned_what_is_no_value():
    cases = half.draw_cases()
    found = judge(half, cases, collect("function", asks(half, cases), lambda n: object())).words
    assert found.endswith("What is due is a number.")


def test_an_error_that_nobody_raised_is_not_asked_after():
    def unpacks_four(n):
        one, _ = str(n) * 2 if n != 4 else str(n)
        return _half(n) if one else 0

    cases = half.draw_cases()
    found = judge(half, cases, collect("function", asks(half, cases), unpacks_four)).words
    assert "not enough values to unpack" in found and NO_ERROR_DUE not in found


class Odd(ValueError):
    """A ValueError of the student's own."""


@pytest.mark.parametrize("module", ["__main__", "a cell", "builtins"])
def test_an_error_of_the_students_own_is_of_the_kind_that_it_is_made_of(module, monkeypatch):
    monkeypatch.setattr(Odd, "__module__", module)

    def answer(n):
        try:
            return _half(n)
        except ValueError as error:
            raise Odd from error

    cases = half.draw_cases()
    assert judge(half, cases, collect("function", asks(half, cases), answer)).passed


def test_of_several_arrays_on_devices_it_is_said_that_a_list_is_due():
    """As to who returned what gives them one after the other."""

    def placed(a):
        return [jax.device_put(a, NamedSharding(make_mesh({"x": 2}), P("x")))] * 2

    several = FunctionExercise("several_in_a_test", points=1, reference=placed)
    several.cases(lambda draw: Case({"a": np.ones(4, np.float32)}))
    cases = several.draw_cases(0)
    found = judge(several, cases, collect("function", asks(several, cases), lambda a: map(np.array, placed(a)))).words
    assert found.endswith("What is due is a list, or a tuple, of arrays on devices.")
