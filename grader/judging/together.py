"""What an answer does in several processes at once, and whether two do the same.

The answer is a function `main(process_id, num_processes, ...)`. An array that is spread over processes is compared as
each of them holds it.
"""

from __future__ import annotations

import re
from typing import Any

from grader.arrays.numbers import same_value
from grader.exercises.answers import Script
from grader.exercises.case import Case
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
    """Run it on this machine, with the rights of the student who asks."""
    return launched(job_of(script, case))


def same_course(one: Launch, other: Launch) -> bool:
    """Whether two launches went the same way. What had been returned when one process failed is a matter of luck."""
    course = _course(one)
    return course == _course(other) and (course[0] == "failed" or same_value(returned(one), returned(other)))


def _course(launch: Launch) -> tuple[Any, ...]:
    """How a launch went, without what differs from one time to the next."""
    if launch.went_well:
        return ("well",)
    if launch.first is not None:
        return ("failed", *_gist(launch.processes[launch.first]))
    return ("waited", tuple(p.number for p in launch.processes if not p.finished and p.raised is None))


def _gist(process: Process) -> tuple[str, str]:
    """The error without numbers, lists of numbers, and names, all of which may differ between spellings."""
    if process.raised is None:
        return "ended", str(process.status)
    kind, message, _ = process.raised
    first = message.strip().splitlines()[0] if message.strip() else ""
    return kind, re.sub(r"\[[^\]]*(\].*|$)|\d+|(?<!\w)'[^']*'|<[^>]*>", "·", first)[:200]


def returned(launch: Launch) -> list[Any]:
    """What each process returned; None for one that did not."""
    return [p.returned for p in launch.processes]
