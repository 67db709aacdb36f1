"""What an answer does in several processes at once, and whether two do the same.

The answer is a function `main(process_id, num_processes, ...)`. An array that is spread over processes is compared as
each of them holds it.
"""

from __future__ import annotations

import re
import secrets
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.arrays.described import given_in
from grader.arrays.numbers import same_value
from grader.exercises.answers import Script
from grader.exercises.case import Case
from grader.processes.launch import Launch, Process, launched

SECONDS = 40.0  # for one case, all processes together
STILL = 5.0  # seconds in which nobody computes: they wait for one another


def job_of(script: Script, case: Case, life: int = 0) -> dict[str, Any]:
    """How a script is run on a case: `processes.Job`, as a dict. The case's mesh may say how many seconds it has."""
    return {
        "source": script.source,
        "main": script.main,
        "arguments": given_in(life, case.arguments),
        "seconds": SECONDS,
        "still": STILL,
        **case.mesh,
    }


def start(script: Script, case: Case) -> Launch:
    """Run it on this machine, with the rights of the student who asks."""
    return run_through(script, case, launched)


def run_through(script: Script, case: Case, launch: Callable[[dict[str, Any]], Launch]) -> Launch:
    """Have a script launched on a case. Where the case says at which step it is killed, it is launched once more
    after that, with the folder that it left; what counts is the second launch, or a first that was not killed."""
    if not case.mesh.get("killed_at"):
        return launch(job_of(script, case))
    folder = f"run-{secrets.token_hex(8)}"
    try:
        first = launch({**job_of(script, case), "folder": folder})
        if not was_killed(first):
            return replace(first, survived=True)
        return launch({**job_of(script, case, 1), "folder": folder, "killed_at": 0})
    finally:
        shutil.rmtree(Path(tempfile.gettempdir(), folder), ignore_errors=True)


def was_killed(launch: Launch) -> bool:
    """Whether a process of it was ended by SIGKILL, and not by us."""
    return any(p.status == -signal.SIGKILL for p in launch.processes)


def same_course(one: Launch, other: Launch) -> bool:
    """Whether two launches went the same way. What had been returned when one process failed is a matter of luck."""
    course = _course(one)
    return course == _course(other) and (course[0] == "failed" or same_value(returned(one), returned(other)))


def _course(launch: Launch) -> tuple[Any, ...]:
    """How a launch went, without what differs from one time to the next."""
    if launch.went_well:
        return ("survived" if launch.survived else "well",)
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
