"""What is asked of an answer, and what comes back.

An `Ask` has no values of a program's arrays: shapes, dtypes and layouts are enough to trace it. A `Program`, a `Value`,
a `Script` or a `Problem` says everything that the judge may know. All have a JSON form (`grader.exercises.as_json`), so
that they cross from one process to another as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jax.sharding import PartitionSpec as P

from grader.findings.problems import Refusal
from grader.programs.origins import ERROR, VALUE, Line, Origin
from grader.programs.program import Program


@dataclass(frozen=True)
class Layout:
    """An array argument without its values."""

    shape: tuple[int, ...]
    dtype: str
    spec: P


@dataclass(frozen=True)
class Ask:
    """What a case asks of an answer. The values of a program's arrays are not among it.

    Where there are `cotangents`, the gradient for them is asked for, too. A program for a `pod` is written for its
    chips, which are not here.
    """

    mesh: Mapping[str, int]
    arguments: Mapping[str, Any]
    key: str = ""
    explicit: bool = False
    barred: str = ""
    cotangents: Any = None
    pod: str = ""


@dataclass(frozen=True)
class Value:
    """A plain result: numbers, strings, NumPy arrays, and lists, tuples and dicts of them.

    `moved` is the type of an array that travelled on the way that the ask bars. `line` is the line of the student's own
    cell that says or returns it, where that is known; equal values stay equal wherever they came up.
    """

    value: Any
    moved: str = ""
    line: Line | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Problem:
    """No answer, and why.

    `kind`: "missing" (the name does not exist), "starter" (still the `...` of the starter), "error"
    (it raised `error` with `message`, while JAX was given arrays of the types `operands`), "refused"
    (`refusal` says why it cannot be judged). `line` is the line of the student's own cell that led there, where that is
    known; equal problems stay equal wherever they came up.
    """

    kind: Literal["missing", "starter", "error", "refused"]
    error: str = ""
    message: str = ""
    operands: tuple[str, ...] = ()
    line: Line | None = field(default=None, compare=False)
    refusal: Refusal | None = None


@dataclass(frozen=True)
class Script:
    """A function as text, to be run in several processes: `main` is its name."""

    source: str
    main: str


Answer = Program | Value | Problem | Script


def origins_of(answer: Answer) -> tuple[Origin, ...]:
    """Where what an answer does was written, as far as that is known here."""
    if isinstance(answer, (Problem, Value)):
        kind = ERROR if isinstance(answer, Problem) else VALUE
        return (Origin(kind, answer.line),) if answer.line else ()
    return answer.origins if isinstance(answer, Program) else ()
