"""What a template forks: a module of this folder, by its `ENTRY`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TextIO

# What JAX imports when programs are first traced, compiled or laid out.
LIBRARIES = (
    "jax.experimental.multihost_utils",
    "jax.numpy",
    "jaxlib.mlir.dialects.mhlo",
    "numpy.ctypeslib",
    "numpy.testing",
    "scipy.linalg",
)


def load(modules: Iterable[str] = LIBRARIES) -> None:
    """Import these modules, so that no fork has to."""
    for name in modules:
        importlib.import_module(name)


@dataclass(frozen=True)
class Entry:
    """`main` is called in every fork, with its job and its wire; `warm` once before, in the template.

    An entry that `starts_processes` gives that up by itself, in each of those that it starts.
    """

    main: Callable[[TextIO, TextIO], None]
    warm: Callable[[], None] = load
    starts_processes: bool = False
