"""Why there is nothing to judge: an answer is missing, can't be judged, stops, or must not be run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.findings.finding import Finding, Rank

Reason = Literal[  # and of which names it is told
    "missing",  # the exercise
    "starter",  # the exercise
    "unknown",
    "no function",  # the type of what it is
    "no def",  # the type of what it is
    "no dict",  # the type of what it is
    "no program",
    "returns nothing",
    "holds type",  # a type that can't be compared
    "holds devices",
    "holds dtype",  # the dtype of an array
    "holds key",  # a key that is reserved
    "long number",
    "calls host",  # the callback
    "many results",  # how many, and how many are allowed
    "axis name",  # mesh axes
    "calls outside",  # the target of a custom call
    "no source",  # the function
    "uses enclosing",  # the function, and variables of the one around it
    "uses alias",  # the function, the name it uses, and what that is another name for
    "uses notebook",  # the function, what it uses of the notebook, and the type of that
    "unreduced",  # mesh axes, joined by commas
    "too large",  # how many MiB are allowed
    "unreadable",
]


@dataclass(frozen=True)
class Refusal(Finding):
    """Why an answer can't be judged, or must not be run. This, of all findings, may be part of an answer."""

    reason: Reason
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Raised(Finding):
    """An error was raised: its type, its message, and the types that JAX was given, if its message lists them."""

    error: str
    message: str
    given: str = ""


@dataclass(frozen=True)
class ErrorMeaning(Finding, rank=Rank.SOME):
    """What an error of JAX means, by its name in `grader.exercises.errors`."""

    name: str


@dataclass(frozen=True)
class WouldDeadlock(Finding):
    """A collective that some devices may never call. If that is known: which device waits for which, how often these
    two call it, and how many collectives are like it."""

    collective: str
    axes: tuple[str, ...]
    devices: tuple[int, int] | None = None
    calls: tuple[int, int] | None = None
    alike: int = 1


EXAMPLES = (
    *(Refusal("missing", ("case3",)), Refusal("starter", ("case3",)), Refusal("unknown"), Refusal("no program")),
    *(Refusal("no function", ("int",)), Refusal("no def", ("partial",)), Refusal("no dict", ("list",))),
    *(Refusal("returns nothing"), Refusal("holds type", ("Mesh",)), Refusal("holds devices")),
    *(Refusal("holds dtype", ("object",)), Refusal("holds key", ("held",)), Refusal("calls host", ("pure_callback",))),
    *(Refusal("calls outside", ("lapack_sgesdd",)), Refusal("no source", ("main",))),
    *(Refusal("uses enclosing", ("main", "n", "m")), Refusal("uses alias", ("main", "g", "f"))),
    *(Refusal("uses notebook", ("main", "MESH", "Mesh")), Refusal("unreduced", ("x, y",))),
    *(Refusal("too large", ("4",)), Refusal("unreadable")),
    *(Refusal("long number"), Refusal("many results", ("4,000", "500")), Refusal("axis name", ("é",))),
    Raised("ValueError", "Incompatible shapes for broadcasting: shapes=[(40, 24), (6,)]"),
    *(Raised("AssertionError", ""), Raised("TypeError", "incompatible function arguments.", "int, NoneType")),
    *(ErrorMeaning("broadcasting"), WouldDeadlock("all_reduce", ("x",), (0, 2), (1, 0), 2)),
    WouldDeadlock("all_gather", ("x", "y")),
)
