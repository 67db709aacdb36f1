"""What comes over the wire, whatever it is: a value that says the same when it is written again, or a ValueError."""

from __future__ import annotations

import json

import numpy as np
from fuzzing import fuzz
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.classroom.inside import wire
from grader.exercises.answers import Problem, Script, Value
from grader.exercises.as_json import from_json, to_json
from grader.processes.launch import Launch, launch_of
from grader.programs.execution import Ran, Result
from grader.programs.program import Program
from grader.programs.structure import Collective, Manual, Structure

SENT = (Collective("all_reduce", ("x",), 4, (2, 3), "f32", 24, None, visits=(1, 0, 1, 0)),)
STRUCTURE = Structure({"x": 4}, (Manual(("x",), (P("x", None), P(("x",))), (P(),)),), SENT, 7, ("f",), 3)
RESULT = Result(blocks((8, 2), P("x"), {"x": 4}, np.arange(16.0).reshape(8, 2)), "P('x')", True)
RAN = Ran((RESULT,), 12, 96, SENT)
ANSWERS = [
    Value([np.arange(3.0), {"a": (1, 2.5)}, float("inf"), np.ones((2, 0), np.complex64), "text", None, True]),
    Value(np.ones((2, 3), "bfloat16"), "float32[2]"),
    Program(b"no program"),
    Script("def f(): pass", "f"),
    Problem("error", "E", "m", ("float32[2]",)),
]
PROCESS = {"status": 0, "seconds": 1.5, "said": "x", "where": "", "returned": to_json(ANSWERS[0].value)}
LAUNCH = {
    "first": 1,
    "late": False,
    "seconds": 2.0,
    "processes": [PROCESS, {**PROCESS, "status": None, "raised": ["E", "m", "l"]}],
}
KNOWN = [to_json(ANSWERS), wire.STRUCTURE.write(STRUCTURE), wire.RAN.write(RAN), LAUNCH]
KINDS = ("program", "value", "script", "problem", "ask", "layout", "mesh", "laid", "each", "sketch", "spec", "dict")
WORDS = st.sampled_from(
    [*KINDS, "tuple", "cast", "array", "float", "dtype", "shape", "data", "bfloat16", "S99999999", "O"]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(WORDS | st.text(max_size=8), inside, max_size=3),
    max_leaves=12,
)


def _places(data, *path):
    yield path
    for key, part in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from _places(part, *path, key)


@st.composite
def mutated(draw):
    """A valid message, one or two parts of which are something else."""
    data = json.loads(json.dumps(draw(st.sampled_from(KNOWN))))
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from([p for p in _places(data) if p]))
        place = data
        for key in path:
            place = place[key]
        place[last] = draw(ANY)
    return data


def _as_bytes(data) -> bytes:
    return json.dumps(data).encode()


MESSAGES = (ANY | mutated()).map(_as_bytes)


def _again(read, write, data) -> None:
    """Read, written and read again: what is written is the same."""
    try:
        found = read(data)
    except ValueError:
        return
    written = json.loads(json.dumps(write(found)))
    assert json.dumps(write(read(written))) == json.dumps(written)


def test_answers():
    fuzz("answers", MESSAGES, lambda data: _again(from_json, to_json, json.loads(data)))


def _records(data: bytes) -> None:
    said = json.loads(data)
    _again(wire.STRUCTURE.read, wire.STRUCTURE.write, said)
    _again(wire.RAN.read, wire.RAN.write, said)


def test_what_an_evaluator_says():
    fuzz("evaluators", MESSAGES, _records)


def _launched(data: bytes) -> None:
    try:
        launch = launch_of(json.loads(data))
    except ValueError:
        return
    assert isinstance(launch, Launch) and isinstance(launch.headline, str) and repr(launch) is not None


def test_what_a_launcher_says():
    fuzz("launchers", MESSAGES, _launched)


def test_the_known_messages_are_read_and_written_as_they_are():
    assert json.dumps(to_json(from_json(KNOWN[0]))) == json.dumps(KNOWN[0])
    assert wire.STRUCTURE.read(KNOWN[1]) == STRUCTURE
    assert launch_of(LAUNCH).processes[1].raised == ("E", "m", "l")
