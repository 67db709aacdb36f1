"""The case in which a check was missed, as a finding: short, however much the case holds."""

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.described import PerLife, PerProcess
from grader.arrays.laid import Array
from grader.exercises.case import Case
from grader.findings.cases import GivenArgument, InCase
from grader.judging.describing import describe

MUCH = tuple(np.full((40, 3), 1.0 + k) for k in range(4))
PARAMS = {"w": np.ones((300, 300), np.float32)}


def laid(*shape, spec):
    return Array(np.ones(shape, np.float32), spec)


def test_mesh_arrays_and_the_rest_are_told():
    case = Case({"lr": 0.5, "a": {"w": laid(4, 2, spec=P("x")), "b": laid(spec=P())}}, {"x": 4})
    arrays = GivenArgument("a['b']", "float32[] P()"), GivenArgument("a['w']", "float32[4,2] P('x')")
    assert describe(case) == InCase((("x", 4),), (*arrays, GivenArgument("lr", "0.5")))


@pytest.mark.parametrize(
    ("argument", "value", "each"),
    [
        ({k: laid(4, spec=P()) for k in range(5)}, "5 arrays", ""),
        ((np.zeros((21, 8), np.int32), np.arange(2)), "(int32[21, 8], array([0, 1]))", ""),
        (PerProcess((3, 1)), "[3, 1]", "process"),
        (PerLife(((4, 2), (2, 4))), "[(4, 2), (2, 4)]", "life"),
        (PerProcess(MUCH), "[[1.0, 1.0, 1.0], [1.0", "first process"),
        (PerLife((PARAMS, PARAMS)), "{'w': ", "first life"),
    ],
)
def test_of_much_little_is_shown(argument, value, each):
    (given,) = describe(Case({"it": argument})).given
    assert given.value.startswith(value) and len(given.value) < 200 and given.each == each
