"""What the cases of a plain function have in common, and which change to the reference gives the same results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.findings.finding import Finding, Rank
from grader.findings.relations import OnlyThere


@dataclass(frozen=True)
class GivenArgument(Finding):
    """An argument of a case: its value as text, or the dtype, shape, and sharding of an array. It may differ from
    process to process, or between the life of a process that is killed and the next."""

    name: str
    value: str
    each: Literal["", "process", "life", "first process", "first life"] = ""


@dataclass(frozen=True)
class InCase(Finding):
    """The case in which a check was missed: the mesh, the arguments, and the pod that it is compiled for."""

    mesh: tuple[tuple[str, int], ...]
    given: tuple[GivenArgument, ...]
    pod: str = ""


@dataclass(frozen=True)
class HasValue(Finding):
    """An argument, or its number of elements, has this value in every wrong case and in no right one. `only`: the other
    way around, in every right case and in no wrong one."""

    argument: str
    value: str
    of: Literal["value", "length"] = "value"
    only: bool = False


@dataclass(frozen=True)
class ErrorExpected(Finding):
    """An error is expected in every wrong case and in no right one. `only`: the other way around."""

    only: bool = False


@dataclass(frozen=True)
class RightWith(Finding):
    """The right case that is most like the first wrong one: the arguments in which they differ, as they are there."""

    arguments: tuple[tuple[str, str], ...]


Pattern = HasValue | ErrorExpected | RightWith  # how the wrong cases differ from the others


@dataclass(frozen=True)
class RightIn(Finding, rank=Rank.SOME):
    """So many cases are right; how the others differ from them, if that is known."""

    right: int
    of: int
    processes: bool = False
    pattern: Pattern | None = None


@dataclass(frozen=True)
class InFirstCase(Finding, rank=Rank.RELATION - 10):
    """What is true of the first wrong case, and not of all."""

    finding: Finding
    process: bool = False


@dataclass(frozen=True)
class FunctionChange(Finding):
    """One change to a function. `names` are what it is about: an argument, a function, an operator, a number."""

    kind: Literal[
        "instead",
        "left out",
        "not added",
        "not subtracted",
        "not divided by",
        "exchanged",
        "one less",
        "one more",
        "number one larger",
        "number one smaller",
        "multiplied by",
        "divided by",
        "equal numbers",
        "condition dropped",
        "special case dropped",
        "not transposed",
    ]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangedReference(Finding, rank=Rank.CAUSE):
    """In every case the answer, or what it has under a key, is what the reference gives after one of these changes."""

    changes: tuple[FunctionChange, ...]
    key: str = ""


EXAMPLES = (
    InCase((("x", 4), ("y", 2)), (GivenArgument("a", "float32[16,8] P('x', 'y')"), GivenArgument("n", "3"))),
    InCase((("processes", 4),), (GivenArgument("ticket", "[3, 1, 4, 1]", "process"),)),
    RightIn(4, 6, pattern=HasValue("tiled", "True")),
    RightIn(2, 6, pattern=HasValue("sizes", "1", "length", only=True)),
    RightIn(5, 6, pattern=ErrorExpected()),
    RightIn(5, 6, pattern=RightWith((("n", "4"),))),
    RightIn(3, 4, processes=True),
    InFirstCase(OnlyThere(("bytes",))),
    ChangedReference((FunctionChange("instead", ("max", "min")), FunctionChange("one less", ("n",)))),
    ChangedReference((FunctionChange("number one smaller"),), "all_gather"),
)
