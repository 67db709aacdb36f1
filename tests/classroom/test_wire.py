"""What an evaluator says is read by name, and read only when every part of it is what it should be."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.chips.compiling import Request
from grader.chips.report import Fit
from grader.classroom.inside import wire
from grader.programs.execution import Ran, Result
from grader.programs.origins import Line, Origin
from grader.programs.structure import Collective, Manual, Structure

SHIFTED = Collective("collective_permute", ("x",), 4, (2, 3), "f32", 24, 3, True, 5, (7, 9), 1, (1, 0, 1, 0))
BRANCHED = Collective("all_reduce", (), 8, (), "bf16", 2, None)
STRUCTURE = Structure(
    {"x": 4, "y": 2},
    (Manual(("x",), (P("x", None), P(("x", "y"))), (P(),)),),
    (SHIFTED, BRANCHED),
    7,
    ("f",),
    3,
    (0, 2),
    5,
)
RESULT = Result(blocks((8, 2), P("x"), {"x": 4}, np.arange(16.0).reshape(8, 2)), "P('x')", True)
RAN = Ran((RESULT,), 12, 96, (BRANCHED,))


@pytest.mark.parametrize("record", [wire.COLLECTIVE, wire.MANUAL, wire.STRUCTURE, wire.RESULT, wire.RAN])
def test_every_field_crosses(record):
    assert list(record.fields) == [field.name for field in fields(record.of)]


def test_what_is_said_comes_back():
    assert wire.STRUCTURE.read(json.loads(json.dumps(wire.STRUCTURE.write(STRUCTURE)))) == STRUCTURE
    ran = wire.RAN.read(json.loads(json.dumps(wire.RAN.write(RAN))))
    assert (ran.flops, ran.compiled) == (RAN.flops, RAN.compiled)
    (result,) = ran.results
    assert (result.layout, result.as_asked, result.blocks.indices) == ("P('x')", True, RESULT.blocks.indices)
    assert all(map(np.array_equal, result.blocks.values, RESULT.blocks.values))


ODD = (None, True, -1, 1 << 62, 0.5, "x" * 401, [[[]]], {"array": "AAAA"}, [None])


def leaves(data, *path):
    """The way to every part that is no list and no record, and to every list and record."""
    yield path
    for key, part in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from leaves(part, *path, key)


def replaced(data, path, part):
    copy = json.loads(json.dumps(data))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = part
    return copy


@pytest.mark.parametrize(
    ("read", "said"),
    [(wire.STRUCTURE.read, wire.STRUCTURE.write(STRUCTURE)), (wire.RAN.read, wire.RAN.write(RAN))],
    ids=["structure", "ran"],
)
def test_nothing_else_is_read(read, said):
    """Each part in turn is something else: it is refused, or it is read as nothing but a record of the right types."""
    said = json.loads(json.dumps(said))
    tried = refused = 0
    for path in filter(None, leaves(said)):
        for part in ODD:
            tried += 1
            try:
                found = read(replaced(said, path, part))
            except ValueError:
                refused += 1
            else:
                assert json.dumps(
                    wire.STRUCTURE.write(found) if isinstance(found, Structure) else wire.RAN.write(found)
                )
    assert refused > 0.85 * tried


@pytest.mark.parametrize("name", wire.COLLECTIVE.fields)
def test_a_field_too_few_or_too_many_is_refused(name):
    said = wire.STRUCTURE.write(STRUCTURE)
    short = [{key: part for key, part in c.items() if key != name} for c in said["collectives"]]
    long = [{**c, "more": 1} for c in said["collectives"]]
    for collectives in (short, long, [list(c.values()) for c in said["collectives"]]):
        with pytest.raises(ValueError):
            wire.STRUCTURE.read({**said, "collectives": collectives})


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("kind", "all_nothing"),
        ("kind", ["all_reduce"]),
        ("axes", [3]),
        ("axes", 3),
        ("group", True),
        ("group", "4"),
        ("bytes", -1),
        ("bytes", 1 << 62),
        ("dtype", "f" * 401),
        ("implicit", 1),
        ("times", "3"),
        ("visits", [1.5]),
    ],
)
def test_a_field_of_another_type_is_refused(name, part):
    said = wire.STRUCTURE.write(STRUCTURE)
    with pytest.raises(ValueError):
        wire.STRUCTURE.read({**said, "collectives": [{**said["collectives"][0], name: part}]})


def test_a_question_to_a_compiler_comes_back_whole():
    asked = Request(b"bytes", "v5e:2x4", {"x": 8}, tuple(range(8)), (([16], "bfloat16", ["x"]),), (0,))
    heard = wire.request_in(json.loads(json.dumps(wire.to_compile(asked))))
    assert (heard.key, heard.program, heard.order) == (asked.key, asked.program, asked.order)


def test_what_a_compiler_says_is_read_within_limits():
    fit = Fit("Ran out of memory", 17, 0)
    assert wire.FIT.read(json.loads(json.dumps(wire.FIT.write(fit)))) == fit
    for odd in ({"refusal": "x" * 5000, "held": 1, "flops": 1}, {"refusal": "", "held": -1, "flops": 1}, {"held": 1}):
        with pytest.raises(ValueError):
            wire.FIT.read(odd)


ORIGINS = [[Origin("all_reduce", Line(7, 'jax.lax.psum(part, "y")', 0, 23, True)), Origin("error", None)], []]


@pytest.mark.parametrize("record", [wire.LINE, wire.ORIGIN])
def test_every_field_of_an_origin_crosses(record):
    assert list(record.fields) == [field.name for field in fields(record.of)]


def test_origins_come_back_and_nothing_else_does():
    said = json.loads(json.dumps(wire.ALL_ORIGINS.write(ORIGINS)))
    assert wire.ALL_ORIGINS.read(said) == tuple(map(tuple, ORIGINS))
    for odd in (None, "x", 3, [3], [None], [{}], [[3]], [[{}]]):
        with pytest.raises(ValueError):
            wire.ALL_ORIGINS.read(odd)
    line = said[0][0]["line"]
    for field, values in {
        "number": (0, -1, 1 << 40, True, "7"),
        "text": ("x" * 121, 3, None),
        "start": (-1, 121, None, 0.5),
        "end": (1 << 70, "9"),
        "backward": (1, None),
    }.items():
        for value in values:
            with pytest.raises(ValueError):
                wire.ALL_ORIGINS.read([[{"kind": "error", "line": {**line, field: value}}]])
    with pytest.raises(ValueError):
        wire.ALL_ORIGINS.read([[{"kind": "<script>", "line": None}]])
    with pytest.raises(ValueError):
        wire.ALL_ORIGINS.read([[{"kind": "error", "line": None}] * 129])


def test_a_line_that_crosses_turns_no_writing_round():
    (read,) = wire.ORIGINS.read([{"kind": "error", "line": wire.LINE.write(Line(1, "a\u202eb\x1b[2J"))}])
    assert read.line.text == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}[2J"
