"""The largest arrays that a compiled program makes in a chip's memory."""

from __future__ import annotations

from dataclasses import dataclass

from grader.hlo.text import Module, Tiled

_NO_BUFFER = {"parameter", "get-tuple-element", "tuple", "bitcast", "while", "conditional", "constant", "opt-barrier"}


@dataclass(frozen=True)
class Buffer:
    """An array in HBM: what it is, its bytes with padding, and where in the function it comes from."""

    array: Tiled
    path: str

    def __str__(self) -> str:
        place = f", from {self.path}" if self.path else ""
        return f"{self.array.padded / 2**30:,.2f} GiB: {self.array}{place}"


def largest(module: Module) -> list[Buffer]:
    """The three largest arrays that the program makes in HBM, each shape from one place counted once."""
    fused = {
        name for ops in module.computations.values() for op in ops.values() if op.kind == "fusion" for name in op.called
    }
    buffers = {
        Buffer(array, op.path)
        for name, operations in module.computations.items()
        if name not in fused
        for op in operations.values()
        if op.kind not in _NO_BUFFER
        for array in op.results
        if array.space == 0
    }
    return sorted(buffers, key=lambda b: (-b.array.padded, b.path, str(b.array)))[:3]
