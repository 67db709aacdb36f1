"""What lesson 20 adds to the machine: other memories, meshes left behind, programs with keys; and two processes."""

import json
import os
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader import communication
from grader.arrays.described import HELD, OnDevices, OnMesh, lies_on_devices
from grader.checking import verdict_on
from grader.exercises.answers import Ask, Value
from grader.exercises.as_json import question_from_json, to_json
from grader.exercises.collecting import asks, collect
from grader.exercises.plain import plain
from grader.findings.values import WrongShard
from grader.judging.differing import first_difference
from grader.lessons.sharp_bits.promises import LINE, NUMPY_INTO_JIT, numpy_into_jit

V = np.arange(8, dtype=np.float32)
FOUR = OnMesh({"x": 4})


def across(value):
    return question_from_json(json.loads(json.dumps(to_json(value))))


def seen(array):
    return across(Value(plain(array))).value


@pytest.mark.parametrize("memory", ["pinned_host", "unpinned_host"])
def test_an_array_in_another_memory_is_built_and_seen_there(memory):
    described = across(Ask({}, {"m": OnDevices(V, FOUR, P("x"), memory=memory)})).arguments["m"]
    array = described.built()
    assert array.sharding.memory_kind == memory and memory in repr(described)
    assert seen(array)[HELD]["device 1"][f"[2:4] in {memory}"].tolist() == [2, 3]


def test_the_devices_own_memory_is_not_mentioned():
    array = OnDevices(V, FOUR, P("x")).built()
    named = jax.device_put(array, array.sharding.with_memory_kind(jax.devices()[0].default_memory().kind))
    assert list(seen(named)[HELD]["device 0"]) == ["[0:2]"] == list(seen(array)[HELD]["device 0"])


def test_an_array_on_one_device_is_told_by_device_where_it_lies_elsewhere():
    one = OnDevices(V, OnMesh({"x": 1})).built()
    assert isinstance(plain(one), np.ndarray)
    assert lies_on_devices(plain(jax.device_put(one, one.sharding.with_memory_kind("pinned_host"))))


def test_the_difference_says_in_which_memory():
    near, far = OnDevices(V, FOUR, P("x")).built(), OnDevices(V, FOUR, P("x"), memory="pinned_host").built()
    assert first_difference(seen(near), seen(far)) == WrongShard("", 0, "[0:2] in pinned_host", "[0:2]")
    assert first_difference(seen(far), seen(near)) == WrongShard("", 0, "[0:2]", "[0:2] in pinned_host")


def test_a_mesh_left_behind_does_not_reach_the_judge():
    table = {row: numpy_into_jit.reference(row) for row in NUMPY_INTO_JIT}
    left = jax.set_mesh(jax.make_mesh((8,), ("z",), axis_types=(AxisType.Explicit,)))
    try:
        assert verdict_on("numpy_into_jit", table).passed
        assert verdict_on("own_numbers", _own_numbers).passed
    finally:
        left.__exit__(None, None, None)
    assert len(jnp.arange(8).sharding.device_set) == 1


def _own_numbers(x, seed, *, mesh):
    def body(block):
        key = jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("x"))
        return block + jax.random.uniform(key, block.shape)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def test_an_answer_that_sets_a_mesh_leaves_none_behind():
    def sets(x, seed, *, mesh):
        jax.set_mesh(mesh)
        return x

    collect("program", asks(numpy_into_jit, numpy_into_jit.draw_cases())[:1], sets)
    assert len(jnp.arange(8).sharding.device_set) == 1


def test_a_key_that_lies_on_no_mesh_does_not_hide_the_mesh():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    x = jax.device_put(jnp.arange(24.0), NamedSharding(mesh, P("x")))
    with jax.threefry_partitionable(False):
        report = communication(lambda key, x: x + jax.random.uniform(key, x.shape), jax.random.key(0), x)
    assert {c.axes for c in report.collectives} == {("x",)}


# numpy_into_jit is a rule in the lesson's module. Here two processes try it.

PROGRAM = """
import sys
import jax
jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((len(jax.devices()),), ("x",), axis_types=(AxisType.Auto,))
numbers = np.arange(8, dtype=np.float32)
for spec in (P(), P("x")):
    lies = NamedSharding(mesh, spec)
    made = jax.make_array_from_callback((8,), lies, lambda index: numbers[index])
    for kind, given in {"numpy": numbers, "made": made}.items():
        try:
            jax.block_until_ready(jax.jit(lambda a: 2 * a, in_shardings=lies)(given))
            print("said", spec == P("x"), kind, "runs", flush=True)
        except ValueError as error:
            assert str(error).startswith("Passing non-trivial shardings for numpy inputs is not allowed"), error
            print("said", spec == P("x"), kind, "error", flush=True)
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_processes_say_the_same_as_the_rule(processes):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        where = f"localhost:{free.getsockname()[1]}"
    plain_environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, where, str(processes), str(k)],
            env=plain_environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for k in range(processes)
    ]
    try:
        said = [process.communicate(timeout=120)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    for text in said:
        lines = [line.split() for line in text.splitlines() if line.startswith("said")]
        found = {(cut, kind): outcome for _, cut, kind, outcome in lines}
        assert len(found) == 4, text
        for row, (count, spec, of_numpy) in NUMPY_INTO_JIT.items():
            if count == processes:
                kind = str(spec == P(*LINE)), "numpy" if of_numpy else "made"
                assert found[kind] == numpy_into_jit.reference(row), (row, text)
