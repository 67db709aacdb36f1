"""Functions that are called in a process of their own: some never end, some end the process that they run in."""

import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from grader.arrays.devices import eight_devices

MEMORY = 8 << 30  # bytes: some answers ask for all there is


class Lost(Exception):
    """A function took too long, or ended its process."""


def work(line: Connection) -> None:
    """Call what comes through the line."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    eight_devices()
    line.send("ready")
    while asked := line.recv():
        function, arguments = asked
        try:
            line.send(function(*arguments))
        except Exception as error:
            line.send(error)


class Apart:
    """The process, which is started when it is needed first, and again after it was ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds  # for one call
        self.process: multiprocessing.process.BaseProcess | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns there; what it raises is raised, and Lost where neither comes."""
        if self.process is None:
            self._start()
        self.line.send((function, arguments))
        try:
            came = self.line.recv() if self.line.poll(self.seconds) else Lost(f"nothing came within {self.seconds} s")
        except (EOFError, ConnectionResetError):
            came = Lost("the process ended")
        if isinstance(came, Lost):
            self.end()
        if isinstance(came, Exception):
            raise came
        return came

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.line, there = spawn.Pipe()
        self.process = spawn.Process(target=work, args=(there,), daemon=True)
        self.process.start()
        there.close()
        self.line.recv()

    def end(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None
