"""What starts a student's processes, one job after the other: none has in its memory what an earlier one was given."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import pytest

from grader.arrays.described import PerProcess
from grader.exercises.as_json import to_json

MARK = "a part that "  # (what is looked for must not stand in a script that looks for it)


def counts_parts(process_id, num_processes, *, part):
    """How many processes' parts there are in this one's memory: of this job, and of others."""
    import ctypes
    import pathlib
    import re

    found = set()
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        place, rights = line.split()[:2]
        start, stop = (int(end, 16) for end in place.split("-"))
        if rights.startswith("rw") and stop - start < 1 << 28:
            found |= set(re.findall(rb"a part[ ]that \w+ has", ctypes.string_at(start, stop - start)))
    return sorted(text.decode() for text in found)


def question(job):
    parts = [f"{MARK}{job}{number} has, {'and ' * 2000}" for number in range(2)]
    return {
        "source": inspect.getsource(counts_parts),
        "main": "counts_parts",
        "processes": 2,
        "devices": 1,
        "seconds": 30,
        "arguments": to_json({"part": PerProcess(tuple(parts))}),
    }


def launched(jobs, before=""):
    code = f"import sys; from grader.classroom.inside import launcher; {before}launcher.main(sys.stdin, sys.stdout)"
    told = "".join(json.dumps(question(job)) + "\n" for job in jobs)
    return subprocess.run([sys.executable, "-c", code], input=told, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def replies():
    """What three jobs, one after the other, are answered."""
    done = launched(("first", "second", "third"))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_job_is_answered(replies):
    assert [[p["status"] for p in reply["processes"]] for reply in replies] == [[0, 0]] * 3


def test_a_process_has_no_part_but_its_own_in_its_memory(replies):
    seen = [[p["returned"] for p in reply["processes"]] for reply in replies]
    assert seen == [[[f"{MARK}{job}{number} has"] for number in range(2)] for job in ("first", "second", "third")]


@pytest.mark.parametrize("code, how", [(-9, "os.kill(os.getpid(), 9)"), (1, "1 / 0")])
def test_it_ends_as_the_fork_ends_that_does_a_job(code, how):
    done = launched(["first"], before=f"import os; launcher.run_job = lambda *_, **__: {how}; ")
    assert (done.returncode, done.stdout) == (code, "")
