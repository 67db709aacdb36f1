"""What is on devices, as plain facts: arguments that are built where an answer runs, and arrays as they lie.

A function may be given meshes and arrays that lie on devices. What crosses from the judge to whoever runs
the function is a description, and `built` makes the real thing of it there. What comes back is `observed`:
who holds what.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.sketch import Sketch

HELD = "held"  # the key of what was observed of an array that lies on several devices


@dataclass(frozen=True)
class OnMesh:
    """A mesh: axis names to sizes, in order; `order` are the devices' numbers, by default the first ones."""

    sizes: Mapping[str, int]
    explicit: bool = False
    order: tuple[int, ...] = ()

    def built(self) -> Mesh:
        everyone, shape = jax.devices(), tuple(self.sizes.values())
        chosen = [everyone[k] for k in self.order or range(math.prod(shape))]
        kind = AxisType.Explicit if self.explicit else AxisType.Auto
        return Mesh(np.array(chosen).reshape(shape), tuple(self.sizes), axis_types=(kind,) * len(shape))

    def __repr__(self) -> str:
        sizes = " × ".join(f"{name}={size}" for name, size in self.sizes.items())
        notes = [*(["Explicit"] if self.explicit else []),
                 *([f"devices {', '.join(map(str, self.order))}"] if self.order else [])]
        return f"<mesh {sizes}{' (' + '; '.join(notes) + ')' if notes else ''}>"


@dataclass(frozen=True, eq=False)
class OnDevices:
    """An array: laid out over `mesh` by `spec`, or fresh and uncommitted where there is no mesh.

    `instead` says what single devices hold in place of what they should, by their place in the mesh: a
    replica that differs, for one.
    """

    value: np.ndarray
    mesh: OnMesh | None = None
    spec: P = P()
    instead: Mapping[int, np.ndarray] = field(default_factory=dict)

    def built(self) -> jax.Array:
        if self.mesh is None:
            return jax.numpy.asarray(self.value)
        sharding = NamedSharding(self.mesh.built(), self.spec)
        lying = jax.device_put(self.value, sharding)
        if not self.instead:
            return lying
        place = {device: k for k, device in enumerate(sharding.mesh.devices.flat)}
        blocks = [jax.device_put(self.instead.get(place[s.device], np.asarray(s.data)), s.device)
                  for s in lying.addressable_shards]
        return jax.make_array_from_single_device_arrays(lying.shape, sharding, blocks)

    def __repr__(self) -> str:
        kind = f"{self.value.dtype}[{','.join(map(str, self.value.shape))}]"
        if self.mesh is None:
            return f"<{kind}, uncommitted>"
        odd = f", but for device{'s' * (len(self.instead) > 1)} {', '.join(map(str, self.instead))}"
        return f"<{kind} as P({', '.join(map(repr, self.spec))}) on {self.mesh}{odd if self.instead else ''}>"


def built(argument: Any) -> Any:
    """The real thing, for a description of one; anything else as it is, lists and dicts item by item."""
    if isinstance(argument, (OnMesh, OnDevices, Sketch)):
        return argument.built()
    if isinstance(argument, (list, tuple)) and not isinstance(argument, P):  # a spec is a tuple on an older JAX
        return type(argument)(map(built, argument))
    if isinstance(argument, Mapping):
        return {key: built(value) for key, value in argument.items()}
    return argument


def observed_array(array: jax.Array) -> Any:
    """An array as NumPy's where one device holds it; else, by device, the part it holds and the values there."""
    shards = array.addressable_shards
    if len(shards) == 1:
        return np.asarray(array)
    number = {device: k for k, device in enumerate(jax.devices())}
    held = {number[s.device]: {_part(s.index, array.shape): np.asarray(s.data)} for s in shards}
    return {HELD: {f"device {k}": held[k] for k in sorted(held)}}


def _part(index: tuple[slice, ...], shape: tuple[int, ...]) -> str:
    bounds = (part.indices(length)[:2] for part, length in zip(index, shape, strict=True))
    return f"[{', '.join(f'{start}:{stop}' for start, stop in bounds)}]"


def observed_mesh(mesh: Mesh) -> dict[str, Any]:
    """A mesh as plain values: axis sizes in order, the devices' numbers, and the types of its axes."""
    number = {device: k for k, device in enumerate(jax.devices())}
    return {"axes": [[name, size] for name, size in mesh.shape.items()],
            "devices": [number[device] for device in mesh.devices.flat],
            "axis_types": [str(kind).rpartition(".")[2] for kind in mesh.axis_types]}


def difference(found: Any, expected: Any, close: Any) -> str:
    """In words, the first difference of two observed arrays that lie on several devices; "" when there is none."""
    if not isinstance(found, Mapping) or HELD not in found:
        return "it should lie on several devices; it lies on one, or is no jax.Array."
    lies, should = found[HELD], expected[HELD]
    if lies.keys() != should.keys():
        return f"it should lie on {_listed(should)}; it lies on {_listed(lies)}."
    for device, due in should.items():
        ((part, block),), ((other, theirs),) = due.items(), lies[device].items()
        if part != other:
            return f"{device} should hold {part}; it holds {other}."
        if not close(theirs, block):
            return f"{device} holds {part}, as it should, but the values there are wrong."
    return ""


def _listed(devices: Any) -> str:
    numbers = [name.removeprefix("device ") for name in devices]
    return f"devices {', '.join(numbers)}" if len(numbers) > 1 else f"device {numbers[0]}"
