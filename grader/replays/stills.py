"""A replay as a strip of pictures: what is shown where no script runs, on GitHub for one.

Plain tables with a ground for each block: they say the same where a viewer takes the colours away.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator
from typing import Any

from grader.arrays.words import numbered
from grader.palette import COLOURS
from grader.replays.facts import PageFacts

MOST_PICTURES, MOST_ARRAYS, ROWS, COLUMNS = 4, 2, 3, 6
NOT_ALL = "Where scripts run, this can be stepped through, line by line; here are the lines that say most."


def stills(facts: PageFacts) -> str:
    """The telling frames, one below the other."""
    shown = "".join(_picture(facts, facts["frames"][k]) for k in telling(facts))
    words = "<br>".join(html.escape(line) for text in (facts["about"], facts["ended"]) for line in text.split("\n"))
    return f"<p><b>{html.escape(facts['title'])}</b><br>{words}</p>{shown}<p><i>{NOT_ALL}</i></p>"


def telling(facts: PageFacts) -> list[int]:
    """The last frame, the one to begin with; those in which something is sent; then others."""
    frames = facts["frames"]
    sends = [k for k, frame in enumerate(frames) if frame["transfer"] or frame["waits"]]
    by_weight = [facts["start"], len(frames) - 1, *sends, *range(len(frames))]
    return sorted(list(dict.fromkeys(by_weight))[:MOST_PICTURES])


def _picture(facts: PageFacts, frame: Any) -> str:
    sizes = [size for _, size in facts["meshes"][frame["mesh"]]]
    count = math.prod(sizes)
    columns = count // sizes[0] if len(sizes) > 1 else min(count, 4)
    cells = [_device(facts, frame, device) for device in range(count)]
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in (cells[k : k + columns] for k in range(0, count, columns)))
    return f'<p>{_line(facts, frame)}<br>{html.escape(_said(frame))}</p><table cellpadding="6">{rows}</table>'


def _line(facts: PageFacts, frame: Any) -> str:
    if not frame["stack"]:
        return ""
    excerpt, number = frame["stack"][0]
    source = facts["excerpts"][excerpt]
    return f"line {number}: <code>{html.escape(source['lines'][number - source['first']].strip())}</code>"


def _said(frame: Any) -> str:
    """What a frame says besides its values."""
    parts = [*(["backward"] if frame["backward"] else []), *frame["scopes"]]
    if frame["note"]:
        parts.append(frame["note"])
    elif frame["waits"]:
        waiting = numbered("device", [wait["device"] for wait in frame["waits"]])
        parts.append(f"{waiting} {'waits' if len(frame['waits']) == 1 else 'wait'} in {frame['waits'][0]['name']}")
    elif sent := frame["transfer"]:
        parts.append(f"{sent['name']} over {', '.join(sent['axes'])}: {sent['bytes']:,} B sent by each device")
    else:
        parts.append(frame["operation"])
    return ", ".join(parts)


def _device(facts: PageFacts, frame: Any, device: int) -> str:
    held = [a for a in frame["arrays"] if a["blocks"][device] is not None][:MOST_ARRAYS]
    blocks = "".join(_block(facts["pool"][array["blocks"][device]], array, device) for array in held)
    return f"<td><small>device {device}</small>{blocks}</td>"


def _block(block: Any, array: Any, device: int) -> str:
    called = html.escape(f"{array['name']} {block['type']}".strip())
    rows = [f"<tr>{''.join(_row(block, array, device, r))}</tr>" for r in range(len(block["rows"][:ROWS]))]
    more = ["<tr><td>⋮</td></tr>"] if block["high"] or len(block["rows"]) > ROWS else []
    return f'<br><small>{called}</small><table cellpadding="2">{"".join([*rows, *more])}</table>'


def _row(block: Any, array: Any, device: int, r: int) -> Iterator[str]:
    """The entries of a row, those of one colour in one cell."""
    entries = block["rows"][r]
    cut = [" …"] if block["wide"] or len(entries) > COLUMNS else []
    pieces = itertools.groupby(range(min(len(entries), COLUMNS)), lambda c: _colour(array, device, r, c))
    for colour, columns in pieces:
        text = " ".join(entries[c] for c in columns)
        yield f'<td bgcolor="{COLOURS[colour]}"><font color="#222">{html.escape(text)}</font></td>'
    yield from (f"<td>{one}</td>" for one in cut)


def _colour(array: Any, device: int, r: int, c: int) -> int:
    """The colour of an entry; where a block was put together from others', that of the piece it came in."""
    if "stripes" not in array:
        return int(array["colours"][device])
    along, sources, length = array["stripes"]
    pieces = sources[str(device)]
    return int(pieces[min(len(pieces) - 1, (r if along == "rows" else c) * len(pieces) // length)])
