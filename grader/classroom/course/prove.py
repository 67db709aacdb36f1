"""What proves an exercise: the commands that an author would type, in their order."""

from __future__ import annotations

import sys
from pathlib import Path

OF_EVERY_LESSON = (
    "tests/lessons/test_layout.py",
    "tests/lessons/test_load.py",
    "tests/guide/test_reviews.py",
    "tests/classroom/test_index.py",
)


def lesson_with(root: Path, name: str) -> str:
    """The lesson whose text asks for this answer. Raises LookupError."""
    for source in sorted((root / "solutions").glob("*/*.md")):
        if f":answer: {name}\n" in source.read_text():
            return source.stem
    raise LookupError(
        f"No lesson in solutions/ has a cell `:answer: {name}`. Check the name, or begin it: `grader new LESSON {name}`"
    )


def proof(lesson: str, name: str) -> list[list[str]]:
    """Build the lesson; expect the solution to pass and each mistake to be named; look at the lesson; run its cells."""
    grader, pytest = [sys.executable, "-m", "grader"], [sys.executable, "-m", "pytest"]
    chosen = f"{name} or (reviewed and {lesson})"
    return [
        [*grader, "build", lesson],
        [*pytest, "-m", "", "tests/lessons", "-k", chosen, "--rewrite-goldens"],
        [*pytest, *OF_EVERY_LESSON],
        [*grader, "build", lesson, "--execute"],
    ]
