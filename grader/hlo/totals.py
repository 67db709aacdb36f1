"""How much a program does, between bounds: a branch and a loop of unknown length leave the number open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Count:
    """A number of bytes or FLOPs that is at least `least` and at most `most`, which may be infinite.

    In `counted`, which is the number where the most has no bound, each loop of unknown length runs once and each branch
    is its largest.
    """

    least: float
    most: float
    counted: float

    @property
    def is_known(self) -> bool:
        return self.least == self.most

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.most)

    @property
    def value(self) -> float:
        return self.most if self.is_bounded else self.counted

    @property
    def number(self) -> int:
        return round(self.value)

    def __str__(self) -> str:
        return " ".join(self.of("").split())

    def of(self, unit: str) -> str:
        """The number with its unit, and what is known of it."""
        if self.is_known:
            return f"{self.number:,} {unit}"
        if self.is_bounded:
            return f"at most {self.number:,} {unit}"
        once = "" if self.least == self.counted else f" ({self.number:,} if each loop of unknown length runs once)"
        return f"at least {round(self.least):,} {unit}{once}"


def mean_of(number: float) -> str:
    """An average as one reads it."""
    return f"{number:,.6g}" if number < 1e6 else f"{number:,.0f}"


_MATMULS, _OTHERS, _RUNS = -3, -2, -1
_SCALARS = 3


@dataclass(frozen=True, eq=False)
class Totals:
    """What a piece of a program comes to: bytes sent by each device, FLOPs of matmuls, other FLOPs, collectives.

    `bounds` is float[3, devices + 3]: the least, the most, and what is counted, as `Count` has them. `along` has the
    bytes of each device by the axes that they are sent along: float[3, devices].
    """

    bounds: np.ndarray
    along: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(cls, sent: np.ndarray, matmuls: float = 0, others: float = 0, runs: int = 0, axes: str = "") -> Totals:
        bounds = np.empty((3, len(sent) + _SCALARS))
        bounds[:, :-_SCALARS], bounds[:, _MATMULS], bounds[:, _OTHERS], bounds[:, _RUNS] = sent, matmuls, others, runs
        return cls(bounds, {axes: bounds[:, :-_SCALARS]} if runs else {})

    @classmethod
    def unbounded(cls, devices: int, sent: bool, flops: bool) -> Totals:
        """Nothing that is known, but no bound on the bytes, or on the FLOPs."""
        bounds = np.zeros((3, devices + _SCALARS))
        bounds[1, :-_SCALARS] = math.inf if sent else 0
        bounds[1, [_MATMULS, _OTHERS]] = math.inf if flops else 0
        return cls(bounds)

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> Totals:
        return Totals(change(self.bounds), {axes: change(sent) for axes, sent in self.along.items()})

    def __add__(self, other: Totals) -> Totals:
        along = dict(self.along)
        for axes, sent in other.along.items():
            along[axes] = along[axes] + sent if axes in along else sent
        return Totals(self.bounds + other.bounds, along)

    def often(self, times: int | None) -> Totals:
        """So many times the same; None for a loop of unknown length, which may not run at all and has no bound."""
        if times == 0:
            return self._each(np.zeros_like)
        return self._each(_perhaps_often) if times is None else self._each(lambda bounds: bounds * times)

    @classmethod
    def any_of(cls, branches: Sequence[Totals]) -> Totals:
        """One of these, nobody knows which: for each number the least and the most of all."""
        nothing = np.zeros((3, branches[0].bounds.shape[1] - _SCALARS))
        every = {axes for branch in branches for axes in branch.along}
        along = {axes: _either([branch.along.get(axes, nothing) for branch in branches]) for axes in sorted(every)}
        return cls(_either([branch.bounds for branch in branches]), along)

    @property
    def devices(self) -> int:
        return self.bounds.shape[1] - _SCALARS

    @property
    def sent(self) -> Count:
        """Bytes that the busiest device sends."""
        return _busiest(self.bounds[:, :-_SCALARS])

    @property
    def sent_along(self) -> dict[str, Count]:
        """Bytes that the busiest device sends, by the axes along which it does."""
        return {axes: _busiest(sent) for axes, sent in self.along.items()}

    @property
    def sent_mean(self) -> Count:
        """Bytes that a device sends on average."""
        sent = self.bounds[:, :-_SCALARS]
        return Count(*(sent.sum(axis=1) / max(1, sent.shape[1])).tolist())

    @property
    def matmul_flops(self) -> Count:
        return Count(*self.bounds[:, _MATMULS].tolist())

    @property
    def other_flops(self) -> Count:
        return Count(*self.bounds[:, _OTHERS].tolist())

    @property
    def runs(self) -> Count:
        """How many collectives run."""
        return Count(*self.bounds[:, _RUNS].tolist())


def _perhaps_often(bounds: np.ndarray) -> np.ndarray:
    _, most, counted = bounds
    return np.stack([np.zeros_like(most), np.where(most > 0, math.inf, 0.0), counted])


def _either(bounds: Sequence[np.ndarray]) -> np.ndarray:
    least, most, counted = np.stack(bounds, axis=1)
    return np.stack([least.min(axis=0), most.max(axis=0), counted.max(axis=0)])


def _busiest(sent: np.ndarray) -> Count:
    return Count(*sent.max(axis=1, initial=0).tolist())
