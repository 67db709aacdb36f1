"""A course on programming many devices in JAX, and the autograder that reads the program itself."""

from grader import draw
from grader.arrays.devices import eight_devices
from grader.arrays.ratios import ratios
from grader.check import check
from grader.chips.report import communication
from grader.first_cell import welcome
from grader.guide.hints import hint, reset
from grader.guide.progress import progress
from grader.guide.receipts import hand_in
from grader.processes.launch import launch
from grader.processes.trial import trial
from grader.replay.watch import replay
from grader.reviews.asking import review

__all__ = [
    "check",
    "communication",
    "draw",
    "eight_devices",
    "hand_in",
    "hint",
    "launch",
    "progress",
    "ratios",
    "replay",
    "reset",
    "review",
    "trial",
    "welcome",
]
