"""Warm processes behind walls, and the forks of them that do the work.

Importing JAX takes seconds, so a **template** does it once and then forks, in milliseconds, one process for
every run. A fork's replies come over a pipe, line by line, limited in time and length; none of them is trusted. When
a fork does not end in time, or grows too large, its whole template is killed with all that is in it, and the next run
starts a new one.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import psutil

from grader.arrays.fresh import SEED
from grader.classroom.inside import template as forking
from grader.classroom.inside.limits import Limits
from grader.classroom.inside.seccomp import GUARDED
from grader.classroom.inside.shown import PACKAGE
from grader.classroom.walls import bubblewrap as walls

START_SECONDS = 120.0  # that a template may take to import JAX on a slow, busy machine
LEAVE_SECONDS = 5.0  # that a fork may take to end after its last line
LOOK_SECONDS = 0.25  # between two looks at a fork's memory
TRIES = 5  # of a run whose process is killed each time
SOON = 5.0  # seconds; a run that is killed later than this is tried once more, and not again and again
MOST_PLAIN = 200_000  # characters of a line that stand in no text; lessons' answers have 1,400 at most
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)  # exit statuses of a template when it, or bubblewrap, is killed
_T = TypeVar("_T")


class Ended(Exception):
    """A run ended before its work did. The text says why, for a student to read.

    `status` is the process's, as waitpid gives it, where that is known; `late` says that its time was over;
    `killed`, that its process or its template was killed, and not by us.
    """

    def __init__(self, words: str, status: int | None = None, late: bool = False, killed: bool = False):
        super().__init__(words)
        self.status, self.late, self.killed = status, late, killed

    @property
    def doubtful(self) -> bool:
        """Whether a busy machine, or somebody else, may have ended it."""
        return self.late or self.killed or self.is_abort

    @property
    def is_abort(self) -> bool:
        """Whether it was ended as XLA ends a program whose devices wait for each other too long."""
        return self.status is not None and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGABRT


class NotStarted(RuntimeError):
    """A template cannot start, so nothing can be run here; the text says why."""


def steadily(work: Callable[[], _T]) -> _T:
    """Do the work of a run, and do it again when its process was killed.

    A person may have killed it, or a machine short of memory, and no hand-in is to pay for that. A run that ends so
    every time is itself the cause; so is one that lives long before it is killed for the second time.
    """
    for tried in range(TRIES - 1):
        start = time.monotonic()
        try:
            return work()
        except Ended as end:
            if not end.killed or tried and time.monotonic() > start + SOON:
                raise
    return work()


def message_in(line: str) -> Any:
    """The JSON value in a stranger's line. Raises ValueError where it is none, or has too many parts."""
    pieces = line.replace("\\\\", "").replace('\\"', "").split('"')  # every other one stands in no text
    if sum(map(len, pieces[::2])) > MOST_PLAIN:
        raise ValueError("it has far too many parts")
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class Template:
    """A warm process that forks; started when it is first needed, and again after it had to be killed.

    `role` is the name of a module of `inside` that has a `ROLE`.
    """

    def __init__(self, role: str, *, limits: Limits = Limits(), flags: str = ""):
        self.role, self.limits, self.flags = role, limits, flags
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None
        self.home: tempfile.TemporaryDirectory[str] | None = None

    @contextlib.contextmanager
    def fork(self, limits: Limits | None = None) -> Iterator[Fork]:
        """A new process of this template, for the length of a `with` block."""
        limits = limits or self.limits
        (job_in, job), (wire, wire_out) = os.pipe(), os.pipe()
        with tempfile.TemporaryFile() as complaints:
            try:
                self._send(limits, job_in, wire_out, complaints.fileno())
            except BaseException:
                os.close(job)
                os.close(wire)
                raise
            finally:
                os.close(job_in)
                os.close(wire_out)
            fork = Fork(self, limits, job, wire, complaints)
            try:
                yield fork
            finally:
                fork.close()

    def _send(self, limits: Limits, *descriptors: int) -> None:
        """Have the template fork; where it does not run, or was killed, it is started first."""
        for _ in range(TRIES):
            if self._runs() or self._start():
                assert self.control is not None
                try:
                    socket.send_fds(self.control, [json.dumps(asdict(limits)).encode()], descriptors)
                    return
                except OSError:
                    self.kill()
        raise NotStarted(
            f"The process that {self.role}s are forked from was killed {TRIES} times. Is this machine short of memory?"
        )

    def _runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _start(self) -> bool:
        """Start the template's process. True when it is ready, False when it was killed."""
        self.kill()
        self.control, theirs = socket.socketpair()
        with tempfile.TemporaryFile() as complaints:
            with theirs:
                self.process = self._process(theirs.fileno(), complaints.fileno())
            self.control.settimeout(START_SECONDS)
            with contextlib.suppress(OSError):
                if self.control.recv(16) == b"ready":
                    return True
            with contextlib.suppress(subprocess.TimeoutExpired):
                if self.process.wait(LEAVE_SECONDS) in KILLED:
                    return False
            complaints.seek(0)
            reason = complaints.read()[-2000:].decode(errors="replace").strip() or "it said nothing"
        self.kill()
        raise NotStarted(f"The process that {self.role}s are forked from did not start: {reason}")

    def _process(self, control: int, complaints: int) -> subprocess.Popen[bytes]:
        """The template's process, behind walls unless somebody has left them out; it gets two of our descriptors."""
        inside = [sys.executable, "-m", forking.__name__, self.role, str(control)]
        if walls.standing():
            command = walls.command(inside, self._environment(walls.HOME, True), home_bytes=self.limits.home)
            environment, folder = {"PATH": os.environ.get("PATH", "")}, "/"
        else:
            self.home = tempfile.TemporaryDirectory(prefix="grader-", ignore_cleanup_errors=True)
            command, environment, folder = inside, self._environment(self.home.name, False), self.home.name
        return subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            pass_fds=[control],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
        )

    def _environment(self, home: str, guarded: bool) -> dict[str, str]:
        """The whole environment inside: it says where Python finds its modules, and nothing about this machine."""
        here = os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        return {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONPATH": walls.SIDE if guarded else here,
            "HOME": home,
            "TMPDIR": home,
            "IPYTHONDIR": home,
            "MPLCONFIGDIR": home,
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "JAX_PLATFORMS": "cpu",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "XLA_FLAGS": self.flags,
            SEED: "0",
            GUARDED: "1" if guarded else "",
        }

    def status(self) -> int | None:
        """The exit status of the last fork, once it has ended; None when the template does not give it in time."""
        if self.control is None:
            return None
        try:
            self.control.settimeout(LEAVE_SECONDS)
            reply = self.control.recv(64)
            return int(reply) if reply else None
        except (OSError, ValueError):
            return None

    def excess(self, limits: Limits) -> str:
        """What a process of this template uses too much of, as seen from outside; "" when there is none."""
        if self.process is None:
            return ""
        with contextlib.suppress(psutil.Error, OSError):
            for process in map(psutil.Process, _below(self.process.pid)):
                if process.memory_info().rss > limits.memory:
                    return (
                        f"It took more than the {limits.memory >> 20:,} MiB of memory that there are for it, and "
                        "was stopped. The exercises need a few; is an array much larger than it should be?"
                    )
                if process.num_threads() > limits.threads:
                    return f"It had more than {limits.threads:,} threads, and was stopped."
                if _files_in(f"/proc/{process.pid}/root{walls.HOME}") > limits.made:
                    return f"It made more than {limits.made:,} files, and was stopped."
        return ""

    def kill(self) -> None:
        """End the template and everything in it, at once."""
        process, self.process = self.process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self.control is not None:
            self.control.close()
            self.control = None
        if self.home is not None:
            self.home.cleanup()
            self.home = None


def _below(process: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    try:
        return list(_listed_below(process))
    except OSError:  # not every system has such lists: psutil looks through all processes of the machine
        return [child.pid for child in psutil.Process(process).children(recursive=True)]


def _listed_below(process: int) -> Iterator[int]:
    for thread in os.listdir(f"/proc/{process}/task"):
        for child in Path(f"/proc/{process}/task/{thread}/children").read_text().split():
            yield int(child)
            yield from _listed_below(int(child))


def _files_in(home: str) -> int:
    """How many files and folders there are in a home behind walls; 0 where there is no such home."""
    if not os.path.isdir(home):
        return 0
    system = os.statvfs(home)
    return system.f_files - system.f_ffree


class Fork:
    """One run: what is written to it, what it replies, and its end."""

    def __init__(self, template: Template, limits: Limits, job: int, wire: int, complaints):
        self.template, self.limits, self.complaints = template, limits, complaints
        self.job, self.wire = job, wire
        self.last_look = time.monotonic()
        self.deadline = self.last_look + limits.seconds
        self.pieces: list[bytes] = []
        self.received = self.pending = 0
        self.over = False
        os.set_blocking(job, False)

    def write(self, line: str) -> None:
        """Write a line to it. Raises Ended when it does not take it in time."""
        left = memoryview(line.encode() + b"\n")
        while left:
            if not select.select([], [self.job], [], max(0.0, self.deadline - time.monotonic()))[1]:
                raise self._late()
            try:
                left = left[os.write(self.job, left) :]
            except BrokenPipeError:
                raise self._gone() from None

    def lines(self) -> Iterator[str]:
        """Its replies, line by line, until the caller has enough. Raises Ended when there are no more."""
        while True:
            chunk = self._read()
            self.received, self.pending = self.received + len(chunk), self.pending + len(chunk)
            self.pieces.append(chunk)
            if b"\n" in chunk:
                *complete, rest = b"".join(self.pieces).split(b"\n")
                self.pieces, self.pending = [rest], len(rest)
                yield from (line.decode(errors="replace") for line in complete)
            if self.received > self.limits.lines or self.pending > self.limits.line:
                self.template.kill()
                raise Ended(
                    f"It answered with more than {self.limits.line >> 20} MiB, and was stopped. Arrays and tables of "
                    "the exercises have a few hundred entries."
                )

    def _read(self) -> bytes:
        """The next piece, of any length. Time and memory are looked at meanwhile, even when it never pauses."""
        while True:
            ready, _, _ = select.select([self.wire], [], [], LOOK_SECONDS)
            self._look()
            if ready:
                if chunk := os.read(self.wire, 1 << 20):
                    return chunk
                raise self._gone()

    def _look(self) -> None:
        now = time.monotonic()
        if now > self.deadline:
            raise self._late()
        if now < self.last_look + LOOK_SECONDS:
            return
        self.last_look = now
        if words := self.template.excess(self.limits):
            self.template.kill()
            raise Ended(words)

    def _late(self) -> Ended:
        self.template.kill()
        return Ended(
            f"The notebook was still running after {self.limits.seconds:g} seconds and was stopped.", late=True
        )

    def _gone(self) -> Ended:
        status = self._end()
        self.complaints.seek(0)
        words = self.complaints.read(1 << 20).decode(errors="replace").strip().splitlines()
        killed = status is None or os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if status is not None and os.WIFSIGNALED(status):
            return Ended(
                f"The notebook's process crashed ({signal.strsignal(os.WTERMSIG(status))}). XLA does that "
                "when devices wait for each other in a collective which not all of them reach, or when "
                "memory runs out.",
                status,
                killed=killed,
            )
        return Ended(
            "The notebook's process ended before it came here: something in it left Python (`exit`, "
            "`os._exit`), or asked for more memory than it may use."
            + (f" Its last words: {words[-1][:300]}" if words else ""),
            status,
            killed=killed,
        )

    def close(self) -> None:
        """Let it end, or kill it. Nothing of it is left afterwards."""
        os.close(self.job)
        os.close(self.wire)
        if not self.over and self.template.process is not None:
            self._end()

    def _end(self) -> int | None:
        self.over = True
        if (status := self.template.status()) is None:
            self.template.kill()
        return status
