"""Custom calls: code that XLA calls by name. What they compute and send is known only as far as they say it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.hlo.flops import MATMUL_LIBRARIES
from grader.hlo.text import Operation

# They compute nothing: they only tell the compiler something, or set memory aside.
_SILENT = (
    *("AllocateBuffer", "AssumeGatherIndicesInBound", "AsyncCollective", "ConcatBitcast"),
    *("GatherScatterIndicesBitpacked", "LayoutConstraint", "MoveToDevice", "MoveToHost", "PadToStatic"),
    *("PrepareAsyncCall", "SPMDFullToShardShape", "SPMDShardToFullShape", "Sharding", "SliceToDynamic", "TopK"),
    *("X64Combine", "X64Split", "__cub$", "__gpu$TopK", "annotate_device_placement", "cu_threefry2x32"),
    *MATMUL_LIBRARIES,
)
# Libraries of one device alone: they compute, and send nothing.
_ALONE = (
    *("Cholesky", "CompactWy", "Eigh", "InvertDiagBlocks", "LuDecomposition", "PartialReduce", "Qr"),  # a TPU's
    *("cu", "__cu", "hip", "__hip", "roc", "__roc"),  # a GPU's
    *("blas_", "lapack_"),
)
_CALLBACKS = ("xla_python_", "xla_ffi_python_", "xla_ffi_partitioned_python_")
_UNNAMED = ("", "shard_map", "closed_call", "body", "while")  # what is before the name of a kernel, or in its place
_PALLAS = "tpu_custom_call"


@dataclass(frozen=True)
class Kernel:
    """A custom call: its name, and its FLOPs and the bytes that a device sends in it; None for what it does not say."""

    name: str
    flops: int | None
    bytes_sent: int | None


def kernel_of(op: Operation) -> Kernel | None:
    """What a custom call says of itself; None where it computes nothing, or its matmul is counted from its shapes.

    A Pallas kernel for TPUs says whether it communicates, and may have a `cost_estimate` of its author's.
    """
    target = op.attribute("custom_call_target")
    if target.startswith(_SILENT):
        return None
    if target.startswith((*_ALONE, *_CALLBACKS)):
        return Kernel(target, None, 0)
    if target != _PALLAS:
        return Kernel(target, None, None)
    estimated = '"cost_estimate":' in op.rest
    sends = '"has_communication":true' in op.rest
    sent = _said(op, "remote_bytes_transferred")
    return Kernel(_name(op), _said(op, "flops") if estimated else None, (sent or None) if sends else 0)


def _said(op: Operation, key: str) -> int | None:
    found = re.search(rf'"{key}":"?(\d+)', op.rest)
    return int(found[1]) if found else None


def _name(op: Operation) -> str:
    """The name that its author gave a Pallas kernel: it is the last but one in its path."""
    *_, named, last = ("", *op.path.split("/"))
    return named if last == "pallas_call" and named not in _UNNAMED and not named.startswith("jit(") else "pallas_call"
