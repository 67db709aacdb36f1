"""Several processes that run one script together: started, watched, and ended all at once.

They are forked from a process that has imported JAX and started no backend, which takes milliseconds in place
of seconds. Each has devices of its own and finds the others through a coordinator on the loopback
interface. JAX swallows SIGTERM (its preemption notifier waits for that), so that they are ended by SIGKILL.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import io
import itertools
import json
import math
import os
import re
import selectors
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import jax

from grader.arrays.described import built, given_to
from grader.arrays.devices import prepare
from grader.exercises.as_json import question_from_json, to_json
from grader.exercises.plain import plain

SCRIPT_FILE = "<script>"  # how tracebacks call the file
LONGEST_LOG = 200_000  # characters of a process's log that are kept
LONGEST_REPORT = 16 << 20  # bytes of what it returned
LOOK_EVERY = 0.02  # seconds between two looks
MOST_DESCRIPTORS = 4096  # that a process may have open
PR_SET_PDEATHSIG = 1
COMPILED_FAST = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"  # each runs a few times
BUSY = 0.1  # seconds of computing in all processes together; who waits takes less


@dataclass(frozen=True)
class Job:
    """A script and how to run it.

    `main`: the name of the function to call with a process's number, how many there are, and its arguments; "" for a
    script that is run as it stands, with the two numbers in sys.argv. `name` is what sys.argv[0] says. `seconds`: for
    all together. `grace`: how many seconds the others may go on when one has failed. `still`: after how many seconds
    in which nobody computes nor says anything they count as waiting for ever; 0 for never. `killed_at`: a process that
    prints the line of this step (`step 7 …`) is killed there and then, by SIGKILL; 0 for none. `folder`: the name of
    one among the temporary files that `main` is told of, and that outlasts the job; "" for none. `flags`: more of
    XLA's, as XLA_FLAGS has them.
    """

    source: str
    main: str = ""
    name: str = SCRIPT_FILE
    processes: int = 4
    devices: int = 2
    seconds: float = 60.0
    grace: float = 0.0
    still: float = 0.0
    killed_at: int = 0
    folder: str = ""
    flags: str = ""


@dataclass
class Child:
    """A process: what it has said so far and, when it has ended, how and when."""

    pid: int
    told: int  # its arguments, to it
    log: int  # what it prints
    wire: int  # what its function returned or raised
    stack: Any  # a file for where it stands, if it has to be ended
    output: str = ""
    report: bytes = b""
    status: int | None = None
    seconds: float = 0.0


Given = Callable[[], Mapping[str, Any]]


def run_job(
    job: Job,
    given: Given = dict,
    say: Callable[[int, str], None] = lambda number, text: None,
    confined: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Run a job and return, as JSON types, what became of each process; `say` hears what they print as it comes.

    `given` is asked for the arguments of `main` when all processes are there, and each is told its own: of the others'
    parts nothing is in its memory. `confined` is called in each process before anything of the script runs there.
    """
    began = time.monotonic()
    with _port() as port:
        children = [_start(job, number, port, confined) for number in range(job.processes)]
        try:
            _tell(children, given())
            first, late = _watch(job, children, began, say)
        finally:
            _end(children)
    return {
        "first": first,
        "late": late,
        "seconds": time.monotonic() - began,
        "processes": [_report(child, job) for child in children],
    }


@contextlib.contextmanager
def _port() -> Iterator[int]:
    """A free port, kept from other launches for as long as this one lasts: the coordinator's socket may share it."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


def _start(job: Job, number: int, port: int, confined: Callable[[], None]) -> Child:
    (told, told_in), (log, log_in), (wire, wire_in) = os.pipe(), os.pipe(), os.pipe()
    stack = tempfile.TemporaryFile()  # noqa: SIM115 - `_report` closes it
    if not (pid := os.fork()):
        os.setsid()  # so that what it starts in turn is ended with it
        _die_with_parent()
        for target in (1, 2):
            os.dup2(log_in, target)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _close_all_but({0, 1, 2, told, wire_in, stack.fileno()})
        _be(job, number, port, told, wire_in, stack, confined)
    for end in (told, log_in, wire_in):
        os.close(end)
    for end in (log, wire):
        os.set_blocking(end, False)
    return Child(pid, told_in, log, wire, stack)


def _tell(children: list[Child], arguments: Mapping[str, Any]) -> None:
    """Tell each process its own arguments. One that has ended already hears nothing."""
    for number, child in enumerate(children):
        with contextlib.suppress(BrokenPipeError), os.fdopen(child.told, "w") as out:
            out.write(json.dumps(to_json(given_to(number, arguments))))


def _die_with_parent() -> None:
    """Be killed when the process that forked this one ends, in whatever way (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _close_all_but(descriptors: set[int]) -> None:
    """Close to the script what the starting process has open: its own reports, and the logs of the other processes."""
    for low, high in itertools.pairwise([*sorted(descriptors), MOST_DESCRIPTORS]):
        os.closerange(low + 1, high)


def _be(job: Job, number: int, port: int, told: int, wire: int, stack: Any, confined: Callable[[], None]) -> None:
    """Be one of the processes. Does not return."""
    status = 1
    try:
        sys.stdin, sys.stdout, sys.stderr = map(_line_by_line, (0, 1, 2), "rww")
        if job.killed_at:
            sys.stdout = Doomed(job.killed_at)
        faulthandler.register(signal.SIGUSR1, file=stack, all_threads=False)
        os.environ |= {
            "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
            "JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.1:{port}",
            "JAX_NUM_CPU_DEVICES": str(job.devices),
            "XLA_FLAGS": f"{COMPILED_FAST} {job.flags}",
        }
        jax.config.update("jax_platforms", "cpu")
        prepare(job.devices)
        sys.argv = [job.name, str(number), str(job.processes)]
        with os.fdopen(told) as lines:
            arguments = built(question_from_json(json.loads(lines.read()))) | _folder(job)
        confined()
        if (status := _do(job, number, arguments, wire)) == 0:
            atexit._run_exitfuncs()  # JAX says goodbye to the others, and waits for them
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


class Doomed(io.TextIOWrapper):
    """The standard output of a process that ends at its line of one step, as if its machine had lost its power."""

    def __init__(self, step: int):
        super().__init__(open(1, "wb", closefd=False), line_buffering=True)  # noqa: SIM115 - open as long as it lives
        self.last, self.begun = re.compile(rf"step {step}\b"), ""

    def write(self, text: str) -> int:
        written = super().write(text)
        *lines, self.begun = (self.begun + text).split("\n")
        if any(map(self.last.match, lines)):
            self.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return written


def _folder(job: Job) -> dict[str, str]:
    """The argument `folder` of a job that has one."""
    if not job.folder:
        return {}
    folder = Path(tempfile.gettempdir(), job.folder)
    folder.mkdir(exist_ok=True)
    return {"folder": str(folder)}


def _line_by_line(descriptor: int, mode: str) -> TextIO:
    return cast(TextIO, open(descriptor, mode, buffering=1, closefd=False))


def _do(job: Job, number: int, arguments: Mapping[str, Any], wire: int) -> int:
    """Run the script, and say what its function returned, or what was raised; the exit status."""
    space: dict[str, Any] = {"__name__": "__main__", "__file__": job.name}
    with open(wire, "w") as out:
        try:
            exec(compile(job.source, SCRIPT_FILE, "exec"), space)
            if job.main:
                result = space[job.main](number, job.processes, **arguments)
                out.write(json.dumps({"returned": to_json(plain(result))}))
            return 0
        except SystemExit as leave:
            out.write(json.dumps({"at": time.monotonic()}))
            return leave.code if isinstance(leave.code, int) else int(leave.code is not None)
        except BaseException as error:
            places = _places(error)
            what = type(error).__name__, str(error)[:4000], _line(job, places[-1][1]) if places else ""
            out.write(json.dumps({"raised": what, "at": time.monotonic()}))
            print(_trace(error, job), file=sys.stderr)
            return 1


def _places(error: BaseException) -> list[tuple[str, int]]:
    """The functions and lines of the script through which an error came."""
    places = ((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
    return [(code.co_name, line) for code, line in places if code.co_filename == SCRIPT_FILE]


def _line(job: Job, number: int) -> str:
    lines = job.source.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _trace(error: BaseException, job: Job) -> str:
    """The traceback, of the script's own lines."""
    lines = [f"  line {number}, in {function}: {_line(job, number)}" for function, number in _places(error)]
    return "\n".join(["Traceback (of the script's lines):", *lines, f"{type(error).__name__}: {error}"])


def _watch(job: Job, children: list[Child], began: float, say: Callable[[int, str], None]) -> tuple[int | None, bool]:
    """Look after the processes until all have ended, or time is over: who failed first, and whether it was late."""
    first, deadline, moved, computed = None, began + job.seconds, time.monotonic(), 0.0
    asker = os.getppid()
    with selectors.DefaultSelector() as selector:
        for number, child in enumerate(children):
            selector.register(child.log, selectors.EVENT_READ, (number, "log"))
            selector.register(child.wire, selectors.EVENT_READ, (number, "wire"))
        while True:
            for key, _ in selector.select(LOOK_EVERY):
                number, what = key.data
                if _hear(children[number], what, selector, number, say):
                    moved = time.monotonic()
            now = time.monotonic()
            _reap(children, now - began)
            if first is None and (failed := [k for k, c in enumerate(children) if c.status not in (None, 0)]):
                _hear_the_rest(children, selector, say)
                first, deadline = min(failed, key=lambda k: _failed_at(children[k])), min(deadline, now + job.grace)
            if all(child.status is not None for child in children):
                _hear_the_rest(children, selector, say)
                return first, False
            if (spent := _computed(children)) > computed + BUSY:
                moved, computed = now, spent
            if os.getppid() != asker:  # whoever asked for this is gone
                return first, True
            if now > deadline or (job.still and now > moved + job.still):
                _ask_where(children)
                _hear_the_rest(children, selector, say)
                return first, first is None


def _hear(
    child: Child, what: str, selector: selectors.BaseSelector, number: int, say: Callable[[int, str], None]
) -> bool:
    """Read what there is; returns whether there was something."""
    end = child.log if what == "log" else child.wire
    try:
        chunk = os.read(end, 1 << 16)
    except BlockingIOError:
        return False
    if not chunk:
        selector.unregister(end)
        return False
    if what == "wire":
        if len(child.report) < LONGEST_REPORT:
            child.report += chunk
        return True
    text = chunk.decode(errors="replace")
    if len(child.output) < LONGEST_LOG:
        child.output += text[: LONGEST_LOG - len(child.output)]
        say(number, text)
    return True


def _hear_the_rest(children: list[Child], selector: selectors.BaseSelector, say: Callable[[int, str], None]) -> None:
    for key in list(selector.get_map().values()):
        number, what = key.data
        while _hear(children[number], what, selector, number, say):
            pass


def _reap(children: list[Child], now: float) -> None:
    for child in children:
        if child.status is None:
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                child.status, child.seconds = os.waitstatus_to_exitcode(status), now


def _failed_at(child: Child) -> float:
    """When a process failed, by the clock they share: one failure may bring down many others within a tick.

    One that was killed comes first, because the others fail only when they miss it. One that aborts comes last: JAX
    ends it because it misses another.
    """
    try:
        return float(json.loads(child.report)["at"])
    except (ValueError, LookupError, TypeError):
        return math.inf if child.status in (1, -signal.SIGABRT) else 0.0


def _computed(children: list[Child]) -> float:
    """Seconds of processor time that all have used, where the system tells (Linux)."""
    ticks = 0
    for child in children:
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _ask_where(children: list[Child]) -> None:
    """Have those that still run write down which line they are at."""
    for child in children:
        if child.status is None:
            os.kill(child.pid, signal.SIGUSR1)
    time.sleep(5 * LOOK_EVERY)


def _end(children: list[Child]) -> None:
    """End all that still run, with whatever they have started, and close what was open to them."""
    for child in children:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        if child.status is None:
            os.waitpid(child.pid, 0)
        os.close(child.log)
        os.close(child.wire)


def _report(child: Child, job: Job) -> dict[str, Any]:
    """What became of a process, as JSON types. No status: it was ended by us."""
    with child.stack:
        child.stack.seek(0)
        stack = child.stack.read().decode(errors="replace")
    number = re.search(rf'File "{re.escape(SCRIPT_FILE)}", line (\d+)', stack)
    return {
        "status": child.status,
        "seconds": child.seconds,
        "said": child.output,
        "where": _line(job, int(number[1])) if number else "",
        **_reported(child),
    }


def _reported(child: Child) -> dict[str, Any]:
    """What a process says of itself; the script may have written anything."""
    with contextlib.suppress(ValueError, RecursionError):
        report = json.loads(child.report)
        if isinstance(report, dict):
            return {what: report[what] for what in ("returned", "raised") if what in report}
    return {}
