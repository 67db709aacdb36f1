"""What a function says over the wire: its collectives, their axes and bytes, and what each device does.

Under `shard_map` the collectives are read from the traced StableHLO, as their author wrote them; without it the
compiler chooses, so they are read from the compiled program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import jax
from jax.sharding import PartitionSpec as P

from grader.programs.program import Program
from grader.programs.structure import Collective, Structure
from grader.programs.walk import compiled_structure, structure

OFF_THE_MESH = (
    "The program is for a mesh of {due} devices, and its arguments are on {there}. Each of them should be laid out on "
    "that mesh, as `put(array, P(...), mesh)` does. (A new array of NumPy or jax.numpy is on no mesh.)"
)


@dataclass(frozen=True)
class Report:
    """What a program communicates, and what it costs on each device; compiled when something is asked that takes it.

    The collectives of a `written` structure with a shard_map are its author's; else the compiler has chosen them.
    """

    written: Structure
    compiled: Callable[[], jax.stages.Compiled] = field(compare=False)

    @property
    def by_compiler(self) -> bool:
        return not self.written.manual

    @cached_property
    def structure(self) -> Structure:
        return compiled_structure(self.compiled(), self.written.mesh) if self.by_compiler else self.written

    @cached_property
    def flops(self) -> int:
        return flops(self.compiled(), self.written)

    @cached_property
    def peak_bytes(self) -> int:
        return peak_bytes(self.compiled())

    @property
    def collectives(self) -> tuple[Collective, ...]:
        return self.structure.collectives

    @property
    def bytes_sent(self) -> int:
        return self.structure.bytes_sent

    def __repr__(self) -> str:
        mesh = " × ".join(f"{name}={size}" for name, size in self.structure.mesh.items()) or "one device"
        chosen = "chosen by the compiler" if self.by_compiler else "as written"
        lines = [f"mesh: {mesh}"]
        for region in self.structure.manual:
            lines.append(
                f"shard_map over {', '.join(region.axes)}: {_specs(region.in_specs)} → {_specs(region.out_specs)}"
            )
        lines.append(f"collectives ({chosen}):" if self.collectives else f"collectives ({chosen}): none")
        lines += [f"  {c}{self.structure.grouping(c)}" for c in self.collectives]
        lines.append(f"per device: {self.bytes_sent:,} B sent, {self.flops:,} FLOPs, {self.peak_bytes:,} B at the peak")
        return "\n".join(lines)


def _specs(specs: tuple[P, ...]) -> str:
    return ", ".join(f"P({', '.join(map(repr, spec))})" for spec in specs)


def _devices_of(args: Any) -> int:
    """On how many devices the arguments are: a NumPy array, as one that was never laid out, goes to a single one."""
    layouts = (getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(args))
    return max((layout.num_devices for layout in layouts if layout), default=1)


def report(program: Program, *args: Any) -> Report:
    """The report on a program, lowered for the devices of `args`.

    Raises ValueError where the program is for more devices than its arguments are on.
    """
    try:
        lowered = program.lower(*args)
    except ValueError:
        due, there = program.exported.nr_devices, _devices_of(args)
        if there < due:
            raise ValueError(OFF_THE_MESH.format(due=due, there=there)) from None
        raise
    return Report(structure(program), cache(lowered.compile))


def flops(compiled: jax.stages.Compiled, written: Structure) -> int:
    """FLOPs per device: XLA's count, or the text's where loops make that count too low."""
    return max(int((compiled.cost_analysis() or {}).get("flops", 0)), written.dot_flops)


def peak_bytes(compiled: jax.stages.Compiled) -> int:
    """Bytes that one device holds at the peak: arguments, results and what is between."""
    memory: Any = compiled.memory_analysis()
    total = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return total - memory.alias_size_in_bytes
