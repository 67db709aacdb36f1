"""`replay(fn, *args)`: a program with shard_map, line by line, on all its devices at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from grader.arrays.meshes import no_mesh
from grader.jax_versions import open_jaxpr
from grader.replays.control import unreduced_meshes
from grader.replays.frames import Playback
from grader.replays.lockstep import MOST_SECONDS, Lockstep, Reach
from grader.replays.page import Replay
from grader.replays.scenes import Halt, Scene
from grader.replays.shards import given, result
from grader.replays.sources import excerpts, with_names
from grader.replays.tracing import AuthorsLines, traced

BY_COMPILER = (
    "There is no shard_map in this program: what each device does is left to the compiler, and there are no lines of a "
    "device's own to step through. `grader.communication(fn, *args)` says what the compiler chose."
)


def replay(
    fn: Callable[..., Any],
    /,
    *args: Any,
    max_lines: int = Reach.frames,
    max_elements: int = Reach.entries,
    max_seconds: float = Reach.seconds,
    **kw: Any,
) -> Replay:
    """Step through `fn(*args)`, line by line, on all its devices at once: in a notebook a page, elsewhere text.

    Nothing runs on the devices: the program is traced once, and each line is worked out for every device in turn. So a
    program in which devices wait for one another for ever does not hang here: who waits for whom is shown. `result` is
    what the program gives; of an unreduced array, the sum. Raises whatever `fn` raises, with what it means where the
    grader knows.

    A replay that reaches one of three limits stops there, and names the argument that raises the limit.

    Args:
      fn: a function with shard_map; one that is left to the compiler has no lines of a device's own to show.
      *args: arrays, pytrees of them, or anything else that `fn` takes.
      max_lines: the number of lines shown, counting every iteration of a loop.
      max_elements: the size of any one array, on all devices together.
      max_seconds: the time that the replay may take, up to 600.
      **kw: passed on to `fn`.

    Example:
      >>> mesh = jax.make_mesh((4,), ("x",))
      >>> array = jax.device_put(np.arange(4.0), jax.NamedSharding(mesh, P("x")))
      >>> total = jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
      >>> grader.replay(total, array).result
      array([6.], dtype=float32)
    """
    if not 0 <= max_seconds <= MOST_SECONDS:
        raise ValueError(f"max_seconds should be between 0 and {MOST_SECONDS}; it is {max_seconds}.")
    with AuthorsLines():
        watched = playback_within(Reach(max_lines, max_elements, max_seconds), fn, *args, **kw)
    while isinstance(fn, functools.partial):
        fn = fn.func
    return Replay(getattr(fn, "__name__", "program"), watched)


def outermost(jaxpr: Any) -> Scene:
    """Where a program begins: one value stands for all devices, unless unreduced arrays differ between them."""
    meshes = {tuple(mesh.items()) for mesh in unreduced_meshes(jaxpr)}
    if len(meshes) > 1:
        raise Halt(
            "Stopped at the start: this program has unreduced arrays on several meshes. Replay one part at a time."
        )
    scene = Scene(dict(*meshes))
    return replace(scene, here=tuple(range(scene.devices)))


def playback_within(reach: Reach, fn: Callable[..., Any], /, *args: Any, **kw: Any) -> Playback:
    """The facts of a run: `fn` is traced once, and interpreted on the values of `args`, up to a limit."""
    program = traced(fn, args, kw)
    machine, ended, whole = Lockstep(reach), "", None
    with no_mesh():
        try:
            scene = outermost(program.jaxpr)
            inner = open_jaxpr(program.jaxpr)
            values = [given(leaf, var, scene) for leaf, var in zip(program.given, inner.invars, strict=True)]
            after = zip(machine.run(program.jaxpr, values, scene), inner.outvars, strict=True)
            whole = program.result([result(value, var, scene) for value, var in after])
        except Halt as end:
            ended = str(end)
    frames = with_names(machine.scribe.frames)
    if not frames and not ended:
        ended = BY_COMPILER
    return Playback(frames, excerpts(frame.place for frame in frames if frame.place), whole, ended)
