"""The line that says in which case a check was missed: short, however much the case holds."""

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.described import PerLife, PerProcess
from grader.arrays.laid import Array
from grader.exercises.case import Case
from grader.judging.describing import describe


def laid(*shape, spec):
    return Array(np.ones(shape, np.float32), spec)


def test_the_parts_of_a_state_that_are_alike_are_told_once():
    model = {"w": laid(4, 2, spec=P("x")), "b": laid(2, spec=P())}
    case = Case({"state": {"count": laid(spec=P()), "mean": model, "params": model}, "lr": 0.5}, {"x": 4})
    assert describe(case) == (
        "mesh x=4; state['count']: a number P(); state['mean', 'params']['b']: 2 P(); "
        "state['mean', 'params']['w']: 4×2 P('x'); lr=0.5"
    )


def test_an_array_alone_has_no_place():
    assert describe(Case({"a": laid(4, 2, spec=P("x"))}, {"x": 4})) == "mesh x=4; a: 4×2 P('x')"


def test_of_what_differs_from_process_to_process_much_is_not_shown():
    few, much = PerProcess((3, 1)), PerProcess(tuple(np.full((40, 3), 1.0 + k) for k in range(4)))
    assert describe(Case({"ticket": few})) == "ticket of processes 0 to 1: [3, 1]"
    told = describe(Case({"rows": much}))
    assert told.startswith("rows of process 0, the first of 4: [[1.0, 1.0, 1.0], [1.0") and told.endswith("…")
    assert len(told) < 150


def test_of_what_differs_from_life_to_life_much_is_not_shown():
    params = {"w": np.ones((300, 300), np.float32)}
    case = Case({"shape": PerLife(((4, 2), (2, 4))), "params": PerLife((params, params))})
    told = describe(case)
    assert (
        told.startswith("shape of both lives: [(4, 2), (2, 4)]; params of the first life: {'w': ") and len(told) < 250
    )


def test_an_array_that_would_fill_a_page_is_told_by_its_shape():
    lines = np.zeros((21, 8), np.int32), np.arange(2)
    told = describe(Case({"lines": lines, "sizes": {"width": 24}}, {"processes": 4}))
    assert told == "mesh processes=4; lines=(int32[21, 8], array([0, 1])); sizes={'width': 24}"
