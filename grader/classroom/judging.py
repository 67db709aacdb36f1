"""The judge in a process of its own: it runs students' programs, so it may hang or die, and be replaced.

`Judge` is the side that asks; `main` the side that answers, one JSON line for one JSON line.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import Any

from grader.answers import Answer, fingerprint, from_json
from grader.classroom.sandbox import Limits, confine, kill, read_lines, start
from grader.devices import TIMEOUTS, eight_devices
from grader.exercise import Exercise, Outcome
from grader.judge import Verdict, judge
from grader.lessons import find

SECONDS = 90.0  # for one exercise: compiling and running it on every case, and drawing the card
DEADLOCK = ("It brought the devices down: they wait for each other, because a collective is not reached by all of "
            "them. Every device must run the same collectives in the same order.")
CRASH = "Running it on eight devices ended the process that judges it. Does it need very much memory?"
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
        question = {"exercise": exercise.name, "seed": seed, "answers": answers}
        try:
            try:
                reply = self._ask(question)
            except (EOFError, BrokenPipeError):
                self.close()  # it may have been something else that ended it: ask a fresh one
                reply = self._ask(question)
        except TimeoutError:
            self.close()
            return lost(exercise, f"It did not come to an end within {self.seconds:g} seconds, on arrays of a few "
                                  "hundred entries. Is there a loop that does not end?")
        except (EOFError, BrokenPipeError):
            return lost(exercise, DEADLOCK if self.close() == -signal.SIGABRT else CRASH)
        if "error" in reply:
            return lost(exercise, f"The grader itself failed on this answer, which is not your fault: "
                                  f"{reply['error']} Please tell your instructor.")
        outcomes = tuple(Outcome(**outcome) for outcome in reply["outcomes"])
        return Judged(Verdict(exercise.name, outcomes, reply["where"]), reply["html"], reply["text"])

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self.process is None:
            flags = {"XLA_FLAGS": STUCK} if TIMEOUTS else {}
            self.process = start("grader.classroom.judging", self.home.name, Limits(), {"MPLBACKEND": "agg", **flags},
                                 stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        for line in read_lines(self.process.stdout, time.monotonic() + self.seconds, Limits()):
            return json.loads(line)
        raise EOFError

    def close(self) -> int:
        """End the process, if there is one; returns how it had ended by itself, if it had."""
        process, self.process = self.process, None
        if process is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)  # a process that dies closes its pipes a moment before its status is known
        return kill(process)


@functools.cache
def shared_judge() -> Judge:
    """The judge of this run: starting one takes seconds, so a class shares it."""
    return Judge()


def lost(exercise: Exercise, words: str) -> Judged:
    return present(Verdict(exercise.name, (Outcome(exercise.name, "runs", 0.0, exercise.points, words=words),)))


_GIVEN: dict[tuple[str, int, str], dict[str, Any]] = {}


def answer(exercise: str, seed: int, answers: Any) -> dict[str, Any]:
    """The verdict on these answers, with its card, as JSON types. The same program is judged once."""
    given = from_json(answers)
    key = exercise, seed, fingerprint(given)
    if key not in _GIVEN:
        _GIVEN[key] = _judged(exercise, seed, given)
    return _GIVEN[key]


def _judged(exercise: str, seed: int, given: list[Answer]) -> dict[str, Any]:
    asked = find(exercise)
    judged = present(judge(asked, asked.draw_cases(seed, thorough=True), given))
    return {"outcomes": [asdict(o) for o in judged.verdict.outcomes], "where": judged.verdict.where,
            "html": judged.html, "text": judged.text}


def main() -> None:
    confine()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing but replies goes out
    eight_devices()
    for line in sys.stdin:
        try:
            reply = answer(**json.loads(line))
        except Exception as error:  # a mistake of ours: the class goes on
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
