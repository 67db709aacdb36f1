"""Run a student's function in several processes, behind walls of its own.

The process that starts them runs nothing of the student's; those that it starts can start no other. What it reports
is untrusted all the same: it comes from them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from grader.classroom.inside.role import Role
from grader.classroom.inside.seccomp import close_behind
from grader.exercises.as_json import question_from_json
from grader.processes.jobs import Job, run_job

ANSWERED = 3  # the exit status of a fork that has done a job: there may be another


def main(questions: TextIO, replies: TextIO) -> None:
    """Do one job after the other, each in a fork of its own: of no job's arguments is anything left for the next."""
    keeper = _keeper(questions)
    while (code := _in_a_fork(functools.partial(_do_next, keeper, replies))) == ANSWERED:
        pass
    if code < 0:  # killed, perhaps by a machine short of memory: whoever waits for this process is to see that
        os.kill(os.getpid(), -code)
    if code:
        sys.exit(code)


def _keeper(questions: TextIO) -> socket.socket:
    """A process that reads the questions, and what is to be asked.

    A fork has all that its maker ever read in its memory. So whoever forks a student's processes must not read what
    each of them is given before they are there. At each line the keeper tells what comes next, and no more: first a
    job, then its arguments.
    """
    here, there = socket.socketpair()
    if os.fork():
        there.close()
        return here
    here.close()
    with there.makefile("rw") as asked, contextlib.suppress(BrokenPipeError):
        while asked.readline() and (line := questions.readline()):
            question = json.loads(line)
            arguments = question.pop("arguments")
            print(json.dumps(question), file=asked, flush=True)
            asked.readline()
            print(json.dumps(arguments), file=asked, flush=True)
    os._exit(0)


def _in_a_fork(work: Callable[[], int]) -> int:
    """The exit code of a fork that does a piece of work: what that says, 1 if it fails, less than 0 if it is killed."""
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    code = 1
    try:
        code = work()
    finally:
        os._exit(code)


def _do_next(keeper: socket.socket, replies: TextIO) -> int:
    """Do the next job: `ANSWERED`, or 0 where there was none."""
    with keeper.makefile("rw") as told:

        def next_line() -> str:
            print(file=told, flush=True)
            return told.readline()

        def given() -> Mapping[str, Any]:
            return question_from_json(json.loads(next_line()))

        if not (line := next_line()):
            return 0
        replies.write(json.dumps(run_job(Job(**json.loads(line)), given, confined=close_behind)) + "\n")
        replies.flush()
        return ANSWERED


ROLE = Role(main, starts_processes=True)
