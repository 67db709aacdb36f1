"""Repairs of a program: its text with one collective left out, run along other axes, turned round, or put in; or with
a single step changed.

Where a repair makes a wrong program right on every mesh that is tried, what it changes is what is wrong with the
program. Nobody needs to have foreseen that mistake.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import jax
import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from grader.jax_versions import mlir_context
from grader.programs.collectives import COLLECTIVE_KINDS
from grader.programs.edits import STEP_WAYS, change_step, follow, numbers_of, step_ways
from grader.programs.operations import blocks_in, callee_of, first_mesh, functions_in, meshes_in, operations_in
from grader.programs.order import groups_of
from grader.programs.program import Program
from grader.programs.sites import AT_A_PRODUCT, AT_A_RESULT, AT_AN_INDEX, Site, is_summed, like, sites_of
from grader.programs.structure import device_numbers_along
from grader.programs.walk import axes_of_groups

# Changes of a collective, the likeliest first; then those of a single step.
CollectiveWay = Literal["leave out", "turn round", "run along", "average", "add up", "total", "largest", "sum", "mean"]
COLLECTIVE_WAYS: tuple[CollectiveWay, ...] = get_args(CollectiveWay)
WAYS: tuple[str, ...] = (*COLLECTIVE_WAYS, *STEP_WAYS)
MOST_SITES = 80  # of a program: in a longer one there are too many repairs for somebody who waits
MOST_COLLECTIVES = 24
SITES_TRIED_ALONE = 6  # sites of a kind: of more, each is not tried alone
Meshes = Mapping[str, dict[str, int]]


@dataclass(frozen=True)
class Repair:
    """One change at one site of a program, or at all that are alike.

    `kind` is what stands there: a kind of collective, a "product", a "result" of a shard_map, or a step in words.
    `number` counts those of that kind in the order of execution, from 0, loops once. `axes` are those that it runs
    along; `along` those that it would run along after the change. `every` means all that run along the same axes, as
    where a loop is written out. `among` says how many of that kind there are, 0 where nobody has counted.
    """

    kind: str
    number: int
    way: str
    axes: tuple[str, ...] = ()
    along: tuple[str, ...] = ()
    every: bool = False
    among: int = field(default=0, compare=False)


def repairs_of(program: Program) -> tuple[Repair, ...]:
    """All repairs of a program, the likeliest first; none of a long one."""
    with mlir_context():
        module = ir.Module.parse(program.exported.mlir_module())
        sites = list(itertools.islice(sites_of(module), MOST_SITES + 1))
        if len(sites) > MOST_SITES or sum(site.kind in COLLECTIVE_KINDS for site in sites) > MOST_COLLECTIVES:
            return ()
        meshes = meshes_in(module)
        alone = [repair for site in sites for repair in _repairs(site, meshes)]
        alike = Counter(replace(repair, number=0, every=True) for repair in alone)
        few = Counter(site.kind for site in sites)
        shared = {(site.kind, site.number) for site in sites if site.shared}
        found = [r for r in alone if few[r.kind] <= SITES_TRIED_ALONE and (r.kind, r.number) not in shared]
        found += [repair for repair, count in alike.items() if count > 1]
        counted = [replace(repair, among=few[repair.kind]) for repair in found]
        return tuple(sorted(counted, key=lambda repair: WAYS.index(repair.way)))


def lower_repaired(program: Program, repairs: Sequence[Repair], *arrays: Any) -> jax.stages.Lowered:
    """A program's text, as `Program.lower` gives it, as often as there are repairs, each with one of them.

    Its result is a list with the results of each. (To compile many at once takes hardly longer than one.)
    """
    lowered = program.lower(*arrays, times=len(repairs))
    module: Any = lowered.compiler_ir()
    with module.context, ir.Location.unknown():
        mesh = first_mesh(meshes_in(module))
        for repair, root in zip(repairs, _copies(module), strict=True):
            for site in _sites_of_repair(repair, list(sites_of(module, root)), meshes_in(module)):
                _make(repair, site, mesh)
    return lowered


def _sites_of_repair(repair: Repair, sites: Sequence[Site], meshes: Meshes) -> list[Site]:
    """Where a repair is made; at an operation that is met again and again, once. All are found before one is changed:
    what is left out must not be asked anything any more."""
    found: list[Site] = []
    for site in sites:
        alone = replace(repair, number=site.number, every=False)
        meant = alone in _repairs(site, meshes) if repair.every else site.number == repair.number
        met = repair.kind != AT_A_RESULT and any(site.op == other.op for other in found)
        if site.kind == repair.kind and meant and not met:
            found.append(site)
    return found


def _copies(module: ir.Module) -> list[str]:
    """Give each call in main a function of its own, and whatever that calls; return their names."""
    functions = functions_in(module)
    calls = [op for block in blocks_in(functions["main"]) for op in operations_in(block) if callee_of(op)]
    return [_copied(module, functions, call, f"_repair_{k}") for k, call in enumerate(calls)]


def _copied(module: ir.Module, functions: Mapping[str, ir.Operation], call: ir.Operation, suffix: str) -> str:
    """Copy the function that is called, and all that it calls, under other names."""
    callee = callee_of(call)
    name = f"{callee}{suffix}"
    if name not in functions_in(module):
        with ir.InsertionPoint(module.body):
            copy = functions[callee].clone().operation
        copy.attributes["sym_name"] = ir.StringAttr.get(name)
        for inner in _calls(copy):
            _copied(module, functions, inner, suffix)
    attribute = "callee" if "callee" in call.attributes else "decomposition"
    call.attributes[attribute] = ir.FlatSymbolRefAttr.get(name)
    return name


def _calls(op: ir.Operation) -> Iterator[ir.Operation]:
    for inner in (inner for block in blocks_in(op) for inner in operations_in(block)):
        if callee_of(inner):
            yield inner
        yield from _calls(inner)


def _make(repair: Repair, site: Site, mesh: Mapping[str, int]) -> None:
    op, way = site.op, repair.way
    if way == "leave out":
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    elif way == "turn round":
        pairs = np.array(ir.DenseIntElementsAttr(op.attributes["source_target_pairs"]))
        op.attributes["source_target_pairs"] = numbers_of(pairs[:, ::-1])
    elif way == "run along":
        op.attributes["replica_groups"] = _groups(repair.along, mesh)
        op.attributes["use_global_device_ids"] = ir.UnitAttr.get()
    elif way in ("average", "add up"):
        devices = math.prod(mesh[a] for a in repair.axes)
        follow(site, functools.partial(_scaled, factor=1 / devices if way == "average" else devices))
    elif way in ("total", "largest"):
        with ir.InsertionPoint(op):
            other = _reduced(op.operands[0], repair.axes, mesh, stablehlo.add if way == "total" else stablehlo.maximum)
        op.results[0].replace_all_uses_with(other)
        op.erase()
    elif way in ("sum", "mean"):
        devices = math.prod(mesh[a] for a in repair.along)
        total = functools.partial(_sum, axes=repair.along, mesh=mesh)
        follow(site, total if way == "sum" else lambda value: _scaled(total(value), 1 / devices))
    else:
        change_step(way, site, repair.along, mesh)


def _scaled(value: ir.Value, factor: float) -> ir.Value:
    return stablehlo.multiply(value, like(value, factor))


def _sum(value: ir.Value, axes: Sequence[str], mesh: Mapping[str, int]) -> ir.Value:
    """A psum of a value along these axes."""
    return _reduced(value, axes, mesh, stablehlo.add)


def _reduced(value: ir.Value, axes: Sequence[str], mesh: Mapping[str, int], step: Callable[..., Any]) -> ir.Value:
    """What devices along these axes come to together, two by two."""
    attributes = {
        "replica_groups": _groups(axes, mesh),
        "use_global_device_ids": ir.UnitAttr.get(),
        "channel_handle": stablehlo.ChannelHandle.get(1, 0),
    }
    op = ir.Operation.create("stablehlo.all_reduce", [value.type], [value], attributes, regions=1)
    number = ir.RankedTensorType.get([], ir.RankedTensorType(value.type).element_type)
    block = op.regions[0].blocks.append(number, number)
    with ir.InsertionPoint(block):
        stablehlo.return_([step(*block.arguments)])
    return op.results[0]


def _groups(axes: Sequence[str], mesh: Mapping[str, int]) -> ir.DenseIntElementsAttr:
    """The devices that differ along these axes only, group by group."""
    return numbers_of(device_numbers_along(axes, mesh))


def _repairs(site: Site, meshes: Meshes) -> Iterator[Repair]:
    mesh, at = first_mesh(meshes), (site.kind, site.number)
    choices = list(_choices([a for a in site.manual if mesh[a] > 1]))
    axes: tuple[str, ...] = site.index
    if site.kind in (AT_A_PRODUCT, AT_A_RESULT):
        yield from (Repair(*at, way, (), along) for way, along in _sums(site, choices))
    elif site.kind in COLLECTIVE_KINDS:
        axes = axes_of_groups(groups_of(site.op, meshes), mesh)
        if not axes or len(site.op.operands) != 1:
            return
        yield from (Repair(*at, way, axes, along) for way, along in _of_a_collective(site, axes, choices))
    if site.kind == AT_AN_INDEX:
        yield from (Repair(*at, "other axis", axes, (a,)) for a in site.manual if a not in axes)
    for way in step_ways(site):
        along = [(a,) for a in axes] if site.kind == "collective_permute" else [()]
        yield from (Repair(*at, way, axes, one) for one in along)


def _sums(site: Site, choices: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Along what a product could be summed; and a result, which is no sum yet, or averaged."""
    if not site.is_float or (site.kind == AT_A_RESULT and is_summed(site.op.operands[site.operand].owner)):
        return
    for along in choices:
        yield "sum", along
        if site.kind == AT_A_RESULT:
            yield "mean", along


def _of_a_collective(
    site: Site, axes: tuple[str, ...], choices: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    if site.kind in ("all_reduce", "collective_permute"):
        yield "leave out", ()
    if site.kind == "collective_permute":
        yield "turn round", ()
    if site.kind == "all_reduce":
        yield from (("run along", along) for along in choices if {*along} != {*axes})
    if site.kind in ("all_reduce", "reduce_scatter") and site.is_float:
        yield "average", ()
        yield "add up", ()
    if site.kind == "all_reduce":
        yield ("largest" if _adds_up(site.op) else "total"), ()
    if site.kind in ("all_gather", "reduce_scatter", "all_to_all") and len(axes) > 1:
        yield "run along", axes[::-1]


def _adds_up(op: ir.Operation) -> bool:
    """Whether a collective adds up what devices bring; else it takes the largest, or the smallest."""
    return any(step.name == "stablehlo.add" for block in blocks_in(op) for step in operations_in(block))


def _choices(axes: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Along what a collective could run: one axis, or all."""
    yield from ((a,) for a in axes)
    if len(axes) > 1:
        yield tuple(axes)
