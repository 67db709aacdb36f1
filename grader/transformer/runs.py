"""A run of many steps: a program that says when it is given what is gone, and what a run leaves behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax

from grader.programs.compilations import compilations

MOST_PROGRAMS = 4  # that are compiled in a run whose steps are all alike, before somebody says so


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`jax.jit`, with its options; what it makes asks first whether its arguments still exist (lesson 12).

    (JAX 0.12 asks by itself. With eight simulated devices and a call that was compiled before, JAX 0.10 ends with a
    segmentation fault, and JAX 0.7 waits for ever afterwards.)
    """
    jitted = jax.jit(function, **options)

    def call(*arguments):
        for leaf in jax.tree.leaves(arguments):
            if leaf.is_deleted():
                raise RuntimeError(f"Array has been deleted with shape={leaf.dtype}[{','.join(map(str, leaf.shape))}].")
        return jitted(*arguments)

    return call


@contextlib.contextmanager
def counted(state: Any) -> Iterator[dict[str, int]]:
    """A dict that has, when the block is over, the "programs" compiled in it and the "arrays left" of this state.

    Raises TooManyPrograms in the block at the compilation after MOST_PROGRAMS: nobody is to wait for forty.
    """
    told: dict[str, int] = {}
    given = jax.tree.leaves(state)
    with compilations(MOST_PROGRAMS) as made:
        yield told
    told["programs"], told["arrays left"] = len(made), sum(not leaf.is_deleted() for leaf in given)
