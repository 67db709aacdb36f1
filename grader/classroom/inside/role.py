"""What the forks of a template are for: worker, evaluator, launcher; each of these modules has its `ROLE`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TextIO

# What JAX imports when programs are first traced, compiled or laid out.
WARM = (
    "jax.experimental.multihost_utils",
    "jax.numpy",
    "jaxlib.mlir.dialects.builtin",
    "jaxlib.mlir.dialects.mhlo",
    "numpy.ctypeslib",
    "numpy.testing",
    "scipy.linalg",
)


def import_all(modules: Iterable[str] = WARM) -> None:
    """Import these modules, so that no fork has to."""
    for name in modules:
        importlib.import_module(name)


@dataclass(frozen=True)
class Role:
    """`main` is called in every fork, with its job and its wire; `warm` once before, in the template.

    A role that `starts_processes` gives that up by itself, in each of those that it starts.
    """

    main: Callable[[TextIO, TextIO], None]
    warm: Callable[[], None] = import_all
    starts_processes: bool = False
