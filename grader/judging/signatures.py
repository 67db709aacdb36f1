"""General signatures of wrong results: what a number or an arrangement of blocks gives away.

Used when no mistake of the exercise behaves the same. Each signature looks only at the blocks that the
devices hold and those they should hold, in the order of devices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from grader.arrays.numbers import close


def signature(blocks: Sequence[np.ndarray], expected: Sequence[np.ndarray], mesh: Mapping[str, int]) -> str:
    """What the difference between `blocks` and `expected` suggests; "" when it suggests nothing."""
    tried = (
        _ratio(blocks, expected, mesh),
        _zeros(blocks, expected),
        _transposed(blocks, expected),
        _permuted(blocks, expected),
        _only_some(blocks, expected),
    )
    return next(filter(None, tried), "")


def _ratio(blocks: Sequence[np.ndarray], expected: Sequence[np.ndarray], mesh: Mapping[str, int]) -> str:
    sizes = {size: f"the {size} devices along {name}" for name, size in reversed([*mesh.items()]) if size > 1}
    sizes.setdefault(math.prod(mesh.values()), f"all {math.prod(mesh.values())} devices")
    for size, who in sizes.items():
        if _scaled(blocks, expected, size):
            return (
                f"Every entry is exactly {size} times too large, and {size} is the number of {who}: "
                "something was added up once too often. Which sum was already whole?"
            )
        if _scaled(blocks, expected, 1 / size):
            return (
                f"Every entry is exactly 1/{size} of what it should be, and {size} is the number of {who}: "
                "was a mean taken where a sum was due?"
            )
    return ""


def _scaled(blocks: Sequence[np.ndarray], expected: Sequence[np.ndarray], factor: float) -> bool:
    return factor != 1 and all(close(b, e * factor) for b, e in zip(blocks, expected, strict=True))


def _zeros(blocks: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    empty = [d for d, (b, e) in enumerate(zip(blocks, expected, strict=True)) if e.any() and not b.any()]
    return f"The block on device {empty[0]} is all zeros. Who was to send it something?" if empty else ""


def _transposed(blocks: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    if all(e.ndim == 2 and b.shape == e.T.shape and close(b, e.T) for b, e in zip(blocks, expected, strict=True)):
        return "Every block is the transpose of the one that belongs there. Which axes were split, and which joined?"
    return ""


def _permuted(blocks: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    owners = [[d for d, e in enumerate(expected) if close(b, e)] for b in blocks]
    if not all(owners) or all(d in o for d, o in enumerate(owners)):
        return ""
    wrong = next(d for d, o in enumerate(owners) if d not in o)
    return (
        f"The blocks are right but stand in the wrong places: device {wrong} holds what belongs on device "
        f"{owners[wrong][0]}. Is it the direction, the offset, or the order of the axes?"
    )


def _only_some(blocks: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    right = [d for d, (b, e) in enumerate(zip(blocks, expected, strict=True)) if close(b, e)]
    if not right or len(right) == len(blocks):
        return ""
    return f"Only device{'s' if len(right) > 1 else ''} {', '.join(map(str, right))} came out right."
