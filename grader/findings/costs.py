"""What a program sends, computes, or holds that its exercise doesn't allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grader.findings.finding import Finding, Rank


@dataclass(frozen=True)
class SentCollective(Finding):
    """A collective, or all that are alike: how often they run together (None if only a run tells), and the bytes that
    each device sends by them. `implicit`: nobody wrote it; an operand is moved to fit in_specs."""

    collective: str
    axes: tuple[str, ...]
    dtype: str
    operand: tuple[int, ...]
    times: int | None
    bytes_sent: int
    implicit: bool = False


@dataclass(frozen=True)
class NeedlessTransfers(Finding):
    """The compiler inserts collectives that aren't needed; by kind, axes, and operand those that would do."""

    transfers: tuple[SentCollective, ...]
    allowed: tuple[tuple[str, tuple[str, ...], tuple[int, ...]], ...]


@dataclass(frozen=True)
class WrongCollectives(Finding):
    """Collectives run too often, or aren't the ones asked for: by kind, how often each runs, and how often it may."""

    counts: tuple[tuple[str, int, int], ...]
    transfers: tuple[SentCollective, ...]


@dataclass(frozen=True)
class WrongAmount(Finding):
    """A program needs more of something than is enough, or has less of it than it should. `name`: of which kind of
    collective. What the compiler may save along `auto_axes` isn't counted."""

    what: Literal[
        "bytes",  # sent by each device, as the program is written
        "compiled bytes",  # as it is compiled
        "bytes to one neighbor",
        "chain",  # transfers that depend on one another
        "overlap",  # FLOPs of matmuls that can overlap with a transfer
        "written",  # how often a kind of collective is in the program's text
        "flops",
        "roots",
        "largest matmul",
        "peak bytes",
        "donated",  # arrays, of those that come out updated
        "pod flops",
    ]
    expected: int
    found: int
    transfers: tuple[SentCollective, ...] = ()
    auto_axes: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class SendsLess(Finding, rank=Rank.SIDE):
    """A program whose values are wrong sends fewer bytes than it may."""

    allowed: int
    found: int
    transfers: tuple[SentCollective, ...] = ()


@dataclass(frozen=True)
class WrongForm(Finding):
    """A program isn't written, or compiled, in the way that its exercise asks for; which names that is about."""

    what: Literal[
        "no shard_map",
        "shard_map",
        "several shard_maps",  # since a gradient is taken outside
        "manual axes",  # those that should not be, and those that should, joined by commas
        "in_specs",  # they aren't the shardings of the operands
        "unwritten",  # the compiler sends what isn't in a shard_map, or along these axes left to it
        "unwritten unknown",  # an error: its type, and its message
        "unknown count",  # a transfer is in a branch, or in a loop
        "unknown work",  # a matmul, or a root, is in a loop whose number of iterations only a run tells
        "collective",  # its kind and the axis
        "all at once",  # a collective of what should be sent in pieces: its kind and the axis
        "dtype",  # the number of an array, its dtype before, and after
    ]
    names: tuple[str, ...] = ()
    transfers: tuple[SentCollective, ...] = ()


_GATHER = SentCollective("all_gather", ("y",), "f32", (4, 16), 1, 256)
_SUM = SentCollective("all_reduce", ("x",), "f32", (8,), 3, 144)
_COUNTS = ("all_reduce", 3, 1), ("all_gather", 1, 0)
EXAMPLES = (
    *(_GATHER, SentCollective("collective_permute", ("x", "y"), "f32", (8, 4), None, 128, implicit=True)),
    *(NeedlessTransfers((_GATHER,), (("all_to_all", ("x",), (4, 16)),)), NeedlessTransfers((_GATHER, _SUM), ())),
    *(WrongCollectives(_COUNTS, (_SUM, _GATHER)), WrongCollectives(_COUNTS[1:], (_GATHER,))),
    *(WrongAmount("bytes", 144, 2304, (_SUM,), ("y",)), WrongAmount("compiled bytes", 0, 144, (_SUM,))),
    *(WrongAmount("bytes to one neighbor", 384, 768, (_SUM,)), WrongAmount("chain", 4, 7)),
    *(WrongAmount("overlap", 9216, 0, (_GATHER,)), WrongAmount("written", 1, 7, name="collective_permute")),
    *(WrongAmount("flops", 224, 924), WrongAmount("roots", 32, 64), WrongAmount("largest matmul", 1024, 4096)),
    *(WrongAmount("largest matmul", 4096, 1024), WrongAmount("peak bytes", 4096, 16384), WrongAmount("donated", 2, 1)),
    *(WrongAmount("pod flops", 4096, 16384), WrongAmount("pod flops", 4096, 1024)),
    *(SendsLess(288, 48, (_SUM,)), SendsLess(288, 0), WrongForm("no shard_map"), WrongForm("shard_map")),
    *(WrongForm("several shard_maps"), WrongForm("manual axes", ("y", "x")), WrongForm("in_specs", (), (_GATHER,))),
    *(WrongForm("unwritten", ("y",), (_SUM,)), WrongForm("unwritten unknown", ("ValueError", "no such program"))),
    *(
        WrongForm("unknown count", (), (_SUM,)),
        WrongForm("unknown work"),
        WrongForm("collective", ("all_reduce", "model"), (_SUM,)),
    ),
    *(WrongForm("all at once", ("all_gather", "data"), (_GATHER,)), WrongForm("dtype", ("0", "float32", "bfloat16"))),
)
