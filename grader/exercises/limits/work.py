"""Limits to what one device computes, and to what it holds."""

from __future__ import annotations

from dataclasses import dataclass

from grader.exercises.limits.limit import Excess, Facts, Limit
from grader.findings.costs import WrongAmount, WrongForm
from grader.findings.finding import Finding

UNBOUNDED = Excess(WrongForm("unknown work"))  # no count is within a limit if nobody knows how often it runs


@dataclass(frozen=True)
class Flops(Limit):
    """What one device computes when the work is divided."""

    needed: int

    def of_work(self, facts: Facts) -> Excess | None:
        if facts.written.is_unbounded:
            return UNBOUNDED
        # Summing partial sums, a bias or a relu costs a few operations per element: not what is asked here.
        local = sum(result.blocks.entries for result in facts.ran.results)
        is_more = facts.ran.flops > 1.5 * self.needed + 4 * local
        return Excess(WrongAmount("flops", self.needed, facts.ran.flops)) if is_more else None


@dataclass(frozen=True)
class Roots(Limit):
    """Of how many numbers one device takes a root when each token is normalized once, by the device that has it.

    It may take so many `times`: a gradient may recompute a norm, which is cheaper than to keep what it made.
    """

    needed: int
    times: int = 1

    def of_work(self, facts: Facts) -> Excess | None:
        if facts.written.is_unbounded:
            return UNBOUNDED
        roots = facts.written.roots
        return Excess(WrongAmount("roots", self.needed, roots)) if roots > self.times * self.needed else None


@dataclass(frozen=True)
class InTurns(Limit):
    """What the largest matmul takes if a device works on so many rows at a time, and not on all that it has."""

    flops: int

    def of_work(self, facts: Facts) -> Excess | None:
        largest = facts.written.largest_product
        return Excess(WrongAmount("largest matmul", self.flops, largest)) if largest != self.flops else None


@dataclass(frozen=True)
class PeakBytes(Limit):
    """What one device must hold at the peak: arguments, results, and all that is alive between them."""

    needed: int

    def of_work(self, facts: Facts) -> Excess | None:
        # Compilers differ in what they keep beside an array while they make the next.
        peak = facts.ran.peak_bytes
        return Excess(WrongAmount("peak bytes", self.needed, peak)) if peak > 1.5 * self.needed else None


@dataclass(frozen=True)
class InPlace(Limit):
    """The first arrays that a program is given, of these dtypes, are donated, and come out first and as they went in:
    their memory is used again, and the next call finds the program compiled."""

    dtypes: tuple[str, ...]

    def of_work(self, facts: Facts) -> Excess | None:
        donated = len(set(range(len(self.dtypes))) & set(facts.written.donated))
        if donated < len(self.dtypes):
            return Excess(WrongAmount("donated", len(self.dtypes), donated))
        for number, (before, result) in enumerate(zip(self.dtypes, facts.ran.results, strict=False)):
            values = result.blocks.values
            if values is not None and (after := str(values[0].dtype)) != before:
                return Excess(WrongForm("dtype", (str(number), before, after)))
        return None


@dataclass(frozen=True)
class ChipFlops(Limit):
    """For a program on a pod: the FLOPs of matmuls that each device needs at least, and those that are enough."""

    least: int
    enough: int

    def of_chip(self, flops: int) -> Finding | None:
        expected = min(max(flops, self.least), self.enough)
        return WrongAmount("pod flops", expected, flops) if flops != expected else None
