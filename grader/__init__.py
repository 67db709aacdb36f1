"""A course on programming many devices in JAX, and the autograder that reads the program itself."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grader.arrays.devices import eight_devices
    from grader.arrays.meshes import put
    from grader.arrays.ratios import ratios
    from grader.checking import check
    from grader.chips.report import communication
    from grader.first_cell import welcome
    from grader.guide.guesses import guess
    from grader.guide.hints import hint, reset
    from grader.guide.pieces import mine
    from grader.guide.progress import progress
    from grader.guide.receipts import hand_in
    from grader.guide.refusals import attempt
    from grader.guide.reviews import review
    from grader.guide.scoreboard import scoreboard
    from grader.jax_versions import all_gather
    from grader.processes.launch import launch
    from grader.processes.trial import trial
    from grader.programs.compilations import compilations
    from grader.replays.watch import replay
    from grader.watching import watch

# Where each public name is. It is imported when it is first asked for: a report needs no exercises, a check no picture.
# (So no module in this folder may have the name of a function.)
_HOMES = {
    "all_gather": "grader.jax_versions",
    "attempt": "grader.guide.refusals",
    "check": "grader.checking",
    "communication": "grader.chips.report",
    "compilations": "grader.programs.compilations",
    "eight_devices": "grader.arrays.devices",
    "guess": "grader.guide.guesses",
    "hand_in": "grader.guide.receipts",
    "hint": "grader.guide.hints",
    "launch": "grader.processes.launch",
    "mine": "grader.guide.pieces",
    "progress": "grader.guide.progress",
    "put": "grader.arrays.meshes",
    "ratios": "grader.arrays.ratios",
    "replay": "grader.replays.watch",
    "reset": "grader.guide.hints",
    "review": "grader.guide.reviews",
    "scoreboard": "grader.guide.scoreboard",
    "trial": "grader.processes.trial",
    "watch": "grader.watching",
    "welcome": "grader.first_cell",
}

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
    if name == "draw":
        return importlib.import_module("grader.draw")
    if name not in _HOMES:
        raise AttributeError(f"module 'grader' has no attribute {name!r}")
    globals()[name] = found = getattr(importlib.import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
