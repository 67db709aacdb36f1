"""Processes that serve this one: asked a question, they answer in messages, and they end with it.

Both sides are here: `Server` is what asks, `serve` what answers. Questions and messages are JSON, one a line; an empty
line ends an answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

Tell = Callable[[Any], None]


class NoProcesses(RuntimeError):
    """Processes cannot be started here, or end; the text says why."""


@dataclass
class Server:
    """`python -m module`: started by the first question, and again if it ended. Raises NoProcesses if it can't be."""

    module: str
    _process: subprocess.Popen[str] | None = field(default=None, init=False)
    _asker: int = field(default=0, init=False)
    _one_at_a_time: Lock = field(default_factory=Lock, init=False)

    def ask(self, question: Any) -> Generator[Any, None, None]:
        """The messages of its answer, as they come. Whoever stops listening before the end should close it."""
        with self._one_at_a_time:
            process = self._running()
            questions, answers = process.stdin, process.stdout
            assert questions and answers  # it was started with both
            try:
                questions.write(json.dumps(question) + "\n")
                questions.flush()
                for line in answers:
                    if line == "\n":
                        return
                    yield json.loads(line)
                raise NoProcesses(
                    "The process that starts the others has ended. While a hand-in is graded there can be "
                    "none; elsewhere, is this machine short of memory?"
                )
            except BaseException:  # an interrupt too: whatever still runs is ended, and no later question hears of it
                process.kill()
                process.wait()
                self._process = None
                raise

    def _running(self) -> subprocess.Popen[str]:
        """The process, started where there is none: a fork of ours needs its own."""
        if self._process is None or self._asker != os.getpid() or self._process.poll() is not None:
            self._process, self._asker = self._started(), os.getpid()
        return self._process

    def _started(self) -> subprocess.Popen[str]:
        if not hasattr(os, "fork"):
            raise NoProcesses(
                "This needs processes that are forked, which Windows doesn't have: run the course in WSL 2 "
                "(https://learn.microsoft.com/windows/wsl/install), or on Colab."
            )
        path = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        try:
            return subprocess.Popen(
                [sys.executable, "-m", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"},
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            raise NoProcesses(
                f"No process can be started here ({error}). While a hand-in is graded that is so: your launches and "
                "trials are not run then, and your answers are."
            ) from error


def serve(answer: Callable[[Any, Tell], None]) -> None:
    """Be the server: answer one question after the other, each in the messages that `answer` tells."""

    def tell(message: Any) -> None:
        print(json.dumps(message), flush=True)

    for line in sys.stdin:
        answer(json.loads(line), tell)
        print(flush=True)
