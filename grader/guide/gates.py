"""Examples that build on an answer: they wait until it is right."""

from __future__ import annotations

from grader.guide.attempts import is_right_here

NOT_WHILE_GRADED = "A cell that builds on an answer is left out while hand-ins are graded."


def passed(exercise: str) -> bool:
    """Whether the check of an exercise was right in this kernel. If it was not, say what the cell waits for.

    Args:
      exercise: its name.

    Example:
      >>> if passed("forward"):
      ...     print("goes on")
      This cell builds on your `forward`. Get its check right, then run this cell again.
    """
    from grader.lessons import EXERCISES  # here, so that `import grader` stays quick

    if is_right_here(exercise):
        return True
    waits = f"This cell builds on your `{exercise}`. Get its check right, then run this cell again."
    print(waits if EXERCISES else NOT_WHILE_GRADED)
    return False
