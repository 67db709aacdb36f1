"""Programs run in processes of their own, which may be ended: what to do with one that may wait for ever.

A collective that not every device calls keeps the others waiting, and a thread that waits inside XLA cannot be
stopped: neither by an exception nor by an interrupt. A process can. One server, started once, forks a process for
each program.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Timer
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.devices import as_flags, eight_devices
from grader.arrays.meshes import make_mesh, put
from grader.arrays.words import times
from grader.exercises.as_json import from_json, to_json
from grader.jax_versions import timeouts
from grader.processes.servers import Server, Tell, serve
from grader.programs.program import trace
from grader.programs.structure import Structure
from grader.programs.walk import structure

WAITING_TIME = 3  # seconds that devices wait in a collective for those that have not come
COMPILE_TIME = 120  # seconds to compile, on a machine that is busy
WAITED = 87  # the exit status of a process that ended itself

FLAGS = as_flags(timeouts(WAITING_TIME - 2, 2))  # XLA then says how many devices came
STUCK = re.compile(r"Termination timeout for `([a-z -]+?) RendezvousKey.*Expected (\d+) threads.* only (\d+) of them")

_SERVER = Server("grader.processes.trial", "trials", RuntimeError, {"XLA_FLAGS": FLAGS})

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
      RuntimeError: the program failed in some other way, or no process can be started here.

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
    questions = [
        {"program": to_json(program), "mesh": list(text.mesh.items()), "arrays": [_laid_out(a) for a in call[1:]]}
        for program, text, call in zip(programs, structures, calls, strict=True)
    ]
    (replies,) = _SERVER.ask(questions)
    return [_trial(reply, text) for reply, text in zip(replies, structures, strict=True)]


def _laid_out(array: jax.Array) -> list[Any]:
    spec = array.sharding.spec if isinstance(array.sharding, NamedSharding) else P()
    return [to_json(np.asarray(array)), to_json(tuple(spec))]


def _trial(reply: Mapping[str, Any], text: Structure) -> Trial:
    if reply["result"]:
        return Trial(from_json(json.loads(reply["result"])))
    match = STUCK.search(reply["log"])
    if not match and reply["status"] != WAITED:
        raise RuntimeError(f"the program failed in its own process:\n{reply['log'][-2000:]}")
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


# From here on in the server. It imports JAX and starts no backend, so that it may fork.


def _try(questions: Sequence[Mapping[str, Any]], tell: Tell) -> None:
    """Try the programs side by side: all of them have compiled before the first is waited for."""
    started = [_start(question) for question in questions]
    tell([_end(*one) for one in started])


def _start(question: Mapping[str, Any]) -> tuple[int, Any, Any]:
    """Fork a process for a program, and wait until it has compiled it."""
    log, (reader, writer) = tempfile.TemporaryFile(), os.pipe()  # noqa: SIM115 - `_end` closes it
    if not (child := os.fork()):
        os.dup2(log.fileno(), 2)
        os.close(reader)
        with contextlib.suppress(BaseException), os.fdopen(writer, "w") as out:
            _run(question, out)
        os._exit(1)
    os.close(writer)
    answer = os.fdopen(reader)
    answer.readline()
    return child, answer, log


def _run(question: Mapping[str, Any], out: Any) -> None:
    signal.alarm(COMPILE_TIME)
    eight_devices()
    mesh = make_mesh(dict(question["mesh"]))
    inputs = [put(from_json(value), P(*from_json(spec)), mesh) for value, spec in question["arrays"]]
    compiled = from_json(question["program"]).compile(*inputs, once=True)
    print("compiled", file=out, flush=True)
    Timer(WAITING_TIME + 1, os._exit, [WAITED]).start()
    print(json.dumps(to_json(np.asarray(compiled(*inputs)))), file=out, flush=True)
    os._exit(0)


def _end(child: int, answer: Any, log: Any) -> dict[str, Any]:
    with answer, log:
        result = answer.read()
        _, status = os.waitpid(child, 0)
        log.seek(0)
        return {
            "result": result,
            "status": os.waitstatus_to_exitcode(status),
            "log": log.read().decode(errors="replace"),
        }


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    serve(_try)
