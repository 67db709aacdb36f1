"""The judge in a process of its own: it runs students' programs, so it may hang or die, and be replaced.

`Judge` is the side that asks; `main` the side that answers, one JSON line for one JSON line.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import Any

from grader.answers import from_json
from grader.classroom.sandbox import environment
from grader.exercise import Exercise, Outcome
from grader.judge import Verdict, judge
from grader.lessons import find

SECONDS = 90.0  # for one exercise: compiling and running it on every case, and drawing the card
STUCK = "--xla_cpu_collective_call_warn_stuck_timeout_seconds=2 --xla_cpu_collective_call_terminate_timeout_seconds=5"


@dataclass(frozen=True)
class Judged:
    """A verdict with its card, as HTML and as text."""

    verdict: Verdict
    html: str
    text: str


def present(verdict: Verdict) -> Judged:
    from grader import feedback

    return Judged(verdict, feedback.card(verdict), feedback.text(verdict))


class Judge:
    """A judging process, started when first needed and again whenever it had to be killed."""

    def __init__(self, seconds: float = SECONDS):
        self.seconds = seconds
        self.process: subprocess.Popen[bytes] | None = None
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def __call__(self, exercise: Exercise, seed: int, answers: Any) -> Judged:
        """Judge answers in their JSON form on the cases of this seed."""
        try:
            answer = self._ask({"exercise": exercise.name, "seed": seed, "answers": answers})
        except TimeoutError:
            self.close()
            return _lost(exercise, f"It did not come to an end within {self.seconds:g} seconds, on arrays of a few "
                                   "hundred entries. Is there a loop that does not end?")
        except EOFError:
            self.close()
            return _lost(exercise, "It brought the devices down: most likely they wait for each other, because a "
                                   "collective is not reached by all of them. Every device must run the same "
                                   "collectives in the same order.")
        outcomes = tuple(Outcome(**outcome) for outcome in answer["outcomes"])
        return Judged(Verdict(exercise.name, outcomes, answer["where"]), answer["html"], answer["text"])

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self.process is None or self.process.poll() is not None:
            self.process = self._start()
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise EOFError from None
        return json.loads(self._line())

    def _start(self) -> subprocess.Popen[bytes]:
        flags = {"XLA_FLAGS": STUCK} if _knows_timeouts() else {}
        return subprocess.Popen([sys.executable, "-m", "grader.classroom.judging"], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=self.home.name,
                                env={**environment(self.home.name), "MPLBACKEND": "agg", **flags})

    def _line(self) -> bytes:
        deadline, line = time.monotonic() + self.seconds, bytearray()
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left <= 0 or not waiting.select(left):
                    raise TimeoutError
                chunk = os.read(self.process.stdout.fileno(), 1 << 20)
                if not chunk:
                    raise EOFError
                line += chunk
        return bytes(line)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
            self.process = None


@functools.cache
def shared_judge() -> Judge:
    """The judge of this run: starting one takes seconds, so a class shares it."""
    return Judge()


def _knows_timeouts() -> bool:
    import jax

    return jax.__version_info__ >= (0, 10)  # see grader.devices


def _lost(exercise: Exercise, words: str) -> Judged:
    return present(Verdict(exercise.name, (Outcome(exercise.name, "runs", 0.0, exercise.points, words=words),)))


def main() -> None:
    from grader.devices import eight_devices

    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing but replies goes out
    eight_devices()
    for line in sys.stdin:
        question = json.loads(line)
        exercise = find(question["exercise"])
        cases = exercise.draw_cases(question["seed"], thorough=True)
        judged = present(judge(exercise, cases, from_json(question["answers"])))
        reply = {"outcomes": [asdict(o) for o in judged.verdict.outcomes], "where": judged.verdict.where,
                 "html": judged.html, "text": judged.text}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
