"""A mistake is made in a second spelling only where no first one explains an answer."""

import jax
import pytest
from answering import verdict
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises.answers import Problem
from grader.exercises.case import Case
from grader.exercises.forms import ProgramExercise
from grader.explaining.explainer import same_problem

total = ProgramExercise("t_spellings", points=4, reference=lambda x: x.sum(0))
spelled: list[bool] = []  # how mistakes were made, in their order


@total.cases
def _(draw):
    return Case({"x": draw.array(*draw.lengths(2, 8), spec=P("x"))}, draw.mesh("x"), out=P())


def summed(x, mesh, check_vma, times):
    go = lambda block: lax.psum(times * block.sum(0), "x")  # noqa: E731
    return jax.shard_map(go, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=check_vma)(x)


@total.mistake
def twice(x, *, mesh, check_vma=False):
    """Each part counts twice."""
    spelled.append(check_vma)
    return summed(x, mesh, check_vma, 2)


@total.mistake
def three_times(x, *, mesh, check_vma=False):
    """Each part counts three times."""
    spelled.append(check_vma)
    return summed(x, mesh, check_vma, 3)


@pytest.mark.parametrize("checked", [True, False])
def test_the_spelling_of_the_answer_goes_first(checked):
    spelled.clear()
    found = verdict(total, lambda x, mesh: summed(x, mesh, checked, 3), seed=int(checked))
    assert found.mistake == "three_times"
    assert set(spelled) == {checked}


def test_where_none_fits_both_are_tried():
    spelled.clear()
    assert verdict(total, lambda x, mesh: summed(x, mesh, True, 5), seed=2).mistake == ""
    assert set(spelled) == {True, False}


def test_where_an_error_occurs_is_no_part_of_it():
    said = "a spec cannot contain Auto axes. This error occurs at source:  {}"
    places = ("/a/cell.py:9:12 (answer)", "grader/lessons/moves.py:93:15 (moved)")
    one, other = (Problem("error", "ValueError", said.format(place)) for place in places)
    assert same_problem(one, other)
    assert not same_problem(one, Problem("error", "ValueError", said.replace("Auto", "Manual").format(places[0])))
