"""Processes that still run. One that has ended but that nobody has waited for, as in a container, is gone."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil

PATIENCE = 10  # seconds, in which a process that was killed is sure to be gone


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def still_running(processes: Iterable[psutil.Process], patience: float = PATIENCE) -> list[psutil.Process]:
    """Those of the processes that have not ended after `patience` seconds."""
    processes, until = list(processes), time.monotonic() + patience
    while (running := [p for p in processes if runs(p)]) and time.monotonic() < until:
        time.sleep(0.05)
    return running


def with_word(word: str) -> list[psutil.Process]:
    """The processes of this machine that have `word` in their command lines."""
    return [p for p in psutil.process_iter(["cmdline"]) if word in " ".join(p.info["cmdline"] or [])]
