"""A course on programming many devices in JAX, and the autograder that reads the program itself."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grader.arrays.devices import eight_devices as eight_devices
    from grader.arrays.meshes import put as put
    from grader.arrays.ratios import ratios as ratios
    from grader.checking import check as check
    from grader.chips.report import communication as communication
    from grader.first_cell import welcome as welcome
    from grader.guide.guesses import guess as guess
    from grader.guide.hints import hint as hint
    from grader.guide.hints import reset as reset
    from grader.guide.pieces import mine as mine
    from grader.guide.progress import progress as progress
    from grader.guide.receipts import hand_in as hand_in
    from grader.guide.refusals import attempt as attempt
    from grader.guide.reviews import review as review
    from grader.guide.scoreboard import scoreboard as scoreboard
    from grader.jax_versions import all_gather as all_gather
    from grader.processes.launch import launch as launch
    from grader.processes.trial import trial as trial
    from grader.programs.compilations import compilations as compilations
    from grader.replays.watch import replay as replay
    from grader.watching import watch as watch

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

__all__ = sorted([*_HOMES, "draw"])


def __getattr__(name: str) -> Any:
    if name == "draw":
        return importlib.import_module("grader.draw")
    if name not in _HOMES:
        raise AttributeError(f"module 'grader' has no attribute {name!r}")
    globals()[name] = found = getattr(importlib.import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
