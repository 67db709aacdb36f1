"""`replay(fn, *args)`: a program with shard_map, line by line, on all its devices at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from grader.arrays.meshes import no_mesh
from grader.replay.collectives import is_key
from grader.replay.frames import Record
from grader.replay.lockstep import Ended, Limits, Lockstep
from grader.replay.scenes import Scene
from grader.replay.sources import excerpts, named


def record(fn: Callable[..., Any], *args: Any, limits: Limits = Limits(), **kw: Any) -> Record:
    """The facts of a run: `fn` is traced once, and interpreted on the values of `args`."""
    arrays = [k for k, argument in enumerate(args) if _holds_numbers(argument)]

    def of_arrays(*given: Any) -> Any:
        every = list(args)
        for k, argument in zip(arrays, given, strict=True):
            every[k] = argument
        return fn(*every, **kw)

    given = [args[k] for k in arrays]
    jaxpr, result = jax.make_jaxpr(of_arrays, return_shape=True)(*given)
    machine, ended, whole = Lockstep(limits), "", None
    values = [[leaf if is_key(leaf) else np.asarray(leaf)] for leaf in jax.tree.leaves(given)]
    with no_mesh():
        try:
            leaves = [value for (value,) in machine.run(jaxpr, values, Scene())]
            whole = jax.tree.unflatten(jax.tree.structure(result), leaves)
        except Ended as end:
            ended = str(end)
    frames = named(machine.recorder.frames)
    return Record(frames, excerpts(frame.place for frame in frames if frame.place), whole, ended)


def _holds_numbers(argument: Any) -> bool:
    """Whether an argument is traced: arrays, or a pytree of them. Meshes, plain numbers and options are not."""
    return any(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in jax.tree.leaves(argument))
