"""Frames, as they are written down: the operations of one line become one frame."""

from __future__ import annotations

import hashlib
import math
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from grader.jax_versions import Spot, spots
from grader.replays.collectives import is_key
from grader.replays.frames import Frame, Held, Seen
from grader.replays.scenes import Scene

ROWS, COLUMNS = 6, 8  # of an array, what is kept for a picture
MOST = 4  # arrays in one frame
OURS = str(Path(__file__).parent)
PACKAGES = sysconfig.get_paths()["purelib"]


@dataclass
class Scribe:
    """The frames of one run, in order."""

    frames: list[Frame] = field(default_factory=list)

    def line(self, eqn: Any, scene: Scene, here: Sequence[int], values: Sequence[Any], **facts: Any) -> None:
        """What a line of the author's did. It replaces what the line did before, unless that was a collective."""
        if not scene.recorded or not (stack := written_at(eqn)):
            return
        arrays = tuple(held("", blocks) for blocks in _largest(values, here))
        frame = Frame(scene.mesh, stack, eqn.primitive.name, arrays, tuple(here), scene.scopes, scene.backward, **facts)
        if self.frames and not frame.transfer and _goes_on(self.frames[-1], frame):
            self.frames.pop()
        self.frames.append(frame)

    def note(self, scene: Scene, stack: tuple[Spot, ...], note: str, arrays: Sequence[Held]) -> None:
        """What no line does: how arguments come in, and results go out."""
        if scene.recorded:
            facts = (tuple(arrays[:MOST]), scene.here, scene.scopes, scene.backward)
            self.frames.append(Frame(scene.mesh, stack, "shard_map", *facts, note=note))


def _goes_on(before: Frame, after: Frame) -> bool:
    """Whether a frame is more of the line that the one before it is about."""
    same = (before.scopes, before.backward, before.here) == (after.scopes, after.backward, after.here)
    plain = not (before.transfer or before.waits or before.note)
    return plain and same and before.line == after.line


def written_at(eqn: Any) -> tuple[Spot, ...]:
    """The author's own places, innermost first: packages that are installed are not the author's, nor is this room."""
    everywhere = [place for place in spots(eqn) if not place.file.startswith(OURS)]
    return tuple(place for place in everywhere if not place.file.startswith(PACKAGES)) or tuple(everywhere)


def _largest(values: Sequence[Any], here: Sequence[int]) -> list[Any]:
    """Of what an operation gives, the arrays that are worth a look: not what counts turns beside them."""
    shown = [blocks for blocks in values if np.ndim(blocks[here[0]])] or list(values)
    return shown[-MOST:]


def held(name: str, blocks: Sequence[Any]) -> Held:
    known = {id(block): block for block in blocks}  # replicas are often one object
    shown = {key: None if block is None else seen(block) for key, block in known.items()}
    return Held(name, tuple(shown[id(block)] for block in blocks))


def seen(block: Any) -> Seen:
    """What is kept of an array: of random keys, the numbers that they are made of."""
    if is_key(block):
        numbers = seen(jax.random.key_data(block))
        return replace(numbers, shape=block.shape, dtype="key")
    array = np.asarray(block)
    flat = array.reshape(math.prod(array.shape[:-1]), array.shape[-1] if array.ndim else 1)
    real = array.size > 0 and array.dtype.kind not in "cV" and array.dtype != bool
    content = hashlib.sha1(f"{array.dtype}{array.shape}".encode() + np.ascontiguousarray(array).tobytes()).hexdigest()
    return Seen(
        array.shape,
        str(array.dtype),
        flat[:ROWS, :COLUMNS].copy(),
        float(np.min(array)) if real else None,
        float(np.max(array)) if real else None,
        content[:16],
    )
