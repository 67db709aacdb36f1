"""What running a program comes to, on every device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import Blocks, blocks_of
from grader.arrays.laid import Array
from grader.arrays.meshes import aval, make_mesh, put, spelled
from grader.jax_versions import mlir_context, quick_options, unmerged_options
from grader.programs.program import Program
from grader.programs.structure import Collective, Structure
from grader.programs.unwritten import is_marked, mark_collectives, take_out_collectives
from grader.programs.walk import compiled_module, compiled_structure, walk


@dataclass(frozen=True)
class Result:
    """One array that a program returned: who holds what, its layout, and whether that is the layout asked for."""

    blocks: Blocks
    layout: str
    as_asked: bool

    @property
    def claims_copies(self) -> bool:
        """Whether every device is said to hold the whole."""
        whole = tuple(slice(0, n) for n in self.blocks.shape)
        return len(self.blocks.indices) > 1 and all(index == whole for index in self.blocks.indices)


@dataclass(frozen=True)
class Ran:
    """What running a program came to: its results, each device's FLOPs and bytes, the compiled collectives.

    `peak_bytes` is what a device holds at the peak, arguments and results included. `marked`: all of those collectives
    are known as written ones by their mark; else that is not known.
    """

    results: tuple[Result, ...]
    flops: int
    peak_bytes: int
    compiled: tuple[Collective, ...]
    marked: bool = False

    @property
    def bytes_sent(self) -> int:
        """Bytes that each device sends."""
        return sum(c.bytes_sent for c in self.compiled)


class Unreduced(Exception):
    """A result that is still a sum, of which each device holds a part: JAX does not show those. The text is a list of
    the mesh axes that it runs over."""


class Failed(Exception):
    """A program that JAX or XLA refused to read or to run: `kind` names their error, the text is their message."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


def execute(
    program: Program, sizes: Mapping[str, int], arrays: Sequence[Array], specs: Sequence[P], structure: Structure
) -> Ran:
    """Run a program on a mesh of these sizes, and hold its results against these layouts."""
    mesh = make_mesh(sizes)
    inputs = [put(a.value, a.spec, mesh) for a in arrays]
    lowered = program.lower(*inputs)
    mark_collectives(lowered)
    compiled = lowered.compile(unmerged_options())  # it runs once
    outputs = jax.tree.leaves(jax.block_until_ready(compiled(*inputs)))
    results = _results(outputs, [NamedSharding(mesh, spec) for spec in specs], sizes)
    with mlir_context():
        module = compiled_module(compiled)
        sent, marked = walk(module, structure.mesh).collectives, is_marked(module)
    counted = int((compiled.cost_analysis() or {}).get("flops", 0))  # too low where there are loops
    return Ran(results, max(counted, structure.dot_flops), peak_bytes(compiled), sent, marked)


def sent_without_collectives(
    program: Program, sizes: Mapping[str, int], arrays: Sequence[Array], structure: Structure
) -> tuple[Collective, ...]:
    """What the compiler sends for a program out of which the written collectives are taken: nobody wrote that."""
    mesh = make_mesh(sizes)
    lowered = program.lower(*(aval(a.value.shape, a.value.dtype, a.spec, mesh) for a in arrays))
    take_out_collectives(lowered)
    return compiled_structure(lowered.compile(quick_options()), structure.mesh).collectives


def _results(
    outputs: Sequence[jax.Array], due: Sequence[NamedSharding], sizes: Mapping[str, int]
) -> tuple[Result, ...]:
    layouts = [*due, *[None] * (len(outputs) - len(due))]
    return tuple(_result(array, layout, sizes) for array, layout in zip(outputs, layouts, strict=False))


def _result(array: jax.Array, layout: NamedSharding | None, sizes: Mapping[str, int]) -> Result:
    if parts_along := getattr(getattr(array.sharding, "spec", None), "unreduced", ()):
        raise Unreduced(", ".join(sorted(parts_along)))
    fits = layout if layout is not None and len(layout.spec) <= array.ndim else None  # JAX stops at one that is longer
    as_asked = fits is not None and array.sharding.is_equivalent_to(fits, array.ndim)
    return Result(blocks_of(array, sizes), spelled(getattr(array.sharding, "spec", array.sharding)), as_asked)


def peak_bytes(compiled: jax.stages.Compiled) -> int:
    """Bytes that one device holds at the peak: arguments, results and what is between."""
    memory: Any = compiled.memory_analysis()
    total = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return total - memory.alias_size_in_bytes
