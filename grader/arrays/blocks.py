"""Who holds what: the facts behind a picture, apart from drawing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.jax_versions import entries_of

Bounds = tuple[tuple[int, int], ...]  # where a part of an array starts and stops, in each dimension


@dataclass(frozen=True)
class Blocks:
    """An array cut into blocks over a mesh; devices are counted row by row through the mesh.

    `indices` gives for each device the part of the global array it holds, as slices with start and stop;
    `values` the block it holds (None for an array without values). `partial_over` names mesh axes
    along which the blocks are parts of a sum.
    """

    mesh: Mapping[str, int]
    shape: tuple[int, ...]
    indices: tuple[tuple[slice, ...], ...]
    values: tuple[np.ndarray, ...] | None = None
    partial_over: tuple[str, ...] = ()

    def bounds(self, device: int) -> Bounds:
        """Where the part that a device holds starts and stops."""
        return tuple((part.start, part.stop) for part in self.indices[device])

    @property
    def entries(self) -> int:
        """How many entries the first device holds."""
        return math.prod(part.stop - part.start for part in self.indices[0])


def blocks(shape: tuple[int, ...], spec: P, mesh: Any, value: Any = None, partial_over: tuple[str, ...] = ()) -> Blocks:
    """The blocks of an array of `shape` laid out by `spec` over `mesh` (a Mesh, or axis names to sizes).

    No device is needed.

    Args:
      shape: of the whole array.
      spec: which dimension is cut over which axes.
      mesh: a Mesh, or axis names to sizes.
      value: the whole array, if the blocks should have values.
      partial_over: the axes along which blocks are parts of a sum.

    Example:
      >>> grader.draw.blocks((4, 4), P("x"), {"x": 2}).indices[1]
      (slice(2, 4, None), slice(0, 4, None))
    """
    sizes = dict(mesh) if isinstance(mesh, Mapping) else dict(mesh.shape)
    indices = tuple(_index(shape, spec, sizes, device) for device in range(math.prod(sizes.values())))
    values = None if value is None else tuple(np.asarray(value)[index] for index in indices)
    return Blocks(sizes, tuple(shape), indices, values, tuple(partial_over))


def _index(shape: tuple[int, ...], spec: P, sizes: Mapping[str, int], device: int) -> tuple[slice, ...]:
    place = dict(zip(sizes, np.unravel_index(device, tuple(sizes.values())), strict=True)) if sizes else {}
    entries = entries_of(spec)
    parts = [*entries, *[None] * (len(shape) - len(entries))]
    return tuple(_part(n, part, place, sizes) for n, part in zip(shape, parts, strict=True))


def axes_of(entry: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The mesh axes that one entry of a spec names."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def _part(length: int, part: Any, place: Mapping[str, Any], sizes: Mapping[str, int]) -> slice:
    axes = axes_of(part)
    count, number = 1, 0
    for axis in axes:
        count, number = count * sizes[axis], number * sizes[axis] + int(place[axis])
    if length % count:
        raise ValueError(f"{length} entries cannot be cut into {count} equal parts over {', '.join(axes)}")
    step = length // count
    return slice(number * step, (number + 1) * step)


def blocks_of(array: jax.Array, mesh: Mapping[str, int] | None = None, partial_over: tuple[str, ...] = ()) -> Blocks:
    """The blocks of a real array, read from every device that holds one.

    Args:
      array: is on devices.
      mesh: axis names to sizes; by default those of the array's own sharding.
      partial_over: the axes along which blocks are parts of a sum; by default those along which `array` is unreduced.

    Example:
      >>> array = jax.device_put(np.arange(8.0), jax.NamedSharding(jax.make_mesh((4,), ("x",)), P("x")))
      >>> grader.draw.blocks_of(array).values[3]
      array([6., 7.], dtype=float32)
    """
    sharding: Any = array.sharding
    if mesh is None:
        mesh = dict(sharding.mesh.shape) if isinstance(sharding, NamedSharding) else {}
    shards = array.addressable_shards
    if isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, AbstractMesh):
        order = {device: k for k, device in enumerate(sharding.mesh.devices.flat)}
        shards = sorted(shards, key=lambda shard: order[shard.device])
    values = tuple(np.asarray(s.data) for s in shards)
    if unreduced := tuple(sorted(getattr(getattr(sharding, "spec", None), "unreduced", ()))):
        indices = blocks(array.shape, sharding.spec, sharding.mesh).indices  # JAX gives no `index` of such shards
    else:
        parts = [zip(s.index, array.shape, strict=True) for s in shards]
        indices = tuple(tuple(slice(*i.indices(n)[:2]) for i, n in part) for part in parts)
    return Blocks(dict(mesh), tuple(array.shape), indices, values, tuple(partial_over) or unreduced)
