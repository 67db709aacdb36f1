"""What the judge and the evaluator say to each other, as JSON types and back.

Whatever comes from an evaluator is untrusted: reading it builds nothing but the records below, whose parts
have the types and sizes that they say, or raises ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import Blocks
from grader.arrays.laid import Array
from grader.chips.compiling import Request
from grader.chips.report import Fit
from grader.exercises.as_json import LEGIBLE, PLAIN, PROGRAM, SPEC, to_json, value_from_json
from grader.exercises.codecs import FLAG, Codec, data_class, optional, plain_type, refusing, tuple_of
from grader.programs.collectives import COLLECTIVE_KINDS
from grader.programs.execution import Ran, Result
from grader.programs.origins import DIVIDES, ERROR, LONGEST_LINE, MOST_ORIGINS, VALUE, Line, Origin
from grader.programs.program import Program
from grader.programs.structure import Collective, Manual, Structure

MOST_COUNTED = 1 << 62  # bytes or FLOPs that any count may say
LONGEST = 400  # characters of a name or layout
LAST_LINE = 1_000_000  # that a cell may have


def question(program: Program) -> dict[str, Any]:
    return {"program": PROGRAM.write(program)}


def run_of(mesh: Mapping[str, int], arrays: Sequence[Array], specs: Sequence[P]) -> dict[str, Any]:
    """The second half of a question: run it on these arrays, and hold its results against these specs."""
    return {"mesh": SIZES.write(mesh), "arrays": ARRAYS.write(tuple(arrays)), "specs": SPECS.write(tuple(specs))}


def to_compile(asked: Request) -> dict[str, Any]:
    """A question to a compiler: the program, and for which pod and layouts."""
    return {"facts": asked.facts, "program": PROGRAM.write(Program(asked.program))}


def request_in(question: Mapping[str, Any]) -> Request:
    """The inverse of `to_compile`; the judge alone asks."""
    facts = question["facts"]
    order, arguments, donated = (tuple(facts[name]) for name in ("order", "arguments", "donated"))
    program = PROGRAM.read(question["program"]).artefact
    return Request(program, facts["pod"], facts["mesh"], order, arguments, donated)


def inputs(question: Mapping[str, Any]) -> tuple[Mapping[str, int], tuple[Array, ...], tuple[P, ...]]:
    return SIZES.read(question["mesh"]), ARRAYS.read(question["arrays"]), SPECS.read(question["specs"])


@refusing
def forms_in(data: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(NAME.read(place), COUNTS.read(shape)) for place, shape in data]


def _sizes(data: Any) -> dict[str, int]:
    return {NAME.read(axis): COUNT.read(size) for axis, size in data}


def _part(data: Any) -> slice:
    start, stop = COUNTS.read(data)
    return slice(start, stop)


def _block(data: Any) -> np.ndarray:
    array = value_from_json(data)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufc":
        raise ValueError("a block is an array of numbers")
    return array


def _plain(block: np.ndarray) -> np.ndarray:
    return block.astype(np.float32) if block.dtype.kind == "V" else block  # bfloat16 and its like


def _blocks(data: Any) -> Blocks:
    blocks = UNPLACED.read(data)
    if not len(blocks.indices) == math.prod(blocks.mesh.values()) > 0:
        raise ValueError("there is one block for each device, and at least one")
    for index, block in zip(blocks.indices, blocks.values or (), strict=True):
        if block.shape != tuple(part.stop - part.start for part in index) or any(
            part.stop > length for part, length in zip(index, blocks.shape, strict=True)
        ):
            raise ValueError("a block does not fit its place")
    return blocks


def _pair(data: Any) -> tuple[int, int]:
    one, other = COUNTS.read(data)  # other lengths raise ValueError
    return one, other


def _fits_a_line(text: str) -> bool:
    return len(text) <= LONGEST_LINE


def _origins(data: Any) -> tuple[Origin, ...]:
    if not isinstance(data, list) or len(data) > MOST_ORIGINS:
        raise ValueError("no list of origins, or too long a one")
    return tuple(map(ORIGIN.read, data))


COUNT = plain_type(int, lambda count: 0 <= count < MOST_COUNTED)
COUNTS = tuple_of(COUNT)
PAIR = Codec(COUNTS.write, _pair)
SHORT = plain_type(str, lambda name: len(name) <= LONGEST)
NAME = Codec(SHORT.write, lambda body: LEGIBLE.read(SHORT.read(body)))
NAMES = tuple_of(NAME)
SIZES: Codec[Mapping[str, int]] = Codec(lambda mesh: [list(size) for size in mesh.items()], _sizes)
SPECS = tuple_of(SPEC)
ARRAYS = tuple_of(data_class(Array, value=PLAIN, spec=SPEC))
PART = Codec(lambda part: [part.start, part.stop], _part)
UNPLACED = data_class(
    Blocks,
    mesh=SIZES,
    shape=COUNTS,
    indices=tuple_of(tuple_of(PART)),
    values=tuple_of(Codec(lambda block: to_json(_plain(block)), _block)),
)
BLOCKS = Codec(UNPLACED.write, _blocks)

COLLECTIVE = data_class(
    Collective,
    kind=plain_type(str, COLLECTIVE_KINDS.__contains__),
    axes=NAMES,
    group=COUNT,
    operand=COUNTS,
    dtype=NAME,
    bytes=COUNT,
    times=optional(COUNT),
    implicit=FLAG,
    overlappable_flops=COUNT,
    around=PAIR,
    shift=COUNT,
    visits=optional(COUNTS),
)
MANUAL = data_class(Manual, axes=NAMES, in_specs=SPECS, out_specs=SPECS)
STRUCTURE = data_class(
    Structure,
    mesh=SIZES,
    manual=tuple_of(MANUAL),
    collectives=tuple_of(COLLECTIVE),
    dot_flops=COUNT,
    foreign=NAMES,
    steps=COUNT,
    donated=COUNTS,
    roots=COUNT,
    largest_product=COUNT,
    is_unbounded=FLAG,
)
LAYOUT = Codec(lambda layout: layout[:LONGEST], NAME.read)
RESULT = data_class(Result, blocks=BLOCKS, layout=LAYOUT, as_asked=FLAG)
SENT = tuple_of(COLLECTIVE)
RAN = data_class(Ran, results=tuple_of(RESULT), flops=COUNT, peak_bytes=COUNT, compiled=SENT, marked=FLAG)
COLUMN = plain_type(int, lambda column: 0 <= column <= LONGEST_LINE)
REFUSAL = plain_type(str, lambda words: len(words) <= 10 * LONGEST)
LINE = data_class(
    Line,
    number=plain_type(int, lambda number: 0 < number < LAST_LINE),
    text=Codec(lambda text: text[:LONGEST_LINE], lambda body: LEGIBLE.read(plain_type(str, _fits_a_line).read(body))),
    start=COLUMN,
    end=COLUMN,
    backward=FLAG,
    function=NAME,
)
PLACED = {*COLLECTIVE_KINDS, *DIVIDES.values(), ERROR, VALUE}
ORIGIN = data_class(Origin, kind=plain_type(str, PLACED.__contains__), line=optional(LINE))
ORIGINS = Codec(lambda several: [ORIGIN.write(one) for one in several], _origins)
ALL_ORIGINS = Codec(tuple_of(ORIGINS).write, refusing(tuple_of(ORIGINS).read))  # of the answers to all cases
FIT = data_class(
    Fit,
    refusal=Codec(lambda words: words[: 10 * LONGEST], lambda body: LEGIBLE.read(REFUSAL.read(body))),
    held=COUNT,
    flops=COUNT,
)
