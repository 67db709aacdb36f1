"""What waits for what in a program: how long a chain its transfers make, and which matmuls can run beside each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jax.extend.mlir import ir

from grader.jax_versions import device_groups
from grader.programs.collectives import OF_STABLEHLO
from grader.programs.operations import blocks_in, callee_of, dot_flops, operations_in, values_used
from grader.programs.overlap import all_before, shares_beside
from grader.programs.turns import Known, only

NodeNumbers = frozenset[int]


class Node(NamedTuple):
    """An operation of a block, the nodes whose results it uses, and the whole numbers known there."""

    op: ir.Operation
    needs: NodeNumbers
    known: Known


@dataclass(frozen=True)
class Order:
    """The order in which the operations of a module may run.

    `known` are the whole numbers that its text fixes, and `meshes` its meshes by name.
    """

    known: Known
    meshes: Mapping[str, Mapping[str, int]]

    def nodes(self, block: ir.Block, known: Known) -> list[Node]:
        """The operations of a block in their order; calls are replaced by what they call."""
        nodes: list[Node] = []
        _enter(block, {}, known, nodes)
        return nodes

    def chain(self, op: ir.Operation, known: Known) -> int:
        """The most transfers in an operation that wait for one another, all turns of its loops together."""
        if op.name in OF_STABLEHLO:
            return self.transfers(op)
        turns = only(known.turns(op)) if op.name == "stablehlo.while" else 1
        return (turns or 1) * max((self._longest(self.nodes(block, known)) for block in blocks_in(op)), default=0)

    def _longest(self, nodes: Sequence[Node]) -> int:
        lengths: list[int] = []  # for each node: the most transfers that have run when it has, one after the other
        for node in nodes:
            before = max((lengths[k] for k in node.needs), default=0)
            lengths.append(before + self.chain(node.op, node.known))
        return max(lengths, default=0)

    def meanwhile(self, nodes: Sequence[Node]) -> list[Fraction]:
        """For each node the FLOPs of matmuls that can run beside one turn of the transfers in it.

        A matmul can run beside a transfer if neither waits for the other; it counts once, for one of those beside
        which it can run.
        """
        flops = {k: n for k, node in enumerate(nodes) if (n := self.flops(node.op))}
        transfers = {k: n for k, node in enumerate(nodes) if (n := self.transfers(node.op))}
        shares = shares_beside(flops, transfers, all_before(node.needs for node in nodes))
        return [shares.get(k, Fraction(0)) for k in range(len(nodes))]

    def around(self, nodes: Sequence[Node]) -> list[tuple[int, int]]:
        """For each node the FLOPs of the matmuls that it waits for, and of those that wait for it."""
        flops = {k: n for k, node in enumerate(nodes) if (n := self.flops(node.op))}
        before = all_before(node.needs for node in nodes)
        return [
            (
                sum(n for j, n in flops.items() if before[k] >> j & 1),
                sum(n for j, n in flops.items() if before[j] >> k & 1),
            )
            for k in range(len(nodes))
        ]

    def flops(self, op: ir.Operation) -> int:
        """FLOPs of the matmuls in an operation, all turns of its loops together (one, where that is not known)."""
        if op.name == "stablehlo.dot_general":
            return dot_flops(op)
        return self._total(self.flops, op)

    def transfers(self, op: ir.Operation) -> int:
        """How many transfers run in an operation, all turns of its loops together."""
        if op.name in OF_STABLEHLO:
            return int(any(len(set(group)) > 1 for group in groups_of(op, self.meshes)))
        return self._total(self.transfers, op)

    def _total(self, count: Callable[[ir.Operation], int], op: ir.Operation) -> int:
        """A count over what stands inside an operation, and in what it calls."""
        body = self.known.functions[callee] if (callee := callee_of(op)) else op
        turns = only(self.known.turns(op)) if op.name == "stablehlo.while" else 1
        return (turns or 1) * sum(count(inner) for block in blocks_in(body) for inner in operations_in(block))


def groups_of(op: ir.Operation, meshes: Mapping[str, Mapping[str, int]]) -> list[list[int]]:
    """The devices that take part in a collective together, by their position in the mesh; the pairs of a permute."""
    if "source_target_pairs" in op.attributes:
        return np.array(ir.DenseIntElementsAttr(op.attributes["source_target_pairs"])).tolist()
    return device_groups(op, meshes)


def _enter(block: ir.Block, makers: dict[ir.Value, NodeNumbers], known: Known, nodes: list[Node]) -> list[NodeNumbers]:
    """Add a block's operations to `nodes`; returns for each of its results the nodes that make it.

    `makers` maps the values that come into the block to the nodes that make them.
    """
    for op in operations_in(block):
        needs = [makers.get(value, frozenset()) for value in values_used(op)]
        if callee := callee_of(op):
            function = known.functions[callee]
            (body,) = blocks_in(function)
            inside: dict[ir.Value, NodeNumbers] = dict(zip(body.arguments, needs, strict=True))
            made = _enter(body, inside, known.inside(function, op.operands), nodes)
        else:
            nodes.append(Node(op, frozenset().union(*needs), known))
            made = [frozenset([len(nodes) - 1])] * len(op.results)
        makers.update(zip(op.results, made, strict=True))
    return needs
