"""Work for clerks, some of it deadly. It lies by itself, for each clerk that dies imports it again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from grader.classroom.walls.templates import NotStarted


def sleeps(job):
    if job == "slow":
        time.sleep(600)
    return job.upper()


def dies(job):
    """The job is a file, which counts its tries, and after how many it is done."""
    file, tries = job
    with open(file, "a") as counted:
        counted.write("x")
    if len(Path(file).read_text()) < tries:
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def hoards(job):
    hoard = [bytearray(b"x" * (50 << 20)) for _ in range(job)]
    time.sleep(1)
    return len(hoard)


def asks_too_much(job):
    if job:
        raise MemoryError
    return job


def fails(job):
    raise NotStarted("no room")


def starts(job):
    """Processes below one another, as a clerk's templates are."""
    subprocess.Popen([sys.executable, "-c", "import subprocess; subprocess.call(['sleep', '600.25'])"])
    time.sleep(600)
