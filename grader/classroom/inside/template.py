"""The process that forks: `python -m grader.classroom.inside.template MODULE DESCRIPTOR`, behind the walls.

It imports what a run needs and starts no thread and no backend, so that a fork of it is a whole process. For every run
it gets, over the control socket, the limits and three descriptors (the job, the wire, a place for complaints), and it
replies with the fork's exit status. It is process 1 of its namespace: no process in it can stop it, and when it ends,
because the grader has ended or because it was killed, all others end too.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
from pathlib import Path

from grader.classroom.inside.limits import Limits, confine
from grader.classroom.inside.role import Role
from grader.classroom.inside.seccomp import close_behind, hide_from_children
from grader.jax_versions import find_plugins

FEW_SWEEPS = 50_000  # new objects between two looks for garbage, in processes that live for seconds


def main() -> None:
    name, descriptor = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    role: Role = importlib.import_module(f"{__package__}.{name}").ROLE
    role.warm()
    find_plugins()
    hide_from_children()
    gc.collect()
    gc.freeze()  # what is imported stays shared with the forks
    gc.set_threshold(FEW_SWEEPS)
    with socket.socket(fileno=int(descriptor)) as control:
        control.send(b"ready")
        while (status := _run(role, control)) is not None:
            control.send(str(status).encode())


def _run(role: Role, control: socket.socket) -> int | None:
    """Fork for the next run and return its exit status; None when there is no next one, or nobody waits for it."""
    message, descriptors, *_ = socket.recv_fds(control, 1 << 16, 3)
    if not message:
        return None
    if not (child := os.fork()):
        control.close()
        _play(role, Limits(**json.loads(message)), *descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return _await(child, control)


def _await(child: int, control: socket.socket) -> int | None:
    descriptor = os.pidfd_open(child)
    try:
        ready, _, _ = select.select([descriptor, control.fileno()], [], [])
        if descriptor not in ready:  # the grader is gone, or its patience is
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        _, status = os.waitpid(child, 0)
        _end_the_rest()
        _sweep()
        return status
    finally:
        os.close(descriptor)


def _end_the_rest() -> None:
    """Kill whatever a run has left running.

    Without walls the machine is not ours alone, and a run's processes end with the one that started them.
    """
    if os.getpid() != 1:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _sweep() -> None:
    """Remove what a run has written, so that the next one finds nothing."""
    for place in (Path.home(), Path("/dev/shm")):
        if place == Path("/dev/shm") and os.getpid() != 1:
            continue  # not ours: without walls it is the machine's
        for path in place.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, onerror=_unlocked)
            else:
                path.unlink()


def _unlocked(_: object, path: str, __: object) -> None:
    """Remove what could not be removed because its maker has locked the folder."""
    for folder in (os.path.dirname(path), path):
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def _play(role: Role, limits: Limits, job: int, wire: int, complaints: int) -> None:
    """Be the run: of the template nothing is left but what it has imported. Does not return."""
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for source, target in ((nowhere, 0), (nowhere, 1), (complaints, 2)):
            os.dup2(source, target)
        os.chdir(Path.home())
        confine(limits)
        if not role.starts_processes:
            close_behind()
        with open(job) as questions, open(wire, "w") as answers:
            role.main(questions, answers)
        status = 0
    finally:
        os._exit(status)  # threads and exit handlers are not waited for


if __name__ == "__main__":
    main()
