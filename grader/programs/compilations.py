"""How many programs XLA compiles while a block of code runs."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator

from jax import monitoring

_COMPILED = "/jax/core/compile/backend_compile_duration"
_blocks: dict[int, tuple[list[float], float]] = {}  # of the `with` blocks that are open, with the most that each allows


class TooManyPrograms(RuntimeError):
    """A block has compiled more programs than it may."""


@contextlib.contextmanager
def compilations(most: float = math.inf) -> Iterator[list[float]]:
    """The seconds of each compilation inside of a `with` block: `len` of this list is how many programs were made.

    `jit`'s own `_cache_size` counts something else: two calls that share a program may come in under two keys.

    Args:
      most: how many programs the block may compile; TooManyPrograms is raised in it at the next one.

    Example:
      >>> with grader.compilations() as made:
      ...     _ = jax.jit(lambda a: a + 1)(np.ones(3))
      >>> len(made)
      1
    """
    _listen()
    seconds: list[float] = []
    _blocks[id(seconds)] = seconds, most
    try:
        yield seconds
    finally:
        del _blocks[id(seconds)]


@functools.cache
def _listen() -> None:
    """Have JAX tell of every compilation: once in a process, since not every JAX can be told to stop."""
    monitoring.register_event_duration_secs_listener(_hear)


def _hear(event: str, duration_secs: float, **_: str | int) -> None:
    if event == _COMPILED:
        for seconds, most in _blocks.values():
            seconds.append(duration_secs)
            if len(seconds) > most:
                raise TooManyPrograms(
                    f"{len(seconds)} programs were compiled here, one after the other. What makes a new one in every "
                    "turn: a jit inside the loop, or arguments that change their shape, dtype or layout?"
                )
