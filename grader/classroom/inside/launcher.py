"""Run a student's function in several processes, behind walls of its own.

The process that starts them runs nothing of the student's; those that it starts can start no other. What it says
of them is untrusted: it is what they say.
"""

from __future__ import annotations

import importlib
import json
import os
from typing import TextIO

from grader.classroom.inside.seccomp import close_behind
from grader.exercises.as_json import from_json
from grader.processes.jobs import Job, run_job

STARTS_PROCESSES = True  # this one may, and gives that up in each of them


def warm() -> None:
    """Import what such a function needs."""
    for name in (
        "jax.numpy",
        "jax.experimental.multihost_utils",
        "jaxlib.mlir.dialects.mhlo",
        "numpy.testing",
        "numpy.ctypeslib",
        "scipy.linalg",
    ):
        importlib.import_module(name)


def _confined() -> None:
    if os.environ.get("GRADER_SECCOMP"):
        close_behind()


def main(questions: TextIO, replies: TextIO) -> None:
    """Do one job after the other."""
    for line in questions:
        asked = json.loads(line)
        done = run_job(Job(**{**asked, "arguments": from_json(asked["arguments"])}), confined=_confined)
        replies.write(json.dumps(done) + "\n")
        replies.flush()
