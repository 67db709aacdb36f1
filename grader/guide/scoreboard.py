"""A lesson's programs held against the compiler's: the bytes that are enough, that were reached, that it sends."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from grader.arrays.words import as_inline_html
from grader.exercises.compilers import compilers_bytes, par
from grader.exercises.exercise import Exercise
from grader.exercises.forms import ProgramExercise
from grader.exercises.verdict import Score
from grader.guide.attempts import Attempt, attempts
from grader.guide.progress import NO_LESSONS
from grader.guide.syllabus import syllabus

HEADER = ("exercise", "par", "yours", "the compiler's", "")
OPEN = "–"
NOTE = "Bytes that each device sends, added up over the cases of a check. ★ is for fewer than the compiler's."
NO_RIVAL = "No exercise here is held against the compiler."


@dataclass(frozen=True)
class Round:
    """One exercise: bytes that are enough, the fewest that a right answer sent (None: none yet), the compiler's."""

    exercise: str
    par: int
    best: int | None
    compilers: int

    @property
    def cells(self) -> tuple[str, ...]:
        star = "★" if self.best is not None and Score(self.par, self.best, self.compilers).star else ""
        best = OPEN if self.best is None else f"{self.best:,} B"
        return self.exercise, f"{self.par:,} B", best, f"{self.compilers:,} B", star


@dataclass(frozen=True)
class Scoreboard:
    """The exercises of a lesson that are held against the compiler, in the order of its text.

    `note` says what the numbers are, or why there are none.
    """

    rounds: tuple[Round, ...]
    note: str

    def __repr__(self) -> str:
        if not self.rounds:
            return self.note
        rows = [HEADER, *(each.cells for each in self.rounds)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join([*(_line(row, widths) for row in rows), self.note])

    def _repr_html_(self) -> str:
        note = f"<p>{as_inline_html(self.note)}</p>"
        if not self.rounds:
            return note
        header = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in HEADER)
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in each.cells) for each in self.rounds)
        rows = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>{note}"


def scoreboard(lesson: str) -> Scoreboard:
    """Your programs against the compiler's, in one lesson: par, the fewest bytes that you reached, the compiler's.

    Args:
      lesson: its name, that of its folder. A ValueError names those there are.

    Example:
      >>> grader.scoreboard("07_matmul")
      exercise ...
    """
    from grader.lessons import EXERCISES  # here, so that `import grader` stays quick

    texts = {one.name: one.exercises for one in syllabus()}
    if not texts:
        return Scoreboard((), NO_LESSONS)
    if lesson not in texts:
        raise ValueError(f"There is no lesson {lesson!r}; there are {', '.join(texts)}.")
    asked = [EXERCISES[text.name] for text in texts[lesson]]
    rivals = [one for one in asked if isinstance(one, ProgramExercise) and one.against_compiler]
    made = attempts()
    return Scoreboard(tuple(_round(exercise, made) for exercise in rivals), NOTE if rivals else NO_RIVAL)


def _round(exercise: Exercise, made: Sequence[Attempt]) -> Round:
    """An exercise on the cases of a notebook; what was reached on others, before they changed, does not count."""
    cases = exercise.draw_cases()
    enough = par(cases)
    reached = (a.sent for a in made if a.exercise == exercise.name and a.par == enough and a.sent is not None)
    return Round(exercise.name, enough, min(reached, default=None), compilers_bytes(exercise, cases))


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    """A row of the table: the name to the left, the numbers to the right."""
    name, *numbers = widths
    cells = (cell.rjust(width) for cell, width in zip(row[1:], numbers, strict=True))
    return "  ".join([row[0].ljust(name), *cells]).rstrip()
