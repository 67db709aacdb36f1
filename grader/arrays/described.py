"""What is on devices, as plain facts: arguments that are built where an answer runs, and arrays as they are laid out.

A function may be given meshes and arrays that are on devices. What crosses from the judge to whoever runs
the function is a description, and `built` makes the real thing of it there. What comes back is `observed`:
who holds what.
"""

from __future__ import annotations

import contextlib
import math
import re
import unittest.mock
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.files import OnFile
from grader.arrays.sketch import Sketch
from grader.arrays.words import numbered, region

FROM_HOST, FROM_ANYWHERE = "from the host", "from anywhere"  # ways by which an array may get to devices
TO_THE_HOST = "to the host"  # from there, or what devices were given put into its memory
NOT_IN_PLACE = "not in place"  # where an array may be that should have taken the place of one that was given
WITHOUT_WAITING = "from the host, without waiting"  # as FROM_HOST; and waiting for a result is an error
GUARDS = {
    FROM_HOST: (jax.transfer_guard_host_to_device,),
    WITHOUT_WAITING: (jax.transfer_guard_host_to_device,),
    TO_THE_HOST: (jax.transfer_guard_host_to_device,),
    FROM_ANYWHERE: (jax.transfer_guard_host_to_device, jax.transfer_guard_device_to_device),
}
HELD = "held by device"  # the key of what was observed of an array that is on several devices


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
        notes = [
            *(["Explicit"] if self.explicit else []),
            *([f"devices {', '.join(map(str, self.order))}"] if self.order else []),
        ]
        return f"<mesh {sizes}{' (' + '; '.join(notes) + ')' if notes else ''}>"


@dataclass(frozen=True, eq=False)
class OnDevices:
    """An array: laid out over `mesh` by `spec`, or fresh and uncommitted where there is no mesh.

    `instead` says what single devices hold in place of what they should, by their place in the mesh: a
    replica that differs, for one. `memory` is the kind of memory that it is in, such as pinned_host; by default
    the devices' own.
    """

    value: np.ndarray
    mesh: OnMesh | None = None
    spec: P = P()
    instead: Mapping[int, np.ndarray] = field(default_factory=dict)
    memory: str = ""

    def built(self) -> jax.Array:
        if self.mesh is None:
            return jax.numpy.asarray(self.value)
        sharding = NamedSharding(self.mesh.built(), self.spec, memory_kind=self.memory or None)
        lying = jax.device_put(self.value, sharding)
        if not self.instead:
            return lying
        place = {device: k for k, device in enumerate(sharding.mesh.devices.flat)}
        blocks = [
            jax.device_put(self.instead.get(place[s.device], np.asarray(s.data)), s.device)
            for s in lying.addressable_shards
        ]
        return jax.make_array_from_single_device_arrays(lying.shape, sharding, blocks)

    def __repr__(self) -> str:
        kind = f"{self.value.dtype}[{','.join(map(str, self.value.shape))}]"
        if self.mesh is None:
            return f"<{kind}, uncommitted>"
        odd = f", but for {numbered('device', self.instead)}"
        where = f"{self.mesh}{f' in {self.memory}' if self.memory else ''}"
        return f"<{kind} as P({', '.join(map(repr, self.spec))}) on {where}{odd if self.instead else ''}>"


@dataclass(frozen=True)
class PerProcess:
    """An argument of which each process is given its own part, and a reference all of them."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class PerLife:
    """An argument that differs between the run that is killed and the one that goes on; a reference is given both."""

    values: tuple[Any, ...]


def given_in(life: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of one of the two runs."""
    return _picked(PerLife, life, arguments)


def given_to(number: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of one process."""
    return _picked(PerProcess, number, arguments)


def _picked(kind: type[PerLife] | type[PerProcess], number: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: a.values[number] if isinstance(a, kind) else a for name, a in arguments.items()}


def built(argument: Any) -> Any:
    """What a description describes; anything else as it is, lists and dicts item by item.

    But an array of a dtype that is JAX's, such as bfloat16, is one of JAX: NumPy's product of two of them is float32.
    """
    if isinstance(argument, (OnMesh, OnDevices, OnFile, Sketch)):
        return argument.built()
    if isinstance(argument, (PerProcess, PerLife)):
        return [built(value) for value in argument.values]
    if isinstance(argument, (list, tuple)) and not isinstance(argument, P):  # a spec is a tuple on an older JAX
        return type(argument)(map(built, argument))
    if isinstance(argument, Mapping):
        return {key: built(value) for key, value in argument.items()}
    if isinstance(argument, np.ndarray) and argument.dtype.kind == "V":
        return jax.numpy.asarray(argument)
    return argument


class Observed(dict[str, Any]):
    """What was observed of an array on several devices: a dict that no answer can make up."""


def observed_array(array: jax.Array) -> Any:
    """An array as NumPy's where one device holds it; else, by device, the part it holds and the values there.

    An array in another memory than its device's own is always written by device, with the name of that memory. Of an
    array on the devices of several processes, this is what this process holds.
    """
    shards, memory = array.addressable_shards, _other_memory(array)
    if len(shards) == 1 and array.is_fully_addressable and not memory:
        return np.asarray(array)
    numbers = {device: k for k, device in enumerate(jax.devices())}
    blocks = {}
    for shard in shards:
        part = region(one.indices(length)[:2] for one, length in zip(shard.index, array.shape, strict=True))
        blocks[numbers[shard.device]] = {part + memory: np.asarray(shard.data)}
    return Observed({HELD: {f"device {k}": blocks[k] for k in sorted(blocks)}})


def _other_memory(array: jax.Array) -> str:
    """Where an array is if not in its device's own memory, as " in pinned_host"; else ""."""
    device: Any = next(iter(array.sharding.device_set))  # the type stubs do not know of its memory
    kind = array.sharding.memory_kind
    return f" in {kind}" if kind not in (None, device.default_memory().kind) else ""


def moved(work: Callable[..., Any], build: Callable[[], Mapping[str, Any]], barred: str) -> str:
    """The type of the first array that travels on the barred way while `work` does something with what it is given, as
    float32[8,6]; "" for none. What it is given is built for every call: `work` may give its arguments away.

    NOT_IN_PLACE bars every array of the result that is not where one of those was that were given. A CPU's memory is
    the host's, so JAX cannot notice a transfer *down* to the host there; a transfer up it notices on every platform. A
    single number, such as the 2 of `2 * x`, comes up too: it is allowed, and so is what follows it. TO_THE_HOST bars
    besides that an array which was given on devices is put into the host's memory by `jax.device_put`.
    """
    if not barred:
        return ""
    if barred == NOT_IN_PLACE:
        return _not_in_place(work, build())
    if barred == TO_THE_HOST and (sent := _put_on_the_host(work, build())):
        return sent
    given = build()
    try:
        with contextlib.ExitStack() as stack:
            for guard in GUARDS[barred]:
                stack.enter_context(guard("disallow_explicit"))
            work(**given)
    except Exception as error:  # JAX's own error has another class in every version
        match = re.search(r"Disallowed [\w-]+ transfer: aval=ShapedArray\((\w+\[[^\]]+\])", str(error))
        return match[1] if match else ""
    return ""


@contextlib.contextmanager
def waiting_refused() -> Iterator[None]:
    """For a block of code, `block_until_ready` is a RuntimeError, as the function and as the method of an array."""

    def refused(*_: Any) -> Any:
        raise RuntimeError("block_until_ready was called inside the function.")

    with (
        unittest.mock.patch.object(jax, "block_until_ready", refused),
        unittest.mock.patch.object(type(jnp.zeros(())), "block_until_ready", refused),
    ):
        yield


def _put_on_the_host(work: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """The type of the first array, of those that were given in devices' own memory, that is put into another; "" for
    none."""
    on_devices = [array for array in _arrays(dict(given)) if not _other_memory(array)]
    put, sent = jax.device_put, list[jax.Array]()

    def watched(x: Any, *options: Any, **more: Any) -> Any:
        result = put(x, *options, **more)
        pairs = zip(_arrays(x), _arrays(result), strict=False)
        sent.extend(a for a, b in pairs if _other_memory(b) and any(a is one for one in on_devices))
        return result

    jax.device_put = watched
    try:
        work(**given)
    except Exception:  # its answer tells of it
        return ""
    finally:
        jax.device_put = put
    return next((_type_of(array) for array in sent), "")


def _type_of(array: jax.Array) -> str:
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def _not_in_place(work: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """The type of the first array of a result that is not in the memory of one that was given; "" for none. An array
    such as none that was given takes no array's place.

    It is given copies: JAX does not write over memory of NumPy's, in which an array may still be.
    """
    given = jax.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, dict(given))
    places = {place for array in _arrays(given) for place in _addresses(array)}
    types = {*map(_type_of, _arrays(given))}
    made = _arrays(work(**given))
    beside = (array for array in made if _type_of(array) in types and not _addresses(array) <= places)
    return next(map(_type_of, beside), "")


def _arrays(tree: Any) -> list[jax.Array]:
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]


def _addresses(array: jax.Array) -> set[int]:
    """Where its blocks begin, in the memories of their devices."""
    return {shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards}


def observed_mesh(mesh: Mesh) -> dict[str, Any]:
    """A mesh as plain values: axis sizes in order, the devices' numbers, and the types of its axes."""
    numbers = {device: k for k, device in enumerate(jax.devices())}
    return {
        "axes": [[name, size] for name, size in mesh.shape.items()],
        "devices": [numbers[device] for device in mesh.devices.flat],
        "axis_types": [str(kind).rpartition(".")[2] for kind in mesh.axis_types],
    }


def lies_on_devices(value: Any) -> bool:
    """Whether an array that is on several devices was observed here, or anywhere inside."""
    if isinstance(value, Mapping):
        return HELD in value or any(map(lies_on_devices, value.values()))
    return isinstance(value, (list, tuple)) and any(map(lies_on_devices, value))


def of_other_numbers(found: Any, expected: Any) -> bool:
    """Whether an array on devices has another dtype than expected, of two values that are otherwise the same."""
    if isinstance(expected, Mapping) and HELD in expected:
        ((block,), (theirs,)) = (list(next(iter(one[HELD].values())).values()) for one in (expected, found))
        return bool(block.dtype != theirs.dtype)
    if isinstance(expected, Mapping):
        return any(of_other_numbers(found[key], expected[key]) for key in expected)
    if isinstance(expected, (list, tuple)):
        return any(map(of_other_numbers, found, expected))
    return False


def is_observed(value: Any) -> bool:
    """Whether this is what `observed_array` says of an array on several devices: it may come from anywhere."""
    blocks = value.get(HELD) if isinstance(value, Mapping) and len(value) == 1 else None
    return (
        isinstance(blocks, Mapping)
        and len(blocks) > 0
        and all(
            isinstance(part, Mapping)
            and len(part) == 1
            and all(isinstance(block, np.ndarray) for block in part.values())
            for part in blocks.values()
        )
    )
