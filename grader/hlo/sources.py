"""Which line of whose source an operation of a compiled program comes from."""

from __future__ import annotations

import linecache
import os
import re
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from grader.hlo.text import Module, Operation

LONGEST_SHOWN = 60  # characters of a line in a cell
_OURS = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = (
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    sysconfig.get_paths()["stdlib"],
    _OURS,
)


@dataclass(frozen=True)
class SourceLine:
    """A line of a source file, or of a notebook's cell."""

    file: str
    line: int

    @property
    def is_cell(self) -> bool:
        """Whether it is in a cell of a notebook: such a file has a name that says nothing."""
        return self.file.startswith("<") or "ipykernel_" in self.file

    def __str__(self) -> str:
        """Where it is: as train.py:12, and in a cell, whose name says nothing, what is written there."""
        if not self.is_cell:
            return f"{os.path.basename(self.file)}:{self.line}"
        text = linecache.getline(self.file, self.line).strip()
        return f"`{text[:LONGEST_SHOWN]}{'…' * (len(text) > LONGEST_SHOWN)}`" if text else f"line {self.line} of a cell"


def callers(places: Sequence[SourceLine]) -> SourceLine | None:
    """Of the places of a call, the innermost first, the first that is in no library; else the innermost."""
    own = (place for place in places if not any(library in place.file for library in _LIBRARIES))
    return next(own, places[0] if places else None)


LineFinder = Callable[[Operation], SourceLine | None]  # knows which line an operation comes from


def traced_lines(lines: Mapping[tuple[str, bool], SourceLine]) -> LineFinder:
    """Finds lines where the compiled text has none: those of the traced function, as far as an operation's name, and
    whether it is of the backward pass, tell its line."""
    return lambda op: lines.get((op.path.rpartition("/")[2], op.is_backward))


@dataclass(frozen=True)
class SourceLines:
    """The lines of a module's operations. Older XLA writes one with each operation, newer ones a table of calls."""

    module: Module

    def place(self, op: Operation) -> SourceLine | None:
        """The line of the caller's source that an operation comes from; None where its text does not say."""
        if frame := op.attribute("stack_frame_id"):
            return callers(self._call(int(frame)))
        file, line = re.search(r'source_file="([^"]*)"', op.rest), op.attribute("source_line")
        return SourceLine(file[1], int(line)) if file and line else None

    def _call(self, frame: int) -> list[SourceLine]:
        places = []
        while frame in self._frames:
            location, parent = self._frames[frame]
            places.append(self._locations[location])
            if parent >= frame:  # a caller has a smaller number
                break
            frame = parent
        return places

    @cached_property
    def _frames(self) -> dict[int, tuple[int, int]]:
        """Each frame's location, and the frame that called it; 0 where nobody did.

        XLA writes a parent's number one too large: that of the first frame, which has none, says so.
        """
        rows = _rows(self.module.tables.get("StackFrames", ()))
        shift = rows.get(1, {}).get("parent_frame_id", 0)
        return {k: (row["file_location_id"], row.get("parent_frame_id", shift) - shift) for k, row in rows.items()}

    @cached_property
    def _locations(self) -> dict[int, SourceLine]:
        listed = self.module.tables.get("FileNames", ())
        names = {k: line.partition('"')[2].rpartition('"')[0] for k, line in enumerate(listed, 1)}
        rows = _rows(self.module.tables.get("FileLocations", ()))
        return {k: SourceLine(names.get(row["file_name_id"], ""), row["line"]) for k, row in rows.items()}


def _rows(lines: Sequence[str]) -> dict[int, dict[str, int]]:
    """A table's rows, as `4 {file_name_id=1 line=9}`, by their number."""
    split = (line.partition(" ") for line in lines)
    return {int(k): {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", row)} for k, _, row in split}
