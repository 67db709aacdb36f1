"""What an answer comes to in several processes at once, and whether that is right.

The answer is a function `main(process_id, num_processes, ...)`. Every process has to come to its end, and to
return what the reference says for it. An array that is spread over processes is compared as each of
them holds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from grader.arrays.described import built
from grader.exercises.answers import Answer, Problem, Script
from grader.exercises.exercise import Case, Exercise
from grader.exercises.plain import plain
from grader.exercises.verdict import Outcome
from grader.judging.errors import in_plain_words
from grader.processes.launch import Launch, Process, launched

SECONDS = 40.0  # for one case, all processes together
STILL = 5.0  # seconds in which nobody computes: they wait for one another


def job_of(script: Script, case: Case) -> dict[str, Any]:
    """How a script is run on a case: `processes.Job`, as a dict."""
    return {
        "source": script.source,
        "main": script.main,
        "arguments": dict(case.arguments),
        **case.mesh,
        "seconds": SECONDS,
        "still": STILL,
    }


def start(script: Script, case: Case) -> Launch:
    """Run it on this machine, as the student who asks."""
    return launched(job_of(script, case))


def expected(exercise: Exercise, case: Case) -> list[Any]:
    """What each process has to return."""
    count = case.mesh["processes"]
    return [plain(exercise.reference(number, count, **built(dict(case.arguments)))) for number in range(count)]


def ends(found: Launch | Answer) -> str:
    """Why not every process came to its end; "" when all did."""
    if isinstance(found, Problem):
        return f"{found.error}: {found.message}" if found.error else in_plain_words(found)
    if not isinstance(found, Launch):
        return "The answer should be a function `main(process_id, num_processes)`."
    return "" if found.went_well else found.headline


def alike(one: Launch, other: Launch, same: Callable[[Any, Any], bool]) -> bool:
    """Whether two launches went the same way. What had been returned when one process failed is a matter of luck."""
    way = _course(one)
    return way == _course(other) and (way[0] == "failed" or same(returned(one), returned(other)))


def _course(found: Launch) -> tuple[Any, ...]:
    """How a launch went, without what differs from one time to the next."""
    if found.went_well:
        return ("well",)
    if found.first is not None:
        return ("failed", *_gist(found.processes[found.first]))
    return ("waited", tuple(p.number for p in found.processes if not p.finished and p.raised is None))


def _gist(process: Process) -> tuple[str, str]:
    """The error, without numbers, lists of them, and names, which may be spelled otherwise."""
    if process.raised is None:
        return "ended", str(process.status)
    kind, message, _ = process.raised
    first = message.strip().splitlines()[0] if message.strip() else ""
    return kind, re.sub(r"\[[^\]]*(\].*|$)|\d+|(?<!\w)'[^']*'|<[^>]*>", "·", first)[:200]


def returned(found: Launch) -> list[Any]:
    """What each process returned; None for one that did not."""
    return [p.returned for p in found.processes]


def outcomes(exercise: Exercise, missed: str, words: str, mistake: str) -> tuple[Outcome, ...]:
    """The two checks of such an exercise: all come to an end; all return what they should."""
    ended = Outcome(exercise.name, "ends", 0.0, 0.0)
    whole = exercise.points
    if not missed:
        return ended, Outcome(exercise.name, "values", whole, whole)
    if missed == "ends":
        return (
            Outcome(exercise.name, "ends", 0.0, 0.0, mistake, words),
            Outcome(exercise.name, "values", 0.0, whole, words="Not tried: “ends” comes first."),
        )
    return ended, Outcome(exercise.name, "values", 0.0, whole, mistake, words)


def first_wrong(answers: Sequence[Any], due: Sequence[Any], same: Any) -> int | None:
    """The first process that returned something else."""
    return next((k for k, (a, d) in enumerate(zip(answers, due, strict=True)) if not same(a, d)), None)
