"""Programs run in processes of their own, which may be ended: what to do with one that may wait for ever.

A collective that not every device calls keeps the others waiting, and a thread that waits inside XLA cannot be
stopped: neither by an exception nor by an interrupt. A process can. One server, started once, forks a process for
each program.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock, Timer
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.devices import as_flags, eight_devices
from grader.arrays.meshes import make_mesh, put
from grader.exercises.as_json import from_json, to_json
from grader.jax_versions import timeouts
from grader.processes.servers import serving
from grader.programs.program import trace
from grader.programs.structure import Structure, times
from grader.programs.walk import structure

PATIENCE = 3  # seconds that devices wait in a collective for those that have not come
START = 120  # seconds to compile, on a machine that is busy
WAITED = 87  # the exit status of a process that ended itself

FLAGS = as_flags(timeouts(PATIENCE - 2, 2))  # XLA then says how many devices came
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

    Raises:
      RuntimeError: the program failed in some other way, or no process can be started here.
    """
    (found,) = trials([(fn, *args)])
    return found


def trials(calls: Sequence[Call]) -> list[Trial]:
    """Several programs, each in a process of its own, side by side."""
    programs = [trace(*call) for call in calls]
    written = [structure(program) for program in programs]
    questions = [
        {"program": to_json(program), "mesh": list(said.mesh.items()), "given": [_laid(a) for a in call[1:]]}
        for program, said, call in zip(programs, written, calls, strict=True)
    ]
    return [_trial(found, said) for found, said in zip(_ask(questions), written, strict=True)]


def _laid(array: jax.Array) -> list[Any]:
    spec = array.sharding.spec if isinstance(array.sharding, NamedSharding) else P()
    return [to_json(np.asarray(array)), to_json(tuple(spec))]


def _trial(found: Mapping[str, Any], written: Structure) -> Trial:
    if found["result"]:
        return Trial(from_json(json.loads(found["result"])))
    seen = STUCK.search(found["said"])
    if not seen and found["status"] != WAITED:
        raise RuntimeError(f"the program failed in its own process:\n{found['said'][-2000:]}")
    return Trial(stuck="\n".join([_seen(seen), *_told(written)]))


def _seen(found: re.Match[str] | None) -> str:
    """What XLA said when it lost patience."""
    if not found:
        return f"It had not finished after {PATIENCE} seconds."
    kind, due, came = found.groups()
    return f"XLA, after {PATIENCE} seconds: {came} of {due} devices had come to the {kind.replace(' ', '_')}."


def _told(written: Structure) -> list[str]:
    """Who waits for whom, where the program's text says it."""
    return [
        f"The program: device {waiting} calls the {c.kind} over {', '.join(c.axes)} {times(c.visits[waiting])}, "
        f"device {missing} {times(c.visits[missing])}."
        for c in written.collectives
        if (pair := written.waiting(c))
        for waiting, missing in [pair]
    ]


_one_at_a_time = Lock()


def _ask(questions: list[Any]) -> list[dict[str, Any]]:
    with _one_at_a_time:
        server = _server(os.getpid())
        try:
            server.stdin.write(json.dumps(questions) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())
        except BaseException:  # an interrupt too: what it still has to say belongs to no later question
            server.kill()
            _server.cache_clear()
            raise


@functools.cache
def _server(asker: int) -> subprocess.Popen:
    """The server of a process (a fork needs its own), until that ends: it ends with its standard input."""
    return serving("grader.processes.trial", "trials", RuntimeError, XLA_FLAGS=FLAGS)


# From here on in the server. It imports JAX and starts no backend, so that it may fork.


def serve() -> None:
    jax.config.update("jax_platforms", "cpu")
    for line in sys.stdin:
        started = [_start(question) for question in json.loads(line)]
        print(json.dumps([_end(*one) for one in started]), flush=True)


def _start(question: Mapping[str, Any]) -> tuple[int, Any, Any]:
    """Fork a process for a program, and wait until it has compiled it."""
    said, (reader, writer) = tempfile.TemporaryFile(), os.pipe()  # noqa: SIM115 - `_end` closes it
    if not (child := os.fork()):
        os.dup2(said.fileno(), 2)
        os.close(reader)
        with contextlib.suppress(BaseException), os.fdopen(writer, "w") as out:
            _run(question, out)
        os._exit(1)
    os.close(writer)
    answer = os.fdopen(reader)
    answer.readline()
    return child, answer, said


def _run(question: Mapping[str, Any], out: Any) -> None:
    signal.alarm(START)
    eight_devices()
    mesh = make_mesh(dict(question["mesh"]))
    inputs = [put(from_json(value), P(*from_json(spec)), mesh) for value, spec in question["given"]]
    compiled = from_json(question["program"]).compile(*inputs, once=True)
    print("compiled", file=out, flush=True)
    Timer(PATIENCE + 1, os._exit, [WAITED]).start()
    print(json.dumps(to_json(np.asarray(compiled(*inputs)))), file=out, flush=True)
    os._exit(0)


def _end(child: int, answer: Any, said: Any) -> dict[str, Any]:
    with answer, said:
        result = answer.read()
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return {
            "result": result,
            "status": os.waitstatus_to_exitcode(status),
            "said": said.read().decode(errors="replace"),
        }


if __name__ == "__main__":
    serve()
