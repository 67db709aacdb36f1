"""The transformer of the capstone, as its text gives it to students: its pieces on one device, and what it learns from.

Its files: `model`, `training`, `runs`, `text`. The functions that answers are held against are with the lesson, and
withheld.
"""

from grader.transformer.model import AXES, LAYER, NORMS, attention, initial, mlp, rms_norm
from grader.transformer.runs import compiled, counted
from grader.transformer.text import alphabet, batch_at, examples, zen
from grader.transformer.training import adamw, added_up, clipped, started

__all__ = [
    "AXES",
    "LAYER",
    "NORMS",
    "adamw",
    "added_up",
    "alphabet",
    "attention",
    "batch_at",
    "clipped",
    "compiled",
    "counted",
    "examples",
    "initial",
    "mlp",
    "rms_norm",
    "started",
    "zen",
]
