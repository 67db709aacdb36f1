"""Run a student's function in several processes, behind walls of its own.

The process that starts them runs nothing of the student's; those that it starts can start no other. What it reports
is untrusted all the same: it comes from them.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import Any, TextIO

from grader.classroom.inside.role import Role
from grader.classroom.inside.seccomp import close_behind
from grader.exercises.as_json import question_from_json
from grader.processes.jobs import Job, run_job


def main(questions: TextIO, replies: TextIO) -> None:
    """Do one job after the other."""
    keeper = _keeper(questions)
    for line in keeper:

        def given() -> Mapping[str, Any]:
            print(file=keeper, flush=True)
            return question_from_json(json.loads(keeper.readline()))

        job = Job(**json.loads(line))
        replies.write(json.dumps(run_job(job, given, confined=close_behind)) + "\n")
        replies.flush()


def _keeper(questions: TextIO) -> TextIO:
    """A process that reads the questions, and what is to be heard of it.

    A fork has all that its maker ever read in its memory. So whoever forks a student's processes must not read what
    each of them is given before they are there: the keeper tells a job first, and its arguments when it is asked.
    """
    here, there = socket.socketpair()
    if os.fork():
        there.close()
        return here.makefile("rw")
    with there.makefile("rw") as forker:
        here.close()
        for line in questions:
            question = json.loads(line)
            arguments = question.pop("arguments")
            print(json.dumps(question), file=forker, flush=True)
            forker.readline()
            print(json.dumps(arguments), file=forker, flush=True)
    os._exit(0)


ROLE = Role(main, starts_processes=True)
