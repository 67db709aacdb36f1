"""A replay's page: one piece of HTML with its script and style, and the same as text."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grader.arrays.words import legible, number, numbered
from grader.draw.picture import COLOURS
from grader.replay.frames import Excerpt, Frame, Held, Playback, Seen, Transfer

PAGE = Path(__file__).parent
MOST_FACTS = 140_000  # characters of facts on one page
FALLBACK = 15_000  # of the text that stands there where no script runs
CORNERS = ((6, 8), (4, 5), (2, 3), (1, 2), (1, 1))  # what is shown of an array: less, where a page would be larger


@dataclass(frozen=True, eq=False)
class Replay:
    """A program's run to step through: a page in a notebook, text everywhere else; its facts are in `facts`.

    `start` is the frame with which the page begins; `about` is what a reader should know before.
    """

    title: str
    facts: Playback
    start: int = 0
    about: str = ""

    @property
    def result(self) -> Any:
        """What the program gives; None where it did not come to its end."""
        return self.facts.result

    def _repr_html_(self) -> str:
        if not self.facts.frames:
            return f"<pre>{html.escape(str(self))}</pre>"
        text = str(self)
        plain = text if len(text) < FALLBACK else f"{text[:FALLBACK]}… (print it, to see the rest)"
        script = f"{_file('page.js')}\nshow(document.currentScript.parentElement, {_fitting_json(self)});"
        return (
            f'<div class="many-devices-replay"><pre>{html.escape(plain)}</pre>'
            f"<script>(() => {{\n{script}\n}})()</script></div>"
        )

    def __repr__(self) -> str:
        return legible("\n".join(_told(self)))


def _file(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _fitting_json(replay: Replay) -> str:
    """The facts with as much of each array as one page may hold."""
    for corner in CORNERS:
        if len(facts := _as_json(replay, corner)) < MOST_FACTS:
            break
    return facts


def _as_json(replay: Replay, corner: tuple[int, int]) -> str:
    """The facts as JSON that may stand in a script."""
    run, blocks = replay.facts, _Pool(corner)
    meshes = list(dict.fromkeys(tuple(frame.mesh.items()) for frame in run.frames))
    palette = _Palette()
    frames = [_frame(frame, run, meshes, blocks, palette) for frame in run.frames]
    facts = {
        "title": replay.title,
        "ended": run.ended,
        "start": replay.start,
        "about": replay.about,
        "style": _file("page.css"),
        "colours": COLOURS,
        "meshes": meshes,
        "excerpts": [{"file": _called(e.file), "first": e.first, "lines": e.lines} for e in run.excerpts],
        "pool": blocks.shown,
        "frames": frames,
    }
    text = json.dumps(facts, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _called(file: str) -> str:
    """What a source is called: a notebook's cell has a file of its own, with a name that says nothing."""
    return "a cell of the notebook" if file.startswith("<") or "ipykernel" in file else file.rpartition("/")[2]


def _frame(frame: Frame, facts: Playback, meshes: list[Any], blocks: _Pool, palette: _Palette) -> dict[str, Any]:
    """A frame, as the page's script reads it."""
    stack = [at for place in frame.stack if (at := _row(facts.excerpts, place.file, place.first))]
    stack = stack if frame.stack and _row(facts.excerpts, frame.stack[0].file, frame.stack[0].first) else []
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
                "at": wait.place and _row(facts.excerpts, wait.place.file, wait.place.first),
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


def _row(excerpts: Sequence[Excerpt], file: str, line: int) -> tuple[int, int] | None:
    """The excerpt in which a line stands, and the line."""
    for k, excerpt in enumerate(excerpts):
        if excerpt.file == file and excerpt.first <= line < excerpt.first + len(excerpt.lines):
            return k, line
    return None


def _columns(frame: Frame, excerpts: Sequence[Excerpt]) -> tuple[int, int]:
    """From where to where the expression stands in its line, as it is shown."""
    place = frame.place
    at = place and _row(excerpts, place.file, place.first)
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
        written = [[_entry(entry) for entry in row[:columns]] for row in block.corner[:rows]]
        high = int(np.prod(block.shape[:-1], dtype=int)) if block.shape else 1
        wide = block.shape[-1] if block.shape else 1
        cut = high > rows or wide > columns
        ranged = f"from {number(block.low, 4)} to {number(block.high, 4)}" if cut and block.low is not None else ""
        return {"type": block.type, "rows": written, "wide": wide > columns, "high": high > rows, "range": ranged}


def _entry(value: Any) -> str:
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


def _told(replay: Replay) -> Iterator[str]:
    """The replay as text: each line, and who then holds what."""
    run = replay.facts
    yield f"{replay.title}, line by line:"
    yield from filter(None, replay.about.split("\n"))
    for k, frame in enumerate(run.frames, 1):
        yield f"{k:>3}  {_source(frame, run.excerpts)}"
        yield f"     {_said(frame)}"
        for array in frame.arrays:
            yield from _blocks_told(array)
    if run.ended:
        yield run.ended


def _source(frame: Frame, excerpts: Sequence[Excerpt]) -> str:
    place = frame.place
    at = place and _row(excerpts, place.file, place.first)
    if not place or not at:
        return f"line {place.first}" if place else ""
    excerpt = excerpts[at[0]]
    return f"line {place.first}: {excerpt.lines[place.first - excerpt.first].strip()}"


def _said(frame: Frame) -> str:
    """What a frame says besides its values."""
    parts = [*(["backward"] if frame.backward else []), *map(str, frame.scopes)]
    if frame.note:
        parts.append(frame.note)
    elif frame.waits:
        first = frame.waits[0]
        parts.append(f"{numbered('device', [w.device for w in frame.waits])} wait in {first.name}")
    elif sent := frame.transfer:
        ways = ", ".join(f"{a}→{b}" for a, b in sent.moves)
        moved = f" ({ways})" if ways else ""
        parts.append(f"{sent.name} over {', '.join(sent.axes)}{moved}: {sent.bytes_sent:,} B sent by each device")
    else:
        parts.append(frame.operation)
    return ", ".join(parts)


def _blocks_told(array: Held) -> Iterator[str]:
    """Who holds what of an array: a line for each block that is not the same."""
    holders: dict[str, list[int]] = {}
    blocks: dict[str, Seen] = {}
    for device, block in enumerate(array.blocks):
        if block:
            holders.setdefault(block.content, []).append(device)
            blocks[block.content] = block
    for content, devices in holders.items():
        block = blocks[content]
        name = f"{array.name} " if array.name else ""
        yield f"     {name}{block.type} on {numbered('device', devices)}: {_numbers(block)}"


def _numbers(block: Seen) -> str:
    """As many numbers as fit a line."""
    entries = [_entry(entry) for entry in block.corner.reshape(-1)[:8]]
    more = ["…"] * (math.prod(block.shape) > len(entries))
    return " ".join([*entries, *more])
