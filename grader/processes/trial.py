"""Programs run in processes of their own, which may be ended: what to do with one that may wait for ever.

A collective that not every device calls keeps the others waiting, and a thread that waits inside XLA cannot be
stopped: neither by an exception nor by an interrupt. A process can. (`grader.processes.launch` forks one for each
program.)
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Timer
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnDevices, OnMesh, PerProcess
from grader.arrays.devices import as_flags
from grader.arrays.words import times
from grader.exercises.script import script_of
from grader.jax_versions import timeouts
from grader.processes.launch import Process, launched
from grader.programs.program import Program, trace
from grader.programs.structure import Structure
from grader.programs.walk import structure

WAITING_TIME = 3  # seconds that devices wait in a collective for those that have not come
COMPILE_TIME = 120  # seconds to compile, on a machine that is busy
WAITED = 87  # the exit status of a process that ended itself

FLAGS = as_flags(timeouts(WAITING_TIME - 2, 2))  # XLA then says how many devices came
STUCK = re.compile(r"Termination timeout for `([a-z -]+?) RendezvousKey.*Expected (\d+) threads.* only (\d+) of them")

Call = tuple[Any, ...]  # a function and its arguments


@dataclass(frozen=True)
class Trial:
    """What became of a program: its result, or in words which collective waited for whom."""

    result: Any = None
    stuck: str = ""

    @property
    def finished(self) -> bool:
        return not self.stuck

    def __repr__(self) -> str:
        return f"It finished: {self.result}" if self.finished else f"Its process was ended.\n{self.stuck}"


def trial(fn: Callable[..., Any], *args: jax.Array) -> Trial:
    """Run `fn(*args)`, which returns one array, in a process of its own, and end that if its devices wait for ever.

    Nothing happens to the devices of this process. The first trial takes a few seconds more.

    Args:
      fn: a function of arrays that returns one array.
      *args: arrays as they lie on their devices.

    Raises:
      RuntimeError: the program failed in some other way.
      NoProcesses: none can be started here.

    Example:
      >>> grader.trial(lambda v: 2 * v, jnp.arange(3))
      It finished: [0 2 4]
    """
    (only,) = trials([(fn, *args)])
    return only


def trials(calls: Sequence[Call]) -> list[Trial]:
    """Several programs, each in a process of its own, side by side."""
    programs = [trace(*call) for call in calls]
    structures = [structure(program) for program in programs]
    arrays = ([_described(a, text) for a in call[1:]] for call, text in zip(calls, structures, strict=True))
    job = {
        "source": script_of(_run),
        "main": _run.__name__,
        "processes": len(calls),
        "devices": 8,
        "flags": FLAGS,
        "seconds": COMPILE_TIME,
        "grace": COMPILE_TIME,
        "arguments": {"program": PerProcess(tuple(programs)), "arrays": PerProcess(tuple(arrays))},
    }
    return [_trial(process, text) for process, text in zip(launched(job).processes, structures, strict=True)]


def _described(array: jax.Array, text: Structure) -> OnDevices:
    spec = array.sharding.spec if isinstance(array.sharding, NamedSharding) else P()
    return OnDevices(np.asarray(array), OnMesh(text.mesh), spec)


def _run(process_id: int, num_processes: int, program: Program, arrays: list[jax.Array]) -> jax.Array:
    """What one of the processes does: it ends itself if its devices wait. (Its time begins when it has compiled.)"""
    compiled = program.compile(*arrays, once=True)
    Timer(WAITING_TIME + 1, os._exit, [WAITED]).start()
    return jnp.asarray(np.asarray(compiled(*arrays)))


def _trial(process: Process, text: Structure) -> Trial:
    if process.finished:
        return Trial(process.returned)
    match = STUCK.search(process.said)
    if not match and process.status != WAITED:
        raise RuntimeError(f"the program failed in its own process:\n{process.said[-2000:]}")
    return Trial(stuck="\n".join([_who_came(match), *_who_waits(text)]))


def _who_came(match: re.Match[str] | None) -> str:
    """What XLA said when it lost patience."""
    if not match:
        return f"It had not finished after {WAITING_TIME} seconds."
    kind, due, came = match.groups()
    return f"XLA, after {WAITING_TIME} seconds: {came} of {due} devices had come to the {kind.replace(' ', '_')}."


def _who_waits(text: Structure) -> list[str]:
    """Who waits for whom, where the program's text says it."""
    return [
        f"The program: device {waiting} calls the {c.kind} over {', '.join(c.axes)} {times(c.visits[waiting])}, "
        f"device {missing} {times(c.visits[missing])}."
        for c in text.collectives
        if c.visits and (pair := text.waiting(c))
        for waiting, missing in [pair]
    ]
