"""Where an interpreter stands: on which mesh, inside what, with whom; and what its parts ask of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from grader.jax_versions import Spot
from grader.replays.frames import Held, Scope

Values = list[Any]  # an entry for each device; None for one that does not hold it


class Halt(Exception):
    """The program was not watched to its end; the text says why, and what to do."""


@dataclass(frozen=True)
class Scene:
    """On which mesh a part of a program runs, and which devices came in. Without a mesh, one stands for all.

    `recorded`: what it does is written down; `traced`: it is compiled as one with what is around it.
    """

    mesh: Mapping[str, int] = field(default_factory=dict)
    manual: frozenset[str] = frozenset()
    here: tuple[int, ...] = (0,)
    scopes: tuple[Scope, ...] = ()
    backward: bool = False
    recorded: bool = False
    traced: bool = False

    @property
    def devices(self) -> int:
        return math.prod(self.mesh.values())

    def inside(self, here: Sequence[int], scope: Scope) -> Scene:
        """A turn or a branch, into which these devices go."""
        return replace(self, here=tuple(here), scopes=(*self.scopes, scope))

    def everywhere(self, value: Any) -> Values:
        return [value] * self.devices


class Interpreter(Protocol):
    """What the parts of an interpreter ask of the whole."""

    def run(self, jaxpr: Any, values: Sequence[Values], scene: Scene) -> list[Values]:
        """What a traced function gives, on every device that is here."""

    def here(self, scene: Scene) -> tuple[int, ...]:
        """The devices that came in, and do not wait."""

    def note(self, scene: Scene, stack: tuple[Spot, ...], note: str, arrays: Sequence[Held]) -> None:
        """Write down what no line of the program says."""

    def leave(self) -> None:
        """All devices have come to the end of a shard_map, but for those that wait: with these, the program ends."""
