"""A function as a script: what goes along to another process, and what cannot."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh
from grader.exercises.script import script_of, untouched
from grader.findings.problems import Refusal
from grader.lessons.shared import predict
from grader.programs.program import Refused

ROWS, NAMES, TABLE = 6, ("a", "b"), {"x": [1, 2.5], "y": None}
MESH, FAR = make_mesh({"x": 8}), math.inf


def doubled(n):
    # a comment does not go along
    return 2 * n * ROWS


def main(process_id, num_processes):
    """What it is about."""
    value = jnp.full((ROWS,), doubled(process_id)) + np.float32(len(NAMES) + len(TABLE))
    return int(value.sum()), P("x"), [main.__name__, multihost_utils.__name__, NamedSharding.__name__, jax.P is P]


def test_it_means_the_same_elsewhere():
    space = {}
    exec(script_of(main), space)
    assert space["main"](3, 4) == main(3, 4)
    assert "comment" not in script_of(main)


LAYOUTS = {"w": P("data", None), "b": [P()]}


def laid_out():
    return LAYOUTS


def test_specs_go_along():
    space = {}
    exec(script_of(laid_out), space)
    assert space["laid_out"]() == LAYOUTS


def of_a_lesson(params, x):
    return predict(params, x)


def test_a_lessons_own_functions_go_along_as_text():
    """Where hand-ins are graded the lessons are withheld, and our mistakes run there as well."""
    text = script_of(of_a_lesson)
    assert "def predict" in text and "grader" not in text


def test_the_text_does_not_depend_on_where_it_stands():
    """So that the same answer of two students is one."""
    assert script_of(main) == script_of(main)
    assert str(Path(__file__).parent) not in script_of(main)


def has_names_of_its_own(process_id, num_processes):
    MESH, FAR = process_id, [FAR + 1 for FAR in range(num_processes)]  # as the notebook's are called

    class Own:
        rows = ROWS

    return MESH + len(FAR) + Own.rows


def test_variables_of_its_own_may_be_called_as_those_around_it():
    space = {}
    exec(script_of(has_names_of_its_own), space)
    assert space["has_names_of_its_own"](1, 2) == 3 + ROWS


def uses_a_mesh(process_id, num_processes):
    return MESH.size


def uses_what_is_not_finite(process_id, num_processes):
    return FAR


twice = doubled


def uses_another_name(process_id, num_processes):
    return twice(1)


def closes_over():
    outside = 3

    def inner(process_id, num_processes):
        return outside

    return inner


class Callable:
    def __call__(self, process_id, num_processes):
        return 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (uses_a_mesh, Refusal("uses notebook", ("uses_a_mesh", "MESH", "Mesh"))),
        (uses_what_is_not_finite, Refusal("uses notebook", ("uses_what_is_not_finite", "FAR", "float"))),
        (closes_over(), Refusal("uses enclosing", ("inner", "outside"))),
        (uses_another_name, Refusal("uses alias", ("uses_another_name", "twice", "doubled"))),
        (Callable(), Refusal("no def", ("Callable",))),
        (lambda process_id, num_processes: 1, Refusal("no source", ("<lambda>",))),
        (print, Refusal("no def", ("builtin_function_or_method",))),
    ],
)
def test_what_cannot_go_along_is_said(given, why):
    with pytest.raises(Refused) as refused:
        script_of(given)
    assert refused.value.finding == why


def starter(process_id, num_processes):
    """To be written."""
    ...


def test_a_starter_is_known_by_its_body():
    assert untouched(starter) and not untouched(main)
