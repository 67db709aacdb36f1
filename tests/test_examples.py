"""The face of the package: what `help` says of each public function has an example, and the example is right."""

import doctest
import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import grader

KNOWN = {"grader": grader, "jax": jax, "jnp": jnp, "np": np, "P": P}
FACE = {
    f"{room.__name__}.{name}": value
    for room in (grader, grader.draw)
    for name in room.__all__
    if inspect.isfunction(value := getattr(room, name))
}
SLOW = ("grader.check", "grader.launch", "grader.trial", "grader.watch")  # they start processes, or import every lesson


def marked(name):
    return pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name


@pytest.mark.parametrize("name", [*map(marked, FACE)])
def test_the_example_is_right(name):
    function = FACE[name]
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(function), dict(KNOWN), name, None, None)
    assert example.examples, f"{name} has no example"
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    assert runner.run(example, out=said.append).failed == 0, "".join(said)


@pytest.mark.parametrize("name", FACE)
def test_every_argument_is_explained(name):
    text = inspect.getdoc(FACE[name]).partition("Args:")[2].partition("Example:")[0]
    arguments = inspect.signature(FACE[name]).parameters
    assert [argument for argument in arguments if not re.search(rf"\b{argument}\b[^\n]*: ", text)] == []


def test_the_face_is_twenty_two_names_and_no_module_stands_behind_one():
    assert len(grader.__all__) == 22
    assert [name for name in grader.__all__ if inspect.ismodule(getattr(grader, name))] == ["draw"]
