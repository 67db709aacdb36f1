"""Cases notice what is nearly right: the model solution with fewer bits on the wire, without its small terms, with the
last maximum for the first, or with everybody computing everything."""

import ast
import inspect
import textwrap

import jax
import jax.numpy as jnp
import pytest
from answering import answered, asked, verdict
from jax import lax
from jax.sharding import PartitionSpec as P
from rota import in_turn
from test_exercises import LESSON_OF

from grader.arrays.laid import holds_arrays
from grader.exercises.forms import Programs
from grader.lessons import EXERCISES
from grader.programs.variants import in_jax

EVERY = 10  # programs: of these one in so many is judged each week
SENDING = ("psum", "pmean", "all_gather", "psum_scatter", "all_to_all", "ppermute")
SMALL = 1e-3  # numbers below this are there against a division by zero
PROGRAMS = [e for e in EXERCISES.values() if type(e.kind) is Programs and e.name in LESSON_OF]


def solution(exercise):
    return answered("solutions", LESSON_OF[exercise.name])[exercise.name]


def in_turns(exercises, every=EVERY):
    return [pytest.param(e, id=e.name, marks=in_turn(place, every)) for place, e in enumerate(exercises)]


def sends(exercise):
    """Whether its model solution sends floats by collectives that are written."""
    return any(word in inspect.getsource(solution(exercise)) for word in SENDING)


@pytest.fixture
def sixteen_bits(monkeypatch):
    """All collectives send what bfloat16 keeps of a number."""

    def rounding(collective):
        def sent(tree, *rest, **options):
            fewer = lambda x: x.astype(jnp.bfloat16).astype(x.dtype) if x.dtype == jnp.float32 else x  # noqa: E731
            return collective(jax.tree.map(fewer, tree), *rest, **options)

        return sent

    for name in SENDING:
        monkeypatch.setattr(lax, name, rounding(getattr(lax, name)))


@pytest.mark.parametrize("exercise", in_turns(PROGRAMS))
def test_fewer_bits_on_the_wire_are_noticed(exercise, sixteen_bits):
    if not sends(exercise):
        pytest.skip("its solution names no collective")
    assert not verdict(exercise, solution(exercise), seed=0).passed
