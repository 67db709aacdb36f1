"""Where a program's collectives and layouts were written: lines of its author's own cells, beside it, no part of it.

Origins are for showing alone. They come from where a student's code runs, so nobody believes them, and nothing is
decided by them: equal programs stay equal wherever they were written.
"""

from __future__ import annotations

import itertools
import linecache
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from grader.jax_versions import Spot, spots
from grader.programs.collectives import OF_PRIMITIVE
from grader.programs.jaxprs import equations

LONGEST_LINE = 120  # characters of a line that are shown
MOST_ORIGINS = 128  # of a program: it has more collectives only where a loop is written out, line for line the same
ERROR = "error"  # the kind of what an answer stopped with
VALUE = "value"  # and of a plain answer
# What else of JAX's has a place: what divides arrays among devices.
DIVIDES = {"shard_map": "shard_map", "sharding_constraint": "layout", "reshard": "layout"}


@dataclass(frozen=True)
class Line:
    """A line of a cell: its number, from 1; its text; and the characters of it that are meant, none where both are 0.

    `backward`: what is meant is what its gradient does. `function` is the one that the line is in.
    """

    number: int
    text: str
    start: int = 0
    end: int = 0
    backward: bool = False
    function: str = ""


@dataclass(frozen=True)
class Origin:
    """A kind of collective, an error, a plain value, or what divides arrays; and the line that it comes from, None
    where that is in no cell."""

    kind: str
    line: Line | None

    @property
    def divides(self) -> bool:
        return self.kind in DIVIDES.values()


def origins_in(jaxpr: Any) -> tuple[Origin, ...]:
    """Where the collectives of a traced function were written, and what divides arrays, in the order of the program; ()
    of too many."""
    found = tuple(itertools.islice(_origins(jaxpr), MOST_ORIGINS + 1))
    return found if len(found) <= MOST_ORIGINS else ()


def _origins(jaxpr: Any) -> Iterator[Origin]:
    for eqn, backward in equations(jaxpr):
        if kind := OF_PRIMITIVE.get(eqn.primitive.name):
            yield from [Origin(kind, line_of_a_cell(spots(eqn), backward=backward))] * len(eqn.invars)
        if kind := DIVIDES.get(eqn.primitive.name):
            yield Origin(kind, line_of_a_cell(spots(eqn), backward=backward))


def line_of_a_cell(inside_out: Iterable[Spot], *, backward: bool = False) -> Line | None:
    """The innermost of these spots in the cell that the answer itself is in: cells are in no file.

    An answer is called by the grader, so its own function is the outermost of those in cells. What it calls in other
    cells, such as what a lesson gives, may be right. A cell's own call, outside of all functions, only came first.
    """
    in_cells = [spot for spot in inside_out if _source(spot).strip()]
    called = [spot for spot in in_cells if spot.function != "<module>"] or in_cells
    spot = next((spot for spot in called if spot.file == called[-1].file), None)
    return line_shown(_source(spot), spot, backward) if spot else None


def _source(spot: Spot) -> str:
    """The line that a spot begins on; "" where it is in no cell."""
    return linecache.getline(spot.file, spot.first).rstrip("\n") if is_cell(spot.file) else ""


def is_cell(file: str) -> bool:
    """Whether this is no file: lines of a cell are kept in memory alone."""
    return not os.path.exists(file) and bool(linecache.getlines(file))


def line_shown(source: str, spot: Spot, backward: bool) -> Line:
    """A spot in the line that it begins on. (Python counts columns in bytes of UTF-8.)"""
    indent, encoded = len(source) - len(source.lstrip()), source.encode()
    start, end = (len(encoded[:column].decode(errors="ignore")) - indent for column in (spot.start, spot.end))
    text = source.strip()
    start, end = max(start, 0), len(text) if spot.last > spot.first else end
    skipped = start if start >= LONGEST_LINE else 0
    text, start, end = text[skipped : skipped + LONGEST_LINE], start - skipped, min(end - skipped, LONGEST_LINE)
    start, end = (start, end) if start < end else (0, 0)
    return Line(spot.first, text, start, end, backward, spot.function.rpartition(".")[2][:LONGEST_LINE])
