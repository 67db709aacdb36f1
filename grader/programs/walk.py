"""Reading programs: StableHLO, walked through from its first operation to its last, becomes a `Structure`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import jax
import numpy as np
from jax.extend.mlir import ir
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import axes_of
from grader.jax_versions import mlir_context, stablehlo_of
from grader.programs.collectives import OF_STABLEHLO
from grader.programs.custom_calls import foreign
from grader.programs.operations import (
    blocks_in,
    donated,
    dot_flops,
    first_mesh,
    functions_in,
    manual_axes,
    meshes_in,
    open_fusions,
    roots,
    spec_of_argument,
    specs_of,
    width,
)
from grader.programs.order import Order, groups_of
from grader.programs.program import Program
from grader.programs.structure import Collective, Manual, Structure
from grader.programs.turns import Known, Numbers, only


def structure(program: Program) -> Structure:
    """Read a program's text: every collective in the order of execution, and every shard_map."""
    with mlir_context():
        return walk(ir.Module.parse(program.exported.mlir_module()))


def compiled_structure(compiled: jax.stages.Compiled, mesh: Mapping[str, int]) -> Structure:
    """Read what the compiler made of a program; `mesh` names the axes of its device groups."""
    with mlir_context():
        return walk(compiled_module(compiled), mesh)


def compiled_module(compiled: jax.stages.Compiled) -> ir.Module:
    """What the compiler made of a program, as text in the context that is set."""
    module = ir.Module.parse(stablehlo_of(compiled))
    open_fusions(module.body)
    return module


def walk(module: ir.Module, mesh: Mapping[str, int] | None = None) -> Structure:
    """What a module says, calls followed and turns of loops multiplied. `mesh`: by default the first that it names."""
    top = [op.operation for op in module.body.operations]
    functions, meshes = functions_in(module), meshes_in(module)
    mesh = dict(mesh) if mesh is not None else first_mesh(meshes)
    devices, main = math.prod(mesh.values()), functions["main"]
    known = Known(devices, functions)
    order = Order(known, meshes)
    visitor = _Visitor(mesh, order)
    visitor.regions(main, _Place(1, np.ones(devices, int), np.ones(devices, int), Fraction(0), known))
    return Structure(
        mesh,
        tuple(visitor.manual),
        tuple(visitor.collectives),
        visitor.dot_flops,
        tuple(sorted({name for op in top for name in foreign(op)})),
        order.chain(main, known),
        donated(main),
        visitor.roots,
        visitor.largest_product,
        visitor.is_unbounded,
    )


MOST_TURNS = 1 << 30  # beyond all limits; a text may claim more than can be counted


@dataclass(frozen=True)
class _Place:
    """Where a walk is: how often the program comes by there, each device for itself, at most how often (where a branch
    may be taken or not), and what runs meanwhile."""

    times: int | None
    visits: Numbers
    most: Numbers
    meanwhile: Fraction
    known: Known
    around: tuple[int, int] = (0, 0)

    def often(self, turns: Numbers) -> _Place:
        """A place inside this one, to which each device comes so often for every time it comes here."""
        alike = only(turns)
        return replace(
            self,
            times=None if self.times is None or alike is None else self.times * alike,
            visits=None if self.visits is None or turns is None else self.visits * turns,
            most=None if self.most is None or turns is None else self.most * turns,
        )


@dataclass
class _Visitor:
    """Goes through a module in the order of execution, and keeps what it sees."""

    mesh: Mapping[str, int]
    order: Order
    collectives: list[Collective] = field(default_factory=list)
    manual: list[Manual] = field(default_factory=list)
    dot_flops: int = 0
    roots: int = 0
    largest_product: int = 0
    is_unbounded: bool = False

    def regions(self, op: ir.Operation, place: _Place) -> None:
        for block in blocks_in(op):
            self.block(block, place)

    def block(self, block: ir.Block, place: _Place) -> None:
        nodes = self.order.nodes(block, place.known)
        around = (
            self.order.around(nodes) if any(node.op.name in OF_STABLEHLO for node in nodes) else [(0, 0)] * len(nodes)
        )
        for node, own, flops in zip(nodes, self.order.meanwhile(nodes), around, strict=True):
            self.visit(node.op, replace(place, meanwhile=place.meanwhile + own, known=node.known, around=flops))

    def visit(self, op: ir.Operation, place: _Place) -> None:
        if op.name in OF_STABLEHLO:
            self.collectives += self.one_per_operand(op, place)
        elif op.name == "stablehlo.while":
            self.regions(op, place.often(place.known.turns(op)))
        elif op.name in ("stablehlo.case", "stablehlo.if"):
            chosen = place.known.branch(op)
            for number, block in enumerate(blocks_in(op)):
                taken = None if chosen is None else chosen == number
                most = place.most if taken is None else place.often(taken).most
                self.block(block, replace(place.often(taken), times=None, most=most))
        elif op.name == "sdy.manual_computation":
            self.shard_map(op, place)
        else:
            self.work(op, place)
            self.regions(op, place)

    def work(self, op: ir.Operation, place: _Place) -> None:
        """Count what an operation computes. Outside of shard_map, a device computes at least its share."""
        flops = dot_flops(op) if op.name == "stablehlo.dot_general" else 0
        most = 1 if place.most is None else min(abs(int(place.most.max())), MOST_TURNS)
        self.is_unbounded |= place.most is None and bool(flops or roots(op))
        self.dot_flops += flops * most // (1 if self.manual else max(1, math.prod(self.mesh.values())))
        if self.manual:
            self.largest_product = max(self.largest_product, flops)
            self.roots += roots(op) * most

    def shard_map(self, op: ir.Operation, place: _Place) -> None:
        manual = Manual(manual_axes(op), specs_of(op, "in_shardings"), specs_of(op, "out_shardings"))
        self.manual.append(manual)
        for operand, spec in zip(op.operands, manual.in_specs, strict=True):
            self.collectives += self.moved_to_fit(place.known.as_given(operand), spec, manual.axes)
        self.regions(op, place)

    def moved_to_fit(self, operand: ir.Value, in_spec: P, manual: tuple[str, ...]) -> Iterator[Collective]:
        """What the compiler must gather when an argument is not laid out as in_specs want it.

        in_specs speak of the manual axes; along the others an argument stays as it is.
        """
        if not (spec := spec_of_argument(operand)):
            return
        tensor = ir.RankedTensorType(operand.type)
        local = [n // math.prod(self.mesh[a] for a in axes) for n, axes in zip(tensor.shape, spec, strict=True)]
        spec = [tuple(a for a in part if a in manual) for part in spec]
        axes = tuple(a for part in spec for a in part if a not in _flat(in_spec))
        moved = any(a in _flat(spec) and _dim(spec, a) != _dim(in_spec, a) for a in _flat(in_spec))
        if axes or moved:
            over = axes or tuple(a for a in _flat(spec) if _dim(spec, a) != _dim(in_spec, a))
            group = math.prod(self.mesh[a] for a in over)
            yield Collective(
                "all_gather" if axes else "all_to_all",
                over,
                group,
                tuple(local),
                str(tensor.element_type),
                math.prod(local) * width(tensor),
                implicit=True,
            )

    def one_per_operand(self, op: ir.Operation, place: _Place) -> Iterator[Collective]:
        """The compiler merges several collectives into one of several arrays: it counts as several again."""
        groups = groups_of(op, self.order.meshes)
        axes = axes_of_groups(groups, self.mesh)
        permute = op.name == "stablehlo.collective_permute"
        group = math.prod(self.mesh[a] for a in axes) if permute else max(map(len, groups))
        shift = shift_along(groups, axes, self.mesh) if permute else 0
        visits = None if place.times is not None or place.visits is None else tuple(map(int, place.visits))
        tensors = [ir.RankedTensorType(operand.type) for operand in op.operands]
        shapes = [tuple(tensor.shape) for tensor in tensors]
        if op.name == "mhlo.all_to_all" and len(shapes) == group:  # one operand for each piece of a block
            shapes = [joined(shapes[0], group)]
        for tensor, shape in zip(tensors, shapes, strict=False):
            yield Collective(
                OF_STABLEHLO[op.name],
                axes,
                group,
                shape,
                str(tensor.element_type),
                math.prod(shape) * width(tensor),
                place.times,
                overlappable_flops=int(place.meanwhile),
                around=place.around,
                shift=shift,
                visits=visits,
            )


def joined(piece: tuple[int, ...], pieces: int) -> tuple[int, ...]:
    """The block that these are pieces of: the compiler cuts a dimension into one of length 1 and the rest after it."""
    at = piece.index(1) if 1 in piece[:-1] else None
    return (pieces, *piece) if at is None else (*piece[:at], pieces * piece[at + 1], *piece[at + 2 :])


def axes_of_groups(groups: list[list[int]], mesh: Mapping[str, int]) -> tuple[str, ...]:
    """The mesh axes along which the members of each group differ."""
    ids = np.unravel_index(np.arange(math.prod(mesh.values())), tuple(mesh.values()))
    places = np.stack(ids, axis=-1) if mesh else np.zeros((1, 0), int)
    differ = np.zeros(len(mesh), bool)
    for group in groups:
        differ |= (places[group] != places[group[0]]).any(axis=0)
    return tuple(name for name, moved in zip(mesh, differ, strict=True) if moved)


def shift_along(pairs: list[list[int]], axes: tuple[str, ...], mesh: Mapping[str, int]) -> int:
    """By how many places along its axis a permute moves every block; 0 if not all alike, or along no single axis."""
    if len(axes) != 1:
        return 0
    size = mesh[axes[0]]
    places = np.unravel_index(np.array(pairs), tuple(mesh.values()))[list(mesh).index(axes[0])]
    moved = {int(m) for m in (places[:, 1] - places[:, 0]) % size}
    return moved.pop() if len(moved) == 1 else 0


def _flat(spec: Any) -> tuple[str, ...]:
    return tuple(a for part in spec for a in axes_of(part))


def _dim(spec: Any, axis: str) -> int:
    return next(k for k, part in enumerate(spec) if axis in axes_of(part))
