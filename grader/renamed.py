"""Names that changed: an old one is still found for one version, and says what it is called now."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from typing import Any


def renamed(module: str, new_names: Mapping[str, str], old: str) -> Any:
    """What a module's `__getattr__` returns for an old name: the value under its new one, with a DeprecationWarning.

    Raises AttributeError for any other name.
    """
    if old not in new_names:
        raise AttributeError(f"module {module!r} has no attribute {old!r}")
    new = new_names[old]
    warn_of_name(f"{module}.{old}", f"{module}.{new}", stacklevel=4)
    return getattr(importlib.import_module(module), new)


def warn_of_name(old: str, new: str, stacklevel: int = 3) -> None:
    """Say that a name is an old one."""
    warnings.warn(f"{old} is now called {new}; the old name works in this version only", DeprecationWarning, stacklevel)
