"""Functions that return nothing, raise, or return what is no value, in some cases or in all."""

import jax
import numpy as np
import pytest
from answering import verdict
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh
from grader.exercises import Case, FunctionExercise
from grader.findings.mistakes import KnownMistake
from grader.findings.problems import Raised
from grader.findings.values import OtherKind, ShouldRaise, UnlikeOthers, WrongValue


def _half(n):
    if n % 2:
        raise ValueError("no half of an odd number")
    return n // 2


half = FunctionExercise("half", points=1, reference=_half)
half.cases(lambda draw: (Case({"n": n}) for n in (2, 4, 6, 3)))
halved = FunctionExercise("halved", points=1, reference=lambda n: n // 2)
halved.cases(lambda draw: (Case({"n": n}) for n in (4, 2, 6)))


@halved.mistake
def not_four(n):
    """Four is refused."""
    if n == 4:
        raise ValueError("not four")
    return n // 2


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


def _unpacks_four(n):
    one, _ = str(n) * 2 if n != 4 else str(n)
    return _half(n) if one else 0


def _stops(n):
    return _half(n) if n % 2 == 0 else n + "1"


def findings(exercise, answer):
    return verdict(exercise, answer).failure.findings


@pytest.mark.parametrize(
    ("answer", "finding"),
    [
        (lambda n: n, WrongValue("", "1", "2")),
        (_refuses_four, UnlikeOthers("raises")),
        (_forgets_four, UnlikeOthers("returns nothing")),
        (_prints_the_error, ShouldRaise("no half of an odd number")),
        (lambda n: n // 2, ShouldRaise("no half of an odd number", returned="1")),
        (_stops, ShouldRaise("no half of an odd number", raised="TypeError")),
        (lambda n: object(), OtherKind("number", None)),
    ],
)
def test_what_is_expected_when_it_stops_or_returns_nothing(answer, finding):
    assert finding in findings(half, answer)


def test_of_an_error_that_the_student_did_not_raise_it_is_not_asked_why():
    found = findings(half, _unpacks_four)
    assert isinstance(found[0], Raised) and UnlikeOthers("raises") not in found


@pytest.mark.parametrize(("text", "exactly"), [("not four", True), ("not this one", False)])
def test_a_mistake_that_stops_with_another_error_gives_almost_the_same(text, exactly):
    def answer(n):
        if n == 4:
            raise ValueError(text)
        return n // 2

    assert KnownMistake("not_four", exactly) in findings(halved, answer)


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

    assert verdict(half, answer).passed


def test_a_list_of_arrays_on_devices_is_expected_if_an_iterator_is_returned():
    def placed(a):
        return [jax.device_put(a, NamedSharding(make_mesh({"x": 2}), P("x")))] * 2

    several = FunctionExercise("several_in_a_test", points=1, reference=placed)
    several.cases(lambda draw: Case({"a": np.ones(4, np.float32)}))
    found = findings(several, lambda a: map(np.array, placed(a)))
    assert OtherKind("list", None, "array on devices") in found
