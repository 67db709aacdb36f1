"""The transformer of the capstone, as its text gives it to students: its pieces on one device, and what it learns from.

Its files: `model`, `training`, `runs`, `text`. The functions that answers are held against are with the lesson, and
withheld.
"""

from typing import Any

from grader.renamed import renamed
from grader.transformer.model import AXES, LAYER, NORMS, attention, init_params, mlp, rms_norm
from grader.transformer.runs import compiled, counted
from grader.transformer.text import alphabet, batch_at, examples, zen
from grader.transformer.training import accumulate, adamw, clipped, init_state

__all__ = [
    "AXES",
    "LAYER",
    "NORMS",
    "accumulate",
    "adamw",
    "alphabet",
    "attention",
    "batch_at",
    "clipped",
    "compiled",
    "counted",
    "examples",
    "init_params",
    "init_state",
    "mlp",
    "rms_norm",
    "zen",
]

# Until the next version.
_OLD_NAMES = {"added_up": "accumulate", "initial": "init_params", "started": "init_state"}


def __getattr__(name: str) -> Any:
    return renamed(__name__, _OLD_NAMES, name)
