"""Which line of whose source an operation of a compiled program comes from."""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from grader.hlo.text import Module, Operation

_OURS = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = (
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    sysconfig.get_paths()["stdlib"],
    _OURS,
)


@dataclass(frozen=True)
class Place:
    """A line of a source file, or of a notebook's cell."""

    file: str
    line: int

    @property
    def is_cell(self) -> bool:
        """Whether it is in a cell of a notebook: such a file has a name that says nothing."""
        return self.file.startswith("<") or "ipykernel_" in self.file

    def __str__(self) -> str:
        return f"line {self.line} of a cell" if self.is_cell else f"{os.path.basename(self.file)}:{self.line}"


def callers(places: Sequence[Place]) -> Place | None:
    """Of the places of a call, the innermost first, the first that is in no library; else the innermost."""
    own = (place for place in places if not any(library in place.file for library in _LIBRARIES))
    return next(own, places[0] if places else None)


@dataclass(frozen=True)
class Sources:
    """The lines of a module's operations. Older XLA writes one with each operation, newer ones a table of calls."""

    module: Module

    def place(self, op: Operation) -> Place | None:
        """The line of the caller's source that an operation comes from; None where its text does not say."""
        if frame := op.attribute("stack_frame_id"):
            return callers(self._call(int(frame)))
        file, line = re.search(r'source_file="([^"]*)"', op.rest), op.attribute("source_line")
        return Place(file[1], int(line)) if file and line else None

    def _call(self, frame: int) -> list[Place]:
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
    def _locations(self) -> dict[int, Place]:
        names = dict(enumerate(self._named("FileNames"), 1))
        rows = _rows(self.module.tables.get("FileLocations", ()))
        return {k: Place(names.get(row["file_name_id"], ""), row["line"]) for k, row in rows.items()}

    def _named(self, table: str) -> list[str]:
        return [line.partition('"')[2].rpartition('"')[0] for line in self.module.tables.get(table, ())]


def _rows(lines: Sequence[str]) -> dict[int, dict[str, int]]:
    """A table's rows, as `4 {file_name_id=1 line=9}`, by their number."""
    split = (line.partition(" ") for line in lines)
    return {int(k): {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", row)} for k, _, row in split}
