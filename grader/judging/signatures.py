"""General signatures of wrong results: what a number or an arrangement of blocks gives away.

Used when no mistake of the exercise behaves the same. Each signature looks only at the blocks that the
devices hold and those they should hold, in the order of devices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from grader.arrays.numbers import close


def signature(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], mesh: Mapping[str, int]) -> str:
    """What the difference between `found` and `wanted` suggests; "" when it suggests nothing."""
    tried = (
        _ratio(found, wanted, mesh),
        _zeros(found, wanted),
        _transposed(found, wanted),
        _permuted(found, wanted),
        _only_some(found, wanted),
    )
    return next(filter(None, tried), "")


def _ratio(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], mesh: Mapping[str, int]) -> str:
    sizes = {size: f"the {size} devices along {name}" for name, size in reversed([*mesh.items()]) if size > 1}
    sizes.setdefault(math.prod(mesh.values()), f"all {math.prod(mesh.values())} devices")
    for size, who in sizes.items():
        if _scaled(found, wanted, size):
            return (
                f"Every entry is exactly {size} times too large, and {size} is the number of {who}: "
                "something was added up once too often. Which sum was already whole?"
            )
        if _scaled(found, wanted, 1 / size):
            return (
                f"Every entry is exactly 1/{size} of what it should be, and {size} is the number of {who}: "
                "was a mean taken where a sum was due?"
            )
    return ""


def _scaled(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], factor: float) -> bool:
    return factor != 1 and all(close(f, w * factor) for f, w in zip(found, wanted, strict=True))


def _zeros(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    empty = [d for d, (f, w) in enumerate(zip(found, wanted, strict=True)) if w.any() and not f.any()]
    return f"The block on device {empty[0]} is all zeros. Who was to send it something?" if empty else ""


def _transposed(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    if all(w.ndim == 2 and f.shape == w.T.shape and close(f, w.T) for f, w in zip(found, wanted, strict=True)):
        return "Every block is the transpose of the one that belongs there. Which axes were split, and which joined?"
    return ""


def _permuted(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    owners = [[d for d, w in enumerate(wanted) if close(f, w)] for f in found]
    if not all(owners) or all(d in o for d, o in enumerate(owners)):
        return ""
    wrong = next(d for d, o in enumerate(owners) if d not in o)
    return (
        f"The blocks are right but stand in the wrong places: device {wrong} holds what belongs on device "
        f"{owners[wrong][0]}. Is it the direction, the offset, or the order of the axes?"
    )


def _only_some(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    right = [d for d, (f, w) in enumerate(zip(found, wanted, strict=True)) if close(f, w)]
    if not right or len(right) == len(found):
        return ""
    return f"Only device{'s' if len(right) > 1 else ''} {', '.join(map(str, right))} came out right."
