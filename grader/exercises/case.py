"""What an answer is tried on, and how that is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.arrays.numbers import ROUNDINGS


@dataclass(frozen=True)
class Move:
    """A collective that the compiler may put into a program: its kind, its mesh axes, each device's operand."""

    kind: str
    axes: tuple[str, ...]
    operand: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """One thing an answer is tried on.

    An argument is an `Array`, or a pytree of them (a network's parameters); one without any is passed to a program by
    keyword.
    `mesh` maps axis names to sizes, in order. `out` is the layout that the result must have: a spec, or a pytree of
    specs as the result is one. `cotangents` are arrays as the result is: where they are given, the program's gradient
    is judged too, which it gives by `jax.vjp` for them. `roundings` is through how many roundings, one after the
    other, an entry of the result may have gone: the lengths of the sums on its way, added up (`behaviour.close`).
    `bytes_sent` is what the best program sends
    per device, by the ring algorithm; `flops` what one device computes when the work is divided.
    `key` names the entry of a table that this case asks about. `explicit` gives the mesh Explicit axes.
    `moves` is for a program that is left to the compiler: what it may send, and nothing else.
    `turns` bounds how often each kind of collective may run in a program with shard_map, kinds not named not at
    all, and `written` how often it may stand in the text; `steps` bounds how many of them may wait for one another,
    one after the other; `meanwhile` is how many FLOPs of matmuls must be free to run beside every turn of every one
    of them; `one_way` is how many bytes permutes may send to one neighbour.
    """

    arguments: Mapping[str, Any]
    mesh: Mapping[str, int] = field(default_factory=dict)
    out: Any = None
    bytes_sent: int | None = None
    flops: int | None = None
    key: str = ""
    explicit: bool = False
    moves: tuple[Move, ...] | None = None
    turns: Mapping[str, int] | None = None
    written: Mapping[str, int] | None = None
    steps: int | None = None
    meanwhile: int = 0
    one_way: int | None = None
    cotangents: Any = None
    roundings: int = ROUNDINGS


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
