"""Reading programs: StableHLO, walked through MLIR's Python bindings, becomes a `Structure`."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import sdy, stablehlo
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import axes_of
from grader.jax_versions import device_groups, is_argument, mlir_context, stablehlo_of
from grader.programs.overlap import fair_shares
from grader.programs.program import Program
from grader.programs.structure import KINDS, Collective, Manual, Structure
from grader.programs.turns import Known, Numbers, callee_of, only

# What JAX itself calls by name on a CPU: layout annotations, top-k, and LAPACK's routines. The rest may be anything.
OURS = re.compile(
    r"Sharding|SPMD\w+Shape|annotate_device_placement|LayoutConstraint|xla\.sdy\.\w+|mhlo\.topk|"
    r"lapack_\w+_ffi"
)


def structure(program: Program) -> Structure:
    """Read a program's text: every collective in the order of execution, and every shard_map."""
    with mlir_context():
        return _Walk(ir.Module.parse(program.exported.mlir_module())).structure()


def compiled_structure(compiled: jax.stages.Compiled, mesh: Mapping[str, int]) -> Structure:
    """Read what the compiler made of a program; `mesh` names the axes of its device groups."""
    with mlir_context():
        return _Walk(ir.Module.parse(stablehlo_of(compiled)), mesh).structure()


class _Node(NamedTuple):
    """An operation of a block, those of the block that it waits for, as bits, and the numbers known there."""

    op: ir.Operation
    waits: int
    known: Known


@dataclass(frozen=True)
class _Place:
    """Where a walk is: how often the program comes by there, each device for itself, and what runs meanwhile."""

    times: int | None
    visits: Numbers
    meanwhile: Fraction
    known: Known

    def often(self, turns: Numbers) -> _Place:
        """A place inside, where each device goes so often for every time it comes by here."""
        alike = only(turns)
        return replace(
            self,
            times=None if self.times is None or alike is None else self.times * alike,
            visits=None if self.visits is None or turns is None else self.visits * turns,
        )


class _Walk:
    """One walk through a module, calls followed, turns of loops multiplied."""

    def __init__(self, module: ir.Module, mesh: Mapping[str, int] | None = None):
        top = [op.operation for op in module.body.operations]
        self.functions = {_name(op): op for op in top if op.name == "func.func"}
        self.meshes = {_name(op): _axes_of(op) for op in top if op.name == "sdy.mesh"}
        self.mesh = dict(mesh) if mesh is not None else next(filter(None, self.meshes.values()), {})
        self.collectives: list[Collective] = []
        self.manual: list[Manual] = []
        self.dot_flops = 0
        self.foreign = tuple(sorted({name for op in top for name in _called_by_name(op) if not OURS.fullmatch(name)}))
        devices, main = math.prod(self.mesh.values()), self.functions["main"]
        self.anywhere = Known(devices, self.functions)
        self.regions(main, _Place(1, np.ones(devices, int), Fraction(0), self.anywhere))
        self.steps = self.chain(main, self.anywhere)

    def structure(self) -> Structure:
        return Structure(
            self.mesh, tuple(self.manual), tuple(self.collectives), self.dot_flops, self.foreign, self.steps
        )

    def regions(self, op: ir.Operation, place: _Place) -> None:
        for block in _blocks(op):
            self.block(block, place)

    def block(self, block: ir.Block, place: _Place) -> None:
        nodes = self.nodes(block, place.known)
        for node, own in zip(nodes, self.beside(nodes), strict=True):
            self.visit(node.op, replace(place, meanwhile=place.meanwhile + own, known=node.known))

    def visit(self, op: ir.Operation, place: _Place) -> None:
        if op.name in KINDS:
            self.collectives += self.one_per_operand(op, place)
        elif op.name == "stablehlo.while":
            self.regions(op, place.often(place.known.turns(op)))
        elif op.name in ("stablehlo.case", "stablehlo.if"):
            chosen = place.known.branch(op)
            for number, block in enumerate(_blocks(op)):
                taken = None if chosen is None else chosen == number
                self.block(block, replace(place.often(taken), times=None))
        elif op.name == "sdy.manual_computation":
            self.shard_map(op, place)
        else:
            if op.name == "stablehlo.dot_general" and self.manual:
                self.dot_flops += _dot_flops(op) * (place.times or 1)
            self.regions(op, place)

    def chain(self, op: ir.Operation, known: Known) -> int:
        """The most transfers in an operation that wait for one another, all turns of its loops together."""
        if op.name in KINDS:
            return self.transfers(op)
        turns = only(known.turns(op)) if op.name == "stablehlo.while" else 1
        return (turns or 1) * max((self.longest(self.nodes(block, known)) for block in _blocks(op)), default=0)

    def longest(self, nodes: Sequence[_Node]) -> int:
        behind: dict[int, int] = {}  # for each node with transfers: how many have then run, one after the other
        for k, node in enumerate(nodes):
            if own := self.chain(node.op, node.known):
                behind[k] = own + max((n for j, n in behind.items() if node.waits >> j & 1), default=0)
        return max(behind.values(), default=0)

    def nodes(self, block: ir.Block, known: Known) -> list[_Node]:
        """The operations of a block, each with those it waits for; calls are replaced by what they call."""
        nodes: list[_Node] = []
        self.enter(block, {}, known, nodes)
        return nodes

    def enter(self, block: ir.Block, waits: dict[ir.Value, int], known: Known, nodes: list[_Node]) -> list[int]:
        """Add a block's operations to `nodes`; returns what each of its results waits for.

        What is waited for is a number with a bit for each node.
        """
        for op in (inner.operation for inner in block.operations):
            needed = [waits.get(value, 0) for value in _used(op)]
            if callee := callee_of(op):
                function = self.functions[callee]
                (inside,) = _blocks(function)
                given = dict(zip(inside.arguments, needed, strict=True))
                made = self.enter(inside, given, known.inside(function, op.operands), nodes)
            else:
                nodes.append(_Node(op, functools.reduce(int.__or__, needed, 0), known))
                made = [nodes[-1].waits | 1 << len(nodes) - 1] * len(op.results)
            waits |= zip(op.results, made, strict=True)
        return needed

    def beside(self, nodes: Sequence[_Node]) -> list[Fraction]:
        """For each node the FLOPs of matmuls that can run beside one turn of the transfers in it.

        A matmul can run beside a transfer if neither waits for the other; it counts once, for one of those beside
        which it can run.
        """
        flops = {k: f for k, node in enumerate(nodes) if (f := self.flops(node.op))}
        transfers = {k: n for k, node in enumerate(nodes) if (n := self.transfers(node.op))}
        free = {
            k: [j for j in flops if j != k and not (nodes[k].waits >> j | nodes[j].waits >> k) & 1] for k in transfers
        }
        shares = fair_shares(flops, transfers, free)
        return [shares.get(k, Fraction(0)) for k in range(len(nodes))]

    def flops(self, op: ir.Operation) -> int:
        """FLOPs of the matmuls in an operation, all turns of its loops together (one, where that is not known)."""
        if op.name == "stablehlo.dot_general":
            return _dot_flops(op)
        return self.total(self.flops, op)

    def transfers(self, op: ir.Operation) -> int:
        """How many transfers run in an operation, all turns of its loops together."""
        if op.name in KINDS:
            return int(any(len(set(group)) > 1 for group in self.groups(op)))
        return self.total(self.transfers, op)

    def total(self, count: Callable[[ir.Operation], int], op: ir.Operation) -> int:
        """A count over what stands inside an operation, and in what it calls."""
        inside = self.functions[callee] if (callee := callee_of(op)) else op
        turns = only(self.anywhere.turns(op)) if op.name == "stablehlo.while" else 1
        return (turns or 1) * sum(count(inner.operation) for block in _blocks(inside) for inner in block.operations)

    def shard_map(self, op: ir.Operation, place: _Place) -> None:
        axes = tuple(str(a) for a in sdy.ManualAxesAttr(op.attributes["manual_axes"]))
        ins, outs = (_shardings(op.attributes[side]) for side in ("in_shardings", "out_shardings"))
        self.manual.append(Manual(axes, ins, outs))
        for operand, spec in zip(op.operands, ins, strict=True):
            self.collectives += self.moved_to_fit(operand, spec, axes)
        self.regions(op, place)

    def moved_to_fit(self, operand: ir.Value, wanted: P, manual: tuple[str, ...]) -> Iterator[Collective]:
        """What the compiler must gather when an argument does not lie as in_specs want it.

        in_specs speak of the manual axes; along the others an argument stays as it is.
        """
        if not (held := _argument_spec(operand)):
            return
        kind = ir.RankedTensorType(operand.type)
        local = [n // _parts(part, self.mesh) for n, part in zip(kind.shape, held, strict=True)]
        held = [tuple(a for a in part if a in manual) for part in held]
        axes = tuple(a for part in held for a in part if a not in _flat(wanted))
        moved = any(a in _flat(held) and _dim(held, a) != _dim(wanted, a) for a in _flat(wanted))
        if axes or moved:
            over = axes or tuple(a for a in _flat(held) if _dim(held, a) != _dim(wanted, a))
            group = math.prod(self.mesh[a] for a in over)
            yield Collective(
                "all_gather" if axes else "all_to_all",
                over,
                group,
                tuple(local),
                str(kind.element_type),
                math.prod(local) * _width(kind),
                implicit=True,
            )

    def one_per_operand(self, op: ir.Operation, place: _Place) -> Iterator[Collective]:
        """A collective of several arrays at once, into which a compiler merges several, counts as these."""
        groups = self.groups(op)
        axes = _axes_along(groups, self.mesh)
        permute = op.name == "stablehlo.collective_permute"
        group = math.prod(self.mesh[a] for a in axes) if permute else len(groups[0])
        shift = _shift(groups, axes, self.mesh) if permute else 0
        visits = None if place.times is not None or place.visits is None else tuple(map(int, place.visits))
        kinds = [ir.RankedTensorType(operand.type) for operand in op.operands]
        shapes = [tuple(kind.shape) for kind in kinds]
        if op.name == "mhlo.all_to_all" and len(shapes) == group:  # one operand for each piece of a block
            shapes = [_joined(shapes[0], group)]
        for kind, shape in zip(kinds, shapes, strict=False):
            yield Collective(
                KINDS[op.name],
                axes,
                group,
                shape,
                str(kind.element_type),
                math.prod(shape) * _width(kind),
                place.times,
                meanwhile=int(place.meanwhile),
                shift=shift,
                visits=visits,
            )

    def groups(self, op: ir.Operation) -> list[list[int]]:
        """The devices that take part together, by their position in the mesh."""
        if "source_target_pairs" in op.attributes:
            return np.array(ir.DenseIntElementsAttr(op.attributes["source_target_pairs"])).tolist()
        return device_groups(op, self.meshes)


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    for region in op.regions:
        yield from region.blocks


def _used(op: ir.Operation) -> Iterator[ir.Value]:
    """The values that an operation needs, those inside its regions included."""
    yield from op.operands
    for block in _blocks(op):
        for inner in block.operations:
            yield from _used(inner.operation)


def _called_by_name(op: ir.Operation) -> Iterator[str]:
    """The targets of all custom calls in an operation, at any depth, reached or not."""
    if op.name == "stablehlo.custom_call":
        yield ir.StringAttr(op.attributes["call_target_name"]).value
    for block in _blocks(op):
        for inner in block.operations:
            yield from _called_by_name(inner.operation)


def _name(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _axes_of(op: ir.Operation) -> dict[str, int]:
    axes = [sdy.MeshAxisAttr(a) for a in sdy.MeshAttr(op.attributes["mesh"]).axes]
    return {a.name: a.size for a in axes}


def _width(kind: ir.RankedTensorType) -> int:
    """Bytes of one element (a truth value takes one)."""
    element = kind.element_type
    if str(element).startswith("complex"):
        return 2 * _bits(ir.ComplexType(element).element_type) // 8
    return max(1, _bits(element) // 8)


def _bits(element: ir.Type) -> int:
    return int("".join(itertools.takewhile(str.isdigit, str(element).lstrip("abcdefghijklmnopqrstuvwxyz"))))


def _joined(piece: tuple[int, ...], pieces: int) -> tuple[int, ...]:
    """The block whose pieces these are: the compiler cuts a dimension into one of length 1, and the rest behind it."""
    at = piece.index(1) if 1 in piece[:-1] else None
    return (pieces, *piece) if at is None else (*piece[:at], pieces * piece[at + 1], *piece[at + 2 :])


def _axes_along(groups: list[list[int]], mesh: Mapping[str, int]) -> tuple[str, ...]:
    """The mesh axes along which the members of each group differ."""
    ids = np.unravel_index(np.arange(math.prod(mesh.values())), tuple(mesh.values()))
    places = np.stack(ids, axis=-1) if mesh else np.zeros((1, 0), int)
    differ = np.zeros(len(mesh), bool)
    for group in groups:
        differ |= (places[group] != places[group[0]]).any(axis=0)
    return tuple(name for name, moved in zip(mesh, differ, strict=True) if moved)


def _shift(pairs: list[list[int]], axes: tuple[str, ...], mesh: Mapping[str, int]) -> int:
    """By how many places along its axis a permute moves every block; 0 if not all alike, or along no single axis."""
    if len(axes) != 1:
        return 0
    size = mesh[axes[0]]
    places = np.unravel_index(np.array(pairs), tuple(mesh.values()))[list(mesh).index(axes[0])]
    moved = {int(m) for m in (places[:, 1] - places[:, 0]) % size}
    return moved.pop() if len(moved) == 1 else 0


def _shardings(attribute: ir.Attribute) -> tuple[P, ...]:
    values = sdy.TensorShardingPerValueAttr(attribute)
    return tuple(P(*(d[0] if len(d) == 1 else d or None for d in _dims(s))) for s in values.shardings)


def _dims(sharding: ir.Attribute) -> list[tuple[str, ...]]:
    dims = sdy.TensorShardingAttr(sharding).dimension_shardings
    return [tuple(sdy.AxisRefAttr(a).name for a in sdy.DimensionShardingAttr(d).axes) for d in dims]


def _argument_spec(value: ir.Value) -> list[tuple[str, ...]] | None:
    """How an argument of main lies on the mesh, per dimension; None for any other value."""
    if not is_argument(value):
        return None
    argument = ir.BlockArgument(value)
    owner = argument.owner.owner
    if owner.operation.name != "func.func" or "arg_attrs" not in owner.operation.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(owner.operation.attributes["arg_attrs"])[argument.arg_number])
    return _dims(attributes["sdy.sharding"]) if "sdy.sharding" in attributes else None


def _flat(spec: Any) -> tuple[str, ...]:
    return tuple(a for part in spec for a in axes_of(part))


def _dim(spec: Any, axis: str) -> int:
    return next(k for k, part in enumerate(spec) if axis in axes_of(part))


def _parts(part: Any, mesh: Mapping[str, int]) -> int:
    return math.prod(mesh[a] for a in axes_of(part))


def _dot_flops(op: ir.Operation) -> int:
    """2 · (entries of the result) · (length contracted), per device."""
    dims = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs = ir.RankedTensorType(op.operands[0].type)
    contracted = math.prod(lhs.shape[k] for k in dims.lhs_contracting_dimensions)
    return 2 * contracted * math.prod(ir.RankedTensorType(op.results[0].type).shape)
