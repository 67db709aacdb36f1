"""Meshes over the first devices, and arrays laid out over them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def make_mesh(sizes: Mapping[str, int], *, explicit: bool = False) -> Mesh:
    """A mesh with these axes (name -> size) over the first devices, all of them `Auto`, or all `Explicit`."""
    shape, names = tuple(sizes.values()), tuple(sizes)
    devices = jax.devices()[: math.prod(shape)]
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh(shape, names, axis_types=(kind,) * len(names), devices=devices)


def no_mesh() -> contextlib.AbstractContextManager[None]:
    """For a block of code, no mesh is in force: an earlier cell may have left one behind with `jax.set_mesh`."""
    return jax.set_mesh(Mesh(np.empty((), object), ()))


def aval(shape: tuple[int, ...], dtype: Any, spec: P, mesh: Mesh) -> jax.ShapeDtypeStruct:
    """What is known of an array before it has values: shape, dtype and layout."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))


def put(value: Any, spec: P, mesh: Mesh) -> jax.Array:
    """The array with these values, laid out by `spec` over `mesh`."""
    return jax.device_put(value, NamedSharding(mesh, spec))


def spelled(spec: Any) -> str:
    """A layout as one writes it: P('x', None)."""
    return f"P({', '.join(map(repr, spec))})" if isinstance(spec, P) else str(spec)
