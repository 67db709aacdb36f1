"""The list of programs: their calls, and the facts that a person can tell about each by reading it."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec


@dataclass(frozen=True, eq=False, init=False)
class Call:
    """A function, its arguments, and the meshes that it uses; the first has the order of the devices."""

    meshes: tuple[Mesh, ...]
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __init__(self, meshes: Mesh | tuple[Mesh, ...], fn: Callable[..., Any], *args: Any, **kwargs: Any):
        for name, value in (("meshes", meshes), ("fn", fn), ("args", args), ("kwargs", kwargs)):
            object.__setattr__(self, name, (value,) if isinstance(value, Mesh) else value)


@dataclass(frozen=True, eq=False)
class Stranger:
    """One program, and the facts that a person can tell about it by reading it.

    `build` makes its call. `flops` are those of all matmuls and convolutions on the busiest device, a loop of unknown
    length counted once; None: how many there are depends on the device. `yours` and `inserted` say how often each
    collective runs that the author wrote, or that XLA inserted on the CPU with JAX 0.10.2, as {"all_reduce x,y": 2};
    one in a loop of unknown length counts once. `replayable`: it has a shard_map, and arrays as arguments. `under`: its
    mesh is set when it is called (`with jax.set_mesh(mesh):`). `packages` are those that it needs besides JAX, and
    `since` is the first JAX that takes it.
    """

    name: str
    build: Callable[[], Call]
    flops: int | None = 0
    yours: Mapping[str, int] = field(default_factory=dict)
    inserted: Mapping[str, int] = field(default_factory=dict)
    replayable: bool = False
    under: bool = False
    packages: tuple[str, ...] = ()
    since: tuple[int, ...] = (0, 7, 2)

    def around(self, call: Call) -> contextlib.AbstractContextManager:
        """The context to call it in."""
        return jax.set_mesh(call.meshes[0]) if self.under else contextlib.nullcontext()


STRANGERS: list[Stranger] = []


def stranger(**known: Any) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    """Lists a function that builds a call as a program; `known` are the fields of `Stranger`."""

    def listed(build: Callable[[], Call]) -> Callable[[], Call]:
        STRANGERS.append(Stranger(build.__name__, build, **known))
        return build

    return listed


def grid(**axes: int) -> Mesh:
    """A mesh of the first devices, with Auto axes."""
    return _mesh(AxisType.Auto, axes)


def explicit(**axes: int) -> Mesh:
    """A mesh of the first devices, with Explicit axes."""
    return _mesh(AxisType.Explicit, axes)


def _mesh(kind: AxisType, axes: Mapping[str, int]) -> Mesh:
    devices = np.array(jax.devices()[: math.prod(axes.values())]).reshape(tuple(axes.values()))
    return Mesh(devices, tuple(axes), axis_types=(kind,) * len(axes))


def values(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Small values that repeat, but not from row to row."""
    return ((np.arange(math.prod(shape)) % 11 - 4) / 4).reshape(shape).astype(dtype)


def put(mesh: Mesh, spec: PartitionSpec, array: Any) -> jax.Array:
    """An array, or a pytree of arrays, with one sharding."""
    return jax.device_put(array, NamedSharding(mesh, spec))


def sharded(mesh: Mesh, spec: PartitionSpec, *shape: int, dtype: Any = np.float32) -> jax.Array:
    """Some values with a sharding."""
    return put(mesh, spec, values(*shape, dtype=dtype))


def on(mesh: Mesh | None, in_specs: Any, out_specs: Any, **options: Any) -> Callable[[Callable], Callable]:
    """`jax.shard_map` as a decorator."""
    return functools.partial(jax.shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def ring(size: int, by: int = 1) -> list[tuple[int, int]]:
    """The pairs of a shift by so many devices around a ring."""
    return [(k, (k + by) % size) for k in range(size)]
