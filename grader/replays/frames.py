"""What happened, as plain facts: a program's lines in order, and what every device holds after each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.jax_versions import Spot


@dataclass(frozen=True, eq=False)
class Seen:
    """What one device holds: an array's type, its corner as rows and columns, its range, and a mark of its content."""

    shape: tuple[int, ...]
    dtype: str
    corner: np.ndarray
    low: float | None
    high: float | None
    content: str

    @property
    def type(self) -> str:
        """As float32[2,3]."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Held:
    """An array as every device holds it; None for a device that does not. `name` is what its author calls it."""

    name: str
    blocks: tuple[Seen | None, ...]


@dataclass(frozen=True)
class Transfer:
    """A collective that was carried out: who took part together, and what each device sent.

    `moves` are the pairs (from, to) of a permute. `pieces` are a dimension and, for each device, the devices whose
    pieces now stand along it, one after the other.
    """

    name: str
    kind: str
    axes: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    bytes_sent: int
    operand: Held
    moves: tuple[tuple[int, int], ...] = ()
    pieces: tuple[int, Mapping[int, tuple[int, ...]]] | None = None


@dataclass(frozen=True)
class Scope:
    """What a line stands in: a turn of a loop (of how many, where that is known before), or a branch."""

    kind: str
    number: int
    count: int | None = None

    def __str__(self) -> str:
        of = "" if self.count is None else f" of {self.count}"
        return f"{self.kind} {self.number}{of}"


@dataclass(frozen=True)
class Wait:
    """A device that waits in a collective for others that never come."""

    device: int
    name: str
    axes: tuple[str, ...]
    place: Spot | None
    missing: tuple[int, ...]


@dataclass(frozen=True)
class Frame:
    """One line of the program, done by all devices that come by; `stack` is where it stands, its callers behind it.

    `operation` is the last primitive of the line. `backward`: it belongs to a gradient's way back. `note` says what
    no line says: how arguments come in, for one.
    """

    mesh: Mapping[str, int]
    stack: tuple[Spot, ...]
    operation: str
    arrays: tuple[Held, ...]
    here: tuple[int, ...]
    scopes: tuple[Scope, ...] = ()
    backward: bool = False
    transfer: Transfer | None = None
    waits: tuple[Wait, ...] = ()
    note: str = ""

    @property
    def place(self) -> Spot | None:
        return self.stack[0] if self.stack else None

    @property
    def line(self) -> tuple[str, str, int] | None:
        """The line, which is the same whatever part of it is meant."""
        return (self.stack[0].file, self.stack[0].function, self.stack[0].first) if self.stack else None


@dataclass(frozen=True)
class Excerpt:
    """Lines of a source: `first` is the number of the first, `indent` what was taken off each."""

    file: str
    first: int
    lines: tuple[str, ...]
    indent: int = 0


@dataclass(frozen=True, eq=False)
class Playback:
    """A program's run: its frames, its source, its result (None where it has none), and why it ended early, if so."""

    frames: tuple[Frame, ...]
    excerpts: tuple[Excerpt, ...]
    result: Any
    ended: str = ""
