"""Clerks: the processes that grade. Each has one hand-in at a time, within a time and a size, and may die alone.

Whatever reads, cuts or renders a student's bytes outside the walls does it in a clerk. So a hand-in that takes too
long, takes too much memory, or brings its clerk down is known by name, and costs nobody else anything.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

import psutil

from grader.classroom.grading.beginning import begin

HAND_IN_SECONDS = 900.0  # for one hand-in, by the clock: what runs and judges it has nearer limits of its own
MOST_DEATHS = 3  # of the clerks of one hand-in; after the first it is tried alone
CLERK_MEMORY = 3 << 30  # bytes, resident; judging one lesson takes 700 MiB at most
OLD_MEMORY = CLERK_MEMORY // 2  # what a clerk may have gathered before it takes another job: programs of ours stay
WATCH_SECONDS = 0.2  # between two looks at a clerk's memory
DIED = (
    f"The process that worked on it died, {MOST_DEATHS} times, at last with no other beside it. A person should look "
    "at it. Or has this machine too little memory? Then do it where there is more."
)
END_SECONDS = 5.0  # that a clerk may take to end when there is nothing left to do

_Job = TypeVar("_Job")
_Done = TypeVar("_Done")


@dataclass(frozen=True)
class Lost:
    """What came of a job that no clerk finished: a sentence that says why, and whether another try may help."""

    why: str
    may_help: bool = True


def by_clerks(
    work: Callable[[_Job], _Done], jobs: Iterable[_Job], count: int = 1, seconds: float = HAND_IN_SECONDS
) -> Iterator[tuple[_Job, _Done | Lost]]:
    """Each job with what the work makes of it, as it is ready; `count` clerks are at work.

    The work and its jobs are pickled. What the work raises is raised here, and ends it all. A job whose clerk died is
    tried again after all others, alone: a person may have killed it, or too many at once may have filled the machine.
    """
    lost: list[_Job] = []
    for job, outcome in _side_by_side(work, list(jobs), count, seconds):
        if isinstance(outcome, Lost) and outcome.may_help:
            lost.append(job)
        else:
            yield job, outcome
    for job in lost:
        for _ in range(MOST_DEATHS - 1):
            ((_, outcome),) = _side_by_side(work, [job], 1, seconds)
            if not isinstance(outcome, Lost) or not outcome.may_help:
                break
        yield job, outcome


def _side_by_side(
    work: Callable[[_Job], _Done], jobs: Sequence[_Job], count: int, seconds: float
) -> Iterator[tuple[_Job, _Done | Lost]]:
    waiting = deque(jobs)
    clerks = [_Clerk(work, seconds) for _ in range(min(count, len(jobs)))]
    try:
        while waiting or any(clerk.jobs for clerk in clerks):
            for clerk in clerks:
                if waiting and not clerk.jobs:
                    clerk.take(waiting.popleft())
            busy = [clerk for clerk in clerks if clerk.jobs]
            ready = connection.wait([clerk.pipe for clerk in busy], WATCH_SECONDS)
            for clerk in busy:
                if clerk.pipe in ready:
                    yield clerk.hand_over()
                elif excess := clerk.excess():
                    yield clerk.give_up(excess)
        for clerk in clerks:
            clerk.send_home()
    finally:
        for clerk in clerks:
            clerk.kill()


class _Clerk(Generic[_Job, _Done]):
    """One process, started when it is first needed and again after it died, and the job that it has in hand."""

    pipe: Connection

    def __init__(self, work: Callable[[_Job], _Done], seconds: float):
        self.work, self.seconds = work, seconds
        self.process: multiprocessing.process.BaseProcess | None = None
        self.jobs: list[_Job] = []  # none or one
        self.deadline = 0.0

    def take(self, job: _Job) -> None:
        self.jobs, self.deadline = [job], time.monotonic() + self.seconds
        if self.process is not None and not 0 < self._size() < OLD_MEMORY:
            self.send_home()
            self.kill()
        if self.process is None:
            self._start()
        with contextlib.suppress(BrokenPipeError):  # it has just died, which `hand_over` will see
            self.pipe.send((self.work, job))

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _deaf_to_ctrl_c():
            self.process.start()
        theirs.close()

    def hand_over(self) -> tuple[_Job, _Done | Lost]:
        """The job with what came of it, which is there."""
        job = self.jobs.pop()
        try:
            well, result = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return job, Lost(DIED)
        if not well:
            raise result
        return job, result

    def excess(self) -> Lost | None:
        """What its job takes too much of; None when there is nothing."""
        if time.monotonic() > self.deadline:
            return Lost(
                f"Grading it was not done after {self.seconds:g} seconds, and was stopped. A person should look at it: "
                "what in it takes so long? (c.JudgedExecute.hand_in_seconds in nbgrader_config.py says how long "
                "grading one hand-in may take.)",
                may_help=False,
            )
        if self._size() > CLERK_MEMORY:
            return Lost(
                f"Grading it takes more than the {CLERK_MEMORY >> 20:,} MiB of memory that there are for one hand-in, "
                "and was stopped. A person should look at it: is there a cell that is much too long?"
            )
        return None

    def _size(self) -> int:
        """Bytes that its process has; 0 where it has died."""
        assert self.process is not None
        with contextlib.suppress(psutil.Error):
            return int(psutil.Process(self.process.pid).memory_info().rss)
        return 0

    def give_up(self, why: Lost) -> tuple[_Job, Lost]:
        self.kill()
        return self.jobs.pop(), why

    def send_home(self) -> None:
        """Let it end, for there is nothing left to do."""
        if self.process is not None:
            self.pipe.close()
            self.process.join(END_SECONDS)

    def kill(self) -> None:
        """End it with all that it has started."""
        process, self.process = self.process, None
        if process is None:
            return
        below: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.join()
        for child in below:
            with contextlib.suppress(psutil.Error):
                child.kill()
        self.pipe.close()


@contextlib.contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes started in this block leave Ctrl-C to the one that started them."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _serve(pipe: Connection) -> None:
    """Be a clerk: do one job after the other, until there are no more."""
    begin()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            work, job = pipe.recv()
            pipe.send(_reply(work, job))


def _reply(work: Callable[[_Job], _Done], job: _Job) -> tuple[bool, _Done | Exception]:
    try:
        return True, work(job)
    except MemoryError:
        os._exit(1)  # who knows what is half done
    except Exception as error:
        return False, error
