"""A replay as text: for a terminal, and where nothing else can be shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from grader.arrays.words import numbered
from grader.replays.facts import entry_as_text, line_in
from grader.replays.frames import Excerpt, Frame, Held, Playback, Seen


def lines_told(title: str, about: str, run: Playback) -> Iterator[str]:
    """Each line of a program, and who then holds what."""
    yield f"{title}, line by line:"
    yield from filter(None, about.split("\n"))
    for k, frame in enumerate(run.frames, 1):
        yield f"{k:>3}  {_source(frame, run.excerpts)}".rstrip()
        yield f"     {_said(frame)}"
        for array in frame.arrays:
            yield from _blocks_told(array)
    if run.ended:
        yield run.ended


def _source(frame: Frame, excerpts: Sequence[Excerpt]) -> str:
    place = frame.place
    at = place and line_in(excerpts, place.file, place.first)
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
        waits = "waits" if len(frame.waits) == 1 else "wait"
        parts.append(f"{numbered('device', [w.device for w in frame.waits])} {waits} in {frame.waits[0].name}")
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
    entries = [entry_as_text(entry) for entry in block.corner.reshape(-1)[:8]]
    more = ["…"] * (math.prod(block.shape) > len(entries))
    return " ".join([*entries, *more])
