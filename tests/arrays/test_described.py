"""What is on devices, as facts: building it, seeing it; and answers that mean no good."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import (
    FROM_HOST,
    HELD,
    NOT_IN_PLACE,
    TO_THE_HOST,
    OnDevices,
    OnMesh,
    built,
    lies_on_devices,
    moved,
    observed_mesh,
)
from grader.exercises.answers import Ask, Problem, Value
from grader.exercises.as_json import question_from_json, to_json
from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.forms import FunctionExercise
from grader.exercises.plain import plain
from grader.explaining.explained import explained
from grader.findings.values import BarredWay, OnWrongDevices, WrongShard
from grader.programs.program import Refused

V = np.arange(8, dtype=np.float32)
FRONT, REAR = OnMesh({"x": 4}), OnMesh({"x": 4}, order=(4, 5, 6, 7))


def across(text):
    return question_from_json(json.loads(json.dumps(to_json(text))))


def seen(array):
    """What is observed of an array, after it has crossed the wire."""
    return across(Value(plain(array))).value


@pytest.mark.parametrize(
    "mesh, devices, text",
    [
        (FRONT, [0, 1, 2, 3], "<mesh x=4>"),
        (REAR, [4, 5, 6, 7], "<mesh x=4 (devices 4, 5, 6, 7)>"),
        (
            OnMesh({"x": 2, "y": 2}, explicit=True, order=(7, 0, 3, 1)),
            [7, 0, 3, 1],
            "<mesh x=2 × y=2 (Explicit; devices 7, 0, 3, 1)>",
        ),
    ],
)
def test_a_mesh_is_built_and_observed_as_described(mesh, devices, text):
    made = across(Ask({}, {"m": mesh})).arguments["m"].built()
    assert observed_mesh(made)["devices"] == devices and repr(mesh) == text
    assert made.axis_types[0] is (AxisType.Explicit if mesh.explicit else AxisType.Auto)


def test_an_array_in_bfloat16_is_one_of_jax_whose_products_are_in_bfloat16_too():
    given = built({"x": [np.ones((2, 2), jnp.bfloat16)], "y": np.ones(2, np.float32)})
    assert (given["x"][0] @ given["x"][0]).dtype == jnp.bfloat16  # NumPy's would be float32
    assert isinstance(given["y"], np.ndarray)


def test_an_array_is_built_where_it_was_described_and_seen_there():
    array = across(Ask({}, {"x": OnDevices(V, REAR, P("x"))})).arguments["x"].built()
    assert array.committed and array.sharding.spec == P("x")
    assert seen(array)[HELD].keys() == {"device 4", "device 5", "device 6", "device 7"}
    assert seen(array)[HELD]["device 5"]["[2:4]"].tolist() == [2, 3]


def test_an_array_without_a_mesh_is_fresh():
    array = OnDevices(V).built()
    assert not array.committed and isinstance(plain(array), np.ndarray)


def test_a_replica_that_differs_is_built_and_seen():
    described = OnDevices(V, REAR, P(), instead={2: V + 1})
    (array,) = built([across(Ask({}, {"x": described})).arguments["x"]])
    assert array.is_fully_replicated
    assert seen(array)[HELD]["device 6"]["[0:8]"].tolist() == list(V + 1)
    assert "but for device 2" in repr(described)


def test_lists_and_dicts_are_built_item_by_item():
    made = built({"a": [OnDevices(V), (FRONT, 3)], "b": "text"})
    assert isinstance(made["a"][0], jax.Array) and made["a"][1][1] == 3 and made["b"] == "text"


def lay(value, mesh, *spec):
    return OnDevices(np.asarray(value), mesh, P(*spec)).built()


def test_what_lies_on_devices_is_found_at_any_depth():
    assert lies_on_devices(seen([1, {"a": (lay(V, FRONT, "x"),)}]))
    assert not lies_on_devices(seen([1, {"a": (V, jnp.ones(2))}]))


# Answers that mean no good, or cannot.


def deleted(x):
    x.delete()
    return x


def tracer(x):
    kept = []
    jax.jit(lambda a: kept.append(a) or a)(x)
    return kept[0]


def nested_in_itself(x):
    loop = {}
    loop["loop"] = loop
    return loop


@pytest.mark.parametrize(
    "answer, kind",
    [
        (deleted, "error"),
        (tracer, "error"),
        (nested_in_itself, "error"),
        (lambda x: jax.random.key(0), ("error", "refused")),
        (lambda x: {"held by device": {}}, "refused"),
        (lambda x: object(), "refused"),
        (lambda x: jax.sharding.AbstractMesh((2,), ("x",)), "refused"),
        (lambda x: x.sharding, "refused"),
        (lambda x: ..., "starter"),
        (lambda: 1, "error"),
        (7, "refused"),
    ],
)
def test_hostile_and_hopeless_answers_become_problems(answer, kind):
    (found,) = collect("function", [Ask({}, {"x": OnDevices(V, FRONT, P("x"))})], answer)
    assert isinstance(found, Problem) and found.kind in kind
    assert across(found) == found


@pytest.mark.parametrize(
    "forged",
    [
        {HELD: 3},
        {HELD: {}},
        {HELD: {"device 0": {}}},
        {HELD: {"device 0": {"[0:8]": 1}}},
        {HELD: {"device 0": 3}},
        {HELD: {f"device {k}": {"a": V, "b": V} for k in range(4)}},
        {HELD: {}, "more": 1},
        {HELD: {f"device {k}": {f"[{2 * k}:{2 * k + 2}]": "text"} for k in range(4)}},
    ],
)
def test_a_forged_observation_is_a_wrong_answer_and_no_crash(forged):
    exercise = FunctionExercise("placed", points=1, reference=lambda x: x + x)
    case = Case({"x": OnDevices(V, FRONT, P("x"))})
    found = explained(exercise, [case], [across(Value(forged))])
    assert found.points == 0 and isinstance(found.failure.findings[0], OnWrongDevices)


def test_everything_deep_is_refused_or_said_shortly():
    deep = 1
    for _ in range(50_000):
        deep = [deep]
    (found,) = collect("function", [Ask({}, {})], lambda: deep)
    assert isinstance(found, Problem) and found.error == "RecursionError"
    exercise = FunctionExercise("placed", points=1, reference=lambda x: x + x)
    case = Case({"x": OnDevices(V, FRONT, P("x"))})
    huge = Value({str(k): {"a": list(range(10))} for k in range(2000)})
    assert explained(exercise, [case], [huge]).failure.findings[0] == OnWrongDevices("", (0, 1, 2, 3), ())


# By way of the host.


MOVES = {
    "across": (lambda x: jax.device_put(x, NamedSharding(REAR.built(), P("x"))), ""),
    "numpy": (lambda x: jax.device_put(np.asarray(x), NamedSharding(REAR.built(), P("x"))), "float32[8]"),
    "jnp": (lambda x: jnp.asarray(np.asarray(x)), "float32[8]"),
    "recut": (lambda x: jax.device_put(x, NamedSharding(REAR.built(), P())), "float32[8]"),
    "turned": (lambda x: jax.device_put(x, NamedSharding(OnMesh({"x": 4}, order=(3, 2, 1, 0)).built(), P("x"))), ""),
    "number": (lambda x: 2 * x, ""),
    "raises": (lambda x: 1 / 0, ""),
    "computes": (lambda x: jax.nn.relu(x @ x), ""),
}


@pytest.mark.parametrize("way", MOVES)
def test_an_array_that_comes_up_from_the_host_is_noticed(way):
    move, says = MOVES[way]
    array = OnDevices(V, FRONT, P("x")).built()
    assert moved(move, lambda: {"x": array}, FROM_HOST) == says


def _to(kind, array):
    return jax.device_put(array, array.sharding.with_memory_kind(kind))


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (lambda x, h: _to("pinned_host", x + _to("device", h)), ""),
        (lambda x, h: _to("device", _to("pinned_host", x) + h), "float32[8]"),
        (lambda x, h: _to("pinned_host", x + np.asarray(h)), "float32[8]"),
        (lambda x, h: 1 / 0, ""),
    ],
)
def test_what_is_given_on_devices_and_put_on_the_host_is_noticed(step, says):
    given = {
        name: OnDevices(V, FRONT, P("x"), memory=kind).built() for name, kind in {"x": "", "h": "pinned_host"}.items()
    }
    put = jax.device_put
    assert moved(step, lambda: given, TO_THE_HOST) == says
    assert jax.device_put is put


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (jax.jit(jnp.negative, donate_argnums=0), ""),
        (lambda x: (jax.jit(jnp.negative, donate_argnums=0)(x), jnp.int32(3)), ""),
        (jnp.negative, "float32[8]"),
        (lambda x: jnp.negative(jax.jit(jnp.negative, donate_argnums=0)(x)), "float32[8]"),
    ],
)
def test_what_does_not_take_the_place_of_what_was_given_is_noticed(step, says):
    assert moved(lambda x: step(x), lambda: {"x": OnDevices(V, FRONT, P("x")).built()}, NOT_IN_PLACE) == says


@pytest.mark.parametrize("barred", [FROM_HOST, ""])
def test_only_exercises_that_ask_for_it_mind_the_host(barred):
    exercise = FunctionExercise("placed", points=1, reference=MOVES["across"][0], barred=barred)
    cases = [Case({"x": OnDevices(V, FRONT, P("x"))})]
    answers = across(collect("function", across(asks(exercise, cases)), MOVES["numpy"][0]))
    found = explained(exercise, cases, answers)
    assert found.passed is not bool(barred)
    assert not barred or found.failure.findings == (BarredWay(FROM_HOST, "float32[8]"),)


def test_where_it_lies_comes_before_how_it_came():
    exercise = FunctionExercise("placed", points=1, reference=MOVES["across"][0], barred=FROM_HOST)
    cases = [Case({"x": OnDevices(V, FRONT, P("x"))})]
    found = explained(exercise, cases, collect("function", asks(exercise, cases), MOVES["recut"][0]))
    assert found.failure.findings[0] == WrongShard("", 4, "[0:2]", "[0:8]")


def test_plain_refuses_what_only_looks_observed():
    with pytest.raises(Refused, match="held by device"):
        plain([{HELD: {"device 0": {"[0:8]": V}}}])


def test_work_that_gives_its_arguments_away_is_given_new_ones():
    """It is called twice; what an earlier call was given is deleted then, and to use it ends the process."""

    def build():
        return {"x": OnDevices(V, FRONT, P("x")).built()}

    assert moved(lambda x: jax.jit(jnp.negative, donate_argnums=0)(x), build, TO_THE_HOST) == ""
