"""FLOPs of single operations of a compiled program, on one device."""

from __future__ import annotations

import math
import re

import numpy as np

from grader.hlo.text import Computation, Operation, integers

# One FLOP for each element of the result. (Comparisons, selections, and conversions compute no new number.)
_ARITHMETIC = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "negate", "abs", "power", "sqrt"),
        *("rsqrt", "cbrt", "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "tan"),
        *("sine", "cosine", "atan2", "erf", "floor", "ceil"),
    }
)
_REDUCING = ("reduce", "reduce-window")  # one for each element of the operand
_FLOATING = ("f", "bf", "c")  # what the names of such types begin with
MATMUL_LIBRARIES = ("__cublas$gemm", "__cublas$lt$matmul", "__onednn$matmul")  # custom calls that are matmuls


def elementwise_flops(op: Operation, beside: Computation) -> int:
    """Floating-point operations other than those of matmuls; 0 for what only moves or compares numbers."""
    counted = op if op.kind in _ARITHMETIC else beside[op.operands[0]] if op.kind in _REDUCING else None
    if counted is None or not counted.results or not counted.results[0].dtype.startswith(_FLOATING):
        return 0
    return math.prod(counted.results[0].shape)


def matmul_flops(op: Operation, beside: Computation) -> int:
    """FLOPs of a matmul: a `dot`, a convolution (as the TPU's compiler writes it), or a call of a GPU's library."""
    if op.kind == "custom-call":
        return _library_flops(op, beside)
    if op.kind not in ("convolution", "dot"):
        return 0
    (left,), (right,) = (beside[name].results[:1] for name in op.operands[:2])
    elements = math.prod(op.results[0].shape)
    if op.kind == "dot":
        contracted = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", op.rest)
        along = (contracted[1] if contracted else "").split(",")
        return 2 * elements * math.prod(left.shape[int(k)] for k in along if k)
    labels = re.match(r"(\w+)_(\w+)->(\w+)", op.attribute("dim_labels"))
    if labels is None:
        return 0
    inputs, kernel, output = labels.groups()
    features = right.shape[kernel.index("i")]
    spatial = [d for d in output if d.isdigit()]
    places = math.prod(op.results[0].shape[k] for k, d in enumerate(output) if not d.isdigit())
    window = _window(op.rest, len(spatial))
    for d in spatial:
        lengths = left.shape[inputs.index(d)], right.shape[kernel.index(d)], op.results[0].shape[output.index(d)]
        places *= _pairs(*lengths, *window[int(d)])
    return 2 * places * features


def _library_flops(op: Operation, beside: Computation) -> int:
    """FLOPs of a matmul that a library does: what it contracts is written in its configuration."""
    if not op.attribute("custom_call_target").startswith(MATMUL_LIBRARIES):
        return 0
    contracted = re.search(r'"lhs_contracting_dimensions":\[([^\]]*)\]', op.rest)
    left = beside[op.operands[0]].results[0]
    along = integers(contracted[1].replace('"', "")) if contracted else [len(left.shape) - 1]
    return 2 * math.prod(op.results[0].shape) * math.prod(left.shape[k] for k in along)


def _window(rest: str, dimensions: int) -> list[tuple[int, int, int, int]]:
    """Stride, padding in front, and how far apart the elements of both sides are, by dimension."""
    found = re.search(r"window=\{([^}]*)\}", rest)
    parts = dict(part.split("=", 1) for part in (found[1] if found else "").split())

    def numbers(name: str, otherwise: str) -> list[int]:
        written = parts.get(name, "x".join([otherwise] * dimensions))
        return [int(part.split("_")[0]) for part in written.split("x") if part]

    usual = {"stride": "1", "pad": "0", "lhs_dilate": "1", "rhs_dilate": "1"}
    stride, pad, spread, apart = (numbers(*pair) for pair in usual.items())
    return list(zip(stride, pad, spread, apart, strict=True))


def _pairs(left: int, right: int, result: int, stride: int, pad: int, spread: int, apart: int) -> int:
    """How many elements of the left side meet one of the right, along one dimension of a convolution."""
    at = np.arange(result)[:, None] * stride + np.arange(right)[None] * apart - pad
    return int(((at >= 0) & (at < (left - 1) * spread + 1) & (at % spread == 0)).sum())
