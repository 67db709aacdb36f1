"""How much a program does, between bounds: a branch and a loop of unknown length leave the number open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Count:
    """A number of bytes or FLOPs that is at least `least` and at most `most`, which may be infinite.

    A loop of unknown length is taken to run once in `least`; in `counted`, which is the number where the most has no
    bound, each branch is its largest as well.
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
        if self.is_known:
            return f"{self.number:,}"
        if self.is_bounded:
            return f"at most {self.number:,}"
        return f"{'at least' if self.least == self.counted else 'unknown, counted as'} {self.number:,}"


@dataclass(frozen=True, eq=False)
class Totals:
    """What a piece of a program comes to: bytes sent by each device, then FLOPs of matmuls, then other FLOPs.

    `bounds` is float[3, devices + 2]: the least, the most, and what is counted, as `Count` has them.
    """

    bounds: np.ndarray

    @classmethod
    def of(cls, sent: np.ndarray, matmuls: float = 0, others: float = 0) -> Totals:
        return cls(np.tile(np.append(sent, (matmuls, others)), (3, 1)))

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.bounds + other.bounds)

    def often(self, times: int | None) -> Totals:
        """So many times the same; None for a loop of unknown length, which counts once and has no bound."""
        if times == 0:
            return Totals(np.zeros_like(self.bounds))
        if times is not None:
            return Totals(self.bounds * times)
        least, most, counted = self.bounds
        return Totals(np.stack([least, np.where(most > 0, math.inf, 0.0), counted]))

    @classmethod
    def any_of(cls, branches: Sequence[Totals]) -> Totals:
        """One of these, nobody knows which: for each number the least and the most of all."""
        least, most, counted = np.stack([branch.bounds for branch in branches], axis=1)
        return cls(np.stack([least.min(axis=0), most.max(axis=0), counted.max(axis=0)]))

    @property
    def sent(self) -> Count:
        """Bytes that the busiest device sends."""
        return Count(*self.bounds[:, :-2].max(axis=1, initial=0).tolist())

    @property
    def sent_mean(self) -> Count:
        """Bytes that a device sends on average."""
        return Count(*(self.bounds[:, :-2].sum(axis=1) / max(1, self.bounds.shape[1] - 2)).tolist())

    @property
    def matmul_flops(self) -> Count:
        return Count(*self.bounds[:, -2].tolist())

    @property
    def other_flops(self) -> Count:
        return Count(*self.bounds[:, -1].tolist())
