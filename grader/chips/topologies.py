"""Pods by name: how many chips, where they stand, which host drives them, and what each can do.

The numbers of a chip are those of "How To Scale Your Model", chapter 2 (jax-ml.github.io/scaling-book/tpus), which
agree with Google Cloud's pages of TPUs; v2's are those of JAX's own table for Pallas. How much of the HBM a program may
have is what the compiler says when it refuses one (libtpu 0.0.42).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace

import numpy as np
from jax.experimental import mesh_utils

SOURCE = "How To Scale Your Model, chapter 2"
CHIPS_OF_HOST = (2, 2, 1)  # chips of one host along each dimension, as the compiler arranges them
GIB = 2**30


@dataclass(frozen=True)
class Chip:
    """One kind of TPU. All numbers but `devices` are for one device, as JAX counts them.

    `devices` is how many devices JAX sees in a chip; `room` the bytes of HBM that a program may have; `flops` the peak
    of bfloat16 matmuls per second; `hbm` and `link` are bytes per second, of the memory and of one wire to a neighbour,
    one way. `dimensions` are those of its grids, `longest` the most chips along one of them.
    """

    kind: str
    devices: int
    room: int
    flops: float
    hbm: float
    link: float
    dimensions: int
    longest: int


def _chip(kind: str, devices: int, room: float, flops: float, hbm: float, link: float, dims: int, longest: int) -> Chip:
    return Chip(kind, devices, int(room * GIB), flops / devices, hbm / devices, link, dims, longest)


# What a whole chip can do; `room`, in GiB, is a device's.
CHIPS: Mapping[str, Chip] = {
    "v2": _chip("TPU v2", 2, 7.48, 4.6e13, 7.16e11, 1e11, 2, 16),
    "v3": _chip("TPU v3", 2, 15.48, 1.4e14, 9.0e11, 1e11, 2, 32),
    "v5e": _chip("TPU v5 lite", 1, 15.75, 1.97e14, 8.2e11, 4.5e10, 2, 16),
    "v5p": _chip("TPU v5", 1, 95.74, 4.59e14, 2.8e12, 9e10, 3, 16),
    "v6e": _chip("TPU v6 lite", 1, 31.25, 9.2e14, 1.6e12, 9e10, 2, 16),
    "tpu7x": _chip("TPU7x", 2, 94.75, 2.3e15, 7.4e12, 9e10, 3, 16),
}
# Those that `grader chips` lists; any other grid of whole hosts will do as well.
USUAL = (
    *("v2:2x2", "v3:2x2", "v5e:2x2", "v5e:2x4", "v5e:4x4", "v5e:8x8", "v5e:16x16", "v5p:2x2x1", "v5p:2x2x2"),
    *("v5p:4x4x4", "v5p:16x16x16", "v6e:2x4", "v6e:16x16", "tpu7x:2x2x1", "tpu7x:2x2x2"),
)


@dataclass(frozen=True)
class Topology:
    """A grid of chips of one kind. Devices are numbered along the first dimension, then the second, then the third."""

    name: str
    chip: Chip
    shape: tuple[int, int, int]

    @property
    def chips(self) -> int:
        return math.prod(self.shape)

    @property
    def devices(self) -> int:
        return self.chips * self.chip.devices

    @property
    def hosts(self) -> int:
        return self.chips // math.prod(CHIPS_OF_HOST)

    @cached_property
    def coords(self) -> tuple[tuple[int, int, int], ...]:
        """Where each device's chip stands."""
        places = np.unravel_index(np.arange(self.devices) // self.chip.devices, self.shape[::-1])
        return tuple(zip(*(part.tolist() for part in places[::-1]), strict=True))

    def host(self, device: int) -> int:
        """The number of the host that drives a device."""
        x, y, z = (place // own for place, own in zip(self.coords[device], CHIPS_OF_HOST, strict=True))
        wide, high = self.shape[0] // CHIPS_OF_HOST[0], self.shape[1] // CHIPS_OF_HOST[1]
        return x + wide * (y + high * z)

    def wraps(self, dimension: int) -> bool:
        """Whether the chips along a dimension form a ring: v5e's and v6e's where it is full, v5p's from four on."""
        length = self.shape[dimension]
        return length == self.chip.longest if self.chip.dimensions == 2 else length % 4 == 0

    def hops(self, one: int, other: int) -> int:
        """The wires between two devices' chips, the shorter way round where there is a ring."""
        steps = [abs(a - b) for a, b in zip(self.coords[one], self.coords[other], strict=True)]
        return sum(min(n, self.shape[k] - n) if self.wraps(k) else n for k, n in enumerate(steps))

    def order(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The devices of a mesh with these axes, row by row, as `jax.make_mesh` arranges them on this pod.

        Raises:
          ValueError: the mesh has another number of devices.
        """
        if math.prod(sizes.values()) != self.devices:
            mesh = " × ".join(f"{name}={size}" for name, size in sizes.items())
            raise ValueError(
                f"{self.name} has {self.devices:,} devices, and the mesh {mesh} has {math.prod(sizes.values()):,}. "
                "Make the mesh for as many; `jax.sharding.AbstractMesh` needs no devices for that."
            )
        places = zip(range(self.devices), self.coords, strict=True)
        stand_ins = [
            SimpleNamespace(
                id=k,
                platform="tpu",
                device_kind=self.chip.kind,
                coords=list(at),
                core_on_chip=k % self.chip.devices,
                process_index=self.host(k),
                slice_index=0,
            )
            for k, at in places
        ]
        shape = tuple(sizes.values())
        try:
            splits = self.chip.kind == "TPU v5 lite"
            arranged = mesh_utils.create_device_mesh(shape, stand_ins, allow_split_physical_axes=splits)
        except NotImplementedError:  # an axis of the mesh is only a part of one of the pod
            arranged = mesh_utils.create_device_mesh(shape, stand_ins, allow_split_physical_axes=True)
        return tuple(device.id for device in arranged.flat)

    def __str__(self) -> str:
        each = f"{self.chip.devices} devices a chip, " if self.chip.devices > 1 else ""
        return f"{self.name} ({_count(self.chips, 'chip')}, {each}{_count(self.hosts, 'host')})"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def topology(name: str) -> Topology:
    """The pod of this name: a kind of chip, and how many along each dimension, such as "v5e:4x8" or "v5p:4x4x8".

    Raises:
      ValueError: there is no such kind, or no such pod of it.
    """
    kind, _, layout = name.partition(":")
    if kind not in CHIPS:
        raise ValueError(f"there is no chip {kind!r} in {name!r}; there are {', '.join(CHIPS)}, as in 'v5e:4x4'")
    chip = CHIPS[kind]
    parts = layout.split("x")
    if len(parts) != chip.dimensions or not all(part.isdecimal() for part in parts):
        example = "x".join(["4"] * chip.dimensions)
        raise ValueError(
            f"{name!r} does not say how many chips along {chip.dimensions} dimensions, as '{kind}:{example}' does"
        )
    shape = (*map(int, parts), 1)[:3]
    if any(n % own or not 0 < n <= chip.longest for n, own in zip(shape, CHIPS_OF_HOST, strict=True)):
        raise ValueError(
            f"there is no pod {name!r}: a host has 2 × 2 chips, so the first two numbers are even, and none is above "
            f"{chip.longest}"
        )
    return Topology(name, chip, (shape[0], shape[1], shape[2]))


def usual_pods() -> str:
    """The usual pods as a table: chips, hosts, devices, and what one device has and can do."""
    heads = ("pod", "chips", "hosts", "devices", "HBM for a program", "bf16 peak", "HBM per second", "a wire, one way")
    rows = [heads, *(_row(topology(name)) for name in USUAL)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    lines = ["  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, "", f"Numbers from {SOURCE}, for one device; HBM as the compiler counts it."])


def _row(pod: Topology) -> tuple[str, ...]:
    chip = pod.chip
    return (
        pod.name,
        f"{pod.chips:,}",
        f"{pod.hosts:,}",
        f"{pod.devices:,}",
        f"{chip.room / GIB:.2f} GiB",
        f"{chip.flops / 1e12:.0f} TFLOP/s",
        f"{chip.hbm / 1e9:,.0f} GB/s",
        f"{chip.link / 1e9:.0f} GB/s",
    )
