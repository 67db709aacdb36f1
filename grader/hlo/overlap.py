"""What could overlap with a transfer by the data alone: matmuls that neither need it nor are needed by it.

The CPU's compiler starts no transfer early. But what it may not reorder, no chip's compiler may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from grader.hlo.collectives import kind_of
from grader.hlo.flops import matmul_flops
from grader.hlo.loops import iterations
from grader.hlo.text import Computation, Module, Operation
from grader.programs.overlap import all_before, shares_beside

TOO_MANY_PAIRS = 50_000  # of a transfer and a matmul: beyond, nothing is said of what could overlap
MANY_PAIRS = 200  # of a transfer and a matmul: a report shows what could overlap, and has no time for the fairest way
_CALLING = {"fusion", "while", "conditional", "call", "async-start", "call-start"}  # others call an addition at most


@dataclass(frozen=True)
class Overlap:
    """For each transfer, by its name, the FLOPs of matmuls that can overlap with one run of it; and `steps`, the most
    transfers that wait for one another, loops multiplied out."""

    flops: Mapping[str, int]
    steps: int


def overlap(module: Module) -> Overlap:
    """What can overlap with each transfer of a program. Each matmul counts once, for one of its transfers."""
    finder = _Finder(module, {}, {}, {})
    finder.computation(module.entry, Fraction(0))
    return Overlap({name: int(flops) for name, flops in finder.shares.items()}, finder.chain(module.entry))


@dataclass
class _Finder:
    module: Module
    shares: dict[str, Fraction]
    flops_of: dict[str, int]
    transfers_of: dict[str, int]

    def computation(self, name: str, outer: Fraction) -> None:
        """Find what overlaps with the transfers in a computation; `outer` overlaps with all of it."""
        operations = self.module.computations[name]
        ops = list(operations.values())
        transfers = {k: n for k, op in enumerate(ops) if (n := self.transfers(op, operations))}
        if not transfers:
            return
        flops = {k: n for k, op in enumerate(ops) if (n := self.flops(op, operations))}
        if len(transfers) * len(flops) > TOO_MANY_PAIRS:
            return
        places = {op.name: k for k, op in enumerate(ops)}
        needs = ([n for name in op.operands if (n := places.get(name, k)) < k] for k, op in enumerate(ops))
        shares = shares_beside(flops, transfers, all_before(needs), MANY_PAIRS)
        for k in transfers:
            share = outer + shares.get(k, Fraction(0))
            if kind_of(ops[k]):
                self.shares[ops[k].name] = share
            for called in ops[k].called:
                self.computation(called, share)

    def flops(self, op: Operation, beside: Computation) -> int:
        """FLOPs of the matmuls in an operation, all iterations of its loops together."""
        return self._total(op, beside, self.flops_of, matmul_flops)

    def transfers(self, op: Operation, beside: Computation) -> int:
        """How many transfers run in an operation, all iterations of its loops together."""
        return self._total(op, beside, self.transfers_of, lambda op, _: int(_sends(op)))

    def _total(
        self, op: Operation, beside: Computation, known: dict[str, int], own: Callable[[Operation, Computation], int]
    ) -> int:
        """A count over an operation and what it calls, each computation counted once."""
        total = own(op, beside)
        for name in op.called if op.kind in _CALLING else ():
            if name not in known:
                inside = self.module.computations.get(name, {})
                known[name] = sum(self._total(inner, inside, known, own) for inner in inside.values())
            total += known[name]
        return total * ((iterations(op, beside, self.module) or 1) if op.kind == "while" and total else 1)

    def chain(self, name: str) -> int:
        """The most transfers in a computation that wait for one another."""
        operations = self.module.computations.get(name, {})
        lengths: dict[str, int] = {}
        for op in operations.values():
            own = int(_sends(op))
            if self.transfers(op, operations) and not own:
                turns = (iterations(op, operations, self.module) or 1) if op.kind == "while" else 1
                own = turns * max((self.chain(called) for called in op.called), default=0)
            lengths[op.name] = own + max((lengths.get(operand, 0) for operand in op.operands), default=0)
        return max(lengths.values(), default=0)


def _sends(op: Operation) -> bool:
    return bool(kind_of(op)) and (not op.groups or any(len(set(group)) > 1 for group in op.groups))
