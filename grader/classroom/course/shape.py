"""What a lesson's core may ask: an hour, six exercises, at least half of them programs or functions, and no skipping.

`grader build` refuses a lesson that asks more.
"""

from __future__ import annotations

from collections.abc import Iterator

from nbformat import NotebookNode

from grader.classroom.course.headings import GOING_FURTHER, exercise_heading
from grader.classroom.course.minutes import honest_minutes
from grader.exercises.forms import TableExercise, TimetableExercise
from grader.lessons import EXERCISES

CORE_MINUTES, CORE_EXERCISES = 60, 6
BEGUN = 3  # core exercises of a lesson that is more than a beginning
# Lessons that have their old shape until they are rewritten. This list only gets shorter.
NOT_YET = (
    "09_cost",
    "12_data_parallel",
    "13_tensor_parallel",
    "14_fsdp",
    "15_collective_matmul",
    "16_pipelines",
    "17_experts",
    "18_long_context",
    "19_multihost",
    "20_sharp_bits",
    "21_real_chips",
    "22_capstone",
)


class Misshapen(ValueError):
    """A lesson whose core asks too much; the text says of what."""


def must_have_the_shape(lesson: NotebookNode, name: str) -> None:
    """Raise Misshapen, with everything that is wrong, if the core of a lesson (without its frame) asks too much."""
    if name not in NOT_YET and (wrong := " ".join(_too_much(lesson))):
        raise Misshapen(f"{name}: {wrong}")


def _too_much(lesson: NotebookNode) -> Iterator[str]:
    core, out_of_place = _exercises(lesson)
    if (minutes := honest_minutes(lesson).exact) > CORE_MINUTES:
        yield (
            f"The core takes {minutes:.1f} minutes, and {CORE_MINUTES} is the limit. "
            f"Move something below “{GOING_FURTHER}”, or say it in fewer words."
        )
    if len(core) > CORE_EXERCISES:
        yield f"The core has {len(core)} exercises, and {CORE_EXERCISES} is the limit."
    tables = [one for one in core if isinstance(EXERCISES.get(one), TableExercise | TimetableExercise)]
    if 2 * len(tables) > len(core) >= BEGUN:
        yield (
            f"Of the {len(core)} core exercises, {len(tables)} are tables: {', '.join(tables)}. "
            "At least half should be programs or functions."
        )
    if out_of_place:
        yield (
            f"Core exercises come before the heading “{GOING_FURTHER}”, and stretch exercises after it: "
            f"move {', '.join(out_of_place)}."
        )


def _exercises(lesson: NotebookNode) -> tuple[list[str], list[str]]:
    """The exercises of the core, and those whose heading is on the wrong side of "Going further"."""
    core: list[str] = []
    out_of_place: list[str] = []
    further = False
    for line in "\n".join(cell.source for cell in lesson.cells if cell.cell_type == "markdown").split("\n"):
        further = further or line.rstrip() == GOING_FURTHER
        if heading := exercise_heading(line):
            core += heading.names if heading.is_core else ()
            out_of_place += heading.names if heading.is_core == further else ()
    return core, out_of_place
