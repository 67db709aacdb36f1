"""What an answer is tried on, and how that is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.arrays.numbers import ROUNDINGS
from grader.exercises.limits import Limit


@dataclass(frozen=True, eq=False)
class Case:
    """One thing an answer is tried on.

    An argument is an `Array`, or a pytree of them (a network's parameters); one without any is passed to a program by
    keyword.
    `mesh` maps axis names to sizes, in order. `out` is the layout that the result must have: a spec, or a pytree of
    specs with the same structure as the result. `limits` is what a program may cost (`grader.exercises.limits`).
    `key` names the entry of a table that this case asks about. `explicit` gives the mesh Explicit axes.
    `cotangents` are arrays with the structure of the result: where they are given, the program's gradient for them, by
    `jax.vjp`, is judged too. `roundings` is how many roundings, one after the other, an entry of the result may have
    gone through: the lengths of the sums that lead to it, added up (`grader.arrays.numbers.close`).
    `parts` names the elements of a result that is a tuple, for cards: ("loss", "gradients").
    A program for a `pod` is compiled by its own compiler and not run: its arguments are `Layout`s.
    """

    arguments: Mapping[str, Any]
    mesh: Mapping[str, int] = field(default_factory=dict)
    out: Any = None
    limits: Sequence[Limit] = ()
    key: str = ""
    explicit: bool = False
    cotangents: Any = None
    roundings: int = ROUNDINGS
    pod: str = ""
    parts: tuple[str, ...] = ()


class Draw:
    """Fresh data for a case: no zeros, no equal shards, a different length on every axis.

    `shape` is the shape of the mesh this round is about, and `square` asks for equal lengths: wrong
    axes then pass every shape and only values tell.
    """

    def __init__(self, rng: np.random.Generator, shape: tuple[int, ...] = (), square: bool = False):
        self.rng, self.shape, self.square = rng, shape, square

    def mesh(self, *names: str) -> dict[str, int]:
        """A mesh with these axes: the round's own shape, or its product for a single axis."""
        if len(names) == len(self.shape):
            return dict(zip(names, self.shape, strict=True))
        if len(names) == 1:
            return {names[0]: int(np.prod(self.shape))}
        raise ValueError(f"a round on a mesh of shape {self.shape} has no mesh with axes {names}")

    def lengths(self, count: int, divisible_by: int) -> tuple[int, ...]:
        """`count` lengths, each a multiple of `divisible_by` and at least twice it."""
        if self.square:
            return (int(divisible_by * self.rng.integers(2, 4)),) * count
        multiples = self.rng.choice(np.arange(2, 3 + count), size=count, replace=False)
        return tuple(int(divisible_by * m) for m in multiples)

    def values(self, *shape: int) -> np.ndarray:
        """Whole numbers as float32: sums come out exact, and no entry is zero."""
        magnitude = self.rng.integers(1, 10, size=shape)
        return (magnitude * self.rng.choice([-1, 1], size=shape)).astype(np.float32)

    def array(self, *shape: int, spec: P) -> Array:
        return Array(self.values(*shape), spec)
