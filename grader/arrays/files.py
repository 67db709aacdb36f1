"""An array that stands for a file too large to read: what is cut from it is read, and only a part of it may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


class ReadTooMuch(RuntimeError):
    """More has been read of a file than is due."""


@dataclass(frozen=True, eq=False)
class OnFile:
    """An array in a file, of which whoever is given it may read so many `entries`."""

    value: np.ndarray
    entries: int

    def built(self) -> File:
        return File(self)

    def __repr__(self) -> str:
        return f"<a file that holds {self.value.dtype}[{','.join(map(str, self.value.shape))}]>"


class File:
    """Like an array to whoever cuts something from it. What is cut is read there and then, and an entry counts once.

    Raises ReadTooMuch where more is read than may be.
    """

    def __init__(self, of: OnFile):
        self._of, self._read = of, np.zeros(of.value.shape, bool)
        self.shape, self.dtype, self.ndim, self.size = of.value.shape, of.value.dtype, of.value.ndim, of.value.size

    def __len__(self) -> int:
        return len(self._of.value)

    def __getitem__(self, index: Any) -> Any:
        found = self._of.value[index]  # raises what an array does for an index that it has not
        self._read[index] = True
        if (read := int(self._read.sum())) > self._of.entries:
            raise ReadTooMuch(
                f"{read} of the {self.size} entries of this file have been read, and the part of one process is "
                f"{self._of.entries}. What you cut from a file is read: cut just that part."
            )
        return found.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[...], dtype)

    def __getattr__(self, name: str) -> Any:
        """Whatever else an array has needs all of it."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __repr__(self) -> str:
        return repr(self._of)
