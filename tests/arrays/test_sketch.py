"""Programs in outline: they cross the wire, and become the same program there."""

import json

import jax
import pytest

from grader.arrays.described import built
from grader.arrays.sketch import COLLECTIVE_STEPS, Sketch
from grader.exercises.as_json import question_from_json, to_json

MESH = {"x": 4, "y": 2}
LOOP = ["loop", 3, [["ppermute", "y"], ["jit", [["all_gather", "x"]]]]]
STEPS = [["psum", "x"], LOOP, ["widen"], ["psum_scatter", "y"]]


def told(sketch):
    return str(sketch.built())


def test_an_outline_crosses_the_wire():
    sketch = Sketch(MESH, (8, 2), STEPS)
    there = question_from_json(json.loads(json.dumps(to_json(sketch))))
    assert there == sketch and told(there) == told(sketch)


def test_what_the_function_gets_is_the_jaxpr():
    (found,) = built([Sketch(MESH, (8, 2), STEPS)])
    assert [eqn.primitive.name for eqn in found.eqns] == ["shard_map"]


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("kind", COLLECTIVE_STEPS)
def test_every_kind_can_be_traced_alone_and_in_a_loop(kind, checked):
    name = {"psum": "psum", "psum_scatter": "reduce_scatter"}.get(kind, kind)
    text = told(Sketch(MESH, (8, 2), [[kind, "y"], ["loop", 5, [[kind, "x"]]]], checked))
    assert text.count(f"= {name}") == 2 and "length=5" in text


def test_an_outline_says_what_it_is_in_one_line():
    assert repr(Sketch(MESH, (8, 2), STEPS)) == (
        "<the jaxpr of a shard_map on x=4 × y=2, blocks float32[8,2]: psum over x, 3 turns of (ppermute over y, "
        "jit(all_gather over x)), widen, psum_scatter over y>"
    )


def test_no_device_is_needed_beyond_those_of_the_mesh():
    assert len(jax.devices()) == 8 and "f32[16,2]" in told(Sketch({"x": 2}, (8, 2), [["psum", "x"]]))


def test_a_function_with_a_derivative_of_its_own_has_its_jaxpr_under_another_name():
    sketch = Sketch(MESH, (8, 2), [["rule", [["psum", "x"]]]])
    assert "call_jaxpr" in told(sketch) and told(sketch).count("= psum") == 1
    assert "custom_jvp(psum over x)" in repr(sketch)


@pytest.mark.parametrize("kind", COLLECTIVE_STEPS)
def test_a_step_may_go_over_several_axes(kind):
    sketch = Sketch({"data": 4, "model": 2}, (8, 2), [[kind, ["data", "model"]]])
    assert "('data', 'model')" in told(sketch)
    assert f"{kind} over data and model" in repr(sketch)
