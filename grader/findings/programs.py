"""What a program's devices hold: which part of the result is wrong, and which change to the reference gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.findings.finding import Finding, Rank

_Shape = tuple[int, ...]
ShardBounds = tuple[tuple[int, int], ...]  # where a block starts and stops, dimension by dimension


@dataclass(frozen=True)
class ResultPart(Finding):
    """An array of a result: the way to it, such as `result[1]`; of a gradient, with respect to which argument."""

    place: str = ""
    argument: str = ""


# What is missed


@dataclass(frozen=True)
class WrongArrayCount(Finding):
    """The result has more arrays than expected, or fewer."""

    expected: int
    found: int


@dataclass(frozen=True)
class WrongResultKeys(Finding):
    """An array of the result is under other keys of dicts than expected."""

    expected: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True)
class WrongResultShape(Finding):
    """An array of the result has another shape."""

    part: ResultPart
    expected: _Shape
    found: _Shape


@dataclass(frozen=True)
class WrongResultDtype(Finding):
    """An array of the result has a dtype that cannot hold the expected elements, or of which no gradient is taken."""

    part: ResultPart
    expected: str
    found: str


@dataclass(frozen=True)
class NoGradient(Finding):
    """No gradient is taken of the result: its arrays are right, but in other containers."""


@dataclass(frozen=True)
class WrongElement(Finding):
    """The first wrong element of the first wrong array, on the first device that has it. `replicated`: each device is
    said to hold the full array."""

    part: ResultPart
    device: int
    replicated: bool
    bounds: ShardBounds
    index: tuple[int, ...]
    expected: str
    found: str


@dataclass(frozen=True)
class WrongSharding(Finding):
    """The values are right, the sharding is not. The numbers are those of the elements on one device."""

    part: ResultPart
    expected: str
    found: str
    expected_elements: int
    found_elements: int


@dataclass(frozen=True)
class FitUnknown(Finding):
    """No compiler says whether a program fits a pod."""

    reason: str


@dataclass(frozen=True)
class PodRefusal(Finding):
    """The compiler of a pod refuses a program."""

    pod: str
    message: str


@dataclass(frozen=True)
class NothingDone(Finding):
    """The program does just what the formula does with no shardings in it, so it earns nothing."""


# What explains it


@dataclass(frozen=True)
class StepChanged(Finding, rank=Rank.CAUSE):
    """The result (or one array of it) of the reference with one step changed.

    The step is named by its operation, as JAX's jaxprs name it, and by its other operand: an argument, or a constant.
    It is left out, done last, or its result counts once per device along some axes (all if there are none), or is
    divided by their number.
    """

    change: Literal["left out", "done last", "once per device", "divided by devices"]
    operation: str
    argument: str = ""
    constant: str = ""
    axes: tuple[str, ...] = ()
    part: ResultPart | None = None


@dataclass(frozen=True)
class SharesCounted(Finding, rank=Rank.RELATION + 16):
    """On a device the result (or a region of its block) sums what the devices' shards of an argument give, but not each
    once: some are missing, others count several times. The sum may be the one expected in another region."""

    argument: str
    device: int
    missing: tuple[int, ...]
    repeated: tuple[tuple[int, int], ...]  # a device, and how many times it counts
    region: ShardBounds | None = None
    expected_in: ShardBounds | None = None


@dataclass(frozen=True)
class PassedElsewhere(Finding, rank=Rank.SOME + 1):
    """This check is passed on another mesh; on the same one, with other arguments."""

    check: str
    there: _Shape
    here: _Shape


@dataclass(frozen=True)
class RightParts(Finding, rank=Rank.SOME):
    """The first arrays of a result that are right, and how many more there are."""

    parts: tuple[ResultPart, ...]
    more: int


@dataclass(frozen=True)
class AlikeParts(Finding, rank=Rank.SOME):
    """Of which wrong arrays a relation is true, and which others are wrong: the first of each, and how many more."""

    parts: tuple[ResultPart, ...]
    more: int
    others: tuple[ResultPart, ...]
    more_others: int


@dataclass(frozen=True)
class AxisShards(Finding):
    """Which dimension a mesh axis shards, and which it should; None: no dimension."""

    axis: str
    found: int | None
    expected: int | None


@dataclass(frozen=True)
class AxesShard(Finding, rank=Rank.CAUSE):
    """Mesh axes shard other dimensions than expected."""

    axes: tuple[AxisShards, ...]


@dataclass(frozen=True)
class ShardsElsewhere(Finding, rank=Rank.RELATION):
    """The dimensions are sharded by other axes than those of the mesh, or by the expected ones in another order."""


_W, _GRADIENT = ResultPart("result[1]['w']"), ResultPart("", "w")
EXAMPLES = (
    WrongArrayCount(13, 12),
    WrongResultKeys(("w",), ()),
    WrongResultShape(ResultPart(), (8, 4), (8, 16)),
    WrongResultDtype(_W, "float32", "int32"),
    NoGradient(),
    WrongElement(ResultPart(), 0, False, ((0, 16), (0, 4)), (1, 0), "7", "1"),
    WrongElement(_GRADIENT, 3, True, ((0, 8),), (5,), "0.25", "2"),
    WrongElement(ResultPart("result[0]"), 0, True, (), (), "3.52669", "3.5564"),
    WrongSharding(_W, "P('x', None)", "P()", 16, 64),
    FitUnknown("There is no TPU compiler here."),
    PodRefusal("v5e:4x4", "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm."),
    NothingDone(),
    StepChanged("left out", "add", argument="b"),
    StepChanged("done last", "max", constant="0", part=_W),
    StepChanged("once per device", "add", argument="b", axes=("x",)),
    StepChanged("divided by devices", "dot_general"),
    SharesCounted("x", 0, (1, 3), ((0, 2),)),
    SharesCounted("x", 0, (), (), ((0, 2), (0, 8)), ((2, 4), (0, 8))),
    PassedElsewhere("values", (4, 2), (2, 4)),
    PassedElsewhere("values", (4, 2), (4, 2)),
    PassedElsewhere("communication", (4, 2), (2, 4)),
    RightParts((_W,), 3),
    AlikeParts((_W, ResultPart("result[1]['b']")), 0, (ResultPart("result[0]"),), 2),
    AxesShard((AxisShards("x", 0, 1), AxisShards("y", None, 0))),
    ShardsElsewhere(),
)
