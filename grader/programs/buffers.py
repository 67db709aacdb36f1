"""What every device holds before and after one collective, found out by running it; and puzzles made of that.

A *step* is one function that every device runs on its own block. `ran` runs it, and finds by experiment from
whose block each number came: change one device's block, and see what changes elsewhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.fresh import fresh
from grader.arrays.meshes import make_mesh

Body = Callable[[Any], Any]
Sizes = Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Step:
    """The blocks of all devices before and after; devices are counted row by row through the mesh.

    `sources` tells for each device which blocks its numbers depend on: truth values, one for each device and
    each number. None where only the blocks are given.
    """

    before: tuple[np.ndarray, ...]
    after: tuple[np.ndarray, ...]
    sources: tuple[np.ndarray, ...] | None = None


def ran(body: Body, before: Sequence[np.ndarray], mesh: Sizes) -> Step:
    """Run `body` on every device's block, and trace each number that comes out back to its sources."""
    blocks = tuple(map(np.asarray, before))
    results = after(body, blocks, mesh)
    far = 1 + 2 * int(np.abs(np.stack(blocks)).max())  # enough to become the largest
    changed = [after(body, [b + far * (k == d) for k, b in enumerate(blocks)], mesh) for d in range(len(blocks))]
    sources = tuple(np.stack([other[d] != results[d] for other in changed]) for d in range(len(blocks)))
    return Step(blocks, results, sources)


def after(body: Body, before: Sequence[np.ndarray], mesh: Sizes) -> tuple[np.ndarray, ...]:
    """What each device holds after `body` ran on its block."""
    return tuple(np.asarray(_program(body, tuple(mesh.items()))(np.stack(before))))


@functools.lru_cache(maxsize=256)
def _program(body: Body, mesh: tuple[tuple[str, int], ...]) -> Callable[[Any], jax.Array]:
    """`body` on stacked blocks, one for each device."""
    everyone = P(tuple(name for name, _ in mesh))
    return jax.jit(
        jax.shard_map(
            lambda stacked: jnp.asarray(body(stacked[0]))[None],
            mesh=make_mesh(dict(mesh)),
            in_specs=everyone,
            out_specs=everyone,
            check_vma=False,
        )
    )


# The collectives of a puzzle, by the name that answers it. Each takes a block and the axis it runs over.


def _shifted(block: Any, axis: str, by: int) -> Any:
    n = lax.psum(1, axis)
    return lax.ppermute(block, axis, [(k, (k + by) % n) for k in range(n)])


COLLECTIVES: dict[str, Callable[[Any, str], Any]] = {
    "all_gather": lax.all_gather,
    "all_gather tiled": lambda block, axis: lax.all_gather(block, axis, tiled=True),
    "psum": lax.psum,
    "pmean": lax.pmean,
    "pmax": lax.pmax,
    "psum_scatter": lambda block, axis: lax.psum_scatter(block, axis, tiled=True),
    "all_to_all": lambda block, axis: lax.all_to_all(block, axis, 0, 0, tiled=True),
    "ppermute +1": lambda block, axis: _shifted(block, axis, 1),
    "ppermute -1": lambda block, axis: _shifted(block, axis, -1),
    "axis_index": lambda block, axis: lax.axis_index(axis),
}


@functools.cache
def over(name: str, axis: str = "x") -> Body:
    """The collective of this name over an axis, as a function of a block."""
    return lambda block: COLLECTIVES[name](block, axis)


def named(before: Sequence[np.ndarray], outcome: Sequence[np.ndarray]) -> list[str]:
    """The collectives that turn these blocks, on a line of devices, into those."""
    line = {"x": len(before)}
    results = {name: after(over(name), before, line) for name in COLLECTIVES}
    return [name for name, blocks in results.items() if all(map(np.array_equal, blocks, outcome))]


@dataclass(frozen=True, eq=False)
class Puzzle:
    """Blocks before and after a collective, and its name."""

    before: tuple[np.ndarray, ...]
    after: tuple[np.ndarray, ...]
    name: str


def puzzle(
    rng: np.random.Generator | None = None, mesh: Sizes | None = None, length: int = 4, name: str = "", axis: str = "x"
) -> Puzzle:
    """Fresh numbers through a collective: `name`, or one drawn at random. On 4 devices along x by default."""
    rng, mesh = rng or fresh(), mesh or {"x": 4}
    name = name or str(rng.choice(list(COLLECTIVES)))
    devices = math.prod(mesh.values())
    # All different: no two collectives then leave the same blocks.
    before = tuple(rng.permutation(np.arange(1, 100))[: devices * length].reshape(devices, length))
    return Puzzle(before, after(over(name, axis), before, mesh), name)
