"""Limits to what a program sends, and to how that is written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from grader.exercises.limits.limit import Excess, Facts, Limit, long, sending, transfers
from grader.findings.costs import NeedlessTransfers, SendsLess, WrongAmount, WrongCollectives, WrongForm
from grader.programs.structure import Collective

A_LITTLE = 0.1  # of the bytes that may be sent: fewer by so little are a number that is summed in another way


@dataclass(frozen=True)
class Move:
    """A collective that the compiler may put into a program: its kind, its mesh axes, each device's operand."""

    kind: str
    axes: tuple[str, ...]
    operand: tuple[int, ...]

    def allows(self, collective: Collective, mesh: Mapping[str, int]) -> bool:
        """How a compiler orders the dimensions of what it sends is its own affair.

        A reduce_scatter may stand as an all_reduce.
        """
        alike = {collective.kind, self.kind} <= {"all_reduce", "reduce_scatter"} or collective.kind == self.kind
        return alike and set(collective.axes) == set(long(self.axes, mesh)) and self._as_large(collective)

    def _as_large(self, collective: Collective) -> bool:
        """The same lengths, in any order. What only moves elements may do so in pieces of any shape."""
        if collective.kind in ("all_to_all", "collective_permute"):
            return math.prod(collective.operand) == math.prod(self.operand)
        return sorted(n for n in collective.operand if n > 1) == sorted(n for n in self.operand if n > 1)


@dataclass(frozen=True)
class Moves(Limit):
    """For a program that is left to the compiler: what it may send, and nothing else."""

    moves: tuple[Move, ...]

    def of_compiled(self, facts: Facts) -> Excess | None:
        odd = [c for c in sending(facts.ran.compiled) if not any(m.allows(c, facts.mesh) for m in self.moves)]
        each = ((m.kind, tuple(long(m.axes, facts.mesh)), m.operand) for m in self.moves)
        allowed = dict.fromkeys(move for move in each if move[1])
        return Excess(NeedlessTransfers(transfers(odd), tuple(allowed))) if odd else None


@dataclass(frozen=True)
class Besides(Limit):
    """How many single numbers the compiler may send besides what is written in shard_map, and nothing else.

    Every program with shard_map has this limit; if a case does not say how many, it is none.
    """

    numbers: int = 0

    def of_written(self, facts: Facts) -> Excess | None:
        unwritten = sending(facts.unwritten())
        numbers = [c for c in unwritten if math.prod(c.operand) == c.times == 1]
        if len(numbers) == len(unwritten) <= self.numbers:
            return None
        return Excess(WrongForm("unwritten", facts.auto_axes, transfers(unwritten)))


@dataclass(frozen=True)
class Turns(Limit):
    """How often each kind of collective may run in a program with shard_map; a kind that is not named may not run."""

    allowed: Mapping[str, int]

    def of_written(self, facts: Facts) -> Excess | None:
        often = Counter[str]()
        for c in facts.sent:
            often[c.kind] += c.times or 0
        odd = {kind for kind, count in often.items() if count > self.allowed.get(kind, 0)}
        counts = tuple((kind, often[kind], self.allowed.get(kind, 0)) for kind in {**often, **self.allowed})
        found = WrongCollectives(counts, transfers([c for c in facts.sent if c.kind in odd]))
        return Excess(found, facts.numbers(lambda c: c.kind in odd)) if odd else None


@dataclass(frozen=True)
class Without(Limit):
    """A kind of collective that a program with shard_map does not run along an axis: not at all, or not of arrays with
    so many `dimensions`, which are to be sent in pieces."""

    kind: str
    axis: str
    dimensions: int | None = None

    def of_written(self, facts: Facts) -> Excess | None:
        if not (found := [c for c in facts.sent if self._is_meant(c)]):
            return None
        what: Literal["collective", "all at once"] = "collective" if self.dimensions is None else "all at once"
        return Excess(WrongForm(what, (self.kind, self.axis), transfers(found)), facts.numbers(self._is_meant))

    def _is_meant(self, collective: Collective) -> bool:
        if self.dimensions is not None and len(collective.operand) != self.dimensions:
            return False
        return collective.kind == self.kind and self.axis in collective.axes


@dataclass(frozen=True)
class BytesSent(Limit):
    """What the best program sends from each device, by the ring algorithm."""

    needed: int

    def of_written(self, facts: Facts) -> Excess | None:
        """It is about the one without which just enough is sent; else about those that send most."""
        if (sent := facts.written.bytes_sent) <= self.needed:
            return None
        most = max((c.bytes_sent for c in facts.written.authored), default=0)
        largest = facts.numbers(lambda c: c.bytes_sent == most)
        surplus = facts.numbers(lambda c: c.bytes_sent == sent - self.needed)
        about = surplus if len(surplus) == 1 else largest
        others = len(surplus) != 1 and len(largest) < len(sending(facts.written.authored))
        return Excess(WrongAmount("bytes", self.needed, sent, transfers(facts.sent), facts.auto_axes), about, others)

    def of_wrong(self, facts: Facts) -> SendsLess | None:
        """That a program with shard_map, whose values are wrong, sends clearly less than it may."""
        sent = facts.written.bytes_sent
        is_less = self.needed - sent > A_LITTLE * self.needed
        return SendsLess(self.needed, sent, transfers(facts.sent)) if is_less else None

    def of_compiled(self, facts: Facts) -> Excess | None:
        sent = sending(facts.ran.compiled)
        if endless := [c for c in sent if c.times is None]:
            return Excess(WrongForm("unknown count", (), transfers(endless)))
        if (found := facts.ran.bytes_sent) <= self.needed:
            return None
        return Excess(WrongAmount("compiled bytes", self.needed, found, transfers(sent)))


@dataclass(frozen=True)
class ManualAlong(Limit):
    """The axes along which a program is to be written per device; along the others the compiler divides it."""

    axes: tuple[str, ...]

    def of_written(self, facts: Facts) -> Excess | None:
        manual = {axis for one in facts.written.manual for axis in long(one.axes, facts.mesh)}
        also = ", ".join(sorted(manual - set(self.axes)))
        return Excess(WrongForm("manual axes", (also, ", ".join(self.axes)))) if also else None


@dataclass(frozen=True)
class TakenInside(Limit):
    """Gradients are taken inside of shard_map: there is one shard_map, and no second one for the backward pass."""

    def of_written(self, facts: Facts) -> Excess | None:
        return Excess(WrongForm("several shard_maps")) if len(facts.written.manual) > 1 else None


@dataclass(frozen=True)
class ByCompiler(Limit):
    """No shard_map: the program is to be divided by the compiler."""

    def of_compiled(self, facts: Facts) -> Excess | None:
        return Excess(WrongForm("shard_map")) if facts.written.manual else None


@dataclass(frozen=True)
class EitherWay(Limit):
    """The program may be left to the compiler: the other limits then hold for what that sends."""


@dataclass(frozen=True)
class OneWay(Limit):
    """How many bytes permutes may send to one neighbor."""

    allowed: int

    def of_written(self, facts: Facts) -> Excess | None:
        sent = facts.written.bytes_one_way
        found = WrongAmount("bytes to one neighbor", self.allowed, sent, transfers(facts.sent))
        return Excess(found) if sent > self.allowed else None


@dataclass(frozen=True)
class Steps(Limit):
    """How many transfers may depend on one another in a chain."""

    allowed: int

    def of_written(self, facts: Facts) -> Excess | None:
        steps = facts.written.steps
        return Excess(WrongAmount("chain", self.allowed, steps)) if steps > self.allowed else None


@dataclass(frozen=True)
class Meanwhile(Limit):
    """How many FLOPs of matmuls must be free to overlap with every run of every collective."""

    flops: int

    def of_written(self, facts: Facts) -> Excess | None:
        if (idle := next(filter(self.is_missed_by, facts.sent), None)) is None:
            return None
        found = WrongAmount("overlap", self.flops, idle.overlappable_flops, transfers([idle]))
        return Excess(found, facts.numbers(self.is_missed_by)[:1])

    def is_missed_by(self, collective: Collective) -> bool:
        """Whether too little can overlap with it."""
        return collective.overlappable_flops < self.flops


@dataclass(frozen=True)
class Written(Limit):
    """How often each kind of collective may stand in the text; one in a loop stands there once."""

    allowed: Mapping[str, int]

    def of_written(self, facts: Facts) -> Excess | None:
        often = Counter(c.kind for c in facts.sent)
        odd = next((kind for kind, count in often.items() if count > self.allowed.get(kind, 0)), None)
        if odd is None:
            return None
        about = facts.numbers(lambda c: c.kind == odd)
        if most := self.allowed.get(odd, 0):
            return Excess(WrongAmount("written", most, often[odd], name=odd), about)
        counts = tuple((kind, often[kind], self.allowed.get(kind, 0)) for kind in {**often, **self.allowed})
        return Excess(WrongCollectives(counts, transfers([c for c in facts.sent if c.kind == odd])), about)
