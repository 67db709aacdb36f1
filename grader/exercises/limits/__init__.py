"""What a program may cost. Every limit is an object, with its check beside it.

Of a program with shard_map the text counts, as its author wrote it; of one that is left to the compiler, the compiled
program. Work is counted for one device in both. A new limit is a class here, and a place in ORDER.
"""

from collections.abc import Sequence

from grader.exercises.limits.limit import Excess, Facts, Limit, sending, transfers
from grader.exercises.limits.sent import (
    Besides,
    ByCompiler,
    BytesSent,
    EitherWay,
    ManualAlong,
    Meanwhile,
    Move,
    Moves,
    OneWay,
    Steps,
    TakenInside,
    Turns,
    Without,
    Written,
)
from grader.exercises.limits.work import ChipFlops, Flops, InPlace, InTurns, PeakBytes, Roots

# What is told first if several are exceeded.
ORDER: tuple[type[Limit], ...] = (
    *(EitherWay, ByCompiler, ManualAlong, TakenInside, Besides, Moves, Turns, Without, BytesSent, OneWay, Steps),
    *(Meanwhile, Written, Flops, Roots, InTurns, PeakBytes, InPlace, ChipFlops),
)


def in_order(limits: Sequence[Limit]) -> list[Limit]:
    return sorted(limits, key=lambda limit: ORDER.index(type(limit)))
