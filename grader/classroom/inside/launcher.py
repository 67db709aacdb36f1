"""Run a student's function in several processes, behind walls of its own.

The process that starts them runs nothing of the student's; those that it starts can start no other. What it reports
is untrusted all the same: it comes from them.
"""

from __future__ import annotations

import json
from typing import TextIO

from grader.classroom.inside.role import Role
from grader.classroom.inside.seccomp import close_behind
from grader.exercises.as_json import from_json
from grader.processes.jobs import Job, run_job


def main(questions: TextIO, replies: TextIO) -> None:
    """Do one job after the other."""
    for line in questions:
        question = json.loads(line)
        job = Job(**{**question, "arguments": from_json(question["arguments"])})
        replies.write(json.dumps(run_job(job, confined=close_behind)) + "\n")
        replies.flush()


ROLE = Role(main, starts_processes=True)
