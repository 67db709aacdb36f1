"""A replay's facts as plain types, which a page draws: as JSON they may come from where a stranger's code runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.arrays.words import number
from grader.palette import COLOURS
from grader.replays.frames import Excerpt, Frame, Held, Playback, Seen, Transfer

MOST_FACTS = 140_000  # characters of facts on one page
CORNERS = ((6, 8), (4, 5), (2, 3), (1, 2), (1, 1))  # what is shown of an array: less, where a page would be larger
PageFacts = Mapping[str, Any]


def fitting(title: str, start: int, about: str, run: Playback) -> PageFacts:
    """The facts with as much of each array as one page may hold, as JSON has them."""
    for corner in CORNERS:
        text = as_script(_facts(title, start, about, run, corner))
        if len(text) < MOST_FACTS:
            break
    facts: PageFacts = json.loads(text)
    return facts


def as_script(data: Any) -> str:
    """As JSON that may stand in a script: nothing in it ends one, or begins a comment."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _facts(title: str, start: int, about: str, run: Playback, corner: tuple[int, int]) -> PageFacts:
    blocks, palette = _Pool(corner), _Palette()
    meshes = list(dict.fromkeys(tuple(frame.mesh.items()) for frame in run.frames))
    frames = [_frame(frame, run, meshes, blocks, palette) for frame in run.frames]
    return {
        "title": title,
        "about": about,
        "ended": run.ended,
        "start": start,
        "meshes": meshes,
        "excerpts": [{"file": _called(e.file), "first": e.first, "lines": e.lines} for e in run.excerpts],
        "pool": blocks.shown,
        "frames": frames,
    }


def _called(file: str) -> str:
    """What a source is called: a notebook's cell has a file of its own, with a name that says nothing."""
    return "a cell of the notebook" if file.startswith("<") or "ipykernel" in file else file.rpartition("/")[2]


def _frame(frame: Frame, facts: Playback, meshes: list[Any], blocks: _Pool, palette: _Palette) -> dict[str, Any]:
    """A frame, as the page's script reads it."""
    stack = [at for place in frame.stack if (at := line_in(facts.excerpts, place.file, place.first))]
    stack = stack if frame.stack and line_in(facts.excerpts, frame.stack[0].file, frame.stack[0].first) else []
    sent = frame.transfer
    transfer = sent and _transfer(sent, blocks, palette)  # first: what was sent keeps its colours
    arrays = [_held(array, sent, blocks, palette) for array in frame.arrays]
    return {
        "mesh": meshes.index(tuple(frame.mesh.items())),
        "stack": stack,
        "columns": _columns(frame, facts.excerpts),
        "operation": frame.operation,
        "arrays": arrays,
        "here": frame.here,
        "scopes": list(map(str, frame.scopes)),
        "backward": frame.backward,
        "note": frame.note,
        "transfer": transfer,
        "waits": [
            {
                "device": wait.device,
                "name": wait.name,
                "axes": ", ".join(wait.axes),
                "line": wait.place.first if wait.place else 0,
                "at": wait.place and line_in(facts.excerpts, wait.place.file, wait.place.first),
                "missing": wait.missing,
            }
            for wait in frame.waits
        ],
    }


def _transfer(sent: Transfer, blocks: _Pool, palette: _Palette) -> dict[str, Any]:
    return {
        "name": sent.name,
        "axes": sent.axes,
        "groups": sent.groups,
        "bytes": sent.bytes_sent,
        "moves": sent.moves,
        "operand": _held(sent.operand, None, blocks, palette),
    }


def line_in(excerpts: Sequence[Excerpt], file: str, line: int) -> tuple[int, int] | None:
    """The excerpt in which a line stands, and the line."""
    for k, excerpt in enumerate(excerpts):
        if excerpt.file == file and excerpt.first <= line < excerpt.first + len(excerpt.lines):
            return k, line
    return None


def _columns(frame: Frame, excerpts: Sequence[Excerpt]) -> tuple[int, int]:
    """From where to where the expression stands in its line, as it is shown."""
    place = frame.place
    at = place and line_in(excerpts, place.file, place.first)
    if not place or not at or frame.note:
        return 0, 0
    excerpt = excerpts[at[0]]
    end = place.end - excerpt.indent if place.last == place.first else len(excerpt.lines[place.first - excerpt.first])
    return max(0, place.start - excerpt.indent), end


class _Pool:
    """What is written of each block, once for all that hold it."""

    def __init__(self, corner: tuple[int, int]):
        self.corner = corner
        self.places: dict[tuple[str, str], int] = {}
        self.shown: list[dict[str, Any]] = []

    def place(self, block: Seen | None) -> int | None:
        if block is None:
            return None
        key = (block.type, block.content)
        if key not in self.places:
            self.places[key] = len(self.shown)
            self.shown.append(self._written(block))
        return self.places[key]

    def _written(self, block: Seen) -> dict[str, Any]:
        rows, columns = self.corner
        written = [[entry_as_text(entry) for entry in row[:columns]] for row in block.corner[:rows]]
        high = int(np.prod(block.shape[:-1], dtype=int)) if block.shape else 1
        wide = block.shape[-1] if block.shape else 1
        cut = high > rows or wide > columns
        ranged = f"from {number(block.low, 4)} to {number(block.high, 4)}" if cut and block.low is not None else ""
        return {"type": block.type, "rows": written, "wide": wide > columns, "high": high > rows, "range": ranged}


def entry_as_text(value: Any) -> str:
    if isinstance(value, (np.bool_, np.integer)):
        return str(value)
    return number(complex(value) if np.iscomplexobj(value) else float(value) + 0.0, 4)  # no -0


class _Palette:
    """A colour for each content: what moves keeps its colour, and what is the same on two devices has the same."""

    def __init__(self) -> None:
        self.colours: dict[str, int] = {}

    def of(self, array: Held) -> list[int | None]:
        contents = [block.content if block else None for block in array.blocks]
        taken = {self.colours[content] for content in contents if content in self.colours}
        free = [k for k in range(len(COLOURS)) if k not in taken] or list(range(len(COLOURS)))
        for k, content in enumerate(dict.fromkeys(c for c in contents if c and c not in self.colours)):
            self.colours[content] = free[k % len(free)]
        return [self.colours[content] if content else None for content in contents]


def _held(array: Held, sent: Transfer | None, blocks: _Pool, palette: _Palette) -> dict[str, Any]:
    """An array as the page reads it: where each block is written, its colour, or the colours of its pieces."""
    pieces = sent and sent.pieces and _stripes(array, sent, palette)
    shown = {"name": array.name, "blocks": [blocks.place(b) for b in array.blocks], "colours": palette.of(array)}
    return {**shown, "stripes": pieces} if pieces else shown


def _stripes(array: Held, sent: Transfer, palette: _Palette) -> tuple[str, dict[int, list[int | None]], int] | None:
    """The colours of the blocks that an array was put together from: along rows or columns, and how many of them."""
    assert sent.pieces
    dimension, sources = sent.pieces
    colours = palette.of(sent.operand)
    shape = next(block.shape for block in array.blocks if block)
    if dimension not in (0, len(shape) - 1):
        return None
    columns = dimension == len(shape) - 1
    length = shape[-1] if columns else math.prod(shape[:-1])
    return "columns" if columns else "rows", {d: [colours[s] for s in group] for d, group in sources.items()}, length
