"""A course on programming many devices in JAX, and the autograder that reads the program itself."""

from grader import draw
from grader.check import check
from grader.communication import communication
from grader.devices import eight_devices
from grader.launch import launch
from grader.ratios import ratios
from grader.review import review
from grader.trial import trial

__all__ = ["check", "communication", "draw", "eight_devices", "launch", "ratios", "review", "trial"]
