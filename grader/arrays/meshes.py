"""Meshes over the first devices, and arrays laid out over them."""

from __future__ import annotations

import contextlib
import math
import unittest.mock
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.jax_versions import entries_of


def make_mesh(sizes: Mapping[str, int], *, explicit: bool = False) -> Mesh:
    """A mesh with these axes (name -> size) over the first devices, all of them `Auto`, or all `Explicit`."""
    shape, names = tuple(sizes.values()), tuple(sizes)
    devices = jax.devices()[: math.prod(shape)]
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh(shape, names, axis_types=(kind,) * len(names), devices=devices)


def abstract_mesh(sizes: Mapping[str, int]) -> AbstractMesh:
    """A mesh with these axes, all of them `Auto`, of devices that are not here."""
    return AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))


def no_mesh() -> contextlib.AbstractContextManager[None]:
    """For a block of code, no mesh is in force: an earlier cell may have left one behind with `jax.set_mesh`."""
    return jax.set_mesh(Mesh(np.empty((), object), ()))


@contextlib.contextmanager
def mesh_set_in_a_trace() -> Iterator[None]:
    """For a block of code, `jax.set_mesh` does in a function that is being traced what it does when that is called.

    JAX refuses it there. What is set for good holds until the block ends.
    """
    with contextlib.ExitStack() as until_the_end:

        def set_mesh(mesh: Mesh) -> contextlib.AbstractContextManager[Any]:
            for_good = until_the_end.enter_context(contextlib.ExitStack())
            for_good.enter_context(jax.sharding.use_abstract_mesh(mesh.abstract_mesh))
            return for_good

        with unittest.mock.patch.object(jax, "set_mesh", set_mesh):
            yield


def aval(shape: tuple[int, ...], dtype: Any, spec: P, mesh: Mesh | AbstractMesh) -> jax.ShapeDtypeStruct:
    """What is known of an array before it has values: shape, dtype and layout."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))


def put(value: Any, spec: P, mesh: Mesh) -> jax.Array:
    """The array with these values, laid out by `spec` over `mesh`: `device_put` with a `NamedSharding`.

    Args:
      value: an array of NumPy's or of JAX's, or a number.
      spec: what cuts each of its dimensions, a `PartitionSpec`.
      mesh: the devices, in a grid with named axes.

    Example:
      >>> line = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> grader.put(np.arange(16), P("x"), line).addressable_shards[5].data
      Array([10, 11], dtype=int32)
    """
    return jax.device_put(value, NamedSharding(mesh, spec))


def spelled(spec: Any) -> str:
    """A sharding as one writes it: P('x', None), or P('x', unreduced={'y'})."""
    if not isinstance(spec, P):
        return str(spec)
    named = {name: ", ".join(map(repr, sorted(getattr(spec, name, ())))) for name in ("unreduced", "reduced")}
    summed = [f"{name}={{{axes}}}" for name, axes in named.items() if axes]
    return f"P({', '.join([*map(repr, entries_of(spec)), *summed])})"
