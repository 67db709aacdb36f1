"""How much a program does, between bounds: a branch and a loop of unknown length leave the number open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Count:
    """A number of bytes or FLOPs that is at least `least` and at most `most`, which may be infinite."""

    least: float
    most: float

    @property
    def is_known(self) -> bool:
        return self.least == self.most

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.most)

    @property
    def number(self) -> int:
        """The most that it may be; where that has no bound, the least."""
        return round(self.most if self.is_bounded else self.least)

    def __str__(self) -> str:
        bound = "" if self.is_known else "at most " if self.is_bounded else "at least "
        return f"{bound}{self.number:,}"


@dataclass(frozen=True, eq=False)
class Totals:
    """What a piece of a program comes to: bytes sent by each device, then FLOPs of matmuls, then other FLOPs.

    `least` and `most` are float[devices + 2].
    """

    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of(cls, sent: np.ndarray, matmuls: float = 0, others: float = 0) -> Totals:
        exactly = np.append(sent, (matmuls, others))
        return cls(exactly, exactly)

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.least + other.least, self.most + other.most)

    def often(self, times: int | None) -> Totals:
        """So many times the same; None for a loop of unknown length, which counts once and has no bound."""
        if times is None:
            return Totals(self.least, np.where(self.most > 0, math.inf, 0.0))
        return Totals(self.least * times, self.most * times) if times else Totals(0 * self.least, 0 * self.least)

    @classmethod
    def any_of(cls, branches: Sequence[Totals]) -> Totals:
        """One of these, nobody knows which: for each number the least and the most of all."""
        return cls(
            np.min([branch.least for branch in branches], axis=0), np.max([branch.most for branch in branches], axis=0)
        )

    @property
    def sent(self) -> Count:
        """Bytes that the busiest device sends."""
        return Count(float(self.least[:-2].max(initial=0)), float(self.most[:-2].max(initial=0)))

    @property
    def sent_mean(self) -> Count:
        """Bytes that a device sends on average."""
        count = max(1, len(self.least) - 2)
        return Count(float(self.least[:-2].sum()) / count, float(self.most[:-2].sum()) / count)

    @property
    def matmul_flops(self) -> Count:
        return Count(float(self.least[-2]), float(self.most[-2]))

    @property
    def other_flops(self) -> Count:
        return Count(float(self.least[-1]), float(self.most[-1]))
