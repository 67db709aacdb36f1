"""What comes of a line that JAX may refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax

from grader.arrays.meshes import spelled
from grader.arrays.words import numbered

IN_A_FILE = re.compile(r" at [^\s:]+:\d+(?::\d+)? \([^)]*\)")  # a cell's, which has a file on this machine


def attempt(operation: Callable[[], Any], since: str = "", lines: int = 1) -> None:
    """Do something that JAX may refuse, and print what comes of it: the result, or the error and what it says.

    Args:
      operation: a function without arguments.
      since: words of the error's text; it is shown from there on.
      lines: how many lines of the error's text are shown, at most; empty ones do not count.

    Example:
      >>> grader.attempt(lambda: jnp.ones(3) + 1)
      runs: float32[3] on device 0
      >>> grader.attempt(lambda: jnp.ones(3) + jnp.ones(4), since="incompatible")
      TypeError: incompatible shapes for broadcasting: (3,), (4,).
    """
    try:
        result = operation()
    except Exception as error:
        text = IN_A_FILE.sub("", str(error))
        said = [line.strip() for line in text[max(0, text.find(since)) :].splitlines() if line.strip()]
        print(f"{type(error).__name__}:", "\n".join(said[:lines]))
    else:
        print("runs:", _told_of(result))


def _told_of(result: Any) -> str:
    """An array by its type, its layout and its devices; anything else as it is printed."""
    if not isinstance(result, jax.Array) or isinstance(result, jax.core.Tracer):
        return str(result)
    kind = f"{result.dtype}[{','.join(map(str, result.shape))}]"
    devices = numbered("device", sorted(device.id for device in result.devices()))
    spec = getattr(result.sharding, "spec", None)
    return f"{kind}{f' as {spelled(spec)}' if spec is not None else ''} on {devices}"
