"""A course on programming many devices in JAX, and the autograder that reads the program itself."""

import importlib
from typing import Any

from grader.arrays.devices import eight_devices
from grader.arrays.meshes import put
from grader.arrays.ratios import ratios
from grader.check import check
from grader.chips.report import communication
from grader.first_cell import welcome
from grader.guide.guesses import guess
from grader.guide.hints import hint, reset
from grader.guide.pieces import mine
from grader.guide.progress import progress
from grader.guide.receipts import hand_in
from grader.guide.refusals import attempt
from grader.guide.scoreboard import scoreboard
from grader.jax_versions import all_gather
from grader.processes.launch import launch
from grader.processes.trial import trial
from grader.programs.compilations import compilations
from grader.replay.watch import replay
from grader.reviews.asking import review
from grader.watch import watch

__all__ = [
    "all_gather",
    "attempt",
    "check",
    "communication",
    "compilations",
    "draw",
    "eight_devices",
    "guess",
    "hand_in",
    "hint",
    "launch",
    "mine",
    "progress",
    "put",
    "ratios",
    "replay",
    "reset",
    "review",
    "scoreboard",
    "trial",
    "watch",
    "welcome",
]


def __getattr__(name: str) -> Any:
    """`grader.draw`, when it is first asked for: matplotlib takes its time, and most processes draw nothing."""
    if name == "draw":
        return importlib.import_module("grader.draw")
    raise AttributeError(f"module 'grader' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
