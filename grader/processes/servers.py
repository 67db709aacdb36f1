"""Processes that serve this one: they read questions from their standard input, and end with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def serving(module: str, what: str, failure: type[RuntimeError], **environment: str) -> subprocess.Popen[str]:
    """Start `python -m module` with this environment on top of ours.

    Raises `failure`, which says that `what` (trials, launches) cannot be run, where no process can be started.
    """
    path = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), **environment}
    try:
        return subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        raise failure(
            f"No process can be started here ({error}). While a hand-in is graded that is so: your {what} "
            "are not run then, and your answers are."
        ) from error
