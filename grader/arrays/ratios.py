"""Actual over expected, array by array: the ratio that gives away a sum taken once too often.

The gradients of a network, compared with those of a single device, are correct if the ratio is 1; if it is the number
of devices along an axis, they were summed over that axis without need.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from grader.arrays.numbers import close, same_numbers


@dataclass(frozen=True)
class Ratio:
    """One array's ratio to the one expected: the smallest and the largest, over all devices and elements.

    If every element is the same multiple of the one expected, both are that number. `apart`: replicas disagree, so that
    what NumPy shows is the first device's alone. Not a number if what was found is not finite, and infinite if nothing
    but zeros is expected.
    """

    name: str
    least: float
    most: float
    apart: bool = False

    @property
    def telling(self) -> bool:
        """Whether it says how far off the array is: not if some elements have the other sign."""
        return not self.least < 0 < self.most

    @property
    def words(self) -> str:
        if math.isnan(self.most):
            return "not finite"
        if math.isinf(self.most):
            return "should be 0"
        same = f"{self.least:.4g}" if self.least == self.most else f"{self.least:.3g} to {self.most:.3g}"
        return f"{same if self.telling else 'no common factor'}{', replicas disagree' if self.apart else ''}"


@dataclass(frozen=True)
class Ratios:
    """The table: a row for each array of two pytrees."""

    rows: tuple[Ratio, ...]

    def __str__(self) -> str:
        return "\n".join(as_text(self.rows))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.rows)


def ratios(found: Any, expected: Any) -> Ratios:
    """Compare a pytree of arrays, on however many devices, with one of the same structure, leaf by leaf.

    Every addressable shard is looked at: an array that only claims to be replicated is found out.

    Args:
      found: the arrays to look at.
      expected: the same tree, of arrays that are correct.

    Example:
      >>> grader.ratios({"w": 4 * np.ones(3)}, {"w": np.ones(3)})
      actual / expected:
        ['w']  4
    """
    pairs = zip(jax.tree.leaves_with_path(expected), jax.tree.leaves(found), strict=True)
    return Ratios(
        tuple(
            _leaf(jax.tree_util.keystr(path) or "the array", leaf, np.asarray(whole)) for (path, whole), leaf in pairs
        )
    )


def _leaf(name: str, found: Any, whole: np.ndarray) -> Ratio:
    shards = jax.numpy.asarray(found).addressable_shards
    return ratio(name, [np.asarray(s.data) for s in shards], [whole[s.index] for s in shards])


def ratio(name: str, found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> Ratio:
    """The ratio of what the devices hold to what they should, given block by block."""
    one, other = _joined(found), _joined(expected)
    if close(one, other):
        return Ratio(name, 1.0, 1.0)
    if not np.isfinite(one).all() or not other.any():
        odd = math.inf if np.isfinite(one).all() else math.nan
        return Ratio(name, odd, odd)
    apart = _apart(found, expected)
    constant = float(one @ other / (other @ other))
    if close(one, constant * other):
        return Ratio(name, constant, constant, apart)
    large = np.abs(other) > 1e-3 * np.abs(other).max()  # elsewhere rounding decides
    parts = one[large] / other[large]
    return Ratio(name, float(parts.min()), float(parts.max()), apart)


def _joined(blocks: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(block).astype(np.float64) for block in blocks])


def _apart(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    """Whether two devices that should hold the same do not."""
    seen: dict[bytes, np.ndarray] = {}
    return any(
        not same_numbers(block, seen.setdefault(whole.tobytes(), block))
        for block, whole in zip(found, expected, strict=True)
    )


def furthest(rows: Sequence[Ratio], most: int = 12) -> tuple[list[Ratio], int]:
    """The arrays of which a ratio says something, the furthest from 1 in their order, and how many others there are;
    none if all of those are correct, or if it is a single array."""
    factors = [k for k, row in enumerate(rows) if row.least == row.most or row.apart or not math.isfinite(row.most)]
    if len(factors) < 2 or all(_off(rows[k]) == 0 for k in factors):
        return [], 0
    told = sorted(sorted(factors, key=lambda k: -_off(rows[k]))[:most])
    return [rows[k] for k in told], len(rows) - len(told)


def _off(row: Ratio) -> float:
    return math.inf if not math.isfinite(row.most) or row.apart else max(abs(row.least - 1), abs(row.most - 1))


def as_text(rows: Sequence[Ratio], left_out: int = 0) -> list[str]:
    """A table; nothing without rows."""
    wide = max((len(row.name) for row in rows), default=0)
    lines = [f"  {row.name:<{wide}}  {row.words}" for row in rows]
    return ["actual / expected:", *lines, *_more(left_out)] if rows else []


def as_html(rows: Sequence[Ratio], left_out: int = 0) -> str:
    cell = '<td style="text-align:left;padding:.1em .8em">'
    lines = []
    for row in rows:
        words = row.words if row.words == "1" else f"<strong>{row.words}</strong>"
        lines.append(f"<tr>{cell}<code>{html.escape(row.name)}</code></td>{cell}{words}</td></tr>")
    lines += [f"<tr>{cell}{more}</td><td></td></tr>" for more in _more(left_out)]
    head = '<tr><td></td><td style="text-align:left;padding:.1em .8em;opacity:.75">actual / expected</td></tr>'
    return f'<table style="margin:.4em 0">{head}{"".join(lines)}</table>' if rows else ""


def _more(left_out: int) -> list[str]:
    return [f"  ({left_out} more)"] if left_out else []
