"""Running a process that must not be trusted to end, to stay small, or to be quiet.

The seam where stronger walls go: everything that runs students' code is started by `run`.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a hand-in may use. Times in seconds, sizes in bytes."""

    cell_seconds: float = 60
    seconds: float = 300
    memory: int = 12 << 30
    file: int = 64 << 20
    lines: int = 256 << 20


class OverTime(Exception):
    """The process was killed because its time was over."""


def run(module: str, job: str, limits: Limits) -> Iterator[str]:
    """Start `python -m module` in a session of its own, give it `job`, and yield the lines it writes.

    Ends when the process closes its output; whatever it left running is killed. Raises OverTime after
    `limits.seconds`. A process that writes more than `limits.lines` bytes is cut off there.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, tempfile.TemporaryFile("w+") as given:
        given.write(job)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=home,
            env=environment(home), start_new_session=True, preexec_fn=lambda: _confine(limits))
        try:
            yield from _lines(process, limits)
        finally:
            _kill(process)


def environment(home: str) -> dict[str, str]:
    """What a worker sees of the environment: where Python finds its modules, and nothing of ours."""
    kept = {k: os.environ[k] for k in ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV") if k in os.environ}
    return {**kept, "HOME": home, "IPYTHONDIR": home, "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", home),
            "MPLBACKEND": "module://matplotlib_inline.backend_inline", "JAX_PLATFORMS": "cpu",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}


def _confine(limits: Limits) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file, limits.file))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _lines(process: subprocess.Popen[bytes], limits: Limits) -> Iterator[str]:
    deadline = time.monotonic() + limits.seconds
    buffer, received = bytearray(), 0
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        while received <= limits.lines:
            left = deadline - time.monotonic()
            if left <= 0 or not waiting.select(left):
                raise OverTime
            chunk = os.read(process.stdout.fileno(), 1 << 20)
            if not chunk:
                return
            received += len(chunk)
            buffer += chunk
            *complete, rest = buffer.split(b"\n")
            buffer = bytearray(rest)
            yield from (line.decode(errors="replace") for line in complete)


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    process.stdout.close()
