"""`replay(fn, *args)`: a program with shard_map, line by line, on all its devices at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from grader.arrays.meshes import no_mesh
from grader.replay.collectives import is_key
from grader.replay.frames import Playback
from grader.replay.lockstep import Lockstep, Reach
from grader.replay.page import Replay
from grader.replay.scenes import Halt, Scene
from grader.replay.sources import excerpts, with_names
from grader.replay.tracing import AuthorsLines, traced

BY_COMPILER = (
    "There is no shard_map in this program: what each device does is left to the compiler, and there are no lines of a "
    "device's own to step through. `grader.communication(fn, *args)` says what the compiler chose."
)


def replay(fn: Callable[..., Any], /, *args: Any, **kw: Any) -> Replay:
    """Step through `fn(*args)`, line by line, on all its devices at once: in a notebook a page, elsewhere text.

    Nothing runs on the devices: the program is traced once, and each line is worked out for every device in turn. So a
    program in which devices wait for one another for ever does not hang here: who waits for whom is shown. `result` is
    what the program gives. Raises whatever `fn` raises, with what it means where the grader knows.

    Args:
      fn: a function with shard_map; one that is left to the compiler has no lines of a device's own to show.
      *args: arrays, pytrees of them, or anything else that `fn` takes.
      **kw: passed on to `fn`.

    Example:
      >>> mesh = jax.make_mesh((4,), ("x",))
      >>> array = jax.device_put(np.arange(4.0), jax.NamedSharding(mesh, P("x")))
      >>> total = jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
      >>> grader.replay(total, array).result
      array([6.], dtype=float32)
    """
    with AuthorsLines():
        watched = playback(fn, *args, **kw)
    while isinstance(fn, functools.partial):
        fn = fn.func
    return Replay(getattr(fn, "__name__", "program"), watched)


def playback(fn: Callable[..., Any], /, *args: Any, **kw: Any) -> Playback:
    """The facts of a run: `fn` is traced once, and interpreted on the values of `args`."""
    return playback_within(Reach(), fn, *args, **kw)


def playback_within(reach: Reach, fn: Callable[..., Any], /, *args: Any, **kw: Any) -> Playback:
    """The same, watched only so far."""
    program = traced(fn, args, kw)
    machine, ended, whole = Lockstep(reach), "", None
    values = [[leaf if is_key(leaf) else np.asarray(leaf)] for leaf in program.given]
    with no_mesh():
        try:
            whole = program.result([value for (value,) in machine.run(program.jaxpr, values, Scene())])
        except Halt as end:
            ended = str(end)
    frames = with_names(machine.scribe.frames)
    if not frames and not ended:
        ended = BY_COMPILER
    return Playback(frames, excerpts(frame.place for frame in frames if frame.place), whole, ended)
