"""Running a process that must not be trusted to end, to stay small, or to be quiet.

The seam where stronger walls go: everything that runs students' code or students' programs is started by
`start`, in a session of its own that is killed whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

LIMITS = "GRADER_LIMITS"


@dataclass(frozen=True)
class Limits:
    """What a hand-in may use. Times in seconds, sizes in bytes."""

    cell_seconds: float = 60
    seconds: float = 300
    memory: int = 8 << 30  # address space: JAX with eight devices takes 2 GiB before it holds an array
    file: int = 64 << 20
    line: int = 32 << 20
    lines: int = 256 << 20


class Ended(Exception):
    """The process ended before its work did; the text says why, for a student to read."""


def start(module: str, home: str, limits: Limits, more: Mapping[str, str], **streams: Any) -> subprocess.Popen:
    """Start `python -m module` in a session of its own, at home in `home`. It begins with `confine()`."""
    wanted = {**environment(home), **more, LIMITS: json.dumps(asdict(limits))}
    return subprocess.Popen([sys.executable, "-m", module], cwd=home, env=wanted, start_new_session=True,
                            stdout=subprocess.PIPE, **streams)


def environment(home: str) -> dict[str, str]:
    """What such a process sees of the environment: where Python finds its modules, and nothing of ours."""
    _settle(home)
    kept = {k: os.environ[k] for k in ("PATH", "LANG", "PYTHONPATH", "VIRTUAL_ENV") if k in os.environ}
    return {**kept, "HOME": home, "TMPDIR": home, "IPYTHONDIR": home, "MPLCONFIGDIR": home,
            "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}


def _settle(home: str) -> None:
    """Matplotlib looks for all fonts of the machine when it finds no list of them: give it a copy of ours."""
    from matplotlib import font_manager, get_cachedir

    for fonts in Path(get_cachedir()).glob(f"fontlist-v{font_manager.FontManager.__version__}.json"):
        shutil.copy(fonts, home)


def confine() -> None:
    """What a started process does first: it can lower these limits afterwards, and not raise them."""
    limits = Limits(**json.loads(os.environ.pop(LIMITS)))
    for kind, wanted in ((resource.RLIMIT_AS, limits.memory), (resource.RLIMIT_FSIZE, limits.file),
                         (resource.RLIMIT_CORE, 0)):
        _, most = resource.getrlimit(kind)
        value = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(kind, (value, value))


def kill(process: subprocess.Popen) -> int:
    """Kill a process and what it started; returns how it ended (negative: the signal that ended it)."""
    ended = process.poll()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in filter(None, (process.stdin, process.stdout)):
        with contextlib.suppress(OSError):
            stream.close()
    return process.returncode if ended is None else ended


def run(module: str, job: str, limits: Limits) -> Iterator[str]:
    """Give `job` to `python -m module` and yield the lines it writes, until the caller has enough.

    Raises Ended when there are no more, after `limits.seconds`, or after too much output. When the caller
    stops or this ends, the process and whatever it left running are killed.
    """
    with (tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, tempfile.TemporaryFile("w+") as given,
          tempfile.TemporaryFile() as complaints):
        given.write(job)
        given.seek(0)
        process = start(module, home, limits, {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
                        stdin=given, stderr=complaints)
        try:
            yield from read_lines(process.stdout, time.monotonic() + limits.seconds, limits)
        except TimeoutError:
            raise Ended(f"The notebook was still running after {limits.seconds:g} seconds and was stopped.") from None
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
            raise Ended(_why(process.poll(), complaints))
        finally:
            kill(process)


def read_lines(stream: IO[bytes], deadline: float, limits: Limits) -> Iterator[str]:
    """The lines of a pipe as they come, until it is closed. TimeoutError at the deadline, Ended on a flood."""
    pieces: list[bytes] = []
    received = pending = 0
    with selectors.DefaultSelector() as waiting:
        waiting.register(stream, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not waiting.select(left):
                raise TimeoutError
            if not (chunk := os.read(stream.fileno(), 1 << 20)):
                return
            received, pending = received + len(chunk), pending + len(chunk)
            pieces.append(chunk)
            if b"\n" in chunk:
                *complete, rest = b"".join(pieces).split(b"\n")
                pieces, pending = [rest], len(rest)
                yield from (line.decode(errors="replace") for line in complete)
            if received > limits.lines or pending > limits.line:
                raise Ended("The notebook answered with more than an answer can be, and was stopped.")


def _why(status: int | None, complaints: IO[bytes]) -> str:
    complaints.seek(0)
    said = complaints.read(1 << 20).decode(errors="replace").strip().splitlines()
    if status is not None and status < 0:
        return (f"The notebook's process crashed ({signal.strsignal(-status)}). XLA does that when devices wait for "
                "each other in a collective which not all of them reach, or when memory runs out.")
    return ("The notebook's process ended before it came here: something in it left Python (`exit`, `os._exit`), or "
            "asked for more memory than it may use." + (f" Its last words: {said[-1][:300]}" if said else ""))
